//! A process that is killed loses nothing that it reported.

use std::env;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::fixture::{TestChain, Wallet, genesis_changes, open};
use crate::tools::{replay, verify};

/// Tells the test program to be the process that is killed; its value is the folder.
const CHILD: &str = "OMBRA_TEST_STORE_CHILD";

/// A process that runs one test of this program with a variable that names a folder, and what it prints.
pub(crate) fn child(
    test: &str,
    variable: &str,
    folder: &Path,
) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(variable, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

/// Commits blocks and reports each, for ever. Does nothing when the tests are run as usual.
#[test]
fn commits_until_it_is_killed() {
    let Some(path) = env::var_os(CHILD) else { return };
    let mut chain = TestChain::new(Path::new(&path), 2);
    for wallet in &mut chain.wallets {
        wallet.nonce = chain.store.snapshot().account(&wallet.address()).unwrap().nonce;
    }
    for number in chain.tip().height.. {
        let txs = chain.whole_run(number);
        println!("\ncommitted {}", chain.block(&txs).height);
    }
}

#[test]
fn what_was_reported_before_a_kill_is_there_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let mut reported = 0;
    for round in 1..=4 {
        let (mut child, lines) = child("kill::commits_until_it_is_killed", CHILD, &path);
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

        let tip = open(&path).tip().unwrap().height;
        assert!(tip == reported || tip == reported + 1, "{reported} reported, {tip} there");
        reported = tip;
    }
    let changes = genesis_changes(&[0, 1].map(Wallet::new));
    let verified = verify(&open(&path), dir.path(), &replay(&changes)).unwrap();
    assert_eq!(verified.report.runs, reported);
}
