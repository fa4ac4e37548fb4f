//! What is written fits together.

use std::path::Path;

use clap::Parser;

use super::*;
use crate::config::load;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: TestnetArgs,
}

fn arguments(out: &Path, more: &[&str]) -> TestnetArgs {
    let folder = out.to_str().expect("a temporary folder has a plain name");
    let line = ["testnet", "--local", "--out", folder].into_iter().chain(more.iter().copied());
    Line::try_parse_from(line).expect("arguments").args
}

fn make(out: &Path, more: &[&str]) -> Outcome {
    run(&arguments(out, more), &mut Vec::new())
}

#[test]
fn every_node_knows_all_others_and_the_same_genesis() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &["--validators", "3", "--followers", "2"]).unwrap();
    let names = ["node0", "node1", "node2", "follower0", "follower1"];
    let genesis = super::super::genesis::parse(&folder.path().join("node0/genesis.json")).unwrap();
    assert_eq!((3, 10), (genesis.validators().len(), genesis.accounts().len()));
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
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &["--validators", "1"]).unwrap();
    let before = std::fs::read(folder.path().join("node0/genesis.json")).unwrap();
    assert!(matches!(make(folder.path(), &["--validators", "1"]), Err(CliError::Usage(_))));
    assert_eq!(before, std::fs::read(folder.path().join("node0/genesis.json")).unwrap());
}

#[test]
fn wrong_arguments_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in [&["--base-port", "65534"][..], &["--param", "noSuch=1"]] {
        assert!(matches!(make(folder.path(), wrong), Err(CliError::Usage(_))), "{wrong:?}");
    }
    assert_eq!(0, std::fs::read_dir(folder.path()).unwrap().count());
}
