//! What is chosen for a block.

use types::CheckedTx;

use super::contents::Contents;
use crate::market::{Offered, Wanted};
use crate::order::{BlockLimits, Ready, Seq};
use crate::slab::Slot;

/// The transactions for a block, in the order in which they are to be executed, without what was
/// `offered` already. While others wait, one sender gets at most one part in `shares`.
pub(super) fn candidates(
    contents: &Contents,
    limits: BlockLimits,
    shares: usize,
    offered: &mut Offered,
) -> Vec<CheckedTx> {
    let Some(market) = contents.market() else {
        // Shares give everything there is.
        if std::mem::replace(&mut offered.is_over, true) {
            return Vec::new();
        }
        let slots = contents.order().choose(limits, shares, contents.senders().bound());
        return txs(contents, slots);
    };
    let left_out = offered.take_left_out();
    let open = |id| match contents.senders().get(id) {
        Some(sender) if left_out.contains(&sender.address) => None,
        sender => Some(0..sender.map_or(0, |sender| sender.settled)),
    };
    let mut slots = market.choose(Wanted { limits, shares }, offered, &open);
    offered.keep_left_out(left_out);
    slots.sort_by_cached_key(|slot| contents.seq(*slot));
    txs(contents, slots)
}

fn txs(contents: &Contents, slots: Vec<Slot>) -> Vec<CheckedTx> {
    let entries = contents.entries();
    slots.into_iter().filter_map(|slot| Some(entries.get(slot)?.tx.clone())).collect()
}

/// What would be chosen for a block of those that are to be executed again.
pub(super) fn unsettled_candidates(
    contents: &Contents,
    limits: BlockLimits,
    shares: usize,
) -> Vec<(Seq, Ready)> {
    let (order, senders) = (contents.order(), contents.senders());
    let Some(market) = contents.market() else {
        return order.choose_unsettled(limits, shares, senders.bound());
    };
    let open =
        |id| Some(senders.get(id).map_or(0..0, |sender| sender.settled..sender.pending.len()));
    let slots = market.choose(Wanted { limits, shares }, &mut Offered::default(), &open);
    let mut chosen: Vec<_> = slots
        .into_iter()
        .filter_map(|slot| contents.seq(slot))
        .filter_map(|seq| Some((seq, order.unsettled(seq)?)))
        .collect();
    chosen.sort_unstable_by_key(|(seq, _)| *seq);
    chosen
}
