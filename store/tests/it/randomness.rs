//! The randomness of headers: what the next block stands on after a restart and after a snapshot, and
//! that verifying a database looks at it.

use std::path::Path;
use std::sync::Arc;

use state::block::BlockError;
use state::{ChainRules, Changes, Executed, Forks, execute_block};
use store::snapshots::{Intake, Offer, SnapshotStore, import};
use store::tools::{self, Replay, ReplayError, ToolError};
use store::{Options, Store};
use types::{Block, Hash, SetMember};

use crate::fixture::{self, TestChain, genesis_hash, proposing};
use crate::tools::{quiet, replay};

/// The rules of v7 from a height on, for the one who makes the blocks.
fn rules(v7: u64) -> Arc<ChainRules> {
    let forks = Forks { validator_vote: Some(0), v7: Some(v7), ..Forks::default() };
    let validators = vec![SetMember { public_key: proposing().public_key(), power: 1 }];
    Arc::new(ChainRules { forks, validators, ..ChainRules::clone(&fixture::rules()) })
}

fn chain(path: &Path, v7: u64) -> (TestChain, Changes) {
    fixture::chain_of(path, rules(v7))
}

fn previous(store: &Store) -> Hash {
    store.parent().unwrap().randomness
}

/// Executes a block of another database and commits it.
fn follow(target: &TestChain, block: Block) {
    let (store, parent) = (&target.store, target.store.parent().unwrap());
    target.commit(&execute_block(&target.chain, store.latest(), &parent, block).unwrap());
}

/// Commits a block with another's randomness, as if nothing had been checked.
fn commit_forged(chain: &TestChain) {
    let mut executed = chain.execute(&[]);
    let first = chain.store.snapshot().header(2).unwrap().unwrap().header.randomness;
    assert_ne!(first, executed.block.header.randomness);
    executed.block.header.randomness = first;
    chain.commit(&executed);
}

/// The height and the field for which a block was refused.
fn refused_for(error: &ToolError) -> Option<(u64, &'static str)> {
    let ToolError::Replay { height, source } = error else { return None };
    let ReplayError::Block(BlockError::Header { field, .. }) = **source else { return None };
    Some((*height, field))
}

#[test]
fn the_next_block_stands_on_the_randomness_of_the_tip_after_a_restart_too() {
    let dir = tempfile::tempdir().unwrap();
    let (chain, _) = chain(dir.path(), 2);
    assert_eq!(previous(&chain.store), genesis_hash());
    chain.block(&[]);
    assert_eq!(previous(&chain.store), genesis_hash(), "block 1 has none");
    let Executed { block, .. } = chain.execute(&[]);
    chain.block(&[]);
    let made = block.header.randomness.unwrap().value;
    assert_eq!(previous(&chain.store), made);
    drop(chain);
    let store = Store::open(dir.path(), Options::default()).unwrap();
    assert_eq!(previous(&store), made);
}

#[test]
fn a_chain_with_randomness_is_verified_and_another_value_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (chain, changes) = chain(&dir.path().join("data"), 2);
    for _ in 0..3 {
        chain.block(&[]);
    }
    let scratch = dir.path().join("scratch");
    let replay = Replay { chain: rules(2), ..replay(&changes) };
    tools::verify(&chain.store, &scratch, &replay, &mut quiet).unwrap();
    commit_forged(&chain);
    let error = tools::verify(&chain.store, &scratch, &replay, &mut quiet).unwrap_err();
    assert_eq!(refused_for(&error), Some((4, "randomnessProof")), "{error}");
}

/// A database that began with a snapshot of this one's tip; this one has a block more then.
pub(crate) fn imported(chain: &TestChain, replay: &Replay<'_>, dir: &Path) -> TestChain {
    let snapshot_store = SnapshotStore::open(&dir.join("snapshot_store"), 1, &chain.store).unwrap();
    snapshot_store.make(&chain.store, |_| (), &mut |_| true).unwrap();
    chain.block(&[]);
    snapshot_store.settle(&chain.store).unwrap().expect("an offer");
    let head = snapshot_store.offers()[0];
    let offer = snapshot_store.piece(&head.hash, 0, usize::MAX).unwrap().unwrap();
    let verified = Offer::decode(&offer).unwrap().verify(replay).unwrap();
    let intake = Intake::open(&dir.join("intake"), &verified.offer.manifest).unwrap();
    for want in intake.missing() {
        let piece = snapshot_store.piece(&want.hash, 0, usize::MAX).unwrap().unwrap();
        intake.keep(&want, &piece).unwrap();
    }
    let to = dir.join("new");
    import(&intake, &verified, replay, (&to, Options::default()), &mut |_, _| true).unwrap();
    let store = Store::open(&to, Options::default()).unwrap();
    TestChain { store, chain: Arc::clone(&replay.chain), wallets: Vec::new() }
}

#[test]
fn who_begins_with_a_snapshot_knows_what_the_next_randomness_is_made_of() {
    let dir = tempfile::tempdir().unwrap();
    let (chain, changes) = chain(&dir.path().join("data"), 0);
    for _ in 0..3 {
        chain.block(&[]);
    }
    let parent = chain.store.parent().unwrap();
    let replay = Replay { chain: rules(0), ..replay(&changes) };
    let new = imported(&chain, &replay, dir.path());
    assert_eq!(new.store.parent().unwrap(), parent);
    follow(&new, chain.store.snapshot().block(4).unwrap().unwrap());
    assert_eq!(new.tip(), chain.tip());

    let scratch = dir.path().join("scratch");
    tools::verify(&new.store, &scratch, &replay, &mut quiet).unwrap();
    let mut executed = new.execute(&[]);
    executed.block.header.randomness = None;
    new.commit(&executed);
    let error = tools::verify(&new.store, &scratch, &replay, &mut quiet).unwrap_err();
    assert_eq!(refused_for(&error), Some((5, "randomness")), "{error}");
}
