//! How long the engine waits in a round.

use std::time::Duration;

use malachitebft_core_types::{LinearTimeouts, Timeout, TimeoutKind};

/// The part of the usual time that a proposal has which nobody expects. Not nothing, since its
/// proposer may just have come back.
const UNEXPECTED_PART: u32 = 8;

/// The timeouts of one height. Rounds whose proposer is known to be away are short; safety rests on
/// no timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct HeightTimeouts {
    usual: LinearTimeouts,
    /// Bit 0 is round 0.
    lost_rounds: u64,
}

impl HeightTimeouts {
    pub(crate) const fn new(usual: LinearTimeouts) -> Self {
        Self { usual, lost_rounds: 0 }
    }

    /// The same, for a height in which these rounds are expected to bring nothing.
    pub(crate) const fn without(self, lost_rounds: u64) -> Self {
        Self { usual: self.usual, lost_rounds }
    }

    /// How long the engine waits.
    pub(crate) fn duration_for(&self, timeout: Timeout) -> Duration {
        let usual = self.usual.duration_for(timeout);
        let is_lost = timeout
            .round
            .as_u32()
            .and_then(|round| self.lost_rounds.checked_shr(round))
            .is_some_and(|bits| bits & 1 == 1);
        match timeout.kind {
            TimeoutKind::Propose | TimeoutKind::Precommit if is_lost => usual / UNEXPECTED_PART,
            TimeoutKind::Propose
            | TimeoutKind::Prevote
            | TimeoutKind::Precommit
            | TimeoutKind::Rebroadcast
            | TimeoutKind::FinalizeHeight(_) => usual,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Which waits are short.

    use malachitebft_core_types::Round;

    use super::*;

    #[test]
    fn only_lost_rounds_are_short() {
        let usual = LinearTimeouts::default();
        let timeouts = HeightTimeouts::new(usual).without(0b10);
        for round in [0, 2, 63, 64, u32::MAX] {
            let timeout = Timeout::propose(Round::new(round));
            assert_eq!(timeouts.duration_for(timeout), usual.duration_for(timeout), "{round}");
        }
        let [propose, prevote, precommit] =
            [Timeout::propose, Timeout::prevote, Timeout::precommit].map(|kind| {
                let timeout = kind(Round::new(1));
                (timeouts.duration_for(timeout), usual.duration_for(timeout))
            });
        assert_eq!(propose.0, propose.1 / 8);
        assert_eq!(prevote.0, prevote.1);
        assert_eq!(precommit.0, precommit.1 / 8);
    }
}
