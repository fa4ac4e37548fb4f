//! Which accounts a transaction concerns.

use std::collections::BTreeMap;

use types::{Address, Block, BlockEvents};

/// The positions of a block's transactions by account, ascending: an account sent it, or its event
/// names it as the other one that it concerns ([`types::Event::counterparty`]).
pub(super) fn positions(block: &Block, events: &BlockEvents) -> BTreeMap<Address, Vec<u32>> {
    let mut positions: BTreeMap<Address, Vec<u32>> = BTreeMap::new();
    for (tx, position) in block.transactions.iter().zip(0_u32..) {
        positions.entry(tx.from()).or_default().push(position);
        let other = events.of_transaction(position).and_then(|event| event.counterparty());
        if let Some(other) = other.filter(|other| *other != tx.from()) {
            positions.entry(other).or_default().push(position);
        }
    }
    positions
}
