//! Blocks as events of a stream, written once for all who listen.

use std::collections::VecDeque;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use types::{Address, Hash};

use super::{Rest, ascii};
use crate::error::RpcError;
use crate::memory::Kept;
use crate::wire::{AddressText, HashText, TxObject, tx_object};

/// Rendered blocks that are kept: those of the tip, which all but slow listeners want.
const BLOCKS_KEPT: usize = 2;

/// The last blocks that were rendered. The lock is held while one is, so that each is rendered once.
#[derive(Default)]
pub(super) struct Rendered(tokio::sync::Mutex<VecDeque<(u64, Bytes)>>);

/// A block as an event; all of it is there again under the key `block`, for clients that look for
/// it there.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockEvent<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    block: Again<'a>,
}

/// What an event tells of a block.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Content<'a> {
    /// Its index.
    index: u64,
    /// Its hash.
    #[schemars(with = "HashText")]
    hash: Hash,
    /// The block before.
    #[schemars(with = "HashText")]
    previous_hash: Hash,
    /// Block time.
    timestamp: u64,
    /// The validator that made it.
    #[schemars(with = "AddressText")]
    proposer: Address,
    /// How many transactions it has.
    tx_count: u64,
    /// The signed objects, in order of execution.
    #[schemars(with = "Vec<TxObject>")]
    transactions: &'a [Box<RawValue>],
}

/// The same once more.
#[derive(Serialize, JsonSchema)]
struct Again<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    /// The same as `transactions`.
    #[schemars(with = "Vec<TxObject>")]
    txs: &'a [Box<RawValue>],
}

/// One event of a stream.
pub(super) fn event(id: Option<u64>, name: &str, data: &impl Serialize) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {name}\ndata: {}\n\n", ascii::to_string(data))
}

impl Rest {
    /// The block as an event.
    pub(super) async fn rendered(&self, height: u64) -> Result<Bytes, RpcError> {
        let mut kept = self.0.rendered.0.lock().await;
        if let Some((_, bytes)) = kept.iter().find(|(at, _)| *at == height) {
            return Ok(bytes.clone());
        }
        let text = self.blocking(move |rest| rest.render(height)).await?;
        // As long as somebody has not taken the event, its bytes count as an answer's.
        let room = self.0.resources.memory.wait_for(text.len()).await;
        let bytes = Bytes::from_owner(Kept { bytes: text.into(), _room: room });
        if kept.back().is_none_or(|(newest, _)| *newest < height) {
            kept.push_back((height, bytes.clone()));
            if kept.len() > BLOCKS_KEPT {
                kept.pop_front();
            }
        }
        Ok(bytes)
    }

    fn render(&self, height: u64) -> Result<String, RpcError> {
        let events = self.api().hub.block(height)?.ok_or_else(|| {
            tracing::error!(height, "a committed block cannot be read");
            RpcError::Internal
        })?;
        let (block, hash) = (&events.committed.block, events.committed.hash);
        let header = &block.header;
        let transactions: Vec<_> = block.transactions.iter().map(|tx| tx_object(tx)).collect();
        let content = Content {
            index: header.index,
            hash,
            previous_hash: header.previous_hash,
            timestamp: header.timestamp,
            proposer: header.proposer,
            tx_count: header.tx_count,
            transactions: &transactions,
        };
        let again = Again { content, txs: &transactions };
        Ok(event(Some(height), "block", &BlockEvent { content, block: again }))
    }
}
