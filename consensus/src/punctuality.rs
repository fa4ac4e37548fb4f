//! Whether the blocks of others fit this machine's clock (docs/protocol.md section 6.2): what a validator
//! found of the last block of each proposer. If hardly any fits, the clock itself is wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use types::Address;

use crate::Direction;

/// For how many heights a finding counts: who proposes no more, says nothing of the clock.
const HEIGHTS_MAX: u64 = 1_000;

/// What was found of the last block of each proposer that was judged by the clock. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Punctuality(Arc<Mutex<BTreeMap<Address, Found>>>);

#[derive(Clone, Copy, Debug)]
struct Found {
    height: u64,
    missed: Option<Direction>,
}

/// How many proposers' last blocks fitted the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Proposers of which a block was judged lately.
    pub proposers: usize,
    /// Of these, those whose block was ahead of the clock.
    pub ahead: usize,
    /// And those whose block was behind it.
    pub behind: usize,
}

impl Punctuality {
    /// A block was judged by the clock; `missed` is none if it came in time.
    pub(crate) fn note(&self, proposer: Address, height: u64, missed: Option<Direction>) {
        let mut found = self.0.lock();
        found.insert(proposer, Found { height, missed });
        found.retain(|_, it| it.height.saturating_add(HEIGHTS_MAX) > height);
    }

    /// What was found lately.
    #[must_use]
    pub fn fit(&self) -> Fit {
        let found = self.0.lock();
        let missed = |direction| found.values().filter(|it| it.missed == Some(direction)).count();
        Fit {
            proposers: found.len(),
            ahead: missed(Direction::Ahead),
            behind: missed(Direction::Behind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_of_each_proposer_counts_until_it_is_old() {
        let (one, other) = (Address::new([1; 20]), Address::new([2; 20]));
        let known = Punctuality::default();
        assert_eq!(known.fit(), Fit::default());
        known.note(one, 5, Some(Direction::Ahead));
        known.note(other, 6, Some(Direction::Behind));
        assert_eq!(known.fit(), Fit { proposers: 2, ahead: 1, behind: 1 });
        known.note(one, 7, None);
        assert_eq!(known.fit(), Fit { proposers: 2, ahead: 0, behind: 1 });
        known.note(one, 6 + HEIGHTS_MAX, None);
        assert_eq!(known.fit(), Fit { proposers: 1, ahead: 0, behind: 0 });
    }
}
