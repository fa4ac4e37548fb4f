//! The pool.

use types::Address;

use super::Context;
use crate::cursor;
use crate::error::RpcError;
use crate::ports::{Ports, Slice};
use crate::wire::{MempoolView, Page, PoolContent, PoolStatus, SenderPool, tx_object};

/// Counts and bytes, together and by type.
pub(crate) fn status(ports: &Ports) -> PoolStatus {
    ports.pool.counts().into_iter().collect()
}

/// How many transactions the pool has.
pub(crate) fn waiting(ports: &Ports) -> u64 {
    let counts = ports.pool.counts().into_iter();
    counts.map(|(_, count)| count.pending.saturating_add(count.queued)).sum()
}

/// What waits, by sender and nonce; a page counts senders.
pub(crate) fn content(context: &Context, page: &Page) -> Result<PoolContent, RpcError> {
    let mut last: Option<Address> = page.position()?;
    let mut content = PoolContent::default();
    let (mut has_more, mut left, mut bytes) = (true, page.limit(), 0_usize);
    let bytes_max = context.page_bytes_max();
    // The pool gives as much at a time as others can wait for.
    while has_more && left > 0 && bytes <= bytes_max {
        let Slice { items, next } = context.ports.pool.content(last, left);
        has_more = next.is_some();
        left = left.saturating_sub(items.len());
        for sender in items {
            if bytes > bytes_max {
                has_more = true;
                break;
            }
            bytes = bytes.saturating_add(content.add(&sender));
            last = Some(sender.sender);
        }
    }
    content.next_cursor = last.filter(|_| has_more).as_ref().map(cursor::encode);
    Ok(content)
}

/// What one sender has waiting, by nonce.
pub(crate) fn content_from(ports: &Ports, address: Address) -> SenderPool {
    SenderPool::from(ports.pool.content_from(&address))
}

/// The first transactions that wait for a block, in the order in which they are to be executed.
pub(crate) fn first_pending(context: &Context, limit: usize) -> MempoolView {
    let total = waiting(&context.ports);
    let (mut pending, mut bytes) = (Vec::new(), 0_usize);
    for tx in context.ports.pool.pending(limit) {
        if bytes >= context.page_bytes_max() {
            break;
        }
        bytes = bytes.saturating_add(tx.signed_bytes());
        pending.push(tx_object(&tx));
    }
    MempoolView { total, pending }
}
