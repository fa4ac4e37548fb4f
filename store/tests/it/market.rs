//! Offers in a database: proved, and found in the order of bonds by who began with a snapshot, too.

use std::sync::Arc;

use state::market::offers::{Ranked, count, counting};
use state::tables::{Bonds, Offers};
use state::{ChainRules, Changes, Forks};
use store::tools::Replay;
use tempfile::TempDir;
use types::agent::ExecutorId;
use types::{Body, Hash, Params};

use crate::fixture::{self, TestChain, proposing};
use crate::peers::newcomer;
use crate::proofs::proved;
use crate::tools::{replay, verify};

pub(crate) const LEAST: u64 = 10_000_000;
pub(crate) const EXECUTORS: [ExecutorId; 2] =
    [ExecutorId::Wasm, ExecutorId::Model { manifest: Hash::new([7; 32]) }];

/// The rules of v8 from the beginning on.
pub(crate) fn rules() -> Arc<ChainRules> {
    let forks = Forks { validator_vote: Some(0), v7: Some(0), v8: Some(0), ..Forks::default() };
    fixture::rules_with(forks, &[(proposing().public_key(), 1)])
}

fn offer(executor: ExecutorId) -> Body {
    fixtures::offer(executor, 3, [1, 0, 0, 0]).into()
}

/// A chain at height 0 with so many wallets.
pub(crate) fn open(wallets: u64) -> (TempDir, TestChain, Changes) {
    let (dir, chain, changes) = fixture::chain_of(wallets, rules());
    chain.store.count_forks(&chain.chain).unwrap();
    (dir, chain, changes)
}

/// Three miners with offers for both executors, whose bonds change afterwards.
fn market() -> (TempDir, TestChain, Changes) {
    let (dir, mut chain, changes) = open(3);
    for (at, bond) in [(0, LEAST), (1, LEAST + 5), (2, LEAST + 3)] {
        let wallet = &mut chain.wallets[at];
        let bond = wallet.tx(&fixtures::bond(bond));
        let [one, other] = EXECUTORS.map(|executor| wallet.tx(&offer(executor)));
        chain.block(&[bond, one, other]);
    }
    let more = chain.wallets[0].tx(&fixtures::bond(9));
    let less = chain.wallets[2].tx(&fixtures::unbond(4));
    chain.block(&[more, less]);
    (dir, chain, changes)
}

fn counting_in(chain: &TestChain) -> [Vec<Ranked>; 2] {
    let snapshot = chain.store.snapshot();
    EXECUTORS.map(|executor| counting(&snapshot, executor, &Params::default()).unwrap())
}

#[test]
fn who_begins_with_a_snapshot_finds_offers_in_the_order_of_bonds() {
    let (dir, chain, changes) = market();
    let before = counting_in(&chain);
    let miners = [0, 1].map(|at: usize| chain.wallets[at].address());
    for counting in &before {
        assert_eq!(counting.iter().map(|it| it.miner).collect::<Vec<_>>(), miners);
    }
    let replay = Replay { chain: rules(), ..replay(&changes) };
    let new = newcomer(&chain, &replay, dir.path());
    assert_eq!(counting_in(&new), before);
    for at in 0..3 {
        let counted = count(&new.store.snapshot(), chain.wallets[at].address()).unwrap();
        assert_eq!(counted, 2, "the third has too small a bond, and its offers are there");
    }
    verify(&chain.store, dir.path(), &replay).unwrap();
}

#[test]
fn an_offer_and_a_bond_are_proved() {
    let (_dir, chain, _) = market();
    chain.block(&[]);
    let miner = chain.wallets[0].address();
    let key = (miner, ExecutorId::Wasm);
    assert!(proved::<Offers>(&chain, &key).value.is_some());
    proved::<Bonds>(&chain, &miner);
}
