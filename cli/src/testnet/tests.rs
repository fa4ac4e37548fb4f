//! What is written fits together.

use std::path::Path;

use node::config::load;

use super::*;
use crate::testing::parsed;

fn arguments(out: &Path, more: &[&str]) -> TestnetArgs {
    let folder = out.to_str().expect("a temporary folder has a plain name");
    parsed(&[&["--out", folder], more].concat())
}

fn make(out: &Path, more: &[&str]) -> Outcome {
    run(&arguments(out, more), &mut Vec::new())
}

#[test]
fn every_node_knows_all_others_and_the_same_genesis() {
    for more in [&["--local"][..], &[]] {
        knows_all_others_and_the_same_genesis(more);
    }
}

fn knows_all_others_and_the_same_genesis(more: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &[&["--validators", "3", "--followers", "2"], more].concat()).unwrap();
    let names = ["node0", "node1", "node2", "follower0", "follower1"];
    let genesis = super::super::genesis::parse(&folder.path().join("node0/genesis.json")).unwrap();
    assert_eq!((3, 10), (genesis.validators().len(), genesis.accounts().len()));
    assert_eq!(Some(0), genesis.chain().forks.validator_vote, "a lost validator can be replaced");
    for name in names {
        let home = Home::new(folder.path().join(name));
        let own = super::super::genesis::parse(&home.genesis()).unwrap();
        assert_eq!(genesis.hash(), own.hash());
        let config = load(&[], Some(&home.config()), std::iter::empty(), &[]).unwrap().config;
        let seed = keyfile::read(&home.node_key()).unwrap();
        let own_id = consensus::peer_id(&seed).unwrap();
        for peers in [&config.p2p.peers, &config.p2p.gossip.peers] {
            assert_eq!(4, peers.len(), "{name}");
            assert!(!peers.iter().any(|peer| peer.ends_with(&own_id)), "{name} is told itself");
        }
        let votes = home.validator_key().exists();
        assert_eq!(name.starts_with("node"), votes, "{name}");
        if votes {
            let key = Keypair::from_seed(&keyfile::read(&home.validator_key()).unwrap());
            let listed = genesis.validators().iter().any(|it| it.public_key == key.public_key());
            assert!(listed, "{name} is a validator of the genesis");
        }
    }
}

#[test]
fn a_testnet_is_not_written_over_another() {
    for first in [&["--local"][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), first).unwrap();
        let before = std::fs::read(folder.path().join("node0/genesis.json")).unwrap();
        for second in [&["--local"][..], &[]] {
            assert!(matches!(make(folder.path(), second), Err(CliError::Usage(_))));
        }
        assert_eq!(before, std::fs::read(folder.path().join("node0/genesis.json")).unwrap());
    }
}

#[test]
fn wrong_arguments_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in [
        &["--base-port", "65534"][..],
        &["--base-port", "65500", "--local", "--validators", "10"],
        &["--param", "noSuch=1"],
        &["--chain-id", ""],
        &["--source", "/nowhere"],
    ] {
        assert!(matches!(make(folder.path(), wrong), Err(CliError::Usage(_))), "{wrong:?}");
    }
    assert_eq!(0, std::fs::read_dir(folder.path()).unwrap().count());
}

fn written(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn containers_find_each_other_by_name_and_are_called_on_loopback() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--validators", "2", "--followers", "1", "--base-port", "31500"];
    make(folder.path(), &more).unwrap();
    let config = folder.path().join("node1/config.toml");
    let config = load(&[], Some(&config), std::iter::empty(), &[]).unwrap().config;
    let (first, second) = (&config.p2p.peers[0], &config.p2p.gossip.peers[1]);
    assert!(first.starts_with("/dns4/node0/tcp/30777/p2p/"), "{first}");
    assert!(second.starts_with("/dns4/follower0/tcp/30778/p2p/"), "{second}");
    assert_eq!("0.0.0.0:8777".parse(), Ok(config.rpc.listen));
    assert_eq!(vec!["node1".to_owned()], config.rpc.hosts, "the guard against foreign names is on");

    let compose = written(folder.path(), "compose.yaml");
    for line in [
        "    ports: [\"127.0.0.1:31501:8777\"]",
        "    volumes: [\"follower0:/var/lib/ombra\"]",
        "      - node1:/homes/node1",
        "    ports: [\"127.0.0.1:31503:9090\"]",
    ] {
        assert!(compose.lines().any(|it| it == line), "{line} is not in\n{compose}");
    }
    let published = compose.lines().filter(|line| line.trim_start().starts_with("ports:"));
    for line in published {
        assert!(line.contains("[\"127.0.0.1:"), "{line} is open to other machines");
    }
    let prometheus = written(folder.path(), "monitoring/prometheus/prometheus.yml");
    assert!(prometheus.contains("[\"node0:9777\", \"node1:9777\", \"follower0:9777\"]"));
    assert!(!folder.path().join("node0/data").exists(), "the data are in volumes");
}

#[test]
fn no_place_of_the_templates_is_left_open() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &["--validators", "1"]).unwrap();
    for name in ["compose.yaml", "README.md", ".env", "monitoring/prometheus/prometheus.yml"] {
        let text = written(folder.path(), name);
        assert!(!text.contains('@'), "{name}:\n{text}");
    }
}

#[test]
fn what_other_users_read_is_readable_and_what_is_secret_is_not() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &["--validators", "1"]).unwrap();
    for (name, mode) in [
        (".env", 0o600),
        ("node0/keys/validator.key", 0o600),
        ("monitoring/prometheus", 0o755),
        ("monitoring/grafana/provisioning/datasources/ombra.yaml", 0o644),
        ("monitoring/grafana/dashboards/ombra.json", 0o644),
    ] {
        let facts = std::fs::metadata(folder.path().join(name)).unwrap();
        assert_eq!(mode, facts.permissions().mode() & 0o777, "{name}");
    }
}

#[test]
fn two_testnets_do_not_share_volumes() {
    let projects: Vec<_> = (0..2)
        .map(|_| {
            let folder = tempfile::tempdir().unwrap();
            make(folder.path(), &["--validators", "1", "--chain-id", "My_Chain.1"]).unwrap();
            let text = written(folder.path(), ".env");
            let line = text.lines().find_map(|it| it.strip_prefix("COMPOSE_PROJECT_NAME="));
            line.expect("the project has a name").to_owned()
        })
        .collect();
    assert_ne!(projects[0], projects[1]);
    let allowed =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    assert!(projects[0].starts_with("n-my-chain-1-") && projects[0].chars().all(allowed));
}
