//! Places for peers' questions, from their arrival until the answer has left. An answer is held in
//! memory as long, so the places bound what those take who ask and do not read.
//!
//! Peers that an operator named have places of their own. Anybody else begins with few, gets more
//! with each answer that it takes, and rests when it takes none.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use libp2p::request_response::{InboundFailure, InboundRequestId};

/// Peers whose conduct is remembered. New names cost nothing, so more would not help.
const REMEMBERED_MAX: usize = 1_024;
/// How long a peer rests that did not take an answer; doubled with each further one.
const REST: Duration = Duration::from_secs(10);
const REST_MAX: Duration = Duration::from_secs(640);

/// How many places there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// For everybody together.
    pub(crate) shared: usize,
    /// For named peers only, which may have shared ones too.
    pub(crate) named: usize,
    /// For one peer.
    pub(crate) of_peer: usize,
    /// For one peer that has not taken an answer yet.
    pub(crate) first: usize,
}

/// What became of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// It was taken.
    Taken,
    /// It was taken too slowly, or not at all.
    Unread,
    /// Its stream broke or had no time left. That is the peer's doing if the answer had been handed
    /// over.
    Broken,
    /// There was none, or the peer is gone.
    Neither,
}

impl Left {
    /// By what the library says of a failure. Only `behaviour.rs` makes an I/O error of the kind
    /// `TimedOut`, for an answer that is not taken at the least rate. The library ends a stream that
    /// took longer than a question may, however the bytes dripped.
    pub(crate) fn by(error: &InboundFailure) -> Self {
        match error {
            InboundFailure::Io(error) if error.kind() == io::ErrorKind::TimedOut => Self::Unread,
            InboundFailure::Timeout | InboundFailure::Io(_) => Self::Broken,
            InboundFailure::ConnectionClosed
            | InboundFailure::UnsupportedProtocols
            | InboundFailure::ResponseOmission => Self::Neither,
        }
    }
}

#[derive(Debug)]
struct Place {
    peer: PeerId,
    is_reserved: bool,
    /// The answer is on its way.
    is_answered: bool,
}

#[derive(Debug)]
struct Conduct {
    room: usize,
    unread: u32,
    rests_until: Option<Instant>,
}

/// The places of one protocol.
#[derive(Debug)]
pub(crate) struct Places<Id = InboundRequestId> {
    bounds: Bounds,
    open: BTreeMap<Id, Place>,
    conduct: BTreeMap<PeerId, Conduct>,
}

impl<Id: Copy + Ord> Places<Id> {
    pub(crate) const fn new(bounds: Bounds) -> Self {
        Self { bounds, open: BTreeMap::new(), conduct: BTreeMap::new() }
    }

    /// Gives a question a place, if there is one for this peer.
    pub(crate) fn enter(&mut self, id: Id, peer: PeerId, is_named: bool, now: Instant) -> bool {
        let own = self.open.values().filter(|place| place.peer == peer).count();
        let reserved = self.open.values().filter(|place| place.is_reserved).count();
        let has_shared = self.open.len().saturating_sub(reserved) < self.bounds.shared;
        let is_reserved = is_named && reserved < self.bounds.named;
        if own >= self.room_of(&peer, is_named, now) || !(has_shared || is_reserved) {
            return false;
        }
        self.open.insert(id, Place { peer, is_reserved, is_answered: false });
        true
    }

    /// The answer to a question is handed over: from now on the peer is waited for.
    pub(crate) fn answered(&mut self, id: &Id) {
        if let Some(place) = self.open.get_mut(id) {
            place.is_answered = true;
        }
    }

    fn room_of(&self, peer: &PeerId, is_named: bool, now: Instant) -> usize {
        if is_named {
            return self.bounds.of_peer;
        }
        match self.conduct.get(peer) {
            None => self.bounds.first,
            Some(conduct) if conduct.rests_until.is_some_and(|until| now < until) => 0,
            Some(conduct) => conduct.room,
        }
    }

    /// Frees the place of a question.
    pub(crate) fn left(&mut self, id: Id, how: Left, now: Instant) {
        let Some(Place { peer, is_reserved: _, is_answered }) = self.open.remove(&id) else {
            return;
        };
        if how == Left::Neither || (how == Left::Broken && !is_answered) {
            return;
        }
        if self.conduct.len() >= REMEMBERED_MAX {
            self.conduct.retain(|_, it| it.rests_until.is_some_and(|until| now < until));
        }
        if self.conduct.len() >= REMEMBERED_MAX {
            self.conduct.pop_first();
        }
        let Bounds { of_peer, first, .. } = self.bounds;
        let new = || Conduct { room: first, unread: 0, rests_until: None };
        let conduct = self.conduct.entry(peer).or_insert_with(new);
        if how == Left::Taken {
            conduct.room = conduct.room.saturating_add(1).min(of_peer);
            conduct.unread = 0;
            return;
        }
        let rest = REST.saturating_mul(1 << conduct.unread.min(10)).min(REST_MAX);
        conduct.room = 1;
        conduct.unread = conduct.unread.saturating_add(1);
        conduct.rests_until = Some(now + rest);
    }
}

#[cfg(test)]
mod tests;
