//! What is in the pool: every transaction in all the indexes that have to know it.

mod market;

use std::collections::BTreeMap;

use types::{Address, CheckedTx, Hash};

use super::draft::Draft;
use crate::Config;
use crate::entries::{Entries, Entry, EntryPlace};
use crate::held::Held;
use crate::market::Market;
use crate::order::{Order, Ready, Seq};
use crate::senders::{Sender, SenderId, Senders};
use crate::slab::Slot;
use crate::subject::{Contested, Subjects};
use crate::tally::{Half, Halves, Status, Tally, Volume};

/// Whether the draft has executed a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Settled {
    Yes,
    No,
}

/// The indexes, which change together. Invariants:
///
/// 1. An entry is in `order` and its sender's `pending`, or in its sender's `queued`.
/// 2. `market`, if there is one, has what is in `order`.
/// 3. `tally`, `subjects` and `held` count what is in `entries`.
pub(crate) struct Contents {
    /// How much there may be at all.
    size: Volume,
    entries: Entries,
    senders: Senders,
    order: Order,
    /// What executable transactions offer, while tips decide (fork v7).
    market: Option<Market>,
    tally: Tally,
    /// What executable transactions are about.
    subjects: Subjects,
    /// What waits for a phase of its call.
    held: Held,
    /// How many blocks had room for more (from v7 on).
    roomy_blocks: u64,
}

/// Once so many blocks with room for more have come without a transaction, something keeps it out of blocks.
const LEFT_OUT_BLOCKS: u64 = 2;

/// Reading.
impl Contents {
    /// An empty pool, with a market if there is a base fee.
    pub(super) fn new(config: &Config, base_fee: Option<u64>) -> Self {
        let size = Volume { count: config.count_max, bytes: config.bytes_max };
        Self {
            size,
            entries: Entries::new(),
            senders: Senders::new(),
            order: Order::new(),
            market: base_fee.map(|base_fee| Market::at(base_fee, size)),
            tally: Tally::default(),
            subjects: Subjects::default(),
            held: Held::default(),
            roomy_blocks: 0,
        }
    }

    pub(crate) const fn entries(&self) -> &Entries {
        &self.entries
    }

    pub(super) const fn senders(&self) -> &Senders {
        &self.senders
    }

    pub(super) const fn order(&self) -> &Order {
        &self.order
    }

    pub(super) const fn market(&self) -> Option<&Market> {
        self.market.as_ref()
    }

    pub(super) const fn subjects(&self) -> &Subjects {
        &self.subjects
    }

    pub(super) const fn status(&self) -> &Status {
        self.tally.status()
    }

    /// How much is executable and how much is queued.
    pub(crate) const fn halves(&self) -> Halves {
        self.tally.halves()
    }

    /// How many executable transactions wait for the base fee to fall.
    pub(super) fn waiting_count(&self) -> usize {
        self.market.as_ref().map_or(0, Market::waiting)
    }

    /// Whether there is something that the next block could take.
    pub(super) fn has_offers(&self) -> bool {
        self.market.as_ref().map_or(self.order.len() > 0, Market::has_offers)
    }

    /// Whether blocks with room for more came without an executable transaction.
    pub(super) fn is_left_out(&self, entry: &Entry) -> bool {
        entry.roomy_before.saturating_add(LEFT_OUT_BLOCKS) <= self.roomy_blocks
    }

    /// Those of other senders that the draft has and that take what several want, the last one first.
    pub(super) fn takers(&self, contested: Contested, but: Address) -> Vec<Slot> {
        let slots = self.subjects.takers(contested).filter_map(|hash| self.entries.slot(hash));
        let settled = slots.filter_map(|slot| Some((self.seq(slot)?, slot)));
        let settled = settled.filter(|(seq, _)| self.order.is_settled(*seq));
        let of_others = settled.filter(|(_, slot)| {
            self.entries.get(*slot).is_some_and(|entry| entry.tx.from() != but)
        });
        let mut takers: Vec<(Seq, Slot)> = of_others.collect();
        takers.sort_unstable_by(|one, other| other.cmp(one));
        takers.into_iter().map(|(_, slot)| slot).collect()
    }

    /// What the sender has that is executable, in order, before a nonce: at most so many.
    pub(super) fn line_before(&self, id: SenderId, nonce: u64, most: usize) -> Vec<CheckedTx> {
        let pending = self.senders.get(id).into_iter().flat_map(|sender| &sender.pending);
        let txs = pending.filter_map(|slot| Some(&self.entries.get(*slot)?.tx));
        txs.take_while(|tx| tx.nonce() < nonce).take(most).cloned().collect()
    }

    /// The place of an executable transaction in the order.
    pub(super) fn seq(&self, slot: Slot) -> Option<Seq> {
        match self.entries.get(slot)?.place {
            EntryPlace::Pending(seq) => Some(seq),
            EntryPlace::Queued => None,
        }
    }

    /// Whether the draft has the transaction.
    pub(super) fn is_settled(&self, hash: Hash) -> bool {
        match self.entries.by_hash(hash).map(|entry| entry.place) {
            Some(EntryPlace::Pending(seq)) => self.order.is_settled(seq),
            Some(EntryPlace::Queued) | None => false,
        }
    }

    /// Whether the draft has everything executable of a sender that has something in the pool.
    pub(super) fn is_sender_settled(&self, id: SenderId) -> bool {
        self.senders.get(id).is_some_and(Sender::is_settled)
    }

    /// The sender's last transaction that the draft has.
    pub(super) fn last_settled(&self, id: SenderId) -> Option<Slot> {
        let sender = self.senders.get(id)?;
        sender.pending.get(sender.settled.checked_sub(1)?).copied()
    }

    /// The sender's queued transaction with the next nonce, unless it waits for a phase of its call.
    pub(super) fn promotable(&self, id: SenderId) -> Option<Slot> {
        let sender = self.senders.get(id).filter(|sender| !self.held.is_of(sender.address))?;
        sender.queued.get(&sender.next).copied()
    }

    /// The nonce of what the sender has that waits for a phase of its call, if nothing has to come before
    /// it.
    pub(super) fn next_held(&self, address: Address) -> Option<u64> {
        let (_, sender) = self.senders.find(address).filter(|_| self.held.is_of(address))?;
        sender.queued.contains_key(&sender.next).then_some(sender.next)
    }
}

/// What comes in, and what moves within.
impl Contents {
    /// A transaction that the draft has taken, with the next nonce of its sender.
    pub(super) fn insert_pending(
        &mut self,
        tx: &CheckedTx,
        now_ms: u64,
        draft: &Draft,
    ) -> (SenderId, Slot) {
        let sender = self.senders.open(tx.from(), tx.nonce());
        let slot = self.entries.insert(tx.clone(), sender, now_ms);
        self.append(slot, tx, sender, Settled::Yes, draft);
        self.enter(tx, Half::Pending);
        (sender, slot)
    }

    /// A transaction that follows others of its sender that are to be executed again.
    pub(super) fn insert_unsettled(
        &mut self,
        tx: &CheckedTx,
        sender: SenderId,
        now_ms: u64,
        draft: &Draft,
    ) -> Slot {
        let slot = self.entries.insert(tx.clone(), sender, now_ms);
        self.append(slot, tx, sender, Settled::No, draft);
        self.enter(tx, Half::Pending);
        slot
    }

    /// A transaction that waits for the nonces before it, of which `next` is the first.
    pub(super) fn insert_queued(&mut self, tx: &CheckedTx, next: u64, now_ms: u64) -> Slot {
        let sender = self.senders.open(tx.from(), next);
        let slot = self.entries.insert(tx.clone(), sender, now_ms);
        self.senders.enqueue(sender, tx.nonce(), slot);
        self.enter(tx, Half::Queued);
        slot
    }

    /// An entry that was taken out, the last one of its sender, is there again, to be executed again.
    pub(super) fn put_back(&mut self, entry: Entry, draft: &Draft) -> Slot {
        let tx = entry.tx.clone();
        let sender = self.senders.open(tx.from(), tx.nonce());
        let slot = self.entries.put_back(Entry { sender, ..entry });
        self.append(slot, &tx, sender, Settled::No, draft);
        self.enter(&tx, Half::Pending);
        slot
    }

    /// Moves a transaction from the queue to the executable ones: one that the draft has taken, or one
    /// that follows others of its sender that are to be executed again.
    pub(super) fn make_pending(
        &mut self,
        slot: Slot,
        is_settled: Settled,
        draft: &Draft,
    ) -> Option<CheckedTx> {
        let Entry { tx, sender, .. } = self.entries.get(slot)?;
        let (tx, sender) = (tx.clone(), *sender);
        self.senders.dequeue(sender, tx.nonce());
        self.append(slot, &tx, sender, is_settled, draft);
        self.leave(&tx, Half::Queued);
        self.enter(&tx, Half::Pending);
        Some(tx)
    }

    /// Moves what the draft has not of a sender to its queue; the nonce after the rest is `next`.
    pub(super) fn demote_unsettled(
        &mut self,
        id: SenderId,
        next: u64,
        now_ms: u64,
        mut demoted: impl FnMut(CheckedTx),
    ) {
        for slot in self.senders.cut(id, next) {
            if let Some(tx) = self.demote(slot, id, now_ms) {
                demoted(tx);
            }
        }
    }

    fn demote(&mut self, slot: Slot, id: SenderId, now_ms: u64) -> Option<CheckedTx> {
        self.withdraw(id, slot);
        let entry = self.entries.get_mut(slot)?;
        let (tx, place) = (entry.tx.clone(), entry.place);
        entry.place = EntryPlace::Queued;
        entry.queued_ms = now_ms;
        if let EntryPlace::Pending(seq) = place {
            self.order.remove(seq);
        }
        self.senders.enqueue(id, tx.nonce(), slot);
        self.leave(&tx, Half::Pending);
        self.enter(&tx, Half::Queued);
        Some(tx)
    }

    /// An entry is executable, after the others of its sender.
    fn append(
        &mut self,
        slot: Slot,
        tx: &CheckedTx,
        sender: SenderId,
        is_settled: Settled,
        draft: &Draft,
    ) {
        let ready = Ready { slot, sender, bytes: tx.encoded_bytes() };
        let seq = match is_settled {
            Settled::Yes => {
                self.senders.push_pending(sender, slot);
                self.order.append(ready)
            }
            Settled::No => {
                self.senders.push_unsettled(sender, slot);
                self.order.append_unsettled(ready)
            }
        };
        self.set_place(slot, EntryPlace::Pending(seq));
        self.offer(sender, slot, draft);
    }

    fn set_place(&mut self, slot: Slot, place: EntryPlace) {
        if let Some(entry) = self.entries.get_mut(slot) {
            if entry.place == EntryPlace::Queued {
                entry.roomy_before = self.roomy_blocks;
            }
            entry.place = place;
        }
    }

    fn enter(&mut self, tx: &CheckedTx, half: Half) {
        self.tally.enter(tx, half);
        if half == Half::Pending {
            self.subjects.add(tx);
        }
    }

    /// A queued transaction waits for the next phase of its call.
    pub(super) fn hold(&mut self, tx: &CheckedTx) {
        self.held.hold(tx);
    }

    /// A phase of the call has begun. Answers who has waited for it.
    pub(super) fn release(&mut self, call: Hash) -> Vec<Address> {
        self.held.release(call)
    }

    /// Nothing waits for a phase of its call any more.
    pub(super) fn release_all(&mut self) {
        self.held.release_all();
    }
}

/// What goes out.
impl Contents {
    /// Takes out an executable transaction, wherever it stands.
    pub(super) fn take_pending(&mut self, id: SenderId, slot: Slot) -> Option<Entry> {
        self.remove_place(slot);
        self.withdraw(id, slot);
        self.senders.remove_pending(id, slot);
        self.lift(slot)
    }

    /// Takes out the last executable transaction of a sender.
    pub(super) fn take_last_pending(&mut self, id: SenderId, slot: Slot) -> Option<Entry> {
        self.remove_place(slot);
        self.withdraw(id, slot);
        self.senders.pop_pending(id);
        let entry = self.lift(slot);
        self.senders.close_if_empty(id);
        entry
    }

    /// Takes out a queued transaction.
    pub(super) fn take_queued(&mut self, id: SenderId, nonce: u64) -> Option<Entry> {
        let slot = self.senders.dequeue(id, nonce)?;
        self.lift(slot)
    }

    /// Takes out the transactions that blocks have, in the order of the blocks.
    pub(super) fn take_included(
        &mut self,
        included: impl Iterator<Item = Hash>,
        mut taken: impl FnMut(&Entry),
    ) {
        let slots: Vec<Slot> = included.filter_map(|hash| self.entries.slot(hash)).collect();
        self.withdraw_all(&slots);
        for slot in slots {
            let Some(Entry { tx, sender, place, .. }) = self.entries.get(slot) else { continue };
            let (id, nonce) = (*sender, tx.nonce());
            let entry = match place {
                EntryPlace::Pending(_) => {
                    self.remove_place(slot);
                    self.senders.remove_pending(id, slot);
                    self.lift(slot)
                }
                EntryPlace::Queued => self.take_queued(id, nonce),
            };
            self.senders.close_if_empty(id);
            if let Some(entry) = entry {
                taken(&entry);
            }
        }
    }

    /// Takes everything out: what is executable in its order, and then the queues. Answers how much it
    /// was.
    pub(super) fn take_all(&mut self, draft: &Draft, mut taken: impl FnMut(Entry)) -> usize {
        self.open_market(draft);
        let mut slots: Vec<Slot> = self.order.take().map(|ready| ready.slot).collect();
        for id in self.senders.with_queue() {
            let queued: BTreeMap<u64, Slot> =
                self.senders.get(id).map(|sender| sender.queued.clone()).unwrap_or_default();
            for (nonce, slot) in queued {
                self.senders.dequeue(id, nonce);
                slots.push(slot);
            }
        }
        for slot in &slots {
            let sender = self.entries.get(*slot).map(|entry| entry.sender);
            if let Some(entry) = self.lift(*slot) {
                taken(entry);
            }
            if let Some(id) = sender {
                self.senders.clear_pending(id);
                self.senders.close_if_empty(id);
            }
        }
        slots.len()
    }

    /// Forgets the sender if it has nothing left.
    pub(super) fn close_if_empty(&mut self, id: SenderId) {
        self.senders.close_if_empty(id);
    }

    fn remove_place(&mut self, slot: Slot) {
        if let Some(EntryPlace::Pending(seq)) = self.entries.get(slot).map(|entry| entry.place) {
            self.order.remove(seq);
        }
    }

    /// Takes out an entry that is in no other index any more.
    fn lift(&mut self, slot: Slot) -> Option<Entry> {
        let entry = self.entries.remove(slot)?;
        let half = match entry.place {
            EntryPlace::Pending(_) => Half::Pending,
            EntryPlace::Queued => Half::Queued,
        };
        self.leave(&entry.tx, half);
        Some(entry)
    }

    fn leave(&mut self, tx: &CheckedTx, half: Half) {
        self.tally.leave(tx, half);
        match half {
            Half::Pending => self.subjects.remove(tx),
            Half::Queued => self.held.forget(tx),
        }
    }
}

/// What the draft has of it.
impl Contents {
    /// The draft has executed a transaction again, the next one of its sender.
    pub(super) fn settle(&mut self, seq: Seq, ready: Ready) {
        let seq = self.order.settle(seq, ready);
        self.set_place(ready.slot, EntryPlace::Pending(seq));
        self.senders.settle_next(ready.sender);
    }

    /// The last settled transaction of a sender is to be executed again.
    pub(super) fn unsettle_last(&mut self, id: SenderId, seq: Seq) {
        self.order.unsettle_one(seq);
        self.senders.unsettle_last(id);
    }

    /// Everything is to be executed again.
    pub(super) fn unsettle_all(&mut self) {
        self.order.unsettle();
        self.senders.unsettle();
    }

    /// Forgets a place in the order without a transaction.
    pub(super) fn forget_place(&mut self, seq: Seq) {
        self.order.remove(seq);
    }

    /// The next nonce of a sender of which everything executable is settled.
    pub(super) fn set_next(&mut self, id: SenderId, next: u64) {
        self.senders.cut(id, next);
    }
}

/// What the journal notes.
impl Contents {
    /// Arrivals from now on are greater than `arrival`.
    pub(crate) fn start_after(&mut self, arrival: u64) {
        self.entries.start_after(arrival);
    }

    /// The transaction of an arrival may be on disk from now on; none if it has left.
    pub(crate) fn set_journalled(&mut self, slot: Slot, arrival: u64) -> Option<&CheckedTx> {
        let entry = self.entries.get_mut(slot).filter(|entry| entry.arrival == arrival)?;
        entry.is_journalled = true;
        Some(&entry.tx)
    }

    /// The transaction of an arrival is in that segment from now on. Answers in which one it was; none if
    /// the transaction has left.
    pub(crate) fn set_segment(
        &mut self,
        slot: Slot,
        arrival: u64,
        segment: u64,
    ) -> Option<Option<u64>> {
        let entry = self.entries.get_mut(slot).filter(|entry| entry.arrival == arrival)?;
        Some(entry.segment.replace(segment))
    }
}
