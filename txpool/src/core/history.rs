//! What happened to transactions, for all who are told: subscribers, clients that ask why, the journal,
//! and monitoring.

use std::sync::Arc;

use types::{CheckedTx, Code, Hash, Rejection};

use super::contents::Contents;
use crate::dropped::DroppedRing;
use crate::entries::Entry;
use crate::journal::Written;
use crate::senders::SenderId;
use crate::slab::Slot;
use crate::tally::{Counters, Half, Stats};
use crate::{Config, Dropped, PoolEvent, TxStanding};

/// What is told of the pool.
pub(super) struct History {
    /// What subscribers have not been told yet.
    events: Vec<PoolEvent>,
    dropped: DroppedRing,
    counters: Counters,
    written: Written,
}

impl History {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            events: Vec::new(),
            dropped: DroppedRing::new(config),
            counters: Counters::default(),
            written: Written::default(),
        }
    }

    /// What happened since the last call.
    pub(super) fn take_events(&mut self) -> Vec<PoolEvent> {
        std::mem::take(&mut self.events)
    }

    pub(super) const fn written(&self) -> &Written {
        &self.written
    }

    pub(super) const fn written_mut(&mut self) -> &mut Written {
        &mut self.written
    }

    /// A transaction that was dropped, if that was not long ago.
    pub(super) fn dropped(&self, hash: Hash) -> Option<&Arc<Dropped>> {
        self.dropped.get(hash)
    }

    /// Figures for monitoring.
    pub(super) fn stats(&self, contents: &Contents) -> Stats {
        let (senders, waiting) = (contents.senders().len(), contents.waiting_count());
        self.counters.stats(contents.halves(), senders, waiting)
    }

    /// A transaction was accepted.
    pub(super) fn accepted(&mut self, tx: &CheckedTx, slot: Slot, half: Half, contents: &Contents) {
        self.counters.accepted();
        self.dropped.forget(tx.hash());
        if let Some(entry) = contents.entries().get(slot) {
            self.written.expect(slot, entry.arrival);
        }
        self.written.prune(contents);
        let standing = match half {
            Half::Pending => TxStanding::Pending,
            Half::Queued => TxStanding::Queued,
        };
        self.events.push(PoolEvent::Accepted { tx: tx.clone(), standing });
    }

    /// A queued transaction is executable now.
    pub(super) fn promoted(&mut self, tx: CheckedTx) {
        self.events.push(PoolEvent::Promoted(tx));
    }

    /// An executable transaction is queued now.
    pub(super) fn demoted(&mut self, tx: CheckedTx) {
        self.events.push(PoolEvent::Demoted(tx));
    }

    /// A transaction that was taken out is in the pool again.
    pub(super) fn came_back(&mut self, slot: Slot, contents: &Contents) {
        if let Some(entry) = contents.entries().get(slot).filter(|entry| !entry.is_journalled) {
            self.written.expect(slot, entry.arrival);
        }
    }

    /// A block has a transaction that was in the pool.
    pub(super) fn included(&mut self, entry: &Entry) {
        self.written.forget(entry.segment, entry.tx.encoded_bytes());
        self.counters.included();
    }

    /// Drops what was taken out.
    pub(super) fn bury(&mut self, entry: Entry, reason: Rejection, now_ms: u64) {
        let Entry { tx, arrival, segment, is_journalled, .. } = entry;
        self.written.forget(segment, tx.encoded_bytes());
        if is_journalled {
            self.written.bury(arrival);
        }
        self.counters.dropped(reason.code());
        let dropped = Arc::new(Dropped { tx, reason, at_ms: now_ms });
        self.dropped.push(Arc::clone(&dropped));
        self.events.push(PoolEvent::Dropped(dropped));
    }

    /// Takes a queued transaction out and drops it.
    pub(super) fn drop_queued(
        &mut self,
        contents: &mut Contents,
        (id, nonce): (SenderId, u64),
        reason: Rejection,
        now_ms: u64,
    ) {
        if let Some(entry) = contents.take_queued(id, nonce) {
            self.bury(entry, reason, now_ms);
        }
    }

    /// A transaction is in a block: that it was dropped before means nothing any more.
    pub(super) fn forget(&mut self, hash: Hash) {
        self.dropped.forget(hash);
    }

    /// Forgets transactions that were dropped too long ago.
    pub(super) fn expire(&mut self, now_ms: u64) {
        self.dropped.expire(now_ms);
    }

    /// A known transaction was sent again.
    pub(super) const fn known(&mut self) {
        self.counters.known();
    }

    /// A transaction was not taken.
    pub(super) fn refused(&mut self, code: Code) {
        self.counters.refused(code);
    }

    /// A dropped transaction made room for another one, or had waited for too long.
    pub(super) const fn evicted(&mut self) {
        self.counters.evicted();
    }

    /// The draft is built anew.
    pub(super) const fn rebuilt(&mut self) {
        self.counters.rebuilt();
    }
}
