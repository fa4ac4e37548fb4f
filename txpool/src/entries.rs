//! The pooled transactions themselves, by slot and by hash.

#[expect(clippy::disallowed_types, reason = "keyed look-ups only, on the fast path")]
use std::collections::HashMap;

use types::{CheckedTx, Hash};

use crate::order::Seq;
use crate::senders::SenderId;
use crate::slab::{Slab, Slot};

/// Which of the two halves of the pool a transaction is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryPlace {
    /// Executable, at this place in the total order.
    Pending(Seq),
    /// Waiting for the nonces before it.
    Queued,
}

/// One pooled transaction.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) tx: CheckedTx,
    pub(crate) sender: SenderId,
    pub(crate) place: EntryPlace,
    /// A number that no other entry of this pool ever had: the order of acceptance.
    pub(crate) arrival: u64,
    /// When it was accepted, in milliseconds since 1970 by this node's clock.
    pub(crate) accepted_ms: u64,
    /// Since when it is where it is, in milliseconds since 1970. Only of a queued one.
    pub(crate) queued_ms: u64,
    /// How many blocks with room for more had come when it became executable. Only of an executable one.
    pub(crate) roomy_before: u64,
    /// The journal's segment that holds it.
    pub(crate) segment: Option<u64>,
    /// Whether any segment may hold it.
    pub(crate) is_journalled: bool,
}

/// All pooled transactions.
#[derive(Debug)]
pub(crate) struct Entries {
    slab: Slab<Entry>,
    #[expect(clippy::disallowed_types, reason = "keyed look-ups only, on the fast path")]
    by_hash: HashMap<Hash, Slot>,
    arrivals: u64,
}

impl Entries {
    #[expect(clippy::disallowed_types, reason = "keyed look-ups only, on the fast path")]
    pub(crate) fn new() -> Self {
        Self { slab: Slab::new(), by_hash: HashMap::new(), arrivals: 0 }
    }

    /// A new entry, queued until it is placed elsewhere.
    pub(crate) fn insert(&mut self, tx: CheckedTx, sender: SenderId, now_ms: u64) -> Slot {
        self.arrivals = self.arrivals.saturating_add(1);
        let hash = tx.hash();
        let slot = self.slab.insert(Entry {
            tx,
            sender,
            place: EntryPlace::Queued,
            arrival: self.arrivals,
            accepted_ms: now_ms,
            queued_ms: now_ms,
            roomy_before: 0,
            segment: None,
            is_journalled: false,
        });
        self.by_hash.insert(hash, slot);
        slot
    }

    /// An entry that was taken out is there again.
    pub(crate) fn put_back(&mut self, entry: Entry) -> Slot {
        let hash = entry.tx.hash();
        let slot = self.slab.insert(entry);
        self.by_hash.insert(hash, slot);
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Entry> {
        let entry = self.slab.remove(slot)?;
        self.by_hash.remove(&entry.tx.hash());
        Some(entry)
    }

    pub(crate) fn slot(&self, hash: Hash) -> Option<Slot> {
        self.by_hash.get(&hash).copied()
    }

    pub(crate) fn by_hash(&self, hash: Hash) -> Option<&Entry> {
        self.slab.get(self.slot(hash)?)
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Entry> {
        self.slab.get(slot)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Entry> {
        self.slab.get_mut(slot)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Entry)> {
        self.slab.iter()
    }

    /// Arrivals from now on are greater than `arrival`.
    pub(crate) fn start_after(&mut self, arrival: u64) {
        self.arrivals = self.arrivals.max(arrival);
    }
}
