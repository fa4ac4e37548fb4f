//! Puts bodies together again, within bounds.
//!
//! A stream is known by who published it and its id, since its parts may be relayed by different
//! peers and arrive in any order. Memory is bounded by [`Limits`]: a stream without a head holds
//! little, a stream with a head is admitted by the caller (who checks seal, turn and height), and
//! of too many streams the oldest goes.

use std::collections::BTreeMap;

use bytes::Bytes;
use malachitebft_app::types::PeerId;
use malachitebft_app::types::streaming::{StreamId, StreamMessage};
use malachitebft_engine::util::streaming::StreamContent;
use types::Hash;

use super::{CHUNK_BYTES, Head, Part};

/// Bounds of the assembler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Largest body.
    pub(crate) body_bytes_max: usize,
    /// Streams that are open at a time: some rounds of some heights.
    pub(crate) streams_max: usize,
    /// Chunks kept of a stream whose head has not come.
    pub(crate) early_chunks_max: usize,
}

/// A body that is whole, with its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) head: Head,
    pub(crate) bytes: Bytes,
}

/// Open streams.
#[derive(Debug)]
pub(crate) struct Assembler {
    limits: Limits,
    streams: BTreeMap<Key, Stream>,
    /// Counts up with each new stream; tells the oldest.
    opened: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    publisher: PeerId,
    stream: Bytes,
}

#[derive(Debug)]
struct Stream {
    opened: u64,
    head: Option<Head>,
    chunks: BTreeMap<u64, Vec<u8>>,
}

/// Ids of streams are short; a longer one is not ours.
const STREAM_ID_BYTES_MAX: usize = 16;

impl Assembler {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self { limits, streams: BTreeMap::new(), opened: 0 }
    }

    /// Takes one message of `publisher`. `admit` says whether a head's body is wanted; a refused
    /// one closes its stream. Returns a body when its last part has come and its digest is right.
    pub(crate) fn add(
        &mut self,
        publisher: PeerId,
        message: StreamMessage<Part>,
        admit: impl FnOnce(&Head) -> bool,
    ) -> Option<Body> {
        let key = key(publisher, &message.stream_id)?;
        let StreamContent::Data(part) = message.content else {
            return None;
        };
        match (part, message.sequence) {
            (Part::Head(head), 0) => {
                let fits =
                    usize::try_from(head.size).is_ok_and(|size| size <= self.limits.body_bytes_max);
                if !fits || !admit(&head) {
                    self.streams.remove(&key);
                    return None;
                }
                let stream = self.open(&key);
                stream.head.get_or_insert(head);
            }
            (Part::Chunk(chunk), number @ 1..) if chunk.len() <= CHUNK_BYTES => {
                let early_max = self.limits.early_chunks_max;
                let stream = self.open(&key);
                let most = stream.head.as_ref().map_or(early_max, chunk_count);
                let wanted = stream.head.is_none() || number <= as_u64(most);
                if wanted && stream.chunks.len() < most {
                    stream.chunks.entry(number).or_insert(chunk);
                }
            }
            (Part::Head(_) | Part::Chunk(_), _) => return None,
        }
        self.take_whole(&key)
    }

    /// Forgets streams of heights up to `height`.
    pub(crate) fn prune(&mut self, height: u64) {
        self.streams
            .retain(|_, stream| stream.head.as_ref().is_none_or(|head| head.height > height));
    }

    fn open(&mut self, key: &Key) -> &mut Stream {
        if !self.streams.contains_key(key) && self.streams.len() >= self.limits.streams_max {
            // Streams without a head go first: anybody can open those.
            let oldest = self
                .streams
                .iter()
                .min_by_key(|(_, stream)| (stream.head.is_some(), stream.opened))
                .map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.streams.remove(&oldest);
            }
        }
        self.opened += 1;
        let opened = self.opened;
        self.streams.entry(key.clone()).or_insert_with(|| Stream {
            opened,
            head: None,
            chunks: BTreeMap::new(),
        })
    }

    /// Removes the stream and returns its body, if all parts are there.
    fn take_whole(&mut self, key: &Key) -> Option<Body> {
        let stream = self.streams.get(key)?;
        let count = chunk_count(stream.head.as_ref()?);
        let present = stream.chunks.range(1..=as_u64(count)).count();
        if present < count {
            return None;
        }
        let Stream { head, chunks, .. } = self.streams.remove(key)?;
        let head = head?;
        let chunks: Vec<Vec<u8>> = chunks.into_values().take(count).collect();
        let bytes = chunks.concat();
        let right = usize::try_from(head.size).is_ok_and(|size| size == bytes.len())
            && Hash::digest(&bytes).as_bytes() == &head.digest;
        right.then(|| Body { head, bytes: bytes.into() })
    }
}

fn key(publisher: PeerId, stream: &StreamId) -> Option<Key> {
    let stream = stream.to_bytes();
    (stream.len() <= STREAM_ID_BYTES_MAX).then_some(Key { publisher, stream })
}

/// How many chunks follow a head.
fn chunk_count(head: &Head) -> usize {
    usize::try_from(head.size).map_or(0, |size| size.div_ceil(CHUNK_BYTES))
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
