//! Which pooled transactions are on disk, and where. Part of what the pool's lock guards.

use std::collections::{BTreeMap, VecDeque};

use types::CheckedTx;

use crate::core::Contents;
use crate::slab::Slot;

/// A transaction on its way to disk.
#[derive(Clone, Debug)]
pub(crate) struct JournalEntry {
    pub(super) slot: Slot,
    pub(super) arrival: u64,
    pub(super) tx: CheckedTx,
}

/// The notes of the journal.
#[derive(Debug, Default)]
pub(crate) struct Written {
    is_on: bool,
    /// Accepted and not on disk yet; what left the pool meanwhile is skipped later.
    waiting: VecDeque<(Slot, u64)>,
    /// Bytes of pooled transactions by segment.
    live: BTreeMap<u64, usize>,
    /// The arrivals of transactions that were dropped after they may have been written, and of which
    /// no segment says so yet.
    dropped: Vec<u64>,
    /// The tombstones by segment.
    tombstones: BTreeMap<u64, Vec<u64>>,
}

impl Written {
    /// From now on transactions are noted.
    pub(crate) const fn turn_on(&mut self) {
        self.is_on = true;
    }

    /// A transaction was accepted.
    pub(crate) fn expect(&mut self, slot: Slot, arrival: u64) {
        if self.is_on {
            self.waiting.push_back((slot, arrival));
        }
    }

    /// A transaction that may be on disk was dropped.
    pub(crate) fn bury(&mut self, arrival: u64) {
        self.dropped.push(arrival);
    }

    /// Takes what needs a tombstone.
    pub(super) fn take_dropped(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.dropped)
    }

    /// Puts back what could not be written.
    pub(super) fn return_dropped(&mut self, dropped: &[u64]) {
        self.dropped.extend(dropped);
    }

    /// Notes where tombstones were written.
    pub(super) fn buried(&mut self, segment: u64, dropped: &[u64]) {
        if !dropped.is_empty() {
            self.tombstones.entry(segment).or_default().extend(dropped);
        }
    }

    /// The tombstones of a segment may be lost: they have to be written again.
    pub(super) fn unbury(&mut self, segment: u64) {
        if let Some(lost) = self.tombstones.get(&segment) {
            self.dropped.extend(lost);
        }
    }

    pub(super) fn has_tombstones(&self, segment: u64) -> bool {
        self.tombstones.contains_key(&segment)
    }

    /// A segment was deleted.
    pub(super) fn forget_tombstones(&mut self, segment: u64) {
        self.tombstones.remove(&segment);
    }

    /// Whether notes of transactions that left the pool outweigh what is in it.
    fn is_overgrown(&self, pooled: usize) -> bool {
        self.waiting.len() > pooled.saturating_mul(2).saturating_add(1_024)
    }

    /// A transaction left the pool.
    pub(crate) fn forget(&mut self, segment: Option<u64>, bytes: usize) {
        let Some(segment) = segment else { return };
        if let Some(live) = self.live.get_mut(&segment) {
            *live = live.saturating_sub(bytes);
            if *live == 0 {
                self.live.remove(&segment);
            }
        }
    }

    fn put(&mut self, segment: u64, bytes: usize) {
        let live = self.live.entry(segment).or_default();
        *live = live.saturating_add(bytes);
    }

    /// Bytes of pooled transactions in a segment.
    pub(super) fn live_in(&self, segment: u64) -> usize {
        self.live.get(&segment).copied().unwrap_or(0)
    }

    /// Bytes of pooled transactions in all segments.
    pub(super) fn live(&self) -> usize {
        self.live.values().copied().fold(0, usize::saturating_add)
    }
}

/// Notes about what is in the pool.
impl Written {
    /// Keeps the notes bounded if nobody flushes.
    pub(crate) fn prune(&mut self, contents: &Contents) {
        if self.is_overgrown(contents.halves().total().count) {
            let entries = contents.entries();
            self.waiting.retain(|(slot, arrival)| {
                entries.get(*slot).is_some_and(|entry| entry.arrival == *arrival)
            });
        }
    }

    /// Takes what waits for the disk, about `bytes_max` of it.
    pub(super) fn take_waiting(
        &mut self,
        contents: &mut Contents,
        bytes_max: usize,
    ) -> Vec<JournalEntry> {
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        while bytes < bytes_max
            && let Some((slot, arrival)) = self.waiting.pop_front()
        {
            if let Some(tx) = contents.set_journalled(slot, arrival) {
                bytes = bytes.saturating_add(tx.encoded_bytes());
                entries.push(JournalEntry { slot, arrival, tx: tx.clone() });
            }
        }
        entries
    }

    /// Puts back what could not be written.
    pub(super) fn return_waiting(&mut self, entries: &[JournalEntry]) {
        for entry in entries.iter().rev() {
            self.waiting.push_front((entry.slot, entry.arrival));
        }
    }

    /// Notes where transactions were written.
    pub(super) fn note_written(
        &mut self,
        contents: &mut Contents,
        entries: &[JournalEntry],
        segment: u64,
    ) {
        for JournalEntry { slot, arrival, tx } in entries {
            if let Some(before) = contents.set_segment(*slot, *arrival, segment) {
                let bytes = tx.encoded_bytes();
                self.forget(before, bytes);
                self.put(segment, bytes);
            }
        }
    }
}

/// What of a segment is still in the pool.
pub(super) fn living_of(contents: &Contents, segment: u64) -> Vec<JournalEntry> {
    contents
        .entries()
        .iter()
        .filter(|(_, entry)| entry.segment == Some(segment))
        .map(|(slot, entry)| JournalEntry { slot, arrival: entry.arrival, tx: entry.tx.clone() })
        .collect()
}
