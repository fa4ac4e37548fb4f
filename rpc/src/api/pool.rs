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
        let Slice { items, next } = self.ports.pool.content(page.position()?, page.limit());
        let mut content = PoolContent::default();
        let mut bytes = 0_usize;
        for sender in &items {
            bytes = bytes.saturating_add(content.add(sender));
            if bytes > self.page_bytes_max() {
                content.next_cursor = Some(cursor::encode(&sender.sender));
                let is_last = items.last() == Some(sender) && next.is_none();
                if is_last {
                    content.next_cursor = None;
                }
                return Ok(content);
            }
        }
        content.next_cursor = next.as_ref().map(cursor::encode);
        Ok(content)
    }

    fn content_from(&self, address: Address) -> Result<SenderPool, RpcError> {
        Ok(SenderPool::from(self.ports.pool.content_from(&address)))
    }
}
