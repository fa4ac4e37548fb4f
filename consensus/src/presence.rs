//! Which validators are known to be away, so that nobody waits long for their proposals.
//!
//! A validator counts as away if it let its last turn go by and nothing that it signed was seen
//! for a while. One vote is enough to be back. Every node judges by what it saw itself: the
//! judgement shortens waits of this node and decides nothing, neither whose turn it is nor which
//! block is valid.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use types::Address;

use crate::ValidatorSet;

/// A vote in the time of one of so many last heights shows that a validator is there.
const HEARD_WITHIN: u64 = 3;

/// Rounds of a height whose proposers are looked at; later rounds are waited for in full.
pub(crate) const ROUNDS_MAX: u32 = u64::BITS;

/// What is known of the validators. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Presence(Arc<Mutex<BTreeMap<Address, Signs>>>);

/// What is known of one validator.
#[derive(Clone, Copy, Debug, Default)]
struct Signs {
    /// The greatest height in whose time something that it signed came in.
    heard: u64,
    /// Whether the last round that was its turn decided nothing.
    missed: bool,
}

impl Presence {
    /// Something that a validator of the set signed came in while this height was open.
    pub(crate) fn heard(&self, validator: Address, height: u64) {
        let mut all = self.0.lock();
        let signs = all.entry(validator).or_default();
        signs.heard = signs.heard.max(height);
    }

    /// Whether the last round that was its turn decided nothing.
    pub(crate) fn has_missed(&self, validator: &Address) -> bool {
        self.0.lock().get(validator).is_some_and(|signs| signs.missed)
    }

    /// This set decided a height in this round.
    pub(crate) fn decided(&self, set: &ValidatorSet, height: u64, round: u32) {
        let mut all = self.0.lock();
        all.retain(|validator, _| set.by_address(validator).is_some());
        for lost in 0..round.min(ROUNDS_MAX) {
            all.entry(set.proposer(height, lost).address).or_default().missed = true;
        }
        all.entry(set.proposer(height, round).address).or_default().missed = false;
    }

    /// The rounds of a height whose proposers are away: bit 0 is round 0.
    pub(crate) fn lost_rounds(&self, set: &ValidatorSet, height: u64) -> u64 {
        let all = self.0.lock();
        let is_away = |round: u32| {
            let signs = all.get(&set.proposer(height, round).address).copied().unwrap_or_default();
            signs.missed && signs.heard.saturating_add(HEARD_WITHIN) < height
        };
        (0..ROUNDS_MAX).filter(|round| is_away(*round)).fold(0, |bits, round| bits | 1 << round)
    }
}

#[cfg(test)]
mod tests {
    //! Who is away, by turns and votes.

    use super::*;
    use crate::testing::{key, set};

    /// The proposer of a height's first round.
    fn turn(height: u64) -> Address {
        set().proposer(height, 0).address
    }

    /// All but one vote and decide for a whole turn of the set, from this height on.
    fn go_round_without(presence: &Presence, dead: Address, from: u64) {
        for height in from..from + 4 {
            for validator in set().validators().iter().filter(|it| it.address != dead) {
                presence.heard(validator.address, height);
            }
            presence.decided(&set(), height, u32::from(turn(height) == dead));
        }
    }

    #[test]
    fn nobody_is_away_who_never_missed_a_turn() {
        let presence = Presence::default();
        assert_eq!(presence.lost_rounds(&set(), 100), 0);
        presence.decided(&set(), 100, 0);
        assert_eq!(presence.lost_rounds(&set(), 200), 0, "silence alone is no sign");
    }

    #[test]
    fn who_missed_its_turn_and_is_silent_is_away_in_each_of_its_rounds() {
        let presence = Presence::default();
        let dead = turn(10);
        go_round_without(&presence, dead, 10);
        assert_eq!(presence.lost_rounds(&set(), 14) & 0b11, 0b01);
        // The height before: its turn is the second round.
        assert_eq!(presence.lost_rounds(&set(), 17) & 0b11, 0b10);
    }

    #[test]
    fn one_vote_brings_a_validator_back_until_it_misses_again() {
        let presence = Presence::default();
        let dead = turn(10);
        go_round_without(&presence, dead, 10);
        presence.heard(dead, 13);
        assert_eq!(presence.lost_rounds(&set(), 14), 0);
        presence.decided(&set(), 14, 0);
        assert_eq!(presence.lost_rounds(&set(), 18), 0, "it had its turn");
    }

    #[test]
    fn who_votes_and_proposes_nothing_good_is_waited_for() {
        let presence = Presence::default();
        presence.heard(turn(10), 10);
        presence.decided(&set(), 10, 1);
        assert_eq!(presence.lost_rounds(&set(), 11), 0);
    }

    #[test]
    fn who_left_the_set_is_forgotten() {
        let presence = Presence::default();
        let stranger = key(9).address();
        presence.heard(stranger, 1);
        presence.decided(&set(), 1, 0);
        assert!(!presence.0.lock().contains_key(&stranger));
    }
}
