//! Which votes and proposals for later heights the engine is given.
//!
//! The engine checks a message when it decides the message's height. Until then it keeps the message
//! unchecked, up to a number for each height, and drops what finds no room. So others could fill that room
//! with rubbish, and the proposal and votes that the next height begins with would be lost. Here such
//! messages are checked before the engine sees them: their validators are in the set, have signed them, and
//! each has its share of the room.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use types::{Address, Hash};

use crate::{Tip, Validator, ValidatorSet};

/// For how many heights beyond the tip the engine keeps messages.
pub(crate) const HEIGHTS_AHEAD: usize = 10;

/// How many messages it keeps for each height: those of three rounds in the largest set, and more.
pub(crate) const MESSAGES_PER_HEIGHT_MAX: usize = 500;

/// What is done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// The engine gets it.
    Yes,
    /// It is of no use here, although its sender may be honest: the engine has it already, or this node is
    /// far behind.
    Useless,
    /// It is too early to look at it, or no validator signed it.
    No,
}

/// A message, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) height: u64,
    pub(crate) validator: Address,
    /// Of the bytes that the validator signs.
    pub(crate) digest: Hash,
}

/// What is admitted. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admission(Arc<Mutex<Heights>>);

#[derive(Debug, Default)]
struct Heights {
    /// The last commit; none before it is known.
    tip: Option<Tip>,
    /// The height that the engine has started last: it checks messages of this height itself.
    started: u64,
    /// What was admitted for later heights.
    admitted: BTreeMap<(u64, Address), Vec<Hash>>,
}

impl Admission {
    /// The chain ends here now.
    pub(crate) fn set_tip(&self, tip: &Tip) {
        self.0.lock().tip = Some(tip.clone());
    }

    /// The engine starts this height.
    pub(crate) fn start(&self, height: u64) {
        let mut heights = self.0.lock();
        heights.started = height;
        heights.admitted.retain(|(other, _), _| *other > height);
    }

    /// Whether the engine gets a message; `is_signed` tells whether this validator signed it.
    pub(crate) fn admit(
        &self,
        message: &Message,
        is_signed: impl FnOnce(&Validator) -> bool,
    ) -> Admitted {
        let mut heights = self.0.lock();
        let answer = heights.admit(message, is_signed);
        // Before its first height, the engine keeps whatever it is given.
        if answer == Admitted::Useless && heights.started == 0 { Admitted::No } else { answer }
    }
}

impl Heights {
    fn admit(&mut self, message: &Message, is_signed: impl FnOnce(&Validator) -> bool) -> Admitted {
        let Message { height, validator, digest } = *message;
        let Some(tip) = &self.tip else { return Admitted::Yes };
        if height <= self.started.max(tip.height) {
            return Admitted::Yes;
        }
        let ahead = height.saturating_sub(tip.height);
        if usize::try_from(ahead).map_or(true, |ahead| ahead > HEIGHTS_AHEAD) {
            return Admitted::Useless;
        }
        // The sets of heights that are further away are not known; few change.
        let set = if ahead == 1 { &tip.validators } else { &tip.next_validators };
        let Some(validator) = set.by_address(&validator) else {
            return if ahead <= 2 { Admitted::No } else { Admitted::Useless };
        };
        let place = (height, validator.address);
        let known = self.admitted.get(&place).map_or(&[][..], Vec::as_slice);
        if known.contains(&digest) || known.len() >= share(set) {
            return Admitted::Useless;
        }
        if !is_signed(validator) {
            return Admitted::No;
        }
        self.admitted.entry(place).or_default().push(digest);
        Admitted::Yes
    }
}

/// How many messages one validator of a set may have for one height.
fn share(set: &ValidatorSet) -> usize {
    // Bodies that come early take room, too, but few.
    MESSAGES_PER_HEIGHT_MAX / set.validators().len().saturating_add(1)
}

#[cfg(test)]
mod tests {
    //! What the engine gets.

    use super::*;
    use crate::testing::{TIP, key, set, set_of, tip};

    fn at_tip() -> Admission {
        let admission = Admission::default();
        admission.set_tip(&tip());
        admission.start(TIP);
        admission
    }

    fn message(height: u64, seed: u8, number: u64) -> Message {
        let digest = Hash::digest(&number.to_be_bytes());
        Message { height, validator: key(seed).address(), digest }
    }

    #[test]
    fn the_engine_checks_what_it_decides_and_what_is_over_itself() {
        let admission = at_tip();
        admission.start(TIP + 1);
        for height in 1..=TIP + 1 {
            let admitted = admission.admit(&message(height, 9, 1), |_| false);
            assert_eq!(admitted, Admitted::Yes, "{height}");
        }
        assert_eq!(admission.admit(&message(TIP + 2, 9, 1), |_| false), Admitted::No);
    }

    #[test]
    fn rubbish_for_later_heights_takes_no_room_and_is_not_looked_at_twice() {
        let admission = at_tip();
        for height in TIP + 1..TIP + 30 {
            for number in 0..1_000 {
                let rubbish = message(height, 1, number);
                assert_ne!(admission.admit(&rubbish, |_| false), Admitted::Yes);
            }
            let stranger = message(height, 9, 1);
            let never = |_: &Validator| panic!("a stranger's signature is not checked");
            assert_ne!(admission.admit(&stranger, never), Admitted::Yes);
        }
        for height in TIP + 1..=TIP + 10 {
            let good = message(height, 1, 1);
            assert_eq!(admission.admit(&good, |_| true), Admitted::Yes, "{height}");
            assert_eq!(admission.admit(&good, |_| true), Admitted::Useless, "{height}: twice");
        }
        assert_eq!(admission.admit(&message(TIP + 11, 1, 1), |_| true), Admitted::Useless);
    }

    #[test]
    fn each_validator_has_its_share_of_the_room() {
        let admission = at_tip();
        let admitted = |seed| {
            let yes = (0..2_000).filter(|number| {
                admission.admit(&message(TIP + 2, seed, *number), |_| true) == Admitted::Yes
            });
            yes.count()
        };
        assert_eq!([1, 2, 3, 4].map(admitted), [100; 4]);
        admission.start(TIP + 2);
        assert!(admission.0.lock().admitted.is_empty());
        assert!(share(&set_of(0..64)) >= 7, "two rounds of a proposal and two votes, and more");
        assert_eq!(share(&set()), 100);
    }

    #[test]
    fn the_sets_of_the_next_two_heights_count() {
        let admission = Admission::default();
        admission.set_tip(&Tip { next_validators: set_of([9]), ..tip() });
        admission.start(TIP);
        let admitted = |height, seed| admission.admit(&message(height, seed, 1), |_| true);
        assert_eq!((Admitted::Yes, Admitted::No), (admitted(TIP + 1, 1), admitted(TIP + 1, 9)));
        assert_eq!((Admitted::No, Admitted::Yes), (admitted(TIP + 2, 1), admitted(TIP + 2, 9)));
    }

    #[test]
    fn an_engine_that_has_not_started_is_not_given_what_is_useless() {
        let admission = Admission::default();
        assert_eq!(admission.admit(&message(99, 9, 1), |_| false), Admitted::Yes, "no tip yet");
        admission.set_tip(&tip());
        assert_eq!(admission.admit(&message(99, 1, 1), |_| true), Admitted::No);
    }
}
