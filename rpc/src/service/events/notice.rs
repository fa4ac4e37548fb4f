//! What is told of an event of the pool.

use crate::ports::{PoolEvent, PoolStanding};
use crate::wire::{DropView, PoolNotice, PoolNoticeKind, PoolNoticeStanding, tx_object};

/// What subscribers are told of an event of the pool.
pub(crate) fn pool_notice(event: &PoolEvent, block_index: u64) -> PoolNotice {
    let tx = event.tx();
    let (event, standing, dropped) = match event {
        PoolEvent::Accepted { standing, .. } => {
            let standing = match standing {
                PoolStanding::Pending => PoolNoticeStanding::Pending,
                PoolStanding::Queued => PoolNoticeStanding::Queued,
            };
            (PoolNoticeKind::Accepted, Some(standing), None)
        }
        PoolEvent::Dropped(dropped) => {
            (PoolNoticeKind::Dropped, None, Some(DropView::from(&**dropped)))
        }
    };
    PoolNotice {
        event,
        block_index,
        hash: tx.hash(),
        kind: tx.body().type_name(),
        from: tx.from(),
        nonce: tx.nonce(),
        standing,
        tx: (event == PoolNoticeKind::Accepted).then(|| tx_object(tx)),
        dropped,
    }
}
