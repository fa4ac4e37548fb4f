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
        let mut after: Option<Address> = page.position()?;
        let mut content = PoolContent::default();
        let mut bytes = 0_usize;
        // One sender after the other, because the pool can do nothing else meanwhile.
        for _ in 0..page.limit() {
            let Slice { items, next } = self.ports.pool.content(after, 1);
            for sender in &items {
                bytes = bytes.saturating_add(content.add(sender));
            }
            after = next;
            if after.is_none() || bytes > self.page_bytes_max() {
                break;
            }
        }
        content.next_cursor = after.as_ref().map(cursor::encode);
        Ok(content)
    }

    fn content_from(&self, address: Address) -> Result<SenderPool, RpcError> {
        Ok(SenderPool::from(self.ports.pool.content_from(&address)))
    }
}
