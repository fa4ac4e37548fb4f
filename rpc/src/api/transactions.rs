//! What became of a transaction.

use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;
use types::Hash;

use super::Api;
use crate::error::RpcError;
use crate::rate::Client;
use crate::share::Share;
use crate::wire::{TxView, WaitOptions};

/// How long a wait lasts if the client does not say.
const WAIT_MS_DEFAULT: u64 = 30_000;
/// How long a wait may last.
const WAIT_MS_MAX: u64 = 60_000;

/// What became of transactions.
#[rpc(server, namespace = "ombra")]
pub trait TransactionsRpc {
    /// A transaction and what became of it.
    #[method(name = "getTransaction", blocking)]
    fn transaction(&self, hash: Hash) -> Result<TxView, RpcError>;

    /// The same, as soon as the transaction is included or dropped. When the time is over, the
    /// answer is `pending`: that says nothing against the transaction.
    #[method(name = "waitForTransaction", with_extensions)]
    async fn wait_for_transaction(
        &self,
        hash: Hash,
        options: Option<WaitOptions>,
    ) -> Result<TxView, RpcError>;
}

#[async_trait]
impl TransactionsRpcServer for Api {
    fn transaction(&self, hash: Hash) -> Result<TxView, RpcError> {
        let found = self.hub.find(&hash)?;
        found.ok_or_else(|| self.missing("transaction", hash))
    }

    async fn wait_for_transaction(
        &self,
        extensions: &Extensions,
        hash: Hash,
        options: Option<WaitOptions>,
    ) -> Result<TxView, RpcError> {
        let timeout_ms = wait_ms(options.unwrap_or_default().timeout_ms)?;
        let share = extensions.get::<Client>().ok_or(RpcError::Internal)?.share();
        let waiter = self.hub.wait(hash, share)?;
        let known = self.look_up(share, hash).await?;
        if known.block_index.is_some() || known.dropped.is_some() {
            return Ok(known);
        }
        tokio::select! {
            decided = waiter.decided() => decided.ok_or(RpcError::ShuttingDown),
            () = tokio::time::sleep(Duration::from_millis(timeout_ms)) => {
                self.look_up(share, hash).await
            }
            () = self.shutdown.cancelled() => Err(RpcError::ShuttingDown),
        }
    }
}

/// How long a call waits that may say it.
pub(super) fn wait_ms(asked: Option<u64>) -> Result<u64, RpcError> {
    let timeout_ms = asked.unwrap_or(WAIT_MS_DEFAULT);
    if timeout_ms > WAIT_MS_MAX {
        let expected = format!("at most {WAIT_MS_MAX} milliseconds");
        return Err(RpcError::invalid("timeoutMs", timeout_ms.to_string(), expected));
    }
    Ok(timeout_ms)
}

impl Api {
    /// Looks the transaction up, off the runtime's own threads: that may touch the disk.
    async fn look_up(&self, share: &Arc<Share>, hash: Hash) -> Result<TxView, RpcError> {
        let hub = Arc::clone(&self.hub);
        let found = self.readers.read(share, move || hub.find(&hash)).await?;
        found.ok_or_else(|| self.missing("transaction", hash))
    }
}
