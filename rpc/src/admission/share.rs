//! What one client may have of what all clients share: connections, places, memory. A client is whom
//! the rate limit takes for one: an IPv4 address, an IPv6 network of 64 bits, or a key that the
//! operator has given out. So nobody can take everything, and who takes nothing of what he asked for
//! harms himself.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::memory::{AnswerMemory, Room};
use crate::config::Limits;
use crate::error::RpcError;

/// The unit in which memory for bodies and WebSocket messages is counted.
pub(crate) const BODY_BLOCK_BYTES: usize = 16 * 1024;

/// Whose share it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Party {
    /// An IPv4 address, or the first 64 bits of an IPv6 address.
    Network(IpAddr),
    /// A key that the operator has given out.
    Key(String),
}

/// How much one client may have.
#[derive(Clone, Debug)]
struct Sizes {
    connections: usize,
    websockets: usize,
    streams: usize,
    waiting_calls: usize,
    readers: usize,
    body_blocks: usize,
    answer_bytes: u32,
}

impl Sizes {
    /// A client may have `percent` of everything, though one of each, the largest body and the largest
    /// answer always.
    fn new(limits: &Limits, readers: usize, percent: u32) -> Self {
        let part = |whole: u32| {
            let part = u64::from(whole).saturating_mul(percent.into()) / 100;
            u32::try_from(part).unwrap_or(u32::MAX)
        };
        let size = |count: u32| usize::try_from(count).unwrap_or(Semaphore::MAX_PERMITS);
        let places = |whole: u32| size(part(whole).max(1));
        let bodies = part(limits.request_memory_bytes_max).max(limits.request_bytes_max);
        Self {
            connections: places(limits.connections_max),
            websockets: places(limits.websockets_max),
            streams: places(limits.streams_max),
            waiting_calls: places(limits.waiting_calls_max),
            readers: places(u32::try_from(readers).unwrap_or(u32::MAX)),
            body_blocks: size(bodies).div_ceil(BODY_BLOCK_BYTES),
            answer_bytes: part(limits.response_memory_bytes_max).max(limits.response_bytes_max),
        }
    }
}

/// The shares of all clients that have something now. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Shares(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sizes: Sizes,
    memory: AnswerMemory,
    nobody: Sizes,
    /// As many as have a connection at most: a share ends with the last thing that its client has.
    present: Present,
}

type Present = Arc<Mutex<BTreeMap<Party, Weak<Share>>>>;

impl Shares {
    /// Shares of `memory` and of what the limits bound; `readers` is how many calls may read at the
    /// same time.
    pub(crate) fn new(limits: &Limits, memory: AnswerMemory, readers: usize) -> Self {
        let sizes = Sizes::new(limits, readers, limits.client_share_percent.clamp(1, 100));
        let nobody = Sizes::new(limits, readers, 100);
        Self(Arc::new(Inner { sizes, memory, nobody, present: Present::default() }))
    }

    /// The share of this client.
    pub(crate) fn of(&self, party: Party) -> Arc<Share> {
        let mut present = self.0.present.lock();
        if let Some(share) = present.get(&party).and_then(Weak::upgrade) {
            return share;
        }
        let listed = Some((party.clone(), Arc::downgrade(&self.0.present)));
        let share = Arc::new(Share::new(&self.0.sizes, &self.0.memory, listed));
        present.insert(party, Arc::downgrade(&share));
        share
    }

    /// A share for who is no client: the operator, and the node itself. It has all.
    pub(crate) fn of_nobody(&self) -> Arc<Share> {
        Arc::new(Share::new(&self.0.nobody, &self.0.memory, None))
    }

    /// The memory for answers that all share.
    pub(crate) fn memory(&self) -> &AnswerMemory {
        &self.0.memory
    }
}

/// Whose share it is, and the list from which it goes with its last user.
type Listed = (Party, Weak<Mutex<BTreeMap<Party, Weak<Share>>>>);

/// What one client may have.
#[derive(Debug)]
pub(crate) struct Share {
    connections: Arc<Semaphore>,
    websockets: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    waiting_calls: Arc<Semaphore>,
    /// Places for calls that read.
    pub(crate) readers: Arc<Semaphore>,
    /// The place for a slice of a replay.
    pub(crate) replay: Arc<Semaphore>,
    /// Memory for bodies and WebSocket messages, in blocks, and how many there are.
    pub(crate) body_blocks: Arc<Semaphore>,
    body_blocks_max: usize,
    answers: AnswerMemory,
    listed: Option<Listed>,
}

impl Share {
    fn new(sizes: &Sizes, memory: &AnswerMemory, listed: Option<Listed>) -> Self {
        let places = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self {
            connections: places(sizes.connections),
            websockets: places(sizes.websockets),
            streams: places(sizes.streams),
            waiting_calls: places(sizes.waiting_calls),
            readers: places(sizes.readers),
            replay: places(1),
            body_blocks: places(sizes.body_blocks),
            body_blocks_max: sizes.body_blocks,
            answers: memory.part(sizes.answer_bytes),
            listed,
        }
    }

    /// How many blocks for bodies it has in all.
    pub(crate) const fn body_blocks_max(&self) -> usize {
        self.body_blocks_max
    }

    /// A place for a connection; none if the client has too many.
    pub(crate) fn connection(self: &Arc<Self>) -> Option<Held> {
        self.hold_one(&self.connections)
    }

    /// A place for a WebSocket; none if the client has too many.
    pub(crate) fn websocket(self: &Arc<Self>) -> Option<Held> {
        self.hold_one(&self.websockets)
    }

    /// A place for an event stream.
    ///
    /// # Errors
    /// That the client has too many.
    pub(crate) fn stream(self: &Arc<Self>) -> Result<Held, RpcError> {
        self.hold_one(&self.streams).ok_or_else(|| {
            let message = "this address has as many streams open as one client may have";
            RpcError::busy("TOO_MANY_STREAMS", message, 5_000)
        })
    }

    /// A place for a call that waits.
    ///
    /// # Errors
    /// That the client has too many.
    pub(crate) fn waiting_call(self: &Arc<Self>) -> Result<Held, RpcError> {
        self.hold_one(&self.waiting_calls).ok_or_else(|| {
            let message = "this address has as many calls waiting as one client may have";
            RpcError::busy("TOO_MANY_WAITING", message, 1_000)
        })
    }

    fn hold_one(self: &Arc<Self>, places: &Arc<Semaphore>) -> Option<Held> {
        let permit = Arc::clone(places).try_acquire_owned().ok()?;
        Some(Held { _permit: permit, _share: Arc::clone(self) })
    }

    /// Room for an answer now.
    ///
    /// # Errors
    /// That the client's part of the memory, or all of it, is full.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Result<Room, RpcError> {
        let room = self.answers.hold(bytes)?;
        let share = Arc::clone(self);
        Ok(room.of(share))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some((party, present)) = self.listed.take() else { return };
        let Some(present) = present.upgrade() else { return };
        let mut present = present.lock();
        // The client may have come back meanwhile.
        if present.get(&party).is_some_and(|there| there.strong_count() == 0) {
            present.remove(&party);
        }
    }
}

/// A place of a client, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    _permit: OwnedSemaphorePermit,
    /// The share is not forgotten as long as something of it is held.
    _share: Arc<Share>,
}

#[cfg(test)]
mod tests {
    //! Whose share is whose, and how large it is.

    use std::net::Ipv4Addr;

    use super::*;

    fn party(last: u8) -> Party {
        Party::Network(Ipv4Addr::new(10, 0, 0, last).into())
    }

    fn shares(limits: &Limits) -> Shares {
        Shares::new(limits, AnswerMemory::new(limits.response_memory_bytes_max), 32)
    }

    #[expect(clippy::needless_collect, reason = "each place is held until all are counted")]
    #[test]
    fn one_client_gets_a_quarter_and_another_has_its_own() {
        let limits = Limits { connections_max: 8, ..Limits::default() };
        let shares = shares(&limits);
        let one = shares.of(party(1));
        let held: Vec<_> = std::iter::from_fn(|| shares.of(party(1)).connection()).collect();
        assert_eq!(2, held.len());
        assert!(one.connection().is_none());
        assert!(shares.of(party(2)).connection().is_some());
        let (quarter, answer) = (64 << 20, 33 << 20);
        assert!(one.hold(quarter + 1).is_ok(), "one answer, however large");
        let _room = one.hold(answer).unwrap();
        assert!(one.hold(answer).is_err(), "a quarter is full");
        assert!(shares.of(party(2)).hold(answer).is_ok());
        assert_eq!(8, std::iter::from_fn(|| shares.of_nobody().connection()).take(8).count());
    }

    #[test]
    fn a_share_holds_one_of_each_and_the_largest_answer_and_body() {
        let limits = Limits { client_share_percent: 1, ..Limits::default() };
        let share = shares(&limits).of(party(1));
        assert!(share.hold(usize::try_from(limits.response_bytes_max).unwrap()).is_ok());
        let blocks = usize::try_from(limits.request_bytes_max).unwrap() / BODY_BLOCK_BYTES;
        assert_eq!(blocks, share.body_blocks.available_permits());
        assert!(share.stream().is_ok() && share.websocket().is_some());
        assert_eq!(1, share.readers.available_permits());
    }

    #[test]
    fn a_share_is_forgotten_with_the_last_thing_that_its_client_holds() {
        let shares = shares(&Limits { streams_max: 4, ..Limits::default() });
        let held = shares.of(party(1)).stream().unwrap();
        assert!(shares.of(party(1)).stream().is_err(), "it is still the same share");
        let room = shares.of(party(1)).hold(10_000).unwrap();
        drop(held);
        assert_eq!(1, shares.0.present.lock().len(), "the room is of the share");
        drop(room);
        assert_eq!(0, shares.0.present.lock().len());
    }
}
