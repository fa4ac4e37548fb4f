//! The senders that have something in the pool, and what, by nonce.

#![expect(clippy::disallowed_types, reason = "keyed look-ups only, on the fast path")]

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;

use types::Address;

use crate::slab::{Slab, Slot};

/// The number of a sender, valid while the sender has something in the pool.
pub(crate) type SenderId = usize;

/// One sender's transactions. Always: every queued nonce is greater than `next`, but for what waits for a
/// phase of its call (`held`).
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) address: Address,
    /// The nonce after the last executable one: the draft's nonce of the account, if all of them are
    /// settled.
    pub(crate) next: u64,
    /// The executable transactions: the nonces just below `next`, in order.
    pub(crate) pending: VecDeque<Slot>,
    /// How many of them are executed on the draft: the first ones.
    pub(crate) settled: usize,
    /// The waiting ones by nonce.
    pub(crate) queued: BTreeMap<u64, Slot>,
}

impl Sender {
    /// The account's nonce in the committed state.
    pub(crate) fn committed(&self) -> u64 {
        let pending = u64::try_from(self.pending.len()).unwrap_or(u64::MAX);
        self.next.saturating_sub(pending)
    }

    /// Whether all its executable transactions are executed on the draft.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled == self.pending.len()
    }

    pub(crate) fn count(&self) -> usize {
        self.pending.len().saturating_add(self.queued.len())
    }
}

/// All senders, and who has the longest queue.
#[derive(Debug)]
pub(crate) struct Senders {
    slab: Slab<Sender>,
    /// Each transaction looks its sender up some times.
    ids: HashMap<Address, SenderId>,
    /// The same in order, so that a page of the pool's content costs what the page has.
    by_address: BTreeMap<Address, SenderId>,
    /// (length of the queue, sender) of everybody who has a queue.
    queues: BTreeSet<(usize, SenderId)>,
}

impl Senders {
    pub(crate) fn new() -> Self {
        let (ids, by_address, queues) = (HashMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { slab: Slab::new(), ids, by_address, queues }
    }

    pub(crate) fn find(&self, address: Address) -> Option<(SenderId, &Sender)> {
        let id = *self.ids.get(&address)?;
        Some((id, self.slab.get(id)?))
    }

    pub(crate) fn get(&self, id: SenderId) -> Option<&Sender> {
        self.slab.get(id)
    }

    /// The sender's number; a sender that was not known has `next` as its next nonce.
    pub(crate) fn open(&mut self, address: Address, next: u64) -> SenderId {
        if let Some(id) = self.ids.get(&address) {
            return *id;
        }
        let (pending, queued) = (VecDeque::new(), BTreeMap::new());
        let id = self.slab.insert(Sender { address, next, pending, settled: 0, queued });
        self.ids.insert(address, id);
        self.by_address.insert(address, id);
        id
    }

    /// Forgets the sender if it has nothing left.
    pub(crate) fn close_if_empty(&mut self, id: SenderId) {
        if self.slab.get(id).is_some_and(|sender| sender.count() == 0)
            && let Some(sender) = self.slab.remove(id)
        {
            self.ids.remove(&sender.address);
            self.by_address.remove(&sender.address);
        }
    }

    /// Appends a transaction that was executed after all the others.
    pub(crate) fn push_pending(&mut self, id: SenderId, slot: Slot) {
        self.push_unsettled(id, slot);
        self.settle_next(id);
    }

    /// Appends a transaction that is executable as far as is known.
    pub(crate) fn push_unsettled(&mut self, id: SenderId, slot: Slot) {
        if let Some(sender) = self.slab.get_mut(id) {
            sender.pending.push_back(slot);
            sender.next = sender.next.saturating_add(1);
        }
    }

    /// The first executable transaction that was not executed on the draft is executed now.
    pub(crate) fn settle_next(&mut self, id: SenderId) {
        if let Some(sender) = self.slab.get_mut(id) {
            sender.settled = sender.settled.saturating_add(1).min(sender.pending.len());
        }
    }

    /// The last transaction that was executed on the draft is to be executed again.
    pub(crate) fn unsettle_last(&mut self, id: SenderId) {
        if let Some(sender) = self.slab.get_mut(id) {
            sender.settled = sender.settled.saturating_sub(1);
        }
    }

    /// Nothing is executed on the draft any more.
    pub(crate) fn unsettle(&mut self) {
        for (_, sender) in self.slab.iter_mut() {
            sender.settled = 0;
        }
    }

    /// Removes an executable transaction, wherever it stands. Whether it was the first one.
    pub(crate) fn remove_pending(&mut self, id: SenderId, slot: Slot) -> bool {
        let Some(sender) = self.slab.get_mut(id) else { return false };
        let Some(place) = sender.pending.iter().position(|it| *it == slot) else { return false };
        sender.pending.remove(place);
        if place < sender.settled {
            sender.settled = sender.settled.saturating_sub(1);
        }
        place == 0
    }

    /// Removes the executable transaction with the highest nonce.
    pub(crate) fn pop_pending(&mut self, id: SenderId) {
        if let Some(sender) = self.slab.get_mut(id)
            && sender.pending.pop_back().is_some()
        {
            sender.next = sender.next.saturating_sub(1);
            sender.settled = sender.settled.min(sender.pending.len());
        }
    }

    /// Takes out what is not executed on the draft; the nonce after the rest is `next`.
    pub(crate) fn cut(&mut self, id: SenderId, next: u64) -> VecDeque<Slot> {
        let Some(sender) = self.slab.get_mut(id) else { return VecDeque::new() };
        sender.next = next;
        sender.pending.split_off(sender.settled)
    }

    /// Forgets what is executable.
    pub(crate) fn clear_pending(&mut self, id: SenderId) {
        if let Some(sender) = self.slab.get_mut(id) {
            sender.pending.clear();
            sender.settled = 0;
        }
    }

    pub(crate) fn enqueue(&mut self, id: SenderId, nonce: u64, slot: Slot) {
        if let Some(sender) = self.slab.get_mut(id) {
            let before = sender.queued.len();
            sender.queued.insert(nonce, slot);
            let after = sender.queued.len();
            self.queues.remove(&(before, id));
            self.queues.insert((after, id));
        }
    }

    pub(crate) fn dequeue(&mut self, id: SenderId, nonce: u64) -> Option<Slot> {
        let sender = self.slab.get_mut(id)?;
        let before = sender.queued.len();
        let slot = sender.queued.remove(&nonce)?;
        let after = sender.queued.len();
        self.queues.remove(&(before, id));
        if after > 0 {
            self.queues.insert((after, id));
        }
        Some(slot)
    }

    /// The sender with the most queued transactions, with their number.
    pub(crate) fn longest_queue(&self) -> Option<(usize, SenderId)> {
        self.queues.last().copied()
    }

    /// Every sender with a queue.
    pub(crate) fn with_queue(&self) -> Vec<SenderId> {
        self.queues.iter().map(|(_, id)| *id).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SenderId, &Sender)> {
        self.slab.iter()
    }

    /// The senders after this address, or all, in the order of their addresses.
    pub(crate) fn after(
        &self,
        address: Option<Address>,
    ) -> impl Iterator<Item = (SenderId, &Sender)> {
        let start = address.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.by_address.range((start, Bound::Unbounded));
        rest.filter_map(|(_, id)| Some((*id, self.slab.get(*id)?)))
    }

    /// How many senders there are.
    pub(crate) fn len(&self) -> usize {
        self.by_address.len()
    }

    /// One more than the largest number in use.
    pub(crate) const fn bound(&self) -> usize {
        self.slab.bound()
    }
}
