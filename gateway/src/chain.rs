//! The chain as the gateway asks it, over the wallet's client of a node.

use std::sync::Arc;
use std::time::Duration;

use miner::chain::client::Node as MinersNode;
use miner::chain::{ChainError, Runs as _};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use types::{Address, Amount, Hash};
use wallet::client::records::Run;
use wallet::{Client, ClientError};

use crate::market::{CallState, Published};
use crate::question::Prices;
use crate::record::{Record, Work};

/// The longest answer that is fetched, bytes (docs/agent-methods.md section 8).
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Calls under way at once, besides those that wait for a block.
const CALLS_MAX: usize = 16;
/// How long the chain's prices hold.
pub(crate) const PRICES_LAST: Duration = Duration::from_secs(1);

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its client.
    pub client: Client,
    /// The same as miners ask it: accounts, transactions, blobs.
    pub miners: MinersNode,
    /// One for each call under way: a node has only so many connections for each of its clients.
    places: Arc<Semaphore>,
}

type Answer<T> = Result<T, ChainError>;

impl Node {
    /// The node that `client` talks to, and `miners` as well.
    #[must_use]
    pub fn new(client: Client, miners: MinersNode) -> Self {
        Self { client, miners, places: Arc::new(Semaphore::new(CALLS_MAX)) }
    }

    /// Waits for its turn to ask.
    async fn place(&self) -> Answer<SemaphorePermit<'_>> {
        self.places.acquire().await.map_err(|closed| ChainError::Away(closed.to_string()))
    }

    /// A run with this escrow, if there is one.
    pub(crate) async fn run(&self, id: &Hash, max_fee_micro: u64) -> Answer<Option<Run>> {
        let Some(run) = self.any_run(id).await? else { return Ok(None) };
        if run.agent_run_id != *id || run.max_fee.get() != max_fee_micro {
            let (other, fee) = (run.agent_run_id, run.max_fee);
            let text = format!("asked for run {id}, told of {other} with escrow {fee}");
            return Err(ChainError::Strange(text));
        }
        let (reward, fee) =
            (run.miner_reward.unwrap_or_default(), run.network_fee.unwrap_or_default());
        if reward.checked_add(fee).is_none_or(|cost| cost > run.max_fee) {
            let text =
                format!("run {id} costs {reward} and {fee}, more than its escrow {}", run.max_fee);
            return Err(ChainError::Strange(text));
        }
        Ok(Some(run))
    }

    async fn any_run(&self, id: &Hash) -> Answer<Option<Run>> {
        let _place = self.place().await?;
        match self.client.run(id).await {
            Ok(run) => Ok(Some(run.into_value())),
            Err(ClientError::NotFound { .. }) => Ok(None),
            Err(other) => Err(error(&other)),
        }
    }

    /// Whether there is an agent with this version.
    pub(crate) async fn has_agent(&self, id: &Hash, version: &str) -> Answer<bool> {
        let _place = self.place().await?;
        match self.client.agent(id, Some(version)).await {
            Ok(_) => Ok(true),
            Err(ClientError::NotFound { .. } | ClientError::Other { .. }) => Ok(false),
            Err(other) => Err(error(&other)),
        }
    }

    /// A version of an agent, if there is one.
    pub(crate) async fn published(&self, id: &Hash, version: &str) -> Answer<Option<Published>> {
        let _place = self.place().await?;
        match self.client.agent(id, Some(version)).await {
            Ok(told) => Published::read(*id, &told).map(Some).map_err(ChainError::Strange),
            Err(ClientError::NotFound { .. } | ClientError::BadParams { .. }) => Ok(None),
            Err(other) => Err(error(&other)),
        }
    }

    /// What a call would cost; the inner error is the node's sentence about what cannot be asked.
    pub(crate) async fn estimate(&self, call: &Value) -> Answer<Result<Value, String>> {
        let _place = self.place().await?;
        match self.client.call::<Value, _>("ombra_estimateCall", [call]).await {
            Ok(told) => Ok(Ok(told.into_value())),
            Err(wrong @ (ClientError::NotFound { .. } | ClientError::BadParams { .. })) => {
                Ok(Err(wrong.to_string()))
            }
            Err(other) => Err(error(&other)),
        }
    }

    /// A call with this escrow, if there is one.
    pub(crate) async fn call(&self, id: &Hash, max_fee_micro: u64) -> Answer<Option<CallState>> {
        let Some(call) = self.any_call(id).await? else { return Ok(None) };
        if call.call_id != *id || call.max_fee.get() != max_fee_micro {
            let (other, fee) = (call.call_id, call.max_fee);
            let text = format!("asked for call {id}, told of {other} with escrow {fee}");
            return Err(ChainError::Strange(text));
        }
        Ok(Some(call))
    }

    async fn any_call(&self, id: &Hash) -> Answer<Option<CallState>> {
        let _place = self.place().await?;
        match self.client.call::<CallState, _>("ombra_getCall", [id]).await {
            Ok(told) => Ok(Some(told.into_value())),
            Err(ClientError::NotFound { .. }) => Ok(None),
            Err(other) => Err(error(&other)),
        }
    }

    /// Whether the chain has the run or the call that a request was to make, and no other under its id.
    pub(crate) async fn has(&self, record: &Record, id: &Hash) -> Answer<bool> {
        let max_fee = Amount::new(record.max_fee_micro);
        Ok(match &record.work {
            Work::Run => self.any_run(id).await?.is_some_and(|run| run.max_fee == max_fee),
            Work::Call(_) => self.any_call(id).await?.is_some_and(|call| call.max_fee == max_fee),
        })
    }

    /// The chain's name.
    pub(crate) async fn chain_id(&self) -> Answer<String> {
        let _place = self.place().await?;
        let told = self.client.chain_info().await.map_err(|it| error(&it))?;
        Ok(told.into_value().chain_id)
    }

    /// A page of the calls of an account, newest first.
    pub(crate) async fn calls(&self, of: &Address, cursor: Option<&str>) -> Answer<Value> {
        let mut page = json!({ "limit": 100 });
        if let Some(cursor) = cursor {
            page["cursor"] = json!(cursor);
        }
        let filter = json!({ "requester": of });
        let told = self.client.call::<Value, _>("ombra_listCalls", (filter, page));
        Ok(told.await.map_err(|it| error(&it))?.into_value())
    }

    /// What an account has in blocks, micro-OMBRA.
    pub(crate) async fn balance_micro(&self, address: &Address) -> Answer<u64> {
        let _place = self.place().await?;
        let account = self.client.account(address).await.map_err(|it| error(&it))?;
        Ok(account.balance.get())
    }

    /// What things cost now, and whether runs can be protected.
    pub(crate) async fn prices(&self) -> Answer<(Prices, bool)> {
        let _place = self.place().await?;
        let fees: Value = self.client.fee_schedule().await.map_err(|it| error(&it))?.into_value();
        let price = |name: &str| number(&fees[name]).unwrap_or_default();
        let prices = Prices {
            base_fee_micro: price("baseFee"),
            blob_init_micro: price("blobInitFee"),
            blob_chunk_micro: price("blobFeePerChunk"),
            max_fee_micro_min: price("minMaxFee"),
        };
        Ok((prices, fees.get("baseFee").is_some()))
    }

    /// What a transaction burned for its place, micro-OMBRA; 0 before fork v7, and none if the node does not
    /// have its block.
    pub(crate) async fn inclusion_fee_micro(&self, hash: &Hash) -> Answer<Option<u64>> {
        let _place = self.place().await?;
        match self.client.call::<Value, _>("ombra_getTransaction", [hash]).await {
            Ok(told) => Ok(Some(number(&told["inclusionFee"]).unwrap_or_default())),
            Err(ClientError::HistoryUnavailable { .. }) => Ok(None),
            Err(other) => Err(error(&other)),
        }
    }

    /// The final answer of a run, if it has one.
    pub(crate) async fn answer(&self, run: &Run) -> Answer<Option<String>> {
        let _place = self.place().await?;
        match (&run.final_answer_inline, &run.final_answer_blob_id) {
            (Some(text), _) => Ok(Some(text.clone())),
            (None, Some(id)) => self.miners.blob_text(id, ANSWER_BYTES_MAX).await,
            (None, None) => Ok(None),
        }
    }

    /// The newest transactions of an account, after a cursor.
    pub(crate) async fn transactions(
        &self,
        address: &Address,
        cursor: Option<&str>,
    ) -> Answer<Value> {
        let mut page = json!({ "limit": 500 });
        if let Some(cursor) = cursor {
            page["cursor"] = json!(cursor);
        }
        let told = self.client.call::<Value, _>("ombra_getAccountTransactions", (address, page));
        Ok(told.await.map_err(|it| error(&it))?.into_value())
    }
}

/// An amount or a number, however it is written.
pub(crate) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// What a failed call means here.
fn error(error: &ClientError) -> ChainError {
    match (error, error.retry_after()) {
        (_, Some(_)) => ChainError::Away(error.to_string()),
        (ClientError::HistoryUnavailable { message }, None) => {
            ChainError::NoHistory(message.clone())
        }
        (_, None) => ChainError::Strange(error.to_string()),
    }
}
