//! Blocks are checked ahead of their execution on other threads, and nobody can tell.

use std::num::NonZeroUsize;
use std::path::Path;

use state::Changes;
use store::Store;
use store::tools::{self, Replay, ReplayError, ToolError};
use tempfile::TempDir;
use types::{Code, Hash};

use crate::fixture::{TestChain, Wallet, data, encoded, genesis_changes, open};
use crate::tools::{Judge, quiet, replay, tamper, verify};

/// More blocks than one batch takes, most of them empty.
const BLOCKS: u64 = 300;

fn long_chain() -> (TempDir, TestChain, Changes) {
    let (dir, mut chain) = TestChain::fresh(3);
    for height in 1..=BLOCKS {
        let is_empty = !height.is_multiple_of(7);
        let txs = if is_empty { Vec::new() } else { chain.whole_run(height) };
        chain.block(&txs);
    }
    let changes = genesis_changes(&chain.wallets);
    (dir, chain, changes)
}

/// Executes the chain of `source` into a new database in `folder`.
fn rebuild(source: &Store, folder: &Path, replay: &Replay<'_>) -> (Store, Result<(), ToolError>) {
    let copy = open(folder);
    let height = source.tip().unwrap().height;
    let rebuilt = tools::rebuild(source, &copy, height, replay, &mut quiet);
    (copy, rebuilt.map(drop))
}

#[test]
fn many_small_blocks_give_the_same_chain_with_any_number_of_threads() {
    let (dir, chain, changes) = long_chain();
    for threads in [1, 2, 7] {
        let threads = NonZeroUsize::new(threads).unwrap();
        let replay = Replay { threads, ..replay(&changes) };
        let folder = dir.path().join(format!("copy-{threads}"));
        let (copy, rebuilt) = rebuild(&chain.store, &folder, &replay);
        rebuilt.unwrap();
        assert_eq!(copy.tip().unwrap(), chain.tip());
        let verified = verify(&chain.store, dir.path(), &replay).unwrap();
        assert_eq!(verified.transactions, BLOCKS / 7 * 11);
    }
}

/// The height and the words of a fault in a block.
fn in_block(fault: &ToolError) -> Option<(u64, String)> {
    if let ToolError::Replay { height, source } = fault {
        return Some((*height, source.to_string()));
    }
    if let ToolError::Missing { height } = fault { Some((*height, "missing".into())) } else { None }
}

#[test]
fn the_first_fault_in_the_order_of_heights_is_the_one_that_is_told() {
    let (dir, chain, changes) = long_chain();
    drop(chain);
    // The later a fault stands, the earlier it is put in; each hides those behind it.
    for (table, height, told) in [
        ("headers", 210_u64, "missing"),
        ("commits", 209, "certificate: not the fixture's"),
        ("commits", 3, "certificate: not the fixture's"),
    ] {
        let value = (table == "commits").then_some(b"forged".as_slice());
        tamper(&data(&dir), table, &height.to_be_bytes(), value);
        let folder = dir.path().join(format!("copy-{height}"));
        let (copy, rebuilt) = rebuild(&open(&data(&dir)), &folder, &replay(&changes));
        assert_eq!(in_block(&rebuilt.unwrap_err()), Some((height, told.into())));
        assert_eq!(copy.tip().unwrap().height, height - 1, "what stands before it was executed");
    }
}

#[test]
fn a_fault_of_execution_comes_before_faults_of_later_blocks() {
    let (dir, chain, _) = long_chain();
    // Over another genesis the state root of the first header is wrong.
    let other = genesis_changes(&chain.wallets[..1]);
    drop(chain);
    tamper(&data(&dir), "commits", &2_u64.to_be_bytes(), Some(b"forged"));
    let (copy, rebuilt) = rebuild(&open(&data(&dir)), &dir.path().join("copy"), &replay(&other));
    let (height, told) = in_block(&rebuilt.unwrap_err()).unwrap();
    assert_eq!(height, 1, "{told}");
    assert!(told.contains("stateRoot"), "{told}");
    assert_eq!(copy.tip().unwrap().height, 0);
}

#[test]
fn a_transaction_without_signature_in_the_database_is_found() {
    let (dir, chain) = TestChain::fresh(3);
    let changes = genesis_changes(&chain.wallets);
    let (mut signer, mut forger) = (Wallet::new(0), Wallet::unsigned(1));
    let to = signer.address();
    chain.block(&[signer.transfer(to, 1), forger.transfer(to, 2), forger.transfer(to, 3)]);
    let (_, rebuilt) = rebuild(&chain.store, &dir.path().join("copy"), &replay(&changes));
    let fault = rebuilt.unwrap_err();
    let ToolError::Replay { height: 1, source } = &fault else { panic!("{fault}") };
    let ReplayError::Transaction { position, rejection } = &**source else { panic!("{fault}") };
    assert_eq!((*position, rejection.code()), (1, Code::BadSignature));
}

#[test]
fn blocks_are_checked_together_as_each_would_be_alone() {
    let (_dir, mut chain) = TestChain::fresh(3);
    let changes = genesis_changes(&chain.wallets);
    for number in 0..6 {
        let txs = chain.whole_run(number);
        chain.block(&txs);
    }
    let mut blocks = encoded(&chain.store, 1..=6);
    blocks[1].bytes.truncate(3);
    blocks[2].bytes.pop();
    *blocks[4].bytes.last_mut().unwrap() ^= 1;
    let replay = replay(&changes);
    let told = |blocks| -> Vec<Result<Hash, String>> {
        let checked = replay.precheck(blocks).into_iter();
        checked.map(|it| it.map(|it| it.block().hash()).map_err(|it| it.to_string())).collect()
    };
    let together = told(blocks.clone());
    let alone: Vec<_> = blocks.into_iter().flat_map(|block| told(vec![block])).collect();
    assert_eq!(together, alone);
    let is_good: Vec<bool> = together.iter().map(Result::is_ok).collect();
    assert_eq!(is_good, [true, false, false, true, false, true]);
}

/// Breaks down in the middle of its work.
static BROKEN: Judge = Judge(|asked| {
    assert!(asked.height < 200, "a certificate that breaks the check");
    true
});

#[test]
#[should_panic(expected = "a certificate that breaks the check")]
fn a_panic_ends_the_tool_and_its_threads() {
    let (dir, chain, changes) = long_chain();
    let replay = Replay { certificates: &BROKEN, ..replay(&changes) };
    drop(rebuild(&chain.store, &dir.path().join("copy"), &replay));
}
