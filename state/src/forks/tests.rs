//! Which votes count, when a height is fixed, and that it makes no difference how the blocks are shown.

use proptest::prelude::*;
use types::build::{Envelope, Unsigned};
use types::{Keypair, Params, SizeLimits};

use super::*;

const DELAY: u64 = 10;

fn key(number: u8) -> Keypair {
    Keypair::from_seed(&[number; 32])
}

fn address(number: u8) -> Address {
    key(number).address()
}

/// A set of the keys 1, 2, … with these powers; 0 is no member.
fn set(powers: &[u64]) -> Vec<SetMember> {
    let members = (1..).zip(powers).filter(|(_, power)| **power > 0);
    members
        .map(|(number, power)| SetMember { public_key: key(number).public_key(), power: *power })
        .collect()
}

fn parsed(text: &str) -> Transaction {
    Transaction::parse_unsigned(text.as_bytes(), &SizeLimits::from(&Params::default())).unwrap()
}

fn vote(voter: u8, fork: &str, height: u64) -> Transaction {
    let envelope = Envelope::new(0, 1, None);
    let vote = ForkVote { fork: fork.to_owned(), height };
    parsed(Unsigned::fork_vote(&vote, &key(voter).public_key(), &envelope).payload())
}

fn at(height: u64, set: &[SetMember]) -> VotingBlock<'_> {
    VotingBlock { height, set, is_new_set: height == 1, delay: DELAY }
}

/// The first block of a new set.
fn new_set(height: u64, set: &[SetMember]) -> VotingBlock<'_> {
    VotingBlock { is_new_set: true, ..at(height, set) }
}

/// The tally after blocks with these votes, by height.
fn after(set: &[SetMember], blocks: &[(u64, &[Transaction])]) -> Tally {
    let mut tally = Tally::default();
    for (height, txs) in blocks {
        tally.count(&at(*height, set), *txs);
    }
    tally
}

#[test]
fn more_than_two_thirds_of_the_power_fix_a_height_and_two_thirds_do_not() {
    let four = set(&[1, 1, 1, 1]);
    let votes = [vote(1, "v7", 50), vote(2, "v7", 50), vote(3, "v7", 50)];
    let tally = after(&four, &[(1, &votes[..2]), (5, &votes[2..])]);
    assert_eq!(tally.fixed()["v7"], FixedFork { height: 50, since: 5 });
    let three = set(&[1, 1, 1]);
    assert_eq!(*after(&three, &[(1, &votes[..2])]).fixed(), BTreeMap::new());
    let uneven = set(&[66, 1, 33]);
    assert_eq!(*after(&uneven, &[(1, &votes[..1])]).fixed(), BTreeMap::new());
    assert_eq!(after(&uneven, &[(1, &votes[..2])]).fixed().len(), 1);
}

#[test]
fn a_later_vote_replaces_the_earlier_one_until_the_height_is_fixed() {
    let four = set(&[1, 1, 1, 1]);
    let first = [vote(1, "v7", 50), vote(2, "v7", 50)];
    let changed = [vote(1, "v7", 60), vote(3, "v7", 50)];
    let tally = after(&four, &[(1, &first), (2, &changed)]);
    assert_eq!(*tally.fixed(), BTreeMap::new(), "the first one votes for another height");
    assert_eq!(tally.votes()[&address(1)].height, 60);
    let mut tally = after(&four, &[(1, &first), (2, &changed), (3, &[vote(4, "v7", 50)])]);
    assert_eq!(tally.fixed()["v7"].height, 50);
    let before = tally.clone();
    let late = [1, 2, 3, 4].map(|voter| vote(voter, "v7", 90));
    tally.count(&at(4, &four), &late);
    assert_eq!(tally, before, "what is fixed stays");
    let twice = [vote(1, "v7", 50), vote(1, "v7", 70)];
    assert_eq!(after(&four, &[(1, &twice)]).votes()[&address(1)].height, 70);
}

#[test]
fn the_delay_is_asked_of_the_vote_that_completes_the_quorum() {
    let four = set(&[1, 1, 1, 1]);
    let all = [1, 2, 3].map(|voter| vote(voter, "v7", 30));
    let in_time = after(&four, &[(1, &all[..2]), (20, &all[2..])]);
    assert_eq!(in_time.fixed()["v7"], FixedFork { height: 30, since: 20 });
    let too_late = after(&four, &[(1, &all[..2]), (21, &all[2..])]);
    assert_eq!(*too_late.fixed(), BTreeMap::new());
    let has_counted = too_late.votes().contains_key(&address(3));
    assert!(!has_counted, "a vote that is too near counts for nothing");
}

#[test]
fn a_change_of_the_set_takes_votes_away_and_can_complete_a_quorum() {
    let four = set(&[1, 1, 1, 1]);
    let three = set(&[2, 1, 0, 1]);
    let votes = [vote(1, "v7", 90), vote(2, "v7", 90)];
    let mut tally = after(&four, &[(1, &votes)]);
    tally.count(&new_set(7, &three), []);
    assert_eq!(tally.fixed()["v7"], FixedFork { height: 90, since: 7 });
    // What is fixed stays as it was fixed, whatever sets come.
    tally.count(&new_set(9, &four), []);
    tally.count(&new_set(10, &three), []);
    assert_eq!(tally.fixed()["v7"], FixedFork { height: 90, since: 7 });
    // The height has to be far enough ahead of the block that completes the quorum.
    for (height, is_in_time) in [(7 + DELAY, true), (6 + DELAY, false)] {
        let near = [vote(1, "v7", height), vote(2, "v7", height)];
        let mut tally = after(&four, &[(1, &near)]);
        tally.count(&new_set(7, &three), []);
        assert_eq!(tally.fixed().contains_key("v7"), is_in_time, "{height}");
    }
    let mut left = after(&four, &[(1, &votes)]);
    left.count(&new_set(7, &set(&[0, 1, 1, 1])), []);
    assert_eq!(left.votes().keys().copied().collect::<Vec<_>>(), [address(2)]);
    // Who comes back has to vote again.
    left.count(&new_set(8, &four), &[vote(3, "v7", 90)]);
    assert_eq!(*left.fixed(), BTreeMap::new());
}

#[test]
fn a_vote_lapses_after_a_million_blocks() {
    let four = set(&[1, 1, 1, 1]);
    let early = [vote(1, "v7", 900_000), vote(2, "v7", 900_000)];
    let mut tally = after(&four, &[(1, &early)]);
    tally.count(&at(FORK_VOTE_BLOCKS, &four), &[vote(4, "v7", FORK_VOTE_BLOCKS + 500)]);
    assert_eq!(tally.votes().len(), 3, "in the last block before that they count");
    tally.count(&at(FORK_VOTE_BLOCKS + 1, &four), &[vote(3, "v7", FORK_VOTE_BLOCKS + 500)]);
    let mut left = [address(3), address(4)];
    left.sort();
    assert_eq!(tally.votes().keys().copied().collect::<Vec<_>>(), left);
}

#[test]
fn votes_of_strangers_and_votes_for_rubbish_count_for_nothing() {
    let four = set(&[1, 1, 1, 1]);
    let own = address(1);
    let public_key = key(1).public_key();
    let text = |rest: &str| {
        parsed(&format!(
            r#"{{"type":"TRANSFER","from":"{own}","to":"{own}","amount":"0","fee":"0","nonce":0,"timestamp":1{rest},"publicKey":"{public_key}"}}"#
        ))
    };
    let rubbish = [
        vote(9, "v7", 50),
        vote(1, "v8", 50),
        vote(1, "", 50),
        vote(1, "V7", 50),
        vote(1, "validatorVote", 50),
        vote(1, "v7", 0),
        vote(1, "v7", 5),
        vote(1, "v7", 14),
        vote(1, "v7", 5 + FORK_VOTE_BLOCKS + 1),
        vote(1, "v7", types::params::INTEGER_MAX),
        text(r#","forkVote":"v7","forkHeight":"50""#),
        text(r#","forkVote":null,"forkHeight":50"#),
        text(r#","forkVote":"v7","forkHeight":50.0"#),
        text(r#","forkVote":"v7","forkHeight":-50"#),
        text(r#","forkVote":{},"forkHeight":[]"#),
        text(r#","forkVote":"v7""#),
    ];
    assert_eq!(after(&four, &[(5, &rubbish)]), Tally::default());
    let (first, last) = (vote(1, "v7", 15), vote(1, "v7", 5 + FORK_VOTE_BLOCKS));
    assert_eq!(after(&four, &[(5, &[first])]).votes().len(), 1);
    assert_eq!(after(&four, &[(5, &[last])]).votes().len(), 1);
}

#[test]
fn a_fork_that_is_not_known_ends_the_chain_for_this_program_at_its_height() {
    let one = set(&[1]);
    let mut tally = after(&one, &[(1, &[vote(1, "v7", 40)])]);
    tally.fix("v8", FixedFork { height: 41, since: 40 });
    assert_eq!(tally.unknown(), None, "this program has the rules of v7 and v8");
    tally.require_known(41).expect("by rules that it has");
    let fixed = FixedFork { height: 50, since: 41 };
    tally.fix("v9", fixed);
    tally.fix("v9", FixedFork { height: 60, since: 42 });
    assert_eq!(tally.unknown(), Some(("v9", fixed)), "what is fixed stays");
    tally.require_known(49).expect("still by the old rules");
    let refused = tally.require_known(50).expect_err("by the new ones").to_string();
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!("block 50 begins the fork v9, which ombra {version} does not know");
    assert!(refused.starts_with(&expected), "{refused}");
    tally.require_known(51).expect_err("and afterwards");
    let first = FixedFork { height: 45, since: 43 };
    tally.fix("v10", first);
    assert_eq!(tally.unknown(), Some(("v10", first)), "the first one to come, whatever its name");
}

/// What happens at one height: votes, as voter and height, and perhaps a new set, as powers.
type Happening = (Vec<(u8, u64)>, Option<Vec<u64>>);

fn happening() -> impl Strategy<Value = Happening> {
    let votes = prop::collection::vec((1_u8..6, 10_u64..60), 0..3);
    let set = prop::option::weighted(0.2, prop::collection::vec(0_u64..4, 5));
    (votes, set)
}

proptest! {
    /// Two nodes, one of which was stopped now and then and counts again from its database, which shows
    /// it only blocks in which something happens, come to the same.
    #[test]
    fn nodes_with_different_histories_agree(
        happenings in prop::collection::vec(happening(), 1..60),
        restarts in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut members = set(&[1, 1, 1, 1]);
        let (mut steady, mut restarted) = (Tally::default(), Tally::default());
        for ((height, (votes, next)), restarts) in (1..).zip(happenings).zip(restarts) {
            let next = next.filter(|powers| powers.iter().any(|power| *power > 0));
            let is_new_set = height == 1 || next.is_some();
            if let Some(powers) = next {
                members = set(&powers);
            }
            let txs: Vec<_> = votes.iter().map(|(voter, at)| vote(*voter, "v7", *at)).collect();
            let block = VotingBlock { height, set: &members, is_new_set, delay: DELAY };
            steady.count(&block, &txs);
            if restarts {
                // What it had on the disk.
                restarted = Tally { votes: restarted.votes, fixed: restarted.fixed };
            }
            let by_members = txs.iter().any(|tx| validators::power_of(&members, &tx.from()) > 0);
            if by_members || is_new_set {
                restarted.count(&block, &txs);
            }
            prop_assert_eq!(&steady, &restarted);
            prop_assert!(steady.votes().len() <= members.len());
        }
    }
}

proptest! {
    #[test]
    fn the_last_votes_of_each_block_come_to_the_same_as_all_its_transactions(
        blocks in prop::collection::vec(
            prop::collection::vec((1_u8..=6, 0_usize..3, 1_u64..60), 0..12),
            1..20,
        )
    ) {
        let five = set(&[1, 2, 3, 1, 1]);
        let (mut all, mut few) = (Tally::default(), Tally::default());
        for (height, votes) in (1..).zip(blocks) {
            let txs: Vec<Transaction> = votes
                .into_iter()
                .map(|(voter, fork, goal)| vote(voter, ["v7", "v9", ""][fork], goal))
                .collect();
            let block = at(height, &five);
            all.count(&block, &txs);
            let last = last_votes(&block, &txs);
            prop_assert!(last.len() <= five.len().saturating_mul(COUNTED.len()));
            few.count_last(&block, &last);
            prop_assert_eq!(&all, &few);
        }
    }
}
