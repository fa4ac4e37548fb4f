//! What transfers paid lately. Follows the blocks when it is asked.

use std::collections::VecDeque;

use parking_lot::Mutex;
use types::{Amount, Event};

use crate::error::RpcError;
use crate::ports::Ports;
use crate::wire::FeeEstimate;

/// Transfers that an estimate is made of.
const SAMPLE: usize = 100;
/// Blocks that are looked through for them, at most, counted back from the latest.
const BLOCKS_MAX: u64 = 128;
/// Transactions that are looked through for them, at most; the newest whole blocks of them.
const TXS_MAX: usize = 20_000;

/// Fees of the last transfers, newest first.
#[derive(Default)]
pub(super) struct TransferFees(Mutex<Followed>);

#[derive(Default)]
struct Followed {
    height: u64,
    newest: VecDeque<Paid>,
}

/// What a transfer paid.
#[derive(Clone, Copy)]
struct Paid {
    /// The block that it is in.
    height: u64,
    fee: Amount,
}

impl TransferFees {
    /// An estimate after the latest block.
    pub(super) fn estimate(&self, ports: &Ports) -> Result<FeeEstimate, RpcError> {
        let mut followed = self.0.lock();
        let tip = ports.chain.tip();
        if tip.height != followed.height {
            let lowest = followed.height.saturating_add(1).max(tip.earliest);
            let is_near = (followed.height..=followed.height.saturating_add(BLOCKS_MAX))
                .contains(&tip.height);
            let lowest = if is_near { lowest } else { tip.earliest };
            let mut newest = look_back(ports, tip.height, lowest)?;
            if is_near {
                // Those that are too old by now are followed by older ones only.
                let oldest = oldest(tip.height);
                let kept = followed.newest.iter().take_while(|paid| paid.height >= oldest);
                newest.extend(kept.copied());
            }
            newest.truncate(SAMPLE);
            *followed = Followed { height: tip.height, newest };
        }
        Ok(summary(followed.newest.iter().map(|paid| paid.fee).collect()))
    }
}

/// The first of the blocks whose transfers count for an estimate after the block `highest`.
const fn oldest(highest: u64) -> u64 {
    highest.saturating_sub(BLOCKS_MAX.saturating_sub(1))
}

/// Fees of the transfers in blocks from `highest` down to `lowest`, newest first.
fn look_back(ports: &Ports, highest: u64, lowest: u64) -> Result<VecDeque<Paid>, RpcError> {
    let lowest = lowest.max(oldest(highest)).max(1);
    let (mut fees, mut looked_at) = (VecDeque::new(), 0_usize);
    for height in (lowest..=highest).rev() {
        let Some(committed) = ports.chain.block(height)? else { continue };
        // Before the first block with events there is nothing to learn.
        let Some(events) = &committed.events else { break };
        for tx in events.transactions.iter().rev() {
            if let Event::Transferred { fee, .. } = tx.event {
                fees.push_back(Paid { height, fee });
            }
        }
        looked_at = looked_at.saturating_add(events.transactions.len());
        if fees.len() >= SAMPLE || looked_at >= TXS_MAX {
            break;
        }
    }
    Ok(fees)
}

fn summary(mut fees: Vec<Amount>) -> FeeEstimate {
    fees.sort_unstable();
    let last = fees.len().saturating_sub(1);
    // Rounded up, so that so many really paid this or less.
    let at = |tenths: usize| {
        let place = fees.len().saturating_mul(tenths).div_ceil(10).saturating_sub(1);
        fees.get(place.min(last)).copied().unwrap_or_default()
    };
    FeeEstimate {
        low: at(1),
        medium: at(5),
        high: at(9),
        sample: u64::try_from(fees.len()).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fees: impl IntoIterator<Item = u64>) -> [u64; 4] {
        let FeeEstimate { low, medium, high, sample } =
            summary(fees.into_iter().map(Amount::new).collect());
        [low.get(), medium.get(), high.get(), sample]
    }

    #[test]
    fn an_estimate_says_what_a_tenth_half_and_nine_tenths_paid() {
        assert_eq!([10, 50, 90, 100], of((1..=100).rev()));
        assert_eq!([7, 7, 7, 1], of([7]));
        assert_eq!([1, 1, 2, 2], of([2, 1]));
        assert_eq!([0, 0, 0, 0], of([]));
    }
}
