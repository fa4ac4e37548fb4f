//! What became of transactions.

use std::sync::Arc;
use std::time::Duration;

use types::Hash;

use super::Context;
use super::history::missing;
use crate::admission::Share;
use crate::error::RpcError;
use crate::wire::{RestTx, TxView, WaitOptions, tx_with_place};

/// How long a wait lasts if the client does not say.
const WAIT_MS_DEFAULT: u64 = 30_000;
/// How long a wait may last.
const WAIT_MS_MAX: u64 = 60_000;

/// A transaction and what became of it.
pub(crate) fn transaction(context: &Context, hash: Hash) -> Result<TxView, RpcError> {
    let found = context.hub.find(&hash)?;
    found.ok_or_else(|| missing(&context.ports, "transaction", hash))
}

/// The same in the shape of the public network.
pub(crate) fn transaction_with_place(context: &Context, hash: Hash) -> Result<RestTx, RpcError> {
    let found = find_with_place(context, &hash)?;
    found.ok_or_else(|| missing(&context.ports, "transaction", hash))
}

/// A transaction with its place; none if there is none of that hash.
pub(super) fn find_with_place(context: &Context, hash: &Hash) -> Result<Option<RestTx>, RpcError> {
    context.hub.find(hash)?.map(tx_with_place).transpose()
}

/// The transaction as soon as it is included or dropped. When the time is over, it is answered as it is.
pub(crate) async fn wait_for_transaction(
    context: &Context,
    share: &Arc<Share>,
    hash: Hash,
    options: WaitOptions,
) -> Result<TxView, RpcError> {
    let timeout_ms = wait_ms(options.timeout_ms)?;
    let waiter = context.hub.wait(hash, share)?;
    let known = look_up(context, share, hash).await?;
    if known.block_index.is_some() || known.dropped.is_some() {
        return Ok(known);
    }
    tokio::select! {
        decided = waiter.decided() => decided.ok_or(RpcError::ShuttingDown),
        () = tokio::time::sleep(Duration::from_millis(timeout_ms)) => {
            look_up(context, share, hash).await
        }
        () = context.shutdown.cancelled() => Err(RpcError::ShuttingDown),
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

/// Looks the transaction up, off the runtime's own threads: that may touch the disk.
async fn look_up(context: &Context, share: &Arc<Share>, hash: Hash) -> Result<TxView, RpcError> {
    let hub = Arc::clone(&context.hub);
    let found = context.readers.read(share, move || hub.find(&hash)).await?;
    found.ok_or_else(|| missing(&context.ports, "transaction", hash))
}
