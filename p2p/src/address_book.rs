//! Addresses of nodes that were learned from others, each signed by the node that it leads to.
//!
//! Only what a node says about itself is believed, and only IP addresses are dialled: a name would
//! have this node ask a resolver for whatever a stranger wrote. Names of nodes cost nothing, so
//! whatever is kept of those that this node has never met has bounds by who told of them and by
//! their addresses, goes when nobody answers there or when it is old, and is never told to others.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use libp2p::core::{PeerRecord, SignedEnvelope};
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{Multiaddr, PeerId};

use crate::group::{Group, ip_of};
use crate::reachability::Reach;
use crate::wire::{RECORD_BYTES_MAX, RECORDS_MAX};

/// Nodes that are remembered of those that this one has met, and of those that it has heard of.
const MET_MAX: usize = 128;
const HEARD_MAX: usize = 128;
/// Nodes of one address group, of each kind.
const GROUP_MAX: usize = 16;
/// The same on loopback, where all nodes of a test are one group.
const LOOPBACK_MAX: usize = 64;
/// Nodes that this one has heard of from one peer.
const TOLD_MAX: usize = 16;
/// Addresses of one node that are dialled.
const ADDRESSES_MAX: usize = 8;
/// How long a node that did not answer is left alone; doubled with each further failure.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// After so many failures in a row a node is forgotten.
const FAILURES_MET_MAX: u32 = 6;
const FAILURES_HEARD_MAX: u32 = 2;
/// How long a node is remembered that is not met again.
const MET_KEPT: Duration = Duration::from_secs(24 * 3_600);
const HEARD_KEPT: Duration = Duration::from_secs(3_600);
/// Whom this node met within this time it tells others about.
const TOLD_WITHIN: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
struct Known {
    record: Vec<u8>,
    sequence: u64,
    addresses: Vec<Multiaddr>,
    group: Group,
    is_loopback: bool,
    /// Who told of it last.
    told_by: PeerId,
    heard: Instant,
    met: Option<Met>,
    failures: u32,
    next: Instant,
}

/// A node that was really connected.
#[derive(Clone, Copy, Debug)]
struct Met {
    at: Instant,
    is_connected: bool,
    /// Whether an address of the record has been seen to be its own.
    is_reached: bool,
}

impl Known {
    fn is_connected(&self) -> bool {
        self.met.is_some_and(|met| met.is_connected)
    }

    fn is_worth_telling(&self, now: Instant) -> bool {
        let recently = |met: Met| now.saturating_duration_since(met.at) < TOLD_WITHIN;
        self.met.is_some_and(|met| met.is_reached && (met.is_connected || recently(met)))
    }

    fn is_over(&self, now: Instant) -> bool {
        match self.met {
            Some(met) => {
                !met.is_connected
                    && (self.failures >= FAILURES_MET_MAX
                        || now.saturating_duration_since(met.at) >= MET_KEPT)
            }
            None => {
                self.failures >= FAILURES_HEARD_MAX
                    || now.saturating_duration_since(self.heard) >= HEARD_KEPT
            }
        }
    }

    const fn group_max(&self) -> usize {
        if self.is_loopback { LOOPBACK_MAX } else { GROUP_MAX }
    }
}

/// The learned addresses.
#[derive(Debug)]
pub(crate) struct Book {
    own: PeerId,
    known: BTreeMap<PeerId, Known>,
}

impl Book {
    pub(crate) const fn new(own: PeerId) -> Self {
        Self { own, known: BTreeMap::new() }
    }

    /// Takes in a record that a peer told of, in its written form; answers false if it is not a
    /// signed record. A peer that tells of itself here gets no more room than anybody else: nothing
    /// says that it is met.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        told_by: PeerId,
        reach: Reach,
        now: Instant,
    ) -> bool {
        if bytes.len() > RECORD_BYTES_MAX {
            return false;
        }
        match SignedEnvelope::from_protobuf_encoding(bytes) {
            Ok(envelope) => self.take_in(envelope, (told_by, false), reach, now),
            Err(_) => false,
        }
    }

    /// Takes in the record that a connected peer says of itself when it is met; answers false if the
    /// signature is wrong. [`Book::met`] has to follow, which bounds those that were met.
    pub(crate) fn learn(
        &mut self,
        envelope: SignedEnvelope,
        peer: PeerId,
        reach: Reach,
        now: Instant,
    ) -> bool {
        self.take_in(envelope, (peer, true), reach, now)
    }

    fn take_in(
        &mut self,
        envelope: SignedEnvelope,
        (told_by, is_met): (PeerId, bool),
        reach: Reach,
        now: Instant,
    ) -> bool {
        let Ok(record) = PeerRecord::from_signed_envelope(envelope) else { return false };
        let (peer, sequence) = (record.peer_id(), record.seq());
        let earlier = self.known.get(&peer);
        let is_newer = earlier.is_none_or(|known| known.sequence < sequence);
        if peer == self.own || !is_newer {
            return true;
        }
        let addresses: Vec<Multiaddr> = record
            .addresses()
            .iter()
            .filter(|address| reach.allows(address, &peer))
            .take(ADDRESSES_MAX)
            .cloned()
            .collect();
        let Some(first) = addresses.first() else { return true };
        let group = Group::of(first);
        let is_loopback = ip_of(first).is_some_and(|ip| ip.is_loopback());
        let record = record.into_signed_envelope().into_protobuf_encoding();
        if record.len() > RECORD_BYTES_MAX {
            return true;
        }
        // A newer record of the same node changes nothing about how often it was tried.
        let (met, failures, next) =
            earlier.map_or((None, 0, now), |it| (it.met, it.failures, it.next));
        let known = Known {
            record,
            sequence,
            addresses,
            group,
            is_loopback,
            told_by,
            heard: now,
            met,
            failures,
            next,
        };
        let is_counted_as_met = met.is_some() || (is_met && told_by == peer);
        if is_counted_as_met || self.make_room(&peer, &known, now) {
            self.known.insert(peer, known);
        }
        true
    }

    /// Whether there is room for a node that this one has only heard of. One of the same origin
    /// goes for it, or any other that was only heard of, by chance.
    fn make_room(&mut self, peer: &PeerId, new: &Known, now: Instant) -> bool {
        self.known.retain(|_, known| !known.is_over(now));
        if self.known.contains_key(peer) {
            return true;
        }
        let heard = |it: &&Known| it.met.is_none();
        let told = self.known.values().filter(heard).filter(|it| it.told_by == new.told_by);
        if told.count() >= TOLD_MAX {
            return false;
        }
        let grouped = self.known.values().filter(heard).filter(|it| it.group == new.group);
        if grouped.count() >= new.group_max() {
            return false;
        }
        if self.known.values().filter(heard).count() >= HEARD_MAX {
            let heard = self.known.iter().filter(|(_, it)| it.met.is_none());
            let heard: Vec<PeerId> = heard.map(|(peer, _)| *peer).collect();
            if let Some(gone) = by_chance(heard, 1).first() {
                self.known.remove(gone);
            }
        }
        true
    }

    /// A node of this network is connected: one that `dialled` says this node has dialled, or that
    /// came from an address itself.
    pub(crate) fn met(&mut self, peer: &PeerId, seen: Option<IpAddr>, dialled: bool, now: Instant) {
        let Some(known) = self.known.get_mut(peer) else { return };
        let is_own = |address: &Multiaddr| ip_of(address).is_some_and(|ip| Some(ip) == seen);
        let was_reached = known.met.is_some_and(|met| met.is_reached);
        let is_reached = was_reached || dialled || known.addresses.iter().any(is_own);
        known.met = Some(Met { at: now, is_connected: true, is_reached });
        known.failures = 0;
        let (group, max) = (known.group, known.group_max());
        self.bound_met(max, |known| known.group == group);
        self.bound_met(MET_MAX, |_| true);
    }

    /// Of those met that are counted together, at most `max` stay: those that are connected, and
    /// those that were so last.
    fn bound_met(&mut self, max: usize, is_counted: impl Fn(&Known) -> bool) {
        let counted = self.known.iter().filter_map(|(peer, known)| {
            let met = known.met.filter(|_| is_counted(known))?;
            Some(((met.is_connected, met.at), *peer))
        });
        let mut counted: Vec<_> = counted.collect();
        counted.sort_unstable();
        let excess = counted.len().saturating_sub(max);
        for (_, peer) in counted.into_iter().take(excess) {
            self.known.remove(&peer);
        }
    }

    /// A node is no longer connected.
    pub(crate) fn left(&mut self, peer: &PeerId, now: Instant) {
        if let Some(met) = self.known.get_mut(peer).and_then(|known| known.met.as_mut()) {
            (met.at, met.is_connected) = (now, false);
        }
    }

    /// A node did not answer.
    pub(crate) fn failed(&mut self, peer: &PeerId, now: Instant) {
        let Some(known) = self.known.get_mut(peer) else { return };
        known.next = now + RETRY_AFTER.saturating_mul(1 << known.failures.min(6));
        known.failures = known.failures.saturating_add(1);
        if known.is_over(now) {
            self.known.remove(peer);
        }
    }

    /// Records of others for `asker`, in their written form: of nodes that this one has really met
    /// where their records say, picked by chance.
    pub(crate) fn tell(&self, asker: &PeerId, now: Instant) -> Vec<Vec<u8>> {
        let others = self.known.iter().filter(|(peer, _)| *peer != asker);
        let worth = others.filter(|(_, known)| known.is_worth_telling(now));
        by_chance(worth.map(|(_, known)| known.record.clone()).collect(), RECORDS_MAX)
    }

    /// At most `count` nodes to dial now, picked by chance; half of them such as were met before, if
    /// there are so many.
    pub(crate) fn due(
        &mut self,
        count: usize,
        now: Instant,
        is_connected: impl Fn(&PeerId) -> bool,
    ) -> Vec<DialOpts> {
        self.known.retain(|_, known| !known.is_over(now));
        let open = self.known.iter().filter(|(peer, known)| {
            known.next <= now && !known.is_connected() && !is_connected(peer)
        });
        let (met, heard): (Vec<_>, Vec<_>) = open.partition(|(_, known)| known.met.is_some());
        let ids = |list: Vec<(&PeerId, &Known)>| list.into_iter().map(|(peer, _)| *peer).collect();
        let (met, heard) = (by_chance(ids(met), count), by_chance(ids(heard), count));
        let first = count.div_ceil(2).max(count.saturating_sub(heard.len()));
        let picked: Vec<PeerId> = met.into_iter().take(first).chain(heard).take(count).collect();
        let mut dials = Vec::new();
        for peer in picked {
            let Some(known) = self.known.get_mut(&peer) else { continue };
            known.next = now + RETRY_AFTER;
            let options = DialOpts::peer_id(peer)
                .condition(PeerCondition::DisconnectedAndNotDialing)
                .addresses(known.addresses.clone())
                .allocate_new_port();
            dials.push(options.build());
        }
        dials
    }

    /// A node is of another network, or was kept out.
    pub(crate) fn forget(&mut self, peer: &PeerId) {
        self.known.remove(peer);
    }
}

/// At most `count` of the items, by chance.
fn by_chance<T>(mut items: Vec<T>, count: usize) -> Vec<T> {
    let count = count.min(items.len());
    for place in 0..count {
        let mut bytes = [0; 8];
        // Without randomness the order is that of the names; nothing worse.
        let _filled = getrandom::fill(&mut bytes);
        let left = u64::try_from(items.len().saturating_sub(place)).unwrap_or(1).max(1);
        let step = usize::try_from(u64::from_le_bytes(bytes) % left).unwrap_or(0);
        items.swap(place, place.saturating_add(step));
    }
    items.truncate(count);
    items
}

#[cfg(test)]
mod tests;
