//! Votes for later forks in the database: counted with commits, in databases that had no count, after
//! restarts, the first block of v7, and the end before a fork that this program does not know.

use std::sync::Arc;

use state::chain::ChainRules;
use state::tables::ForkRows;
use state::{StorageError, view};
use store::Store;
use tempfile::TempDir;
use types::build::{Envelope, Unsigned};
use types::{CheckedTx, ForkVote, Forks};

use crate::fixture::{CERTIFICATE, TestChain, Wallet, chain_of, data, input, open, rules_with};

const DELAY: u64 = 5;
pub(crate) const WALLETS: u64 = 5;
pub(crate) const VALIDATORS: usize = 4;

/// The rules of a chain whose first wallets are its validators.
pub(crate) fn voting_rules(wallets: &[Wallet]) -> Arc<ChainRules> {
    let powers = wallets.iter().take(VALIDATORS).map(|wallet| (wallet.key.public_key(), 1));
    let mut rules = (*rules_with(Forks::default(), &powers.collect::<Vec<_>>())).clone();
    rules.params.fork_delay_blocks = DELAY;
    Arc::new(rules)
}

pub(crate) fn vote(wallet: &mut Wallet, height: u64) -> CheckedTx {
    let envelope = Envelope::new(wallet.nonce, 1, None);
    wallet.nonce += 1;
    let vote = ForkVote { fork: "v7".to_owned(), height };
    let text = Unsigned::fork_vote(&vote, &wallet.key.public_key(), &envelope).sign(&wallet.key);
    CheckedTx::trust(fixtures::parsed(&text))
}

/// Each voter with its height, in one block.
fn block_of(chain: &mut TestChain, votes: &[(usize, u64)]) {
    let txs: Vec<_> =
        votes.iter().map(|(voter, height)| vote(&mut chain.wallets[*voter], *height)).collect();
    chain.block(&txs);
}

/// A chain that counts the votes of its validators, and its rules.
fn counting() -> (TempDir, TestChain, Arc<ChainRules>) {
    let (folder, chain) = TestChain::fresh(WALLETS);
    let rules = voting_rules(&chain.wallets);
    chain.store.count_forks(&rules).expect("counts");
    (folder, chain, rules)
}

/// The same blocks for every chain of these tests: a quorum for 30 in block 5.
const BLOCKS: [&[(usize, u64)]; 6] = [
    &[],
    &[(0, 30), (4, 30)],
    &[(1, 31), (2, 30)],
    &[(0, 3), (1, 2_000_000)],
    &[(1, 30)],
    &[(3, 40), (0, 40)],
];

#[test]
fn a_database_without_a_count_comes_to_the_same_as_one_that_counted_each_block() {
    let (one, mut counting, rules) = counting();
    let (other, mut old) = TestChain::fresh(WALLETS);
    for votes in BLOCKS {
        block_of(&mut counting, votes);
        block_of(&mut old, votes);
    }
    let counted = counting.store.forks();
    assert_eq!(counted.missing, None);
    let fixed = counted.tally.fixed()["v7"];
    assert_eq!((fixed.height, fixed.since), (30, 5));
    assert_eq!(counted.tally.votes().len(), 3);

    assert_eq!(old.store.forks().tally.votes().len(), 0, "nobody asked it to count");
    old.store.count_forks(&rules).expect("counts");
    assert_eq!(old.store.forks().tally, counted.tally);
    // What was counted is on the disk.
    drop((old, counting));
    for folder in [&one, &other] {
        let store = open(&data(folder));
        assert_eq!(store.forks().tally, counted.tally);
        assert_eq!(store.tip().expect("a tip").height, 6);
    }
}

#[test]
fn restarts_at_any_block_do_not_change_the_count() {
    let (_whole, mut steady, rules) = counting();
    for votes in BLOCKS {
        block_of(&mut steady, votes);
    }
    for stopped in 0..BLOCKS.len() {
        let (folder, mut chain) = TestChain::fresh(WALLETS);
        let [before, after] = [&BLOCKS[..stopped], &BLOCKS[stopped..]];
        for votes in before {
            block_of(&mut chain, votes);
        }
        let mut chain = chain.reopened(&data(&folder));
        chain.store.count_forks(&rules).expect("counts");
        for votes in after {
            block_of(&mut chain, votes);
        }
        assert_eq!(chain.store.forks().tally, steady.store.forks().tally, "stopped at {stopped}");
    }
}

#[test]
fn a_block_that_was_prepared_before_the_count_caught_up_is_counted_when_it_is_committed() {
    let (_one, mut counting, rules) = counting();
    let (_other, mut late) = TestChain::fresh(WALLETS);
    block_of(&mut counting, &[(0, 30)]);
    let vote = vote(&mut late.wallets[0], 30);
    let executed = late.execute(&[vote]);
    let prepared = late.store.prepare(&input(&executed)).expect("prepared");
    late.store.count_forks(&rules).expect("counts what is there: nothing");
    late.store.commit(prepared, CERTIFICATE).expect("committed");
    assert_eq!(late.store.forks().tally, counting.store.forks().tally);
    assert_eq!(late.store.forks().tally.votes().len(), 1);
}

#[test]
fn a_block_is_executed_anew_if_the_votes_that_make_it_one_of_v7_were_counted_since() {
    let (_folder, mut chain) = TestChain::fresh(WALLETS);
    let rules = voting_rules(&chain.wallets);
    chain.chain = Arc::clone(&rules);
    block_of(&mut chain, &[(0, 8), (1, 8), (2, 8)]);
    chain.empty_blocks(6);
    let executed = chain.execute(&[]);
    let prepared = chain.store.prepare(&input(&executed)).expect("nothing is counted yet");
    chain.store.count_forks(&rules).expect("counts");
    let refused = chain.store.commit(prepared, CERTIFICATE).expect_err("by the rules of before");
    assert!(matches!(refused, StorageError::FormerRules { height: 8 }), "{refused}");
    let refused = chain.store.commit_block(&input(&executed), CERTIFICATE).expect_err("as before");
    assert!(matches!(refused, StorageError::FormerRules { height: 8 }), "{refused}");
    assert_eq!(chain.tip().height, 7);
    chain.block(&[]);
    assert!(is_active(&chain.store));
}

/// Whether the rows of v7 stand in the state.
fn is_active(store: &Store) -> bool {
    let row = view::get::<ForkRows>(&*store.latest(), &"v7".to_owned()).expect("reads");
    row.is_some_and(|fixed| fixed.height == fixed.since)
}

#[test]
fn the_block_whose_height_votes_have_fixed_begins_v7_and_none_before_it() {
    let (folder, mut voting) = TestChain::fresh(WALLETS);
    let (_other, mut silent) = TestChain::fresh(WALLETS);
    let rules = voting_rules(&voting.wallets);
    for chain in [&mut voting, &mut silent] {
        chain.chain = Arc::clone(&rules);
        chain.store.count_forks(&rules).expect("counts");
    }
    block_of(&mut voting, &[(0, 8), (1, 8), (2, 8)]);
    block_of(&mut silent, &[(0, 8), (1, 8), (2, 9)]);
    let same = |chain: &TestChain| chain.store.tip().expect("a tip").state_root;
    while voting.tip().height < 7 {
        voting.store.require_known_fork().expect("this program has the rules of v7");
        for chain in [&voting, &silent] {
            chain.block(&[]);
            assert!(!is_active(&chain.store));
        }
        assert_eq!(same(&voting), same(&silent), "what is fixed changes no root before its height");
    }
    for chain in [&voting, &silent] {
        chain.block(&[]);
    }
    assert!(is_active(&voting.store) && !is_active(&silent.store));
    assert_ne!(same(&voting), same(&silent));
    // Restarted, it goes on by the same rules.
    drop(voting);
    let store = open(&data(&folder));
    store.count_forks(&rules).expect("counts");
    assert!(is_active(&store));
    assert_eq!(store.forks().missing, None);
}

/// A chain with the rules of v7 from its beginning on, whose first wallets are its validators.
fn chain_of_v7() -> (TempDir, TestChain) {
    let wallets: Vec<Wallet> = (0..WALLETS).map(Wallet::new).collect();
    let mut rules = (*voting_rules(&wallets)).clone();
    rules.forks.v7 = Some(0);
    let (folder, chain, _) = chain_of(WALLETS, Arc::new(rules));
    chain.store.count_forks(&chain.chain).expect("counts");
    (folder, chain)
}

#[test]
fn a_block_of_a_fork_that_is_not_known_is_not_committed() {
    let (_folder, mut chain) = chain_of_v7();
    let vote = |voter: usize, chain: &mut TestChain| {
        chain.wallets[voter].tx(&fixtures::fork_vote("v9", 8))
    };
    let votes: Vec<_> = (0..3).map(|voter| vote(voter, &mut chain)).collect();
    chain.block(&votes);
    while chain.tip().height < 7 {
        chain.store.require_known_fork().expect("by rules that are known");
        chain.block(&[]);
    }
    let refused = chain.store.require_known_fork().expect_err("block 8 is by others");
    assert!(refused.is_unknown_fork(), "{refused}");
    let executed = chain.execute(&[]);
    let refused = chain.store.commit_block(&input(&executed), CERTIFICATE).expect_err("block 8");
    assert!(matches!(refused, StorageError::UnknownFork { height: 8, .. }), "{refused}");
    assert_eq!(chain.tip().height, 7);
}

#[test]
fn an_old_database_is_counted_in_slices_whatever_strangers_sent_to_its_validators() {
    const STRANGER: usize = VALIDATORS;
    let (_one, mut counting, rules) = counting();
    let (_other, mut old) = TestChain::fresh(WALLETS);
    // Votes around the ends of slices; what counts in the end is that of the last blocks.
    let votes = [(3, 0, 2_000), (1_023, 0, 2_001), (1_024, 1, 2_002), (1_025, 2, 2_001)];
    let late = [(2_047, 1, 2_001), (2_049, 3, 9_000), (2_051, 3, 9_001)];
    for chain in [&mut counting, &mut old] {
        for height in 1..=2_060 {
            let mut txs = Vec::new();
            for (at, voter, goal) in votes.iter().chain(&late) {
                if *at == height {
                    let to = chain.wallets[*voter].address();
                    txs.extend((0..300).map(|_| chain.wallets[STRANGER].transfer(to, 1)));
                    txs.push(vote(&mut chain.wallets[*voter], *goal));
                    txs.push(chain.wallets[STRANGER].transfer(to, 1));
                }
            }
            chain.block(&txs);
        }
    }
    old.store.count_forks(&rules).expect("counts");
    let [counted, again] = [&counting, &old].map(|chain| chain.store.forks());
    assert_eq!(again.tally, counted.tally);
    assert_eq!(again.tally.votes().len(), VALIDATORS);
    // From then on commits count.
    for chain in [&mut counting, &mut old] {
        block_of(chain, &[(3, 9_002)]);
    }
    let [counted, again] = [&counting, &old].map(|chain| chain.store.forks());
    assert_eq!(again.tally, counted.tally);
}
