//! The total order of executable transactions, and what of it goes into a block.

use std::collections::BTreeMap;

use crate::senders::SenderId;
use crate::slab::Slot;

/// A place in the order: transactions are executed from the lowest to the highest. A transaction
/// gets its place when it becomes executable, so nonces of one sender ascend with it, and whatever
/// a transaction builds on has a lower place.
///
/// An era ends when everything is to be executed again. What is executed in the next one comes before
/// what is left of those before, so the numbers of eras descend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Seq {
    era: i64,
    number: u64,
}

/// The era of what comes while others are to be executed again: after all of these.
const AFTER_ALL: i64 = i64::MAX;

/// What block building has to know of a transaction without looking at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) slot: Slot,
    pub(crate) sender: SenderId,
    pub(crate) bytes: usize,
}

/// How much may go into a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockLimits {
    /// The sum of [`types::Transaction::encoded_bytes`].
    pub bytes: usize,
    /// The number of transactions.
    pub count: usize,
}

/// Fewer bytes than any transaction has: with less room than this, a block is full.
pub(crate) const TX_BYTES_MIN: usize = 256;

/// A share of a block is never fewer transactions than this, if their bytes allow.
const SHARE_COUNT_MIN: usize = 64;

/// What one sender gets of a block while others have something: one part in `shares`, but room for 64
/// transactions if their bytes allow.
pub(crate) fn share_of(limits: BlockLimits, shares: usize) -> BlockLimits {
    let part = |whole: usize| whole.checked_div(shares).unwrap_or(whole);
    BlockLimits { bytes: part(limits.bytes), count: part(limits.count).max(SHARE_COUNT_MIN) }
}

/// Executable transactions: those that are executed on the draft, and those that were and are to be
/// executed again.
#[derive(Debug)]
pub(crate) struct Order {
    by_seq: BTreeMap<Seq, Ready>,
    unsettled: BTreeMap<Seq, Ready>,
    era: i64,
    last: u64,
}

impl Order {
    pub(crate) const fn new() -> Self {
        Self { by_seq: BTreeMap::new(), unsettled: BTreeMap::new(), era: 0, last: 0 }
    }

    const fn next_seq(&mut self, era: i64) -> Seq {
        self.last = self.last.saturating_add(1);
        Seq { era, number: self.last }
    }

    /// Appends a transaction that was executed.
    pub(crate) fn append(&mut self, ready: Ready) -> Seq {
        let seq = self.next_seq(self.era);
        self.by_seq.insert(seq, ready);
        seq
    }

    /// Appends a transaction that is to be executed when those before it have been.
    pub(crate) fn append_unsettled(&mut self, ready: Ready) -> Seq {
        let seq = self.next_seq(AFTER_ALL);
        self.unsettled.insert(seq, ready);
        seq
    }

    /// A transaction was executed again: it has a place behind everything that was executed before.
    pub(crate) fn settle(&mut self, seq: Seq, ready: Ready) -> Seq {
        self.unsettled.remove(&seq);
        self.append(ready)
    }

    /// Everything is to be executed again: first what was executed last, in the order in which it was,
    /// and then what was still to be executed.
    pub(crate) fn unsettle(&mut self) {
        self.unsettled.append(&mut self.by_seq);
        self.era = self.era.saturating_sub(1);
    }

    /// A transaction was taken off the draft and is to be executed again.
    pub(crate) fn unsettle_one(&mut self, seq: Seq) {
        if let Some(ready) = self.by_seq.remove(&seq) {
            self.unsettled.insert(seq, ready);
        }
    }

    pub(crate) fn remove(&mut self, seq: Seq) {
        if self.by_seq.remove(&seq).is_none() {
            self.unsettled.remove(&seq);
        }
    }

    /// Takes everything out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Ready> {
        let settled = std::mem::take(&mut self.by_seq);
        settled.into_values().chain(std::mem::take(&mut self.unsettled).into_values())
    }

    /// All of them, in the order in which they are to be executed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ready> {
        self.by_seq.values().chain(self.unsettled.values())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_seq.len().saturating_add(self.unsettled.len())
    }

    /// How many of them are executed on the draft.
    pub(crate) fn settled_len(&self) -> usize {
        self.by_seq.len()
    }

    /// How many are to be executed again.
    pub(crate) fn unsettled_len(&self) -> usize {
        self.unsettled.len()
    }

    /// The transaction at this place that is to be executed again.
    pub(crate) fn unsettled(&self, seq: Seq) -> Option<Ready> {
        self.unsettled.get(&seq).copied()
    }

    /// Whether the transaction at this place is executed on the draft.
    pub(crate) fn is_settled(&self, seq: Seq) -> bool {
        self.by_seq.contains_key(&seq)
    }

    /// The first that is to be executed again.
    pub(crate) fn first_unsettled(&self) -> Option<(Seq, Ready)> {
        self.unsettled.first_key_value().map(|(seq, ready)| (*seq, *ready))
    }

    /// What would be chosen for a block of those that are to be executed again.
    pub(crate) fn choose_unsettled(
        &self,
        limits: BlockLimits,
        shares: usize,
        senders_bound: usize,
    ) -> Vec<(Seq, Ready)> {
        let chosen = choose(&self.unsettled, limits, shares, senders_bound);
        chosen.into_iter().filter_map(|(seq, _)| Some((seq, *self.unsettled.get(&seq)?))).collect()
    }

    /// Chooses for a block.
    ///
    /// First everybody gets a share: in order, each sender at most one part in `shares` of the
    /// bytes and of the count (but always one transaction, and 64 if their bytes allow). Room that
    /// is left then goes to the others in order. Of each sender the chosen ones are the lowest
    /// nonces; the answer is in order.
    pub(crate) fn choose(
        &self,
        limits: BlockLimits,
        shares: usize,
        senders_bound: usize,
    ) -> Vec<Slot> {
        let chosen = choose(&self.by_seq, limits, shares, senders_bound);
        chosen.into_iter().map(|(_, slot)| slot).collect()
    }
}

fn choose(
    from: &BTreeMap<Seq, Ready>,
    limits: BlockLimits,
    shares: usize,
    senders_bound: usize,
) -> Vec<(Seq, Slot)> {
    let mut choice = Choice::new(limits, shares, senders_bound);
    let mut later = Vec::new();
    let mut later_bytes = 0_usize;
    for (seq, ready) in from {
        if choice.is_full() {
            break;
        }
        if !choice.try_share(*seq, ready) && later_bytes < limits.bytes {
            later_bytes = later_bytes.saturating_add(ready.bytes);
            later.push((*seq, *ready));
        }
    }
    choice.reopen();
    for (seq, ready) in &later {
        if choice.is_full() {
            break;
        }
        choice.try_rest(*seq, ready);
    }
    choice.in_order()
}

/// What one sender has in the block so far.
#[derive(Clone, Copy, Default)]
struct Used {
    bytes: usize,
    count: usize,
    /// One of its transactions was left out: so are all with higher nonces.
    is_closed: bool,
}

struct Choice {
    room: BlockLimits,
    share: BlockLimits,
    used: Vec<Used>,
    chosen: Vec<(Seq, Slot)>,
}

impl Choice {
    fn new(limits: BlockLimits, shares: usize, senders_bound: usize) -> Self {
        let share = share_of(limits, shares);
        let used = vec![Used::default(); senders_bound];
        Self { room: limits, share, used, chosen: Vec::new() }
    }

    const fn is_full(&self) -> bool {
        self.room.count == 0 || self.room.bytes < TX_BYTES_MIN
    }

    const fn fits(&self, ready: &Ready) -> bool {
        self.room.count > 0 && ready.bytes <= self.room.bytes
    }

    /// Takes the transaction if it is within its sender's share.
    fn try_share(&mut self, seq: Seq, ready: &Ready) -> bool {
        let fits = self.fits(ready);
        let share = self.share;
        let Some(used) = self.used.get_mut(ready.sender) else { return false };
        let within = used.count == 0
            || (used.count < share.count && used.bytes.saturating_add(ready.bytes) <= share.bytes);
        if used.is_closed || !within || !fits {
            used.is_closed = true;
            return false;
        }
        self.take(seq, ready);
        true
    }

    /// The shares are given out: from now on room is all that counts.
    fn reopen(&mut self) {
        for used in &mut self.used {
            used.is_closed = false;
        }
    }

    fn try_rest(&mut self, seq: Seq, ready: &Ready) {
        let fits = self.fits(ready);
        let Some(used) = self.used.get_mut(ready.sender) else { return };
        if used.is_closed || !fits {
            used.is_closed = true;
        } else {
            self.take(seq, ready);
        }
    }

    fn take(&mut self, seq: Seq, ready: &Ready) {
        self.room.bytes = self.room.bytes.saturating_sub(ready.bytes);
        self.room.count = self.room.count.saturating_sub(1);
        if let Some(used) = self.used.get_mut(ready.sender) {
            used.bytes = used.bytes.saturating_add(ready.bytes);
            used.count = used.count.saturating_add(1);
        }
        self.chosen.push((seq, ready.slot));
    }

    fn in_order(mut self) -> Vec<(Seq, Slot)> {
        self.chosen.sort_unstable();
        self.chosen
    }
}
