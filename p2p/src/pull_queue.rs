//! Whom the puller is to pull from, and when.

use std::time::Instant;

use libp2p::PeerId;
use tokio::sync::mpsc;

use crate::accounting::Accounting;
use crate::connections::Connections;
use crate::pull::{Extent, PULL_INTERVAL};

/// To the puller: named peers, and others.
pub(crate) struct PullQueue {
    named: mpsc::Sender<(PeerId, Extent)>,
    others: mpsc::Sender<(PeerId, Extent)>,
    next: Instant,
}

impl PullQueue {
    pub(crate) fn new(
        named: mpsc::Sender<(PeerId, Extent)>,
        others: mpsc::Sender<(PeerId, Extent)>,
        now: Instant,
    ) -> Self {
        Self { named, others, next: now + PULL_INTERVAL }
    }

    /// Has the puller pull from a peer, unless all that it brings is for nothing.
    pub(crate) fn pull(
        &self,
        peer: PeerId,
        extent: Extent,
        accounting: &mut Accounting,
        connections: &mut Connections,
    ) {
        if !accounting.has_credit(&peer, connections) {
            return;
        }
        let pulls = if connections.names(&peer) { &self.named } else { &self.others };
        // Without room others are being pulled from, and the next turn comes.
        let _queued = pulls.try_send((peer, extent));
    }

    /// Has the next peer pulled from when it is time.
    pub(crate) fn on_tick(
        &mut self,
        now: Instant,
        accounting: &mut Accounting,
        connections: &mut Connections,
    ) {
        if now >= self.next {
            self.next = now + PULL_INTERVAL;
            if let Some(peer) = connections.next_known() {
                self.pull(peer, Extent::Part, accounting, connections);
            }
        }
    }
}
