//! Puts bodies together again, within bounds.
//!
//! A stream is known by who published it and its id, since its parts may be relayed by different
//! peers and arrive in any order. Memory is bounded by [`Limits`]: a stream without a head holds
//! little and counts against its publisher; a stream with a head is admitted by the caller (who
//! checks seal, turn and height) and counts against the proposer who sealed it. Where there are too
//! many, the one that has waited longest for a part goes, but only one of the same publisher or
//! proposer: nobody pushes out what another proposer sealed. A newcomer is not refused, since a liar
//! could then occupy all room of its round for as long as the height lasts.
//!
//! Anybody can copy a head, and publish the copies in the names of nodes that it makes up. So what a
//! node publishes that has proved to be a validator counts against that node alone. All others share the
//! rest. Among these, a stream with less than a chunk of bytes has cost its sender little and holds
//! little: there is room for many of them, and they take none from streams that hold more.

use std::collections::BTreeMap;

use bytes::Bytes;
use malachitebft_app::types::PeerId;
use malachitebft_app::types::streaming::{StreamId, StreamMessage};
use malachitebft_engine::util::streaming::StreamContent;
use types::Hash;

use super::{CHUNK_BYTES, Form, Head, Part};
use crate::validator_nodes::ValidatorNodes;

/// Bounds of the assembler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Largest body.
    pub(crate) body_bytes_max: usize,
    /// Open streams with heads of one proposer that hold a chunk of bytes or more. As the two that
    /// follow, without those that validators publish.
    pub(crate) per_proposer_max: usize,
    /// Open streams with heads of one proposer that hold less.
    pub(crate) light_per_proposer_max: usize,
    /// Open streams whose heads have not come.
    pub(crate) early_streams_max: usize,
    /// Open streams of one publisher with heads of one proposer, and of one publisher without heads.
    pub(crate) per_publisher_max: usize,
    /// Chunks kept of a stream whose head has not come.
    pub(crate) early_chunks_max: usize,
}

/// A body, all bytes of its form, with its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) head: Head,
    pub(crate) bytes: Bytes,
}

/// Open streams.
#[derive(Debug)]
pub(crate) struct Assembler {
    limits: Limits,
    validator_nodes: ValidatorNodes,
    streams: BTreeMap<Key, Stream>,
    /// Counts up with each part; tells which stream has waited longest.
    parts: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    publisher: PeerId,
    stream: Bytes,
}

#[derive(Debug, Default)]
struct Stream {
    /// When its last part came, by [`Assembler::parts`].
    fed: u64,
    head: Option<Head>,
    chunks: BTreeMap<u64, Vec<u8>>,
}

/// Streams that take room from each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Without heads.
    Early,
    /// Sealed by this proposer, with less than a chunk of bytes.
    Light([u8; 20]),
    /// Sealed by this proposer, with more.
    Heavy([u8; 20]),
}

impl Stream {
    /// Who sealed it; none before its head has come.
    fn proposer(&self) -> Option<[u8; 20]> {
        self.head.as_ref().map(|head| head.proposer)
    }

    fn class(&self) -> Class {
        let bytes: usize = self.chunks.values().map(Vec::len).sum();
        match self.proposer() {
            None => Class::Early,
            Some(proposer) if bytes < CHUNK_BYTES => Class::Light(proposer),
            Some(proposer) => Class::Heavy(proposer),
        }
    }
}

/// Ids of streams are short; a longer one is not ours.
const STREAM_ID_BYTES_MAX: usize = 16;

impl Assembler {
    pub(crate) const fn new(limits: Limits, validator_nodes: ValidatorNodes) -> Self {
        Self { limits, validator_nodes, streams: BTreeMap::new(), parts: 0 }
    }

    /// Takes one message of `publisher`. `admit` says whether a head's body is wanted; a refused
    /// one closes its stream. Returns a body when its last part has come and, if it is whole, its
    /// digest is right.
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
        let before = self.streams.get(&key).map(Stream::class);
        match (part, message.sequence) {
            (Part::Head(head), 0) => {
                let size = usize::try_from(head.size).unwrap_or(usize::MAX);
                // A compact block that is longer than what it stands for serves nobody.
                let fits = size <= self.limits.body_bytes_max && head.length() <= size;
                if !fits || !admit(&head) {
                    self.streams.remove(&key);
                    return None;
                }
                self.feed(&key).head.get_or_insert(head);
            }
            (Part::Chunk(chunk), number @ 1..) if chunk.len() <= CHUNK_BYTES => {
                let early_max = self.limits.early_chunks_max;
                let stream = self.feed(&key);
                let most = stream.head.as_ref().map_or(early_max, chunk_count);
                let wanted = stream.head.is_none() || number <= as_u64(most);
                if wanted && stream.chunks.len() < most {
                    stream.chunks.entry(number).or_insert(chunk);
                }
            }
            (Part::Head(_) | Part::Chunk(_) | Part::Want(_), _) => return None,
        }
        let body = self.take_whole(&key);
        let now = self.streams.get(&key).map(Stream::class);
        if let Some(class) = now.filter(|_| now != before) {
            self.make_room(&key, class);
        }
        body
    }

    /// Forgets streams of heights up to `height`.
    pub(crate) fn prune(&mut self, height: u64) {
        self.streams
            .retain(|_, stream| stream.head.as_ref().is_none_or(|head| head.height > height));
    }

    /// Makes room for a stream that has come into a class.
    fn make_room(&mut self, newcomer: &Key, class: Class) {
        let limits = self.limits;
        let (proposer, class_max) = match class {
            Class::Early => (None, limits.early_streams_max),
            Class::Light(proposer) => (Some(proposer), limits.light_per_proposer_max),
            Class::Heavy(proposer) => (Some(proposer), limits.per_proposer_max),
        };
        self.shrink(newcomer, limits.per_publisher_max, |key, stream| {
            key.publisher == newcomer.publisher && stream.proposer() == proposer
        });
        let validator_nodes = self.validator_nodes.clone();
        if !validator_nodes.is_validator(&newcomer.publisher) {
            self.shrink(newcomer, class_max, |key, stream| {
                stream.class() == class && !validator_nodes.is_validator(&key.publisher)
            });
        }
    }

    /// Closes those of the streams in question that have waited longest, until there are no more than
    /// `max` with the newcomer, which stays.
    fn shrink(&mut self, newcomer: &Key, max: usize, which: impl Fn(&Key, &Stream) -> bool) {
        let others =
            self.streams.iter().filter(|(key, stream)| *key != newcomer && which(key, stream));
        let mut others: Vec<(u64, Key)> =
            others.map(|(key, stream)| (stream.fed, key.clone())).collect();
        others.sort_unstable();
        let surplus = others.len().saturating_add(1).saturating_sub(max);
        for (_, key) in others.into_iter().take(surplus) {
            self.streams.remove(&key);
        }
    }

    /// The stream, opened if there is none, which gets a part now.
    fn feed(&mut self, key: &Key) -> &mut Stream {
        self.parts = self.parts.saturating_add(1);
        let stream = self.streams.entry(key.clone()).or_default();
        stream.fed = self.parts;
        stream
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
        let right = head.length() == bytes.len()
            && match head.form() {
                Form::Whole => Hash::digest(&bytes).as_bytes() == &head.digest,
                Form::CompactBlock(_) => true,
            };
        right.then(|| Body { head, bytes: bytes.into() })
    }
}

fn key(publisher: PeerId, stream: &StreamId) -> Option<Key> {
    let stream = stream.to_bytes();
    (stream.len() <= STREAM_ID_BYTES_MAX).then_some(Key { publisher, stream })
}

/// How many chunks follow a head.
fn chunk_count(head: &Head) -> usize {
    head.length().div_ceil(CHUNK_BYTES)
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
