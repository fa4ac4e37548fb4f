//! A process that is killed loses nothing that it reported.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use store::{Options, Store, tools};

use crate::fixture::{TestChain, genesis_changes, whole_run};
use crate::tools::replay;

/// Tells the test program to be the process that is killed; its value is the folder.
const CHILD: &str = "OMBRA_TEST_STORE_CHILD";

/// Commits blocks and reports each, for ever. Does nothing when the tests are run as usual.
#[test]
fn commits_until_it_is_killed() {
    let Some(path) = env::var_os(CHILD) else { return };
    let mut chain = TestChain::new(Path::new(&path), 2);
    for wallet in &mut chain.wallets {
        wallet.nonce = chain.store.snapshot().account(&wallet.address()).unwrap().nonce;
    }
    for number in chain.tip().height.. {
        let (user, miner) = chain.pair(0, 1);
        let txs = whole_run(number, user, miner).1;
        println!("\ncommitted {}", chain.block(&txs).height);
    }
}

#[test]
fn what_was_reported_before_a_kill_is_there_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let mut reported = 0;
    for round in 1..=4 {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["kill::commits_until_it_is_killed", "--exact", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let heights = lines.filter_map(|line| {
            line.ok()?.strip_prefix("committed ").and_then(|height| height.parse::<u64>().ok())
        });
        let enough = reported + 3 * round;
        // What the pipe still holds after the kill was reported as well.
        for height in heights {
            reported = height;
            if height == enough {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(reported >= enough, "the process ended by itself at {reported}");

        let store = Store::open(&path, Options::default()).unwrap();
        let tip = store.tip().unwrap().height;
        assert!(tip == reported || tip == reported + 1, "{reported} reported, {tip} there");
        reported = tip;
    }
    let store = Store::open(&path, Options::default()).unwrap();
    let changes =
        genesis_changes(&[crate::fixture::Wallet::new(0), crate::fixture::Wallet::new(1)]);
    let scratch = dir.path().join("scratch");
    let verified = tools::verify(&store, &scratch, &replay(&changes), &mut |_, _| ()).unwrap();
    assert_eq!(verified.report.runs, reported);
}
