//! Which blocks of the open height a quorum has voted for, by votes whose signatures were checked here.
//!
//! The engine does not tell the loop when a quorum has voted for a block that the loop has not called
//! valid. But it checks every vote through this crate's verifier, also those of a certificate and of its
//! log, and the verifier tells what was good.
//!
//! Two ways lead to a quorum, as in the engine. Of each validator the first vote for a block counts in
//! each round and kind. And the votes of a certificate are checked one after the other: whatever is
//! voted for in an unbroken run of a quorum counts, whoever of them has voted for another block before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use types::sign_bytes::{VoteFields, VoteKind};
use types::{Address, Hash};

use crate::ValidatorSet;

/// How many rounds beyond the one that has started here first votes are kept of; the votes of a
/// certificate count in any.
const ROUNDS_AHEAD: u32 = 32;

/// What was voted for. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quorums(Arc<Mutex<Option<Tally>>>);

/// The votes of the open height.
#[derive(Debug)]
struct Tally {
    height: u64,
    set: ValidatorSet,
    /// The last round that has started.
    round: u32,
    /// The first vote of each validator, if it was for a block. A round that nobody has moved on from
    /// for a day makes a few hundred of them.
    first: BTreeMap<(Ballot, Address), Hash>,
    /// For what the last votes were in a row, and whose.
    run: Option<((Ballot, Hash), BTreeSet<Address>)>,
    /// What a quorum has voted for.
    agreed: BTreeSet<Hash>,
}

/// A round, and 1 for prevotes or 2 for precommits.
type Ballot = (u32, u8);

impl Quorums {
    /// A height is open, with this set. Votes for other heights do not count.
    pub(crate) fn open(&self, height: u64, set: &ValidatorSet) {
        *self.0.lock() = Some(Tally {
            height,
            set: set.clone(),
            round: 0,
            first: BTreeMap::new(),
            run: None,
            agreed: BTreeSet::new(),
        });
    }

    /// A round of the open height has started.
    pub(crate) fn start_round(&self, round: u32) {
        if let Some(tally) = self.0.lock().as_mut() {
            tally.round = tally.round.max(round);
        }
    }

    /// A vote came whose signature is that of its validator.
    pub(crate) fn voted(&self, vote: &VoteFields) {
        if let Some(tally) = self.0.lock().as_mut() {
            tally.count(vote);
        }
    }

    /// Whether a quorum has voted for a block, in one round and kind of the open height.
    pub(crate) fn agreed_on(&self, block: &Hash) -> bool {
        self.0.lock().as_ref().is_some_and(|tally| tally.agreed.contains(block))
    }
}

impl Tally {
    fn count(&mut self, vote: &VoteFields) {
        let VoteFields { kind, height, round, value, validator } = *vote;
        let (Some(block), Ok(round)) = (value, u32::try_from(round)) else { return };
        if height != self.height || self.set.by_address(&validator).is_none() {
            return;
        }
        let ballot = (
            round,
            match kind {
                VoteKind::Prevote => 1,
                VoteKind::Precommit => 2,
            },
        );
        match &mut self.run {
            Some((same, voters)) if *same == (ballot, block) => {
                voters.insert(validator);
            }
            other => *other = Some(((ballot, block), BTreeSet::from([validator]))),
        }
        let in_a_row = self.run.iter().flat_map(|(_, voters)| voters);
        let mut is_agreed = self.set.is_quorum(self.power(in_a_row));
        if round <= self.round.saturating_add(ROUNDS_AHEAD) {
            self.first.entry((ballot, validator)).or_insert(block);
            let (least, most) = (Address::new([0; 20]), Address::new([0xff; 20]));
            let ballots = self.first.range((ballot, least)..=(ballot, most));
            let voters = ballots.filter(|(_, other)| **other == block).map(|((_, who), _)| who);
            is_agreed |= self.set.is_quorum(self.power(voters));
        }
        if is_agreed {
            self.agreed.insert(block);
        }
    }

    fn power<'a>(&self, voters: impl Iterator<Item = &'a Address>) -> u64 {
        let powers = voters.filter_map(|who| self.set.by_address(who)).map(|it| it.power);
        powers.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    //! What counts as a quorum.

    use super::*;
    use crate::testing::set;

    const HEIGHT: u64 = 7;
    const BLOCK: Hash = Hash::new([1; 32]);
    const OTHER: Hash = Hash::new([2; 32]);

    fn open() -> Quorums {
        let quorums = Quorums::default();
        quorums.open(HEIGHT, &set());
        quorums
    }

    fn vote(at: usize, kind: VoteKind, round: i64, block: Hash) -> VoteFields {
        let validator = set().validators()[at].address;
        VoteFields { kind, height: HEIGHT, round, value: Some(block), validator }
    }

    /// Prevotes of the first round by these validators.
    fn prevote(quorums: &Quorums, who: &[usize], block: Hash) {
        for at in who {
            quorums.voted(&vote(*at, VoteKind::Prevote, 0, block));
        }
    }

    #[test]
    fn more_than_two_thirds_of_the_power_are_a_quorum_and_one_validator_counts_once() {
        let quorums = open();
        prevote(&quorums, &[0, 1, 0, 1], BLOCK);
        assert!(!quorums.agreed_on(&BLOCK));
        prevote(&quorums, &[2], BLOCK);
        assert!(quorums.agreed_on(&BLOCK));
        assert!(!quorums.agreed_on(&OTHER));
    }

    #[test]
    fn votes_of_several_rounds_kinds_heights_and_strangers_are_no_quorum_together() {
        let quorums = open();
        prevote(&quorums, &[0, 1], BLOCK);
        quorums.voted(&vote(2, VoteKind::Prevote, 1, BLOCK));
        quorums.voted(&vote(2, VoteKind::Precommit, 0, BLOCK));
        let third = vote(2, VoteKind::Prevote, 0, BLOCK);
        quorums.voted(&VoteFields { height: HEIGHT + 1, ..third });
        quorums.voted(&VoteFields { validator: Address::new([9; 20]), ..third });
        quorums.voted(&VoteFields { value: None, ..third });
        quorums.voted(&VoteFields { round: -1, ..third });
        assert!(!quorums.agreed_on(&BLOCK));
        quorums.voted(&third);
        assert!(quorums.agreed_on(&BLOCK));
    }

    #[test]
    fn a_quorum_of_precommits_counts_too() {
        let quorums = open();
        for at in 0..3 {
            quorums.voted(&vote(at, VoteKind::Precommit, 5, BLOCK));
        }
        assert!(quorums.agreed_on(&BLOCK));
    }

    #[test]
    fn who_votes_for_two_blocks_keeps_no_certificate_from_counting() {
        let quorums = open();
        prevote(&quorums, &[0], OTHER);
        prevote(&quorums, &[1, 2], BLOCK);
        prevote(&quorums, &[3, 0], OTHER);
        assert!(!quorums.agreed_on(&BLOCK) && !quorums.agreed_on(&OTHER));
        // The certificate has the second vote of the first one.
        prevote(&quorums, &[0, 1, 2], BLOCK);
        assert!(quorums.agreed_on(&BLOCK));
    }

    #[test]
    fn votes_for_the_same_block_count_whatever_comes_between() {
        let quorums = open();
        prevote(&quorums, &[1], BLOCK);
        prevote(&quorums, &[0], OTHER);
        prevote(&quorums, &[2], BLOCK);
        quorums.voted(&vote(0, VoteKind::Prevote, 9, OTHER));
        prevote(&quorums, &[3], BLOCK);
        assert!(quorums.agreed_on(&BLOCK));
    }

    #[test]
    fn a_certificate_of_a_far_round_counts_and_single_votes_of_it_are_not_kept() {
        let quorums = open();
        let far = i64::from(ROUNDS_AHEAD) + 1;
        for at in 0..3 {
            quorums.voted(&vote(at, VoteKind::Prevote, far, OTHER));
            quorums.voted(&vote(at, VoteKind::Prevote, far + 1, OTHER));
        }
        assert!(!quorums.agreed_on(&OTHER));
        for at in 0..3 {
            quorums.voted(&vote(at, VoteKind::Prevote, far, BLOCK));
        }
        assert!(quorums.agreed_on(&BLOCK));
        quorums.start_round(1);
        for at in 0..3 {
            quorums.voted(&vote(at, VoteKind::Prevote, far, OTHER));
            quorums.voted(&vote(at, VoteKind::Prevote, far + 1, OTHER));
        }
        assert!(quorums.agreed_on(&OTHER), "the round is near now");
    }

    #[test]
    fn the_next_height_begins_with_nothing() {
        let quorums = open();
        prevote(&quorums, &[0, 1, 2], BLOCK);
        quorums.open(HEIGHT + 1, &set());
        assert!(!quorums.agreed_on(&BLOCK));
        prevote(&quorums, &[0, 1, 2], BLOCK);
        assert!(!quorums.agreed_on(&BLOCK));
    }
}
