//! The pool.

use jsonrpsee::proc_macros::rpc;
use types::Address;

use crate::error::RpcError;
use crate::service::{Context, pool};
use crate::wire::{Page, PoolContent, PoolStatus, SenderPool};

/// The pool.
#[rpc(server, namespace = "txpool")]
pub trait PoolRpc {
    /// Returns the number and size of the waiting transactions.
    #[method(name = "status")]
    fn status(&self) -> Result<PoolStatus, RpcError>;

    /// Returns the waiting transactions by sender and nonce. A page counts senders.
    #[method(name = "content", blocking)]
    fn content(&self, page: Option<Page>) -> Result<PoolContent, RpcError>;

    /// Returns the waiting transactions of one sender by nonce.
    #[method(name = "contentFrom", blocking)]
    fn content_from(&self, address: Address) -> Result<SenderPool, RpcError>;
}

impl PoolRpcServer for Context {
    fn status(&self) -> Result<PoolStatus, RpcError> {
        Ok(pool::status(&self.ports))
    }

    fn content(&self, page: Option<Page>) -> Result<PoolContent, RpcError> {
        pool::content(self, &page.unwrap_or_default())
    }

    fn content_from(&self, address: Address) -> Result<SenderPool, RpcError> {
        Ok(pool::content_from(&self.ports, address))
    }
}
