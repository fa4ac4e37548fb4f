//! What the latest blocks tipped: a small ring that follows the blocks as they come, so that a question
//! reads nothing, or the one block that has just come.

use std::collections::VecDeque;
use std::ops::Deref;

use parking_lot::Mutex;
use types::{Amount, Body, CommittedBlock};

use super::block::BlockEvents;
use crate::ports::{PortFault, Tip};
use crate::wire::TipsView;

/// Blocks that are remembered.
const BLOCKS_MAX: u64 = 20;
/// Transactions of a block whose tips are remembered, its first ones.
const TXS_MAX: usize = 500;

/// The tips of the last blocks.
#[derive(Default)]
pub(super) struct Tips(Mutex<Followed>);

#[derive(Default)]
struct Followed {
    height: u64,
    /// The tips of each block, oldest block first.
    blocks: VecDeque<Vec<Amount>>,
}

impl Tips {
    /// Looks at the blocks that have come since, at most the last [`BLOCKS_MAX`].
    pub(super) fn follow<B: Deref<Target = BlockEvents>>(
        &self,
        tip: Tip,
        read: impl Fn(u64) -> Result<Option<B>, PortFault>,
    ) -> Result<(), PortFault> {
        let mut followed = self.0.lock();
        let known = if followed.height > tip.height { 0 } else { followed.height };
        let first = tip.height.saturating_sub(BLOCKS_MAX.saturating_sub(1));
        let first = first.max(known.saturating_add(1)).max(tip.earliest);
        for height in first..=tip.height {
            let Some(block) = read(height)? else { break };
            followed.blocks.push_back(tips_of(&block.committed));
            followed.height = height;
        }
        let max = usize::try_from(BLOCKS_MAX).unwrap_or(usize::MAX);
        let over = followed.blocks.len().saturating_sub(max);
        followed.blocks.drain(..over);
        Ok(())
    }

    /// What a tenth, a half and nine tenths of the transactions tipped at most.
    pub(super) fn summary(&self) -> TipsView {
        let followed = self.0.lock();
        summary(followed.blocks.iter().flatten().copied().collect(), followed.blocks.len())
    }
}

/// The tips of a block's first transactions. Before v7 only transfers have one.
fn tips_of(committed: &CommittedBlock) -> Vec<Amount> {
    let is_v7 = committed.events.as_ref().and_then(types::BlockEvents::fees).is_some();
    let transactions = committed.block.transactions.iter().take(TXS_MAX);
    let tips = transactions.filter_map(|tx| {
        if let Body::Transfer(transfer) = tx.body() {
            return Some(transfer.fee);
        }
        let tip = || tx.bid().ok().and_then(|bid| bid.tip).unwrap_or_default();
        is_v7.then(tip)
    });
    tips.collect()
}

fn summary(mut tips: Vec<Amount>, blocks: usize) -> TipsView {
    tips.sort_unstable();
    let last = tips.len().saturating_sub(1);
    // Rounded up, so that so many really tipped this or less.
    let at = |tenths: usize| {
        let place = tips.len().saturating_mul(tenths).div_ceil(10).saturating_sub(1);
        tips.get(place.min(last)).copied().unwrap_or_default()
    };
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    TipsView {
        p10: at(1),
        p50: at(5),
        p90: at(9),
        sample: count(tips.len()),
        blocks: count(blocks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_tips_that_somebody_paid() {
        let of = |tips: &[u64]| {
            let tips = tips.iter().copied().map(Amount::new).collect();
            let TipsView { p10, p50, p90, sample, .. } = summary(tips, 1);
            [p10.get(), p50.get(), p90.get(), sample]
        };
        assert_eq!([0, 0, 0, 0], of(&[]));
        assert_eq!([7, 7, 7, 1], of(&[7]));
        assert_eq!([1, 5, 9, 10], of(&[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]));
    }
}
