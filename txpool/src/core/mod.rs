//! The pool without its lock: what is in it, and the steps from which operations are made.
//!
//! `admission` lets transactions in, `limits` and `evict` make room, `commit` follows the chain,
//! `rebuild` executes again what waits, `query` answers.

mod admission;
mod commit;
mod evict;
mod limits;
mod query;
mod rebuild;

use std::collections::BTreeSet;
use std::sync::Arc;

use types::{Address, CheckedTx, Hash, Rejection};

pub use commit::{Committed, Touched};
pub use query::{Found, Page, SenderContent};

use crate::dropped::DroppedRing;
use crate::entries::{Entries, Entry, Place};
use crate::error::Fault;
use crate::held::{Held, is_about_the_phase};
use crate::journal::Written;
use crate::market::{Market, Offer, Offered, Wanted, is_favoured, rate};
use crate::order::{BlockLimits, Order, Ready, Seq};
use crate::ports::PendingLedger;
use crate::senders::{SenderId, Senders};
use crate::slab::Slot;
use crate::subject::{Subjects, is_about_the_subject};
use crate::tally::{Half, Tally, Volume};
use crate::{Config, Dropped, PoolEvent, Standing};

/// So many transactions at most are to be executed again because a block could not take them.
const DOUBTFUL_MAX: usize = 1_024;

/// Whether the draft has executed a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Settled {
    Yes,
    No,
}

/// A market without anything in it, if there is a base fee.
fn market_at(base_fee: Option<u64>, config: &Config) -> Option<Market> {
    let pool = Volume { count: config.count_max, bytes: config.bytes_max };
    base_fee.map(|base_fee| Market::at(base_fee, pool))
}

/// Everything behind the lock. Invariants:
///
/// 1. The draft of `ledger` is the committed state with the settled entries of `order` executed in
///    order. What is unsettled there was executable and is to be executed again (`rebuild`).
/// 2. A sender's `next` is the draft's nonce of its account and, if some of its transactions are
///    unsettled, so much more.
/// 3. An entry is in `order` and its sender's `pending`, or in its sender's `queued`.
/// 4. `market`, if there is one, has what is in `order`.
#[expect(clippy::struct_excessive_bools, reason = "three facts that do not exclude each other")]
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) max_clock_skew_ms: u64,
    ledger: Box<dyn PendingLedger>,
    pub(crate) entries: Entries,
    senders: Senders,
    order: Order,
    pub(crate) tally: Tally,
    /// What executable transactions offer, while tips decide (fork v7).
    market: Option<Market>,
    /// Whether something was taken off the draft since the last rebuild.
    has_taken_back: bool,
    /// Whether the next block has the draft built anew, because something could not be taken off the
    /// draft.
    wants_rebuild: bool,
    /// Whether the draft was built anew for an empty block, and no other block came since (fork v7).
    was_in_vain: bool,
    /// Transactions that a block could not take, and that may build on something that was evicted. They
    /// are to be executed again; what is last here comes first.
    doubtful: Vec<Hash>,
    dropped: DroppedRing,
    /// What executable transactions are about.
    subjects: Subjects,
    /// What waits for a phase of its call.
    held: Held,
    /// Whose queue may have something executable since a block or a rebuild.
    restless: BTreeSet<Address>,
    /// Transactions that left in blocks since the last rebuild.
    advanced: usize,
    /// When queued transactions were last looked at for their age, in milliseconds since 1970.
    aged_ms: u64,
    pub(crate) written: Written,
    events: Vec<PoolEvent>,
}

impl Core {
    pub(crate) fn new(
        config: Config,
        max_clock_skew_ms: u64,
        ledger: Box<dyn PendingLedger>,
    ) -> Self {
        let market = market_at(ledger.base_fee(), &config);
        Self {
            market,
            has_taken_back: false,
            wants_rebuild: false,
            was_in_vain: false,
            doubtful: Vec::new(),
            dropped: DroppedRing::new(&config),
            config,
            max_clock_skew_ms,
            ledger,
            entries: Entries::new(),
            senders: Senders::new(),
            order: Order::new(),
            tally: Tally::default(),
            subjects: Subjects::default(),
            held: Held::default(),
            restless: BTreeSet::new(),
            advanced: 0,
            aged_ms: 0,
            written: Written::default(),
            events: Vec::new(),
        }
    }

    /// What happened since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<PoolEvent> {
        std::mem::take(&mut self.events)
    }

    /// How many transactions are executable and do not wait for the base fee to fall.
    pub(crate) fn pending_count(&self) -> usize {
        self.order.len().saturating_sub(self.waiting_count())
    }

    /// How many executable transactions wait for the base fee to fall.
    pub(crate) fn waiting_count(&self) -> usize {
        self.market.as_ref().map_or(0, Market::waiting)
    }

    /// Whether there is something that the next block could take.
    pub(crate) fn has_offers(&self) -> bool {
        self.market.as_ref().map_or(self.order.len() > 0, Market::has_offers)
    }

    /// Whether there is something for [`Core::settle`] to do.
    pub(crate) fn has_unsettled(&self) -> bool {
        self.order.unsettled_len() > 0 || !self.restless.is_empty() || !self.doubtful.is_empty()
    }

    /// The transactions for a block, in the order in which they are to be executed, without what was
    /// `offered` already.
    pub(crate) fn candidates(&self, limits: BlockLimits, offered: &mut Offered) -> Vec<CheckedTx> {
        let Some(market) = &self.market else {
            // Shares give everything there is.
            if std::mem::replace(&mut offered.is_over, true) {
                return Vec::new();
            }
            let slots = self.order.choose(limits, self.config.block_share, self.senders.bound());
            return self.txs(slots);
        };
        let left_out = offered.clone_left_out();
        let open = |id| {
            let sender = self.senders.get(id).filter(|it| !left_out.contains(&it.address));
            0..sender.map_or(0, |sender| sender.settled)
        };
        let wanted = Wanted { limits, shares: self.config.block_share };
        let mut slots = market.choose(wanted, offered, &open);
        slots.sort_by_cached_key(|slot| self.seq(*slot));
        self.txs(slots)
    }

    fn txs(&self, slots: Vec<Slot>) -> Vec<CheckedTx> {
        slots.into_iter().filter_map(|slot| Some(self.entries.get(slot)?.tx.clone())).collect()
    }

    /// The place of an executable transaction in the order.
    fn seq(&self, slot: Slot) -> Option<Seq> {
        match self.entries.get(slot)?.place {
            Place::Pending(seq) => Some(seq),
            Place::Queued => None,
        }
    }

    /// A block was built of what was offered. What it could not take needs something that is not in the
    /// block, so it is not offered again before that can have changed.
    pub(crate) fn built(&mut self, offered: &Offered) {
        for hash in offered.refused() {
            let Some(Entry { tx, sender, place: Place::Pending(_), .. }) =
                self.entries.by_hash(hash)
            else {
                continue;
            };
            if let Some(market) = &mut self.market {
                market.close(*sender, tx.nonce());
            }
            // What it needs may have been evicted.
            if self.has_taken_back && self.doubtful.len() < DOUBTFUL_MAX {
                self.doubtful.push(hash);
            }
        }
    }

    /// Follows the base fee. Tips decide from now on, or do not any more.
    fn follow_market(&mut self) {
        let base_fee = self.ledger.base_fee();
        match (&mut self.market, base_fee) {
            (Some(market), Some(base_fee)) => return market.follow(base_fee),
            (None, None) => return,
            (Some(_), None) | (None, Some(_)) => {}
        }
        self.market = market_at(base_fee, &self.config);
        let pending: Vec<(SenderId, Slot)> = self
            .senders
            .iter()
            .flat_map(|(id, sender)| sender.pending.iter().map(move |slot| (id, *slot)))
            .collect();
        for (id, slot) in pending {
            self.offer(id, slot);
        }
    }

    /// An executable transaction is in the market, after the others of its sender.
    fn offer(&mut self, id: SenderId, slot: Slot) {
        if let Some(market) = &mut self.market
            && let Some(Entry { tx, arrival, .. }) = self.entries.get(slot)
        {
            let (nonce, arrival, bytes) = (tx.nonce(), *arrival, tx.encoded_bytes());
            let (rate, is_favoured) = (rate(tx), is_favoured(tx));
            let highest = self.ledger.highest_base_fee(tx).unwrap_or(u64::MAX);
            market.push(id, Offer { slot, nonce, arrival, bytes, rate, highest, is_favoured });
        }
    }

    /// A transaction is in the market no more.
    fn withdraw(&mut self, id: SenderId, slot: Slot) {
        if let Some(market) = &mut self.market
            && let Some(Entry { tx, arrival, .. }) = self.entries.get(slot)
        {
            market.remove(id, tx.nonce(), *arrival);
        }
    }

    /// Drops everything for `reason`.
    pub(crate) fn clear(&mut self, reason: &Rejection, now_ms: u64) -> Result<usize, Fault> {
        self.market = market_at(self.ledger.base_fee(), &self.config);
        let mut slots: Vec<Slot> = self.order.take().map(|ready| ready.slot).collect();
        for id in self.senders.with_queue() {
            let queued = self.senders.get(id).map(|s| s.queued.clone()).unwrap_or_default();
            for (nonce, slot) in queued {
                self.senders.dequeue(id, nonce);
                slots.push(slot);
            }
        }
        for slot in &slots {
            let sender = self.entries.get(*slot).map(|entry| entry.sender);
            self.discard(*slot, reason.clone(), now_ms);
            if let Some(id) = sender {
                self.senders.clear_pending(id);
                self.senders.close_if_empty(id);
            }
        }
        self.restless.clear();
        self.reset_ledger()?;
        self.follow_market();
        Ok(slots.len())
    }

    /// Records an executable transaction that the draft has taken.
    fn insert_pending(&mut self, tx: &CheckedTx, sender: SenderId, now_ms: u64) {
        let bytes = tx.encoded_bytes();
        // The entry's slot is part of its place in the order, and the place part of the entry.
        let slot = self.entries.insert(tx.clone(), sender, now_ms);
        let seq = self.order.append(Ready { slot, sender, bytes });
        self.set_place(slot, Place::Pending(seq));
        self.senders.push_pending(sender, slot);
        self.offer(sender, slot);
        self.note_new(tx, slot, Half::Pending);
    }

    /// Records a transaction that follows others of its sender that are to be executed again.
    fn insert_unsettled(&mut self, tx: &CheckedTx, sender: SenderId, now_ms: u64) {
        let bytes = tx.encoded_bytes();
        let slot = self.entries.insert(tx.clone(), sender, now_ms);
        let seq = self.order.append_unsettled(Ready { slot, sender, bytes });
        self.set_place(slot, Place::Pending(seq));
        self.senders.push_unsettled(sender, slot);
        self.offer(sender, slot);
        self.note_new(tx, slot, Half::Pending);
    }

    /// Whether a transaction that was refused comes before its time.
    fn is_early(&self, tx: &CheckedTx, reason: &Rejection) -> Result<bool, Fault> {
        Ok(is_about_the_phase(reason) && self.ledger.is_early(tx)?)
    }

    /// Records a transaction that waits for the nonces before it.
    fn insert_queued(&mut self, tx: &CheckedTx, sender: SenderId, now_ms: u64) {
        let slot = self.entries.insert(tx.clone(), sender, now_ms);
        self.senders.enqueue(sender, tx.nonce(), slot);
        self.note_new(tx, slot, Half::Queued);
    }

    fn note_new(&mut self, tx: &CheckedTx, slot: Slot, half: Half) {
        self.enter(tx, half);
        self.tally.accepted();
        self.dropped.forget(tx.hash());
        if let Some(entry) = self.entries.get(slot) {
            self.written.expect(slot, entry.arrival);
        }
        self.prune_notes();
        let standing = match half {
            Half::Pending => Standing::Pending,
            Half::Queued => Standing::Queued,
        };
        self.events.push(PoolEvent::Accepted { tx: tx.clone(), standing });
    }

    fn enter(&mut self, tx: &CheckedTx, half: Half) {
        self.tally.enter(tx, half);
        if half == Half::Pending {
            self.subjects.add(tx);
        }
    }

    fn leave(&mut self, tx: &CheckedTx, half: Half) {
        self.tally.leave(tx, half);
        match half {
            Half::Pending => self.subjects.remove(tx),
            Half::Queued => self.held.forget(tx),
        }
    }

    fn set_place(&mut self, slot: Slot, place: Place) {
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.place = place;
        }
    }

    /// Moves a transaction from the queue to the executable ones: one that the draft has taken, or one
    /// that follows others of its sender that are to be executed again.
    fn make_pending(&mut self, slot: Slot, is_settled: Settled) {
        let Some(Entry { tx, sender, .. }) = self.entries.get(slot) else { return };
        let (tx, sender) = (tx.clone(), *sender);
        self.senders.dequeue(sender, tx.nonce());
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
        self.set_place(slot, Place::Pending(seq));
        self.offer(sender, slot);
        self.leave(&tx, Half::Queued);
        self.enter(&tx, Half::Pending);
        self.events.push(PoolEvent::Promoted(tx));
    }

    /// Removes an entry that is in no other index any more.
    fn remove_entry(&mut self, slot: Slot) -> Option<Entry> {
        let entry = self.lift(slot)?;
        self.written.forget(entry.segment, entry.tx.encoded_bytes());
        Some(entry)
    }

    /// Takes out an entry that is in no other index any more, and that may come back.
    fn lift(&mut self, slot: Slot) -> Option<Entry> {
        let entry = self.entries.remove(slot)?;
        let half = match entry.place {
            Place::Pending(_) => Half::Pending,
            Place::Queued => Half::Queued,
        };
        self.leave(&entry.tx, half);
        Some(entry)
    }

    /// Drops an entry that is in no other index any more.
    fn discard(&mut self, slot: Slot, reason: Rejection, now_ms: u64) {
        if let Some(entry) = self.lift(slot) {
            self.bury(entry, reason, now_ms);
        }
    }

    /// Drops what was taken out.
    fn bury(&mut self, entry: Entry, reason: Rejection, now_ms: u64) {
        let Entry { tx, arrival, segment, is_journalled, .. } = entry;
        self.written.forget(segment, tx.encoded_bytes());
        if is_journalled {
            self.written.bury(arrival);
        }
        self.tally.dropped(reason.code());
        let dropped = Arc::new(Dropped { tx, reason, at_ms: now_ms });
        self.dropped.push(Arc::clone(&dropped));
        self.events.push(PoolEvent::Dropped(dropped));
    }

    /// Drops a queued transaction.
    fn drop_queued(&mut self, id: SenderId, nonce: u64, reason: Rejection, now_ms: u64) {
        if let Some(slot) = self.senders.dequeue(id, nonce) {
            self.discard(slot, reason, now_ms);
        }
    }

    /// Drops what the sender has queued about the subject of a transaction that was dropped, if the
    /// reason means that all of it is lost.
    fn drop_dependents(&mut self, id: SenderId, lost: &CheckedTx, reason: &Rejection, now_ms: u64) {
        let Some(subject) = lost.body().subject() else { return };
        if !is_about_the_subject(reason.code()) {
            return;
        }
        let Some(sender) = self.senders.get(id) else { return };
        let nonces: Vec<u64> = sender
            .queued
            .iter()
            .filter(|(nonce, _)| **nonce > lost.nonce())
            .filter(|(_, slot)| {
                let entry = self.entries.get(**slot);
                entry.and_then(|entry| entry.tx.body().subject()) == Some(subject)
            })
            .map(|(nonce, _)| *nonce)
            .collect();
        for nonce in nonces {
            self.drop_queued(id, nonce, reason.clone().with("after", lost.hash()), now_ms);
        }
    }
}
