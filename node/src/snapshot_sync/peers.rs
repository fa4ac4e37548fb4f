//! The peers that are asked, and how often each of them has failed.

use std::collections::BTreeMap;
use std::time::Duration;

use p2p::{Handle, PeerKey};
use parking_lot::Mutex;

use super::fetch::Source;

/// How long a peer may take to answer with a part of an offer or a chunk, which is a MiB or the rest.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
/// How often a peer may fail before it is asked no more.
const PEER_FAULTS_MAX: u32 = 3;
/// How often an offer of a peer may be gone when it is asked for: it went on to a newer one. Beyond, that
/// counts as a failure.
const GONE_MAX: u32 = 8;

/// The peers of the network for snapshots.
pub(super) struct Peers {
    handle: Handle,
    /// How often each peer did not give what it offered, or gave it too slowly.
    faults: Mutex<BTreeMap<PeerKey, u32>>,
    /// How often an offer of each peer was gone.
    gone: Mutex<BTreeMap<PeerKey, u32>>,
}

impl Peers {
    /// Nobody has failed yet.
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle, faults: Mutex::default(), gone: Mutex::default() }
    }

    /// The network.
    pub(super) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// A peer to fetch from.
    pub(super) fn source(&self, peer: PeerKey) -> Source {
        Source { handle: self.handle.clone(), peer, answer_time: ANSWER_TIME_MAX }
    }

    /// Counts a failure of each of these peers.
    pub(super) fn fault(&self, peers: impl IntoIterator<Item = PeerKey>) {
        let mut faults = self.faults.lock();
        for peer in peers {
            let faults = faults.entry(peer).or_insert(0);
            *faults = faults.saturating_add(1);
        }
    }

    /// Whether a peer is asked no more.
    pub(super) fn has_failed(&self, peer: &PeerKey) -> bool {
        self.faults.lock().get(peer).is_some_and(|faults| *faults >= PEER_FAULTS_MAX)
    }

    /// An offer of a peer was gone.
    pub(super) fn note_gone(&self, peer: PeerKey) {
        let times = {
            let mut gone = self.gone.lock();
            let times = gone.entry(peer).or_insert(0);
            *times = times.saturating_add(1);
            *times
        };
        if times > GONE_MAX {
            self.fault([peer]);
        }
    }

    /// Says who there is, when nobody offers anything that could be taken.
    pub(super) fn tell_nothing(&self) {
        let peers = self.handle.peers();
        let failed = peers.iter().filter(|peer| self.has_failed(&peer.key)).count();
        tracing::warn!(
            peers = peers.len(),
            failed,
            named = self.handle.named(),
            "no peer offers a snapshot that can be used now"
        );
    }

    /// Asks those again who failed. Whether there are any.
    pub(super) fn forgive(&self) -> bool {
        let has_failed = self.handle.peers().iter().any(|peer| self.has_failed(&peer.key));
        self.faults.lock().clear();
        has_failed
    }

    /// No offer has been gone.
    pub(super) fn forget_gone(&self) {
        self.gone.lock().clear();
    }

    /// A peer has told a lie: it is asked no more.
    pub(super) fn give_up(&self, peer: PeerKey) {
        self.faults.lock().insert(peer, PEER_FAULTS_MAX);
    }
}
