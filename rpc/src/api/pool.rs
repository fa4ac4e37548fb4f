//! The pool.

use jsonrpsee::proc_macros::rpc;
use types::Address;

use super::Api;
use crate::cursor;
use crate::error::RpcError;
use crate::ports::Slice;
use crate::wire::{Page, PoolContent, PoolStatus, SenderPool};

/// The pool.
#[rpc(server, namespace = "txpool")]
pub trait PoolRpc {
    /// Counts and bytes, together and by type.
    #[method(name = "status")]
    fn status(&self) -> Result<PoolStatus, RpcError>;

    /// What waits, by sender and nonce; a page counts senders.
    #[method(name = "content", blocking)]
    fn content(&self, page: Option<Page>) -> Result<PoolContent, RpcError>;

    /// What one sender has waiting, by nonce.
    #[method(name = "contentFrom", blocking)]
    fn content_from(&self, address: Address) -> Result<SenderPool, RpcError>;
}

impl PoolRpcServer for Api {
    fn status(&self) -> Result<PoolStatus, RpcError> {
        Ok(self.ports.pool.counts().into_iter().collect())
    }

    fn content(&self, page: Option<Page>) -> Result<PoolContent, RpcError> {
        let page = page.unwrap_or_default();
        let mut last: Option<Address> = page.position()?;
        let mut content = PoolContent::default();
        let (mut has_more, mut left, mut bytes) = (true, page.limit(), 0_usize);
        let bytes_max = self.page_bytes_max();
        // The pool gives as much at a time as others can wait for.
        while has_more && left > 0 && bytes <= bytes_max {
            let Slice { items, next } = self.ports.pool.content(last, left);
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

    fn content_from(&self, address: Address) -> Result<SenderPool, RpcError> {
        Ok(SenderPool::from(self.ports.pool.content_from(&address)))
    }
}
