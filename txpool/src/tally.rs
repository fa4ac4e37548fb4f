//! Counters: what is in the pool by type, and what happened since the start.

use std::collections::BTreeMap;

use types::{Code, Transaction};

/// A number of transactions and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Volume {
    /// How many.
    pub count: usize,
    /// The sum of [`Transaction::encoded_bytes`].
    pub bytes: usize,
}

impl Volume {
    const fn add(&mut self, bytes: usize) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    const fn subtract(&mut self, bytes: usize) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// The two halves of the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Halves {
    /// Executable now, or when the base fee has fallen.
    pub pending: Volume,
    /// Waiting for a nonce.
    pub queued: Volume,
}

impl Halves {
    /// Both together.
    #[must_use]
    pub const fn total(&self) -> Volume {
        Volume {
            count: self.pending.count.saturating_add(self.queued.count),
            bytes: self.pending.bytes.saturating_add(self.queued.bytes),
        }
    }

    const fn half(&mut self, half: Half) -> &mut Volume {
        match half {
            Half::Pending => &mut self.pending,
            Half::Queued => &mut self.queued,
        }
    }
}

/// What is in the pool.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// All types together.
    pub total: Halves,
    /// By the text of the member `type`; types of which the pool has none may be missing.
    pub by_type: BTreeMap<&'static str, Halves>,
}

/// Figures for monitoring. The totals count since the pool was made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Executable transactions now, without those that wait for the base fee to fall.
    pub pending: usize,
    /// Executable transactions that wait for the base fee to fall.
    pub waiting: usize,
    /// Transactions that wait for a nonce now.
    pub queued: usize,
    /// Bytes of all of them now.
    pub bytes: usize,
    /// Senders with something in the pool now.
    pub senders: usize,
    /// New transactions accepted.
    pub accepted_total: u64,
    /// Submissions of transactions that were known already.
    pub known_total: u64,
    /// Submissions refused, by code.
    pub refused_total: BTreeMap<Code, u64>,
    /// Accepted transactions that left in a block.
    pub included_total: u64,
    /// Accepted transactions that were dropped, by code.
    pub dropped_total: BTreeMap<Code, u64>,
    /// Of these, those that made room for others or, from fork v7 on, had waited for too long.
    pub evicted_total: u64,
    /// How often the draft was built anew from the committed state.
    pub rebuilds_total: u64,
}

/// Half of the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Half {
    Pending,
    Queued,
}

/// How much is in the pool now.
#[derive(Debug, Default)]
pub(crate) struct Tally(Status);

impl Tally {
    pub(crate) fn enter(&mut self, tx: &Transaction, half: Half) {
        let bytes = tx.encoded_bytes();
        self.0.total.half(half).add(bytes);
        self.of_type(tx).half(half).add(bytes);
    }

    pub(crate) fn leave(&mut self, tx: &Transaction, half: Half) {
        let bytes = tx.encoded_bytes();
        self.0.total.half(half).subtract(bytes);
        self.of_type(tx).half(half).subtract(bytes);
    }

    fn of_type(&mut self, tx: &Transaction) -> &mut Halves {
        self.0.by_type.entry(tx.body().type_name()).or_default()
    }

    pub(crate) const fn halves(&self) -> Halves {
        self.0.total
    }

    pub(crate) const fn status(&self) -> &Status {
        &self.0
    }
}

/// What happened since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters(Stats);

impl Counters {
    /// The figures for monitoring, with what is in the pool now.
    pub(crate) fn stats(&self, now: Halves, senders: usize, waiting: usize) -> Stats {
        Stats {
            pending: now.pending.count.saturating_sub(waiting),
            waiting,
            queued: now.queued.count,
            bytes: now.total().bytes,
            senders,
            ..self.0.clone()
        }
    }

    pub(crate) const fn accepted(&mut self) {
        self.0.accepted_total = self.0.accepted_total.saturating_add(1);
    }

    pub(crate) const fn known(&mut self) {
        self.0.known_total = self.0.known_total.saturating_add(1);
    }

    pub(crate) const fn included(&mut self) {
        self.0.included_total = self.0.included_total.saturating_add(1);
    }

    pub(crate) const fn evicted(&mut self) {
        self.0.evicted_total = self.0.evicted_total.saturating_add(1);
    }

    pub(crate) const fn rebuilt(&mut self) {
        self.0.rebuilds_total = self.0.rebuilds_total.saturating_add(1);
    }

    pub(crate) fn refused(&mut self, code: Code) {
        increment(&mut self.0.refused_total, code);
    }

    pub(crate) fn dropped(&mut self, code: Code) {
        increment(&mut self.0.dropped_total, code);
    }
}

fn increment(counts: &mut BTreeMap<Code, u64>, code: Code) {
    let count = counts.entry(code).or_default();
    *count = count.saturating_add(1);
}
