//! Blocks as events of a stream, written once for all who listen.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;
use types::{Address, Hash};

use super::ascii;
use crate::admission::Client;
use crate::error::RpcError;
use crate::service::Context;
use crate::service::events::Hub;
use crate::wire::{AddressText, HashText, TxObject, tx_object};

/// Rendered blocks that are kept: those of the tip, which all but slow listeners want. Two events are
/// small beside the memory for answers, and need no room in it: so no answer that somebody does not
/// take can hold up those who listen.
const BLOCKS_KEPT: u64 = 2;

/// The last blocks, each rendered once by whoever wants it first.
pub(super) struct Rendered {
    kept: Mutex<VecDeque<(u64, Arc<OnceCell<Bytes>>)>>,
    context: Arc<Context>,
    /// For whom the blocks of the tip are read.
    nobody: Client,
}

impl Rendered {
    pub(super) fn new(context: Arc<Context>, nobody: Client) -> Self {
        Self { kept: Mutex::default(), context, nobody }
    }

    /// The block as an event. One of the tip is rendered for all, by the node itself; an older one
    /// when it is the turn of the client that wants it.
    pub(super) async fn event(
        &self,
        client: &Client,
        height: u64,
        tip: u64,
    ) -> Result<BlockText, RpcError> {
        let Some(cell) = self.cell(height, tip) else {
            let hub = Arc::clone(&self.context.hub);
            let render = move || render(&hub, height);
            let rendered = self.context.readers.replay(client.share(), render).await;
            return rendered.map(BlockText::Own);
        };
        let render =
            || self.context.read(&self.nobody, move |context| render(&context.hub, height));
        cell.get_or_try_init(render).await.cloned().map(BlockText::Shared)
    }

    /// The place of a block of the tip; none for an older one.
    fn cell(&self, height: u64, tip: u64) -> Option<Arc<OnceCell<Bytes>>> {
        let mut kept = self.kept.lock();
        if let Some((_, cell)) = kept.iter().find(|(at, _)| *at == height) {
            return Some(Arc::clone(cell));
        }
        let is_newest = kept.back().is_none_or(|(newest, _)| *newest < height);
        if !is_newest || height.saturating_add(BLOCKS_KEPT) <= tip {
            return None;
        }
        let cell = Arc::default();
        kept.push_back((height, Arc::clone(&cell)));
        kept.retain(|(at, _)| at.saturating_add(BLOCKS_KEPT) > height);
        Some(cell)
    }
}

/// A block as an event. All members are repeated under the key `block`, for clients that expect
/// them there.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockEvent<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    block: Again<'a>,
}

/// The contents of a block event.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Content<'a> {
    /// The index of the block.
    index: u64,
    /// The hash of the block.
    #[schemars(with = "HashText")]
    hash: Hash,
    /// The hash of the previous block.
    #[schemars(with = "HashText")]
    previous_hash: Hash,
    /// The time of the block, in milliseconds since 1970.
    timestamp: u64,
    /// The address of the validator that made the block.
    #[schemars(with = "AddressText")]
    proposer: Address,
    /// The number of transactions in the block.
    tx_count: u64,
    /// The signed transactions in the order of execution.
    #[schemars(with = "Vec<TxObject>")]
    transactions: &'a [Box<RawValue>],
}

/// The members of the block event once more.
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

/// A block as an event, and whose text it is.
pub(super) enum BlockText {
    /// The node keeps it for all who listen.
    Shared(Bytes),
    /// It was made for one client.
    Own(Bytes),
}

impl BlockText {
    pub(super) const fn text(&self) -> &Bytes {
        let (Self::Shared(text) | Self::Own(text)) = self;
        text
    }

    pub(super) fn into_text(self) -> Bytes {
        let (Self::Shared(text) | Self::Own(text)) = self;
        text
    }
}

fn render(hub: &Hub, height: u64) -> Result<Bytes, RpcError> {
    let events = hub.committed_block(height)?;
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
    Ok(event(Some(height), "block", &BlockEvent { content, block: again }).into())
}
