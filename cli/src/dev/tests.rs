//! What `ombra dev` does to a folder before its node runs.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::Parser;
use node::config::{Config, Home};
use tempfile::TempDir;

use super::super::lock::HomeLock;
use super::{DevArgs, settings};
use crate::client::CliError;
use crate::command::Cli;
use crate::testing::parsed;

/// A folder, and the program run on it.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn home(&self) -> Home {
        Home::new(self.0.path().to_owned())
    }

    fn text(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    async fn ombra(&self, arguments: &[&str]) -> Result<(), CliError> {
        let all = [&["ombra"], arguments].concat();
        Cli::parse_from(all).run().await
    }

    /// `ombra dev` on the folder, which is to fail before a node runs.
    async fn dev_fails(&self, arguments: &[&str]) -> CliError {
        let folder = self.text("");
        let all = [&["dev", "--data-dir", &folder, "--rpc", "127.0.0.1:0"], arguments].concat();
        self.ombra(&all).await.unwrap_err()
    }

    /// A genesis file in the folder whose only validator is another key.
    async fn foreign_genesis(&self) -> String {
        let file = self.text("foreign.json");
        let validator = format!("{}=1", types::Keypair::from_seed(&[9; 32]).public_key());
        let new = ["genesis", "new", "--chain-id", "x", "--validator", &validator, "--out", &file];
        self.ombra(&new).await.unwrap();
        file
    }
}

fn settings_of(arguments: &[&str], variables: &[(&str, &str)]) -> Config {
    let dev: DevArgs = parsed(arguments);
    let text = |text: &str| OsString::from(text);
    let variables = variables.iter().map(|(name, value)| (text(name), text(value)));
    settings(&dev, &Home::new("/nowhere".into()), variables).unwrap()
}

#[test]
fn the_environment_beats_what_dev_would_choose_and_flags_beat_it() {
    let variables = [("OMBRA__RPC__LISTEN", "127.0.0.1:1"), ("OMBRA__LOG__FILTER", "info")];
    let chosen = settings_of(&[], &variables);
    assert_eq!(("127.0.0.1:1", "info"), (&*chosen.rpc.listen.to_string(), &*chosen.log.filter));
    let flags = settings_of(&["--rpc", "127.0.0.1:2", "--log", "debug"], &variables);
    assert_eq!(("127.0.0.1:2", "debug"), (&*flags.rpc.listen.to_string(), &*flags.log.filter));
    assert_eq!("warn", settings_of(&[], &[]).log.filter);
}

#[test]
fn peers_may_connect_where_dev_listens_for_them() {
    assert!(!settings_of(&[], &[]).p2p.open);
    let open = settings_of(&["--p2p", "127.0.0.1:5"], &[]).p2p;
    assert_eq!(("/ip4/127.0.0.1/tcp/5", true), (&*open.listen, open.open));
    assert!(!settings_of(&["--p2p", "127.0.0.1:5"], &[("OMBRA__P2P__OPEN", "false")]).p2p.open);
}

#[tokio::test]
async fn a_reset_deletes_nothing_of_a_chain_that_dev_did_not_make_or_that_is_in_use() {
    let folder = Folder::new();
    let home = folder.home();
    let genesis = folder.foreign_genesis().await;
    folder.ombra(&["init", "--home", &folder.text(""), "--genesis", &genesis]).await.unwrap();
    let signed = home.consensus().join("last-signed");
    fs::create_dir_all(home.consensus()).unwrap();
    fs::write(&signed, "").unwrap();
    let refused = folder.dev_fails(&["--reset"]).await;
    assert_eq!((2, true), (refused.exit_code(), refused.to_string().contains("not made by")));
    assert!(signed.exists() && home.genesis().exists());

    fs::write(home.dev_mark(), "").unwrap();
    let refused = folder.dev_fails(&["--reset", "--mnemonic", "not words"]).await;
    assert_eq!(2, refused.exit_code(), "{refused}");
    let refused = folder.dev_fails(&["--reset", "--param", "nothing=1"]).await;
    assert_eq!(2, refused.exit_code(), "{refused}");
    let lock = HomeLock::take(&home).unwrap();
    let refused = folder.dev_fails(&["--reset"]).await;
    assert!(refused.to_string().contains("in use by process"), "{refused}");
    drop(lock);
    assert!(signed.exists() && home.genesis().exists());
}

#[tokio::test]
async fn a_genesis_of_other_validators_is_refused_with_the_key_that_it_should_name() {
    let folder = Folder::new();
    let genesis = folder.foreign_genesis().await;
    let refused = folder.dev_fails(&["--genesis", &genesis]).await;
    let key = node::keyfile::read(&folder.home().validator_key()).unwrap();
    let key = types::Keypair::from_seed(&key).public_key().to_string();
    assert_eq!((2, true), (refused.exit_code(), refused.to_string().contains(&key)), "{refused}");
    assert!(!folder.home().genesis().exists());
}

#[tokio::test]
async fn a_missing_genesis_file_is_wrong_usage() {
    let folder = Folder::new();
    let refused = folder.dev_fails(&["--genesis", "/nowhere/genesis.json"]).await;
    assert_eq!(2, refused.exit_code(), "{refused}");
}

#[tokio::test]
async fn an_init_that_was_interrupted_can_be_repeated() {
    let folder = Folder::new();
    let genesis = folder.foreign_genesis().await;
    let home = folder.home();
    fs::write(home.config(), "# whole, and without genesis beside it\n").unwrap();
    let init = ["init", "--home", &folder.text(""), "--genesis", &genesis];
    folder.ombra(&init).await.unwrap();
    let config = fs::read_to_string(home.config()).unwrap();
    assert!(config.starts_with("# whole") && home.genesis().exists());
    assert_eq!(2, folder.ombra(&init).await.unwrap_err().exit_code());
}

#[tokio::test]
async fn a_new_home_sets_nothing_so_that_later_defaults_hold() {
    let folder = Folder::new();
    let genesis = folder.foreign_genesis().await;
    folder.ombra(&["init", "--home", &folder.text(""), "--genesis", &genesis]).await.unwrap();
    let config = fs::read_to_string(folder.home().config()).unwrap();
    assert!(config.contains("\n#p2p.gossip.limits.opening_max = 256\n"), "{config}");
    let is_set = |line: &&str| !line.is_empty() && !line.starts_with('#');
    assert_eq!(None, config.lines().find(is_set), "{config}");
}

#[tokio::test]
async fn a_key_that_others_can_read_is_wrong_usage() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let key = folder.home().validator_key();
    node::keyfile::create(&key).unwrap();
    fs::set_permissions(Path::new(&key), fs::Permissions::from_mode(0o644)).unwrap();
    let refused = folder.dev_fails(&[]).await;
    assert_eq!((2, true), (refused.exit_code(), refused.to_string().contains("set it to 600")));
}
