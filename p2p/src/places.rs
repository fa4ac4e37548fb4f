//! Places for peers' questions, from their arrival until the answer has left. An answer is held in
//! memory as long, so the places bound what those take who ask and do not read.
//!
//! Peers that an operator named have places of their own. Anybody else begins with few, gets more
//! with each answer that it takes quickly, and rests when it takes none. All others of an address
//! group have a share of the places, however many names they have.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use libp2p::request_response::{InboundFailure, InboundRequestId};
use libp2p::{Multiaddr, PeerId};

use crate::group::{Group, ip_of};
use crate::reachability::is_local;

/// Peers whose conduct is remembered. New names cost nothing, so more would not help.
const REMEMBERED_MAX: usize = 1_024;
/// How long a peer rests that did not take an answer; doubled with each further one.
const REST: Duration = Duration::from_secs(10);
const REST_MAX: Duration = Duration::from_secs(640);
/// Who takes an answer within this time gets more places: 256 KiB a second for an answer of a
/// mebibyte. Who takes longer keeps what it has, so that slowness earns nothing.
const QUICK: Duration = Duration::from_secs(4);

/// How many places there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// For everybody together.
    pub(crate) shared: usize,
    /// Of these, for the strangers of one address group.
    pub(crate) of_group: usize,
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

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) peer: PeerId,
    /// The group with which it shares its places; none if there is no telling who is in it.
    pub(crate) group: Option<Group>,
    /// Whether an operator named it.
    pub(crate) is_named: bool,
}

/// The group with which the strangers at an address share places. Private and loopback addresses are
/// in none: a proxy may stand between, and everybody come from there.
pub(crate) fn sharing(address: Option<&Multiaddr>) -> Option<Group> {
    match address.and_then(ip_of) {
        Some(ip) if is_local(ip) => None,
        Some(ip) => Some(Group::of_ip(ip)),
        None => Some(Group::NONE),
    }
}

#[derive(Debug)]
struct Place {
    asker: Asker,
    is_reserved: bool,
    /// Since when the answer is on its way.
    answered: Option<Instant>,
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
    pub(crate) fn enter(&mut self, id: Id, asker: Asker, now: Instant) -> bool {
        let Asker { peer, group, is_named } = asker;
        let count = |is_counted: &dyn Fn(&Place) -> bool| {
            self.open.values().filter(|place| is_counted(place)).count()
        };
        let own = count(&|place| place.asker.peer == peer);
        let reserved = count(&|place| place.is_reserved);
        let of_group = count(&|place| place.asker.group == group && !place.asker.is_named);
        let has_share = is_named || group.is_none() || of_group < self.bounds.of_group;
        let has_shared = self.open.len().saturating_sub(reserved) < self.bounds.shared && has_share;
        let is_reserved = is_named && reserved < self.bounds.named;
        if own >= self.room_of(&peer, is_named, now) || !(has_shared || is_reserved) {
            return false;
        }
        self.open.insert(id, Place { asker, is_reserved, answered: None });
        true
    }

    /// The answer to a question is handed over: from now on the peer is waited for.
    pub(crate) fn answered(&mut self, id: &Id, now: Instant) {
        if let Some(place) = self.open.get_mut(id) {
            place.answered = Some(now);
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
        let Some(Place { asker, is_reserved: _, answered }) = self.open.remove(&id) else {
            return;
        };
        if how == Left::Neither || (how == Left::Broken && answered.is_none()) {
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
        let conduct = self.conduct.entry(asker.peer).or_insert_with(new);
        if how == Left::Taken {
            if answered.is_some_and(|since| now.saturating_duration_since(since) < QUICK) {
                conduct.room = conduct.room.saturating_add(1).min(of_peer);
            }
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
