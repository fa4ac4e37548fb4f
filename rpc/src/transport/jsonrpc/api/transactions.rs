//! The status of transactions.

use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;
use types::Hash;

use crate::admission::Client;
use crate::error::RpcError;
use crate::service::{Context, transactions};
use crate::wire::{TxView, WaitOptions};

/// The status of transactions.
#[rpc(server, namespace = "ombra")]
pub trait TransactionsRpc {
    /// Returns a transaction and its status.
    #[method(name = "getTransaction", blocking)]
    fn transaction(&self, hash: Hash) -> Result<TxView, RpcError>;

    /// Returns a transaction as soon as it is included or dropped. If the time runs out, the answer
    /// is `pending`, which does not mean that anything is wrong with the transaction.
    #[method(name = "waitForTransaction", with_extensions)]
    async fn wait_for_transaction(
        &self,
        hash: Hash,
        options: Option<WaitOptions>,
    ) -> Result<TxView, RpcError>;
}

#[async_trait]
impl TransactionsRpcServer for Context {
    fn transaction(&self, hash: Hash) -> Result<TxView, RpcError> {
        transactions::transaction(self, hash)
    }

    async fn wait_for_transaction(
        &self,
        extensions: &Extensions,
        hash: Hash,
        options: Option<WaitOptions>,
    ) -> Result<TxView, RpcError> {
        let share = extensions.get::<Client>().ok_or(RpcError::Internal)?.share();
        transactions::wait_for_transaction(self, share, hash, options.unwrap_or_default()).await
    }
}
