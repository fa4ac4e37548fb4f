//! The randomness of headers: what the next block stands on after a restart and after a snapshot, and
//! that verifying a database looks at it.

use std::sync::Arc;

use state::block::BlockError;
use state::{ChainRules, Changes, Executed, Forks, execute_block};
use store::Store;
use store::tools::{Replay, ReplayError, ToolError};
use tempfile::TempDir;
use types::{Block, Hash};

use crate::fixture::{self, TestChain, data, genesis_hash, open, proposing};
use crate::peers::newcomer;
use crate::tools::{replay, verify};

/// The rules of v7 from a height on, for the one who makes the blocks.
fn rules(v7: u64) -> Arc<ChainRules> {
    let forks = Forks { validator_vote: Some(0), v7: Some(v7), ..Forks::default() };
    fixture::rules_with(forks, &[(proposing().public_key(), 1)])
}

fn chain(v7: u64) -> (TempDir, TestChain, Changes) {
    fixture::chain_of(1, rules(v7))
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
    let (ReplayError::Block(BlockError::Header { field, .. })
    | ReplayError::Decided(BlockError::Header { field, .. })) = **source
    else {
        return None;
    };
    Some((*height, field))
}

#[test]
fn the_next_block_stands_on_the_randomness_of_the_tip_after_a_restart_too() {
    let (dir, chain, _) = chain(2);
    assert_eq!(previous(&chain.store), genesis_hash());
    chain.block(&[]);
    assert_eq!(previous(&chain.store), genesis_hash(), "block 1 has none");
    let Executed { block, .. } = chain.execute(&[]);
    chain.block(&[]);
    let made = block.header.randomness.unwrap().value;
    assert_eq!(previous(&chain.store), made);
    drop(chain);
    assert_eq!(previous(&open(&data(&dir))), made);
}

#[test]
fn a_chain_with_randomness_is_verified_and_another_value_is_found() {
    let (dir, chain, changes) = chain(2);
    chain.empty_blocks(3);
    let replay = Replay { chain: rules(2), ..replay(&changes) };
    verify(&chain.store, dir.path(), &replay).unwrap();
    commit_forged(&chain);
    let error = verify(&chain.store, dir.path(), &replay).unwrap_err();
    assert_eq!(refused_for(&error), Some((4, "randomnessProof")), "{error}");
}

#[test]
fn who_begins_with_a_snapshot_knows_what_the_next_randomness_is_made_of() {
    let (dir, chain, changes) = chain(0);
    chain.empty_blocks(3);
    let parent = chain.store.parent().unwrap();
    let replay = Replay { chain: rules(0), ..replay(&changes) };
    let new = newcomer(&chain, &replay, dir.path());
    assert_eq!(new.store.parent().unwrap(), parent);
    follow(&new, chain.store.snapshot().block(4).unwrap().unwrap());
    assert_eq!(new.tip(), chain.tip());

    verify(&new.store, dir.path(), &replay).unwrap();
    let mut executed = new.execute(&[]);
    executed.block.header.randomness = None;
    new.commit(&executed);
    let error = verify(&new.store, dir.path(), &replay).unwrap_err();
    assert_eq!(refused_for(&error), Some((5, "randomness")), "{error}");
}
