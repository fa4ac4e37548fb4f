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

use super::{Rest, ascii};
use crate::error::RpcError;
use crate::rate::Client;
use crate::wire::{AddressText, HashText, TxObject, tx_object};

/// Rendered blocks that are kept: those of the tip, which all but slow listeners want. Two events are
/// small beside the memory for answers, and need no room in it: so no answer that somebody does not
/// take can hold up those who listen.
const BLOCKS_KEPT: u64 = 2;

/// The last blocks, each rendered once by whoever wants it first.
#[derive(Default)]
pub(super) struct Rendered(Mutex<VecDeque<(u64, Arc<OnceCell<Bytes>>)>>);

impl Rendered {
    /// The place of a block of the tip; none for an older one.
    fn cell(&self, height: u64, tip: u64) -> Option<Arc<OnceCell<Bytes>>> {
        let mut kept = self.0.lock();
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

impl Rest {
    /// The block as an event. One of the tip is rendered for all, by the node itself; an older one
    /// when it is the turn of the client that wants it.
    pub(super) async fn rendered(
        &self,
        client: &Client,
        height: u64,
        tip: u64,
    ) -> Result<BlockText, RpcError> {
        let Some(cell) = self.0.rendered.cell(height, tip) else {
            let (rest, share) = (self.clone(), client.share());
            let render = move || rest.render(height);
            return self.0.resources.readers.replay(share, render).await.map(BlockText::Own);
        };
        let nobody = &self.0.resources.nobody;
        let render = || self.blocking(nobody, move |rest| rest.render(height));
        cell.get_or_try_init(render).await.cloned().map(BlockText::Shared)
    }

    fn render(&self, height: u64) -> Result<Bytes, RpcError> {
        let events = self.api().hub.committed_block(height)?;
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
}
