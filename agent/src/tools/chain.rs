//! Tools that ask the miner's node about the chain. Results have no members that depend on a node's
//! pool or on what one node saw, so that two nodes of the same height answer alike.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use types::{Address, Hash};
use wallet::client::Page;
use wallet::client::records::Status;
use wallet::{Client, ClientError};

use super::definition::{spec, terms, text};
use super::hashes::canonical_json;
use super::tool::{Class, Code, Failure, Terms, Tool};
use crate::messages::ToolSpec;

/// What a tool asks.
#[derive(Clone, Copy, Debug)]
enum Query {
    Balance,
    Height,
    Block,
    Tx,
    RecentBlocks,
    Validators,
}

#[derive(Debug)]
struct ChainTool {
    spec: ToolSpec,
    query: Query,
    node: Client,
}

/// Blocks of `chain_recent_blocks`: the most, and how many unless told otherwise.
const BLOCKS_MAX: u32 = 20;
const BLOCKS: u32 = 5;

/// The tools, asking this node.
pub(super) fn tools(node: &Client) -> Vec<Arc<dyn Tool>> {
    let hex = |what: &str| json!({"type": "string", "description": what, "maxLength": 100});
    let count = json!({
        "type": "integer", "minimum": 1, "maximum": BLOCKS_MAX,
        "description": format!("how many blocks; {BLOCKS} if not given"),
    });
    let all = [
        (
            Query::Balance,
            spec(
                "chain_get_balance",
                "The balance of an account of the OMBRA chain, in micro (1 OMBRA = 1000000 micro).",
                &json!({"address": hex("the account: 40 hex characters")}),
                &["address"],
            ),
        ),
        (
            Query::Height,
            spec("chain_get_height", "The newest block's height, hash and time.", &json!({}), &[]),
        ),
        (
            Query::Block,
            spec(
                "chain_get_block",
                "A block, with the hashes of its transactions.",
                &json!({"block": hex("a height, a block hash of 64 hex characters, or latest")}),
                &["block"],
            ),
        ),
        (
            Query::Tx,
            spec(
                "chain_get_tx",
                "A transaction that is in a block.",
                &json!({"hash": hex("the transaction's hash: 64 hex characters")}),
                &["hash"],
            ),
        ),
        (
            Query::RecentBlocks,
            spec(
                "chain_recent_blocks",
                "Summaries of the newest blocks, newest first.",
                &json!({"count": count}),
                &[],
            ),
        ),
        (
            Query::Validators,
            spec(
                "chain_list_validators",
                "The validators of the newest block, with their voting power.",
                &json!({}),
                &[],
            ),
        ),
    ];
    let tool = |(query, spec)| -> Arc<dyn Tool> {
        Arc::new(ChainTool { spec, query, node: node.clone() })
    };
    all.map(tool).into()
}

#[async_trait]
impl Tool for ChainTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn terms(&self) -> Terms {
        terms(Class::Snapshot)
    }

    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure> {
        let answer = match self.query {
            Query::Balance => self.balance(text(arguments, "address")).await,
            Query::Height => self.height().await,
            Query::Block => self.block(text(arguments, "block")).await,
            Query::Tx => self.tx(text(arguments, "hash")).await,
            Query::RecentBlocks => {
                let count = arguments.get("count").and_then(Value::as_u64);
                self.recent_blocks(count).await
            }
            Query::Validators => self.validators().await,
        };
        answer.map(|value| canonical_json(&value))
    }
}

type Answer = Result<Value, Failure>;

impl ChainTool {
    async fn balance(&self, address: &str) -> Answer {
        let address: Address = address
            .parse()
            .map_err(|_unread| Failure::argument("address", address, "40 hex characters"))?;
        let account = self.node.account(&address).await.map_err(of_client)?;
        Ok(json!({
            "address": account.address.to_string(),
            "balanceMicro": account.balance.to_string(),
            "nonce": account.nonce,
        }))
    }

    async fn height(&self) -> Answer {
        let info = self.node.chain_info().await.map_err(of_client)?;
        Ok(json!({
            "chainId": info.chain_id,
            "height": info.height,
            "hash": info.latest_block_hash.to_string(),
            "timestamp": info.latest_block_time,
        }))
    }

    async fn block(&self, which: &str) -> Answer {
        let expected = "a height from 1, a block hash of 64 lower-case hex characters, or latest";
        let wrong = || Failure::argument("block", which, expected);
        let key = if which == "latest" {
            json!(which)
        } else if which.len() == Hash::ZERO.to_hex().len() {
            json!(Hash::parse(which).map_err(|_unread| wrong())?.to_string())
        } else {
            let is_plain = which.bytes().all(|byte| byte.is_ascii_digit());
            let height: Option<u64> = is_plain.then(|| which.parse().ok()).flatten();
            json!(height.filter(|height| *height > 0).ok_or_else(wrong)?)
        };
        let answer = self.node.call::<Value, _>("ombra_getBlock", (key, false)).await;
        Ok(only(
            &answer.map_err(of_client)?.into_value(),
            &[
                "index",
                "hash",
                "previousHash",
                "timestamp",
                "proposer",
                "stateRoot",
                "tokensBurned",
                "txCount",
                "transactions",
            ],
        ))
    }

    async fn tx(&self, hash: &str) -> Answer {
        let hash = Hash::parse(hash)
            .map_err(|_unread| Failure::argument("hash", hash, "64 lower-case hex characters"))?;
        let found = self.node.transaction(&hash).await.map_err(of_client)?;
        match found.status {
            Status::Included => {}
            Status::Pending | Status::Dropped => return Err(not_found()),
        }
        let whole: Value = serde_json::from_str(found.text())
            .map_err(|_unread| Failure::new(Code::Transport, "the node's answer cannot be read"))?;
        Ok(only(&whole, &["hash", "blockIndex", "blockHash", "position", "timestamp", "tx"]))
    }

    async fn recent_blocks(&self, count: Option<u64>) -> Answer {
        let count = count.and_then(|count| u32::try_from(count).ok()).unwrap_or(BLOCKS);
        let page = Page { cursor: None, limit: Some(count.min(BLOCKS_MAX)) };
        let blocks = self.node.blocks(None, None, &page).await.map_err(of_client)?;
        let members = ["index", "hash", "timestamp", "proposer", "txCount", "tokensBurned"];
        Ok(each(&blocks["items"], &members))
    }

    async fn validators(&self) -> Answer {
        let validators = self.node.validators().await.map_err(of_client)?;
        Ok(each(&validators, &["address", "publicKey", "power", "proposed", "missed"]))
    }
}

/// An object's members of these names.
fn only(value: &Value, members: &[&str]) -> Value {
    let member = |name: &&str| Some(((*name).to_owned(), value.get(name)?.clone()));
    Value::Object(members.iter().filter_map(member).collect())
}

/// The same for each object of an array.
fn each(values: &Value, members: &[&str]) -> Value {
    values.as_array().into_iter().flatten().map(|value| only(value, members)).collect()
}

fn not_found() -> Failure {
    Failure::failed("the chain has no such block or transaction")
}

/// What the model is told of a node's error: fixed sentences, since the node's own may differ
/// between versions.
fn of_client(error: ClientError) -> Failure {
    match error {
        ClientError::NotFound { .. } => not_found(),
        ClientError::BadParams { .. } | ClientError::Rejected(_) => {
            Failure::failed("the node does not take this question")
        }
        ClientError::HistoryUnavailable { .. } => {
            Failure::failed("the node does not have blocks that old")
        }
        ClientError::NotServing { .. } | ClientError::Limited { .. } => {
            Failure::new(Code::Transport, "the node does not serve now")
        }
        ClientError::BadUrl { .. }
        | ClientError::Unreachable { .. }
        | ClientError::Other { .. }
        | ClientError::Strange { .. }
        | ClientError::Unreadable { .. }
        | ClientError::Unwritable { .. }
        | ClientError::WrongHash { .. }
        | ClientError::OtherChain(_) => {
            tracing::warn!(%error, "a tool could not ask the node");
            Failure::new(Code::Transport, "the node could not be asked")
        }
    }
}

#[cfg(test)]
mod tests;
