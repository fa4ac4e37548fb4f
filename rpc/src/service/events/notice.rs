//! What is told of an event of the pool.

use crate::ports::PoolEvent;
use crate::wire::{DropView, PoolNotice, PoolNoticeKind, tx_object};

/// What subscribers are told of an event of the pool.
pub(crate) fn pool_notice(event: &PoolEvent, block_index: u64) -> PoolNotice {
    let tx = event.tx();
    let (event, dropped) = match event {
        PoolEvent::Accepted(_) => (PoolNoticeKind::Accepted, None),
        PoolEvent::Dropped(dropped) => (PoolNoticeKind::Dropped, Some(DropView::from(&**dropped))),
    };
    PoolNotice {
        event,
        block_index,
        hash: tx.hash(),
        kind: tx.body().type_name(),
        from: tx.from(),
        nonce: tx.nonce(),
        tx: (event == PoolNoticeKind::Accepted).then(|| tx_object(tx)),
        dropped,
    }
}
