//! Gathers what the chain and the store have of the wallet, for `books.rs` to compare.

use miner::chain::ChainError;
use serde_json::{Map, Value, json};
use types::ids::compute_call_id;
use types::{Address, Hash};
use wallet::Page;

use crate::books::{ChainBooks, ChainRun, ChainTx, OwnBooks};
use crate::chain::{Node, number};
use crate::market::{CallState, Closed};
use crate::store::{Opening, Store};

/// Runs in one page of a list.
const PAGE: u32 = 500;

impl Store {
    /// What the store has.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn books(&self) -> Result<OwnBooks, miner::journal::JournalError> {
        let keys = self.keys()?;
        Ok(OwnBooks {
            wallet: self.owner()?.map(|owner| owner.wallet),
            opening: self.opening()?,
            requests: self.requests(usize::MAX)?,
            tallies: keys.into_iter().map(|it| (it.key.id, it.tally)).collect(),
            loose: self.loose()?,
            outbox: self.outbox()?.into_iter().map(|(slip, _)| slip.hash).collect(),
        })
    }
}

impl Node {
    /// What the chain has of a wallet since its books were opened.
    ///
    /// # Errors
    /// When the node does not answer.
    pub async fn books(
        &self,
        wallet: &Address,
        opening: Opening,
    ) -> Result<ChainBooks, ChainError> {
        let chain_id = self.chain_id().await?;
        let mut books =
            ChainBooks { opening_micro: opening.balance_micro, ..ChainBooks::default() };
        let mut cursor: Option<String> = None;
        'pages: loop {
            let page = self.transactions(wallet, cursor.as_deref()).await?;
            for item in page["items"].as_array().into_iter().flatten() {
                if item["blockIndex"].as_u64().is_some_and(|index| index <= opening.height) {
                    break 'pages;
                }
                books.txs.extend(self.transaction(item, (&chain_id, wallet)).await?);
            }
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        books.runs = self.runs(wallet, &books.txs).await?;
        books.runs.extend(self.calls_of(wallet, &books.txs).await?);
        books.balance_micro = self.balance_micro(wallet).await?;
        Ok(books)
    }

    async fn transaction(
        &self,
        item: &Value,
        (chain_id, wallet): (&str, &Address),
    ) -> Result<Option<ChainTx>, ChainError> {
        let Some(hash) = item["hash"].as_str().and_then(|text| text.parse::<Hash>().ok()) else {
            return Ok(None);
        };
        let kind = item["type"].as_str().unwrap_or_default().to_owned();
        let is_own = item["direction"] == "out" || item["direction"] == "self";
        let is_transfer = kind == "TRANSFER";
        let mut fee_micro = 0_u64;
        if is_own {
            let no_block = || ChainError::NoHistory(format!("the node has no block of {hash}"));
            fee_micro = self.inclusion_fee_micro(&hash).await?.ok_or_else(no_block)?;
            if is_transfer {
                fee_micro = fee_micro.saturating_add(number(&item["fee"]).unwrap_or_default());
            }
            let (prices, _) = self.prices().await?;
            fee_micro = fee_micro.saturating_add(match kind.as_str() {
                "SOCIAL_BLOB_INIT" => prices.blob_init_micro,
                "SOCIAL_BLOB_CHUNK" => prices.blob_chunk_micro,
                _ => 0,
            });
        }
        let amount = number(&item["amount"]).filter(|_| is_transfer);
        Ok(Some(ChainTx {
            hash,
            kind,
            is_own,
            run: run_of(item).or_else(|| call_of(item, chain_id, wallet)),
            amount_micro: amount.unwrap_or_default(),
            is_to_self: item["direction"] == "self",
            fee_micro,
        }))
    }

    /// The calls that were asked for by these transactions.
    async fn calls_of(
        &self,
        wallet: &Address,
        txs: &[ChainTx],
    ) -> Result<Vec<ChainRun>, ChainError> {
        let (mut calls, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = self.calls(wallet, cursor.as_deref()).await?;
            for item in page["items"].as_array().into_iter().flatten() {
                let call: CallState = serde_json::from_value(item.clone())
                    .map_err(|error| ChainError::Strange(error.to_string()))?;
                let asks = |tx: &ChainTx| tx.kind == "AGENT_CALL" && tx.run == Some(call.call_id);
                if txs.iter().any(asks) {
                    calls.push(ChainRun {
                        id: call.call_id,
                        max_fee_micro: call.max_fee.get(),
                        cost_micro: call.closed().map(Closed::cost_micro),
                        status: call.status,
                    });
                }
            }
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return Ok(calls);
            }
        }
    }

    /// The runs that were asked for by these transactions.
    async fn runs(&self, wallet: &Address, txs: &[ChainTx]) -> Result<Vec<ChainRun>, ChainError> {
        let filter = Map::from_iter([("submitter".to_owned(), json!(wallet))]);
        let (mut runs, mut cursor) = (Vec::new(), None);
        loop {
            let page = Page { cursor, limit: Some(PAGE) };
            let answer = self.client.runs(&filter, &page).await;
            let answer = answer.map_err(|error| ChainError::Away(error.to_string()))?.into_value();
            for run in answer.items {
                let id = run.agent_run_id;
                let asks = |tx: &ChainTx| tx.kind == "AGENT_REQUEST" && tx.run == Some(id);
                if !txs.iter().any(asks) {
                    continue;
                }
                let paid = [run.miner_reward, run.network_fee];
                let cost = paid.iter().map(|it| it.unwrap_or_default().get());
                let cost_micro = run.is_settled().then(|| cost.fold(0, u64::saturating_add));
                let max_fee_micro = run.max_fee.get();
                runs.push(ChainRun { id, status: run.status, max_fee_micro, cost_micro });
            }
            cursor = answer.next_cursor;
            if cursor.is_none() {
                return Ok(runs);
            }
        }
    }
}

/// The run that a transaction names.
fn run_of(item: &Value) -> Option<Hash> {
    item["agentRunId"].as_str().and_then(|text| text.parse().ok())
}

/// The call that a transaction of the wallet makes.
fn call_of(item: &Value, chain_id: &str, wallet: &Address) -> Option<Hash> {
    let nonce = number(&item["nonce"]).filter(|_| item["type"] == "AGENT_CALL")?;
    Some(compute_call_id(chain_id, wallet, nonce))
}
