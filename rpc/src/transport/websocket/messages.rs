//! What the subscriptions of a WebSocket are told of blocks, a slice at a time.

use serde::Serialize;

use super::subscription::{Channel, Subscription};
use crate::error::RpcError;
use crate::service::Context;
use crate::wire::SocketBlock;

/// Messages that are made before they are sent, without room in the memory for answers.
const SLICE_BYTES: usize = 64 * 1024;
/// What a message has beside a transaction's text, at most.
pub(super) const FRAME_BYTES: usize = 1024;
/// What a transaction's hash takes in the message of a block, and how many it has at most.
const HASH_BYTES: usize = 67;
const HASHES_MAX: usize = 10_000;

/// The next event to look at, whoever wants it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cursor {
    /// The block.
    pub(super) height: u64,
    /// The place among [`OF_BLOCKS`].
    channel: usize,
    /// The place among the block's events there.
    item: usize,
}

impl Cursor {
    pub(super) const fn at(height: u64) -> Self {
        Self { height, channel: 0, item: 0 }
    }
}

/// The channels that tell of blocks, in the order in which they do.
const OF_BLOCKS: [Channel; 4] = [Channel::Blocks, Channel::Txs, Channel::Agent, Channel::Chat];

/// Messages that were made together.
pub(super) struct Slice {
    pub(super) messages: Vec<String>,
    bytes: usize,
    pub(super) next: Cursor,
    /// If none was made because the next one is too large for the room that there is: its size.
    pub(super) needs: Option<usize>,
}

impl Slice {
    /// Adds a message if there is room for it; false if there is not.
    fn add(&mut self, size: usize, room: usize, message: impl FnOnce() -> String) -> bool {
        let fits = self.bytes.saturating_add(size) <= SLICE_BYTES;
        // A message larger than a slice is a slice of its own.
        let is_alone = self.messages.is_empty() && size <= room;
        if !fits && !is_alone {
            self.needs = self.messages.is_empty().then_some(size);
            return false;
        }
        self.bytes = self.bytes.saturating_add(size);
        self.messages.push(message());
        true
    }
}

/// What the subscriptions are told of a block from this event on, as much as a slice holds. An event
/// that several want is told once.
pub(super) fn messages(
    context: &Context,
    from: Cursor,
    subscriptions: &[Subscription],
    room: usize,
) -> Result<Slice, RpcError> {
    let events = context.hub.committed_block(from.height)?;
    let mut slice = Slice { messages: Vec::new(), bytes: 0, next: from, needs: None };
    for (at, channel) in OF_BLOCKS.into_iter().enumerate().skip(from.channel) {
        let wanted: Vec<_> = subscriptions.iter().filter(|it| it.channel == channel).collect();
        let (kind, name) = channel.events();
        let first = if at == from.channel { from.item } else { 0 };
        if wanted.is_empty() {
            continue;
        }
        if channel == Channel::Blocks {
            let hashes = events.committed.block.transactions.len().min(HASHES_MAX);
            let size = hashes.saturating_mul(HASH_BYTES).saturating_add(FRAME_BYTES);
            let message = || told(name, &SocketBlock::new(&events.committed));
            if first == 0 && !slice.add(size, room, message) {
                return Ok(slice);
            }
            continue;
        }
        for (item, event) in events.items(kind, &context.ports)?.iter().enumerate().skip(first) {
            if !wanted.iter().any(|subscription| subscription.wants(&event.keys)) {
                continue;
            }
            let size = event.json.get().len().saturating_add(FRAME_BYTES);
            if !slice.add(size, room, || told(name, &event.json)) {
                slice.next = Cursor { channel: at, item, ..from };
                return Ok(slice);
            }
        }
    }
    slice.next = Cursor::at(from.height.saturating_add(1));
    Ok(slice)
}

/// An event as a message. Texts of transactions stay as their signers wrote them.
pub(super) fn told(name: &str, data: &impl Serialize) -> String {
    let data = serde_json::to_string(data).expect("events are plain data with text keys");
    format!(r#"{{"type":"{name}","data":{data}}}"#)
}
