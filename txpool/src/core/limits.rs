//! The limits of the pool, and who makes room for whom.
//!
//! A full pool takes an executable transaction in place of queued ones: of the sender with the
//! longest queue the highest nonce, again and again until it fits. Before fork v7 an executable
//! transaction is never evicted; from then on `evict` says for whom. A queued newcomer displaces at most
//! one queued transaction, of a sender whose queue is longer than the newcomer's by two or more, so that
//! two senders cannot displace each other in turn.
//!
//! From v7 on a tenth of the pool is kept for steps and ends of runs that are executable now. What of
//! them has its place in that tenth is not counted with the others, which have nine tenths. While it is
//! full, whoever has the most in it makes room for who has less (`market::kept`).

use types::{CheckedTx, Code, Rejection};

use super::contents::Contents;
use super::draft::Draft;
use crate::Config;
use crate::market::{Rate, is_favoured, rate};
use crate::senders::SenderId;
use crate::tally::Volume;

/// How many transactions make room for one newcomer. All of this happens under the pool's lock, and a
/// newcomer need not get into a block, so it costs its sender nothing.
pub(super) const VICTIMS_MAX: usize = 64;

/// What the newcomer would be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Newcomer {
    Executable,
    Queued,
}

/// What room there is for a newcomer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// There is some, or queued transactions make some.
    Free,
    /// Those with more in the tenth that is kept for steps make some.
    Shared,
    /// Executable transactions that are worth less make some.
    Dearer,
}

/// What the operator allows.
pub(super) struct Limits {
    /// How much there may be at all.
    max: Volume,
    sender_count_max: usize,
    nonce_window: u64,
    retry_after_ms: u64,
    max_clock_skew_ms: u64,
}

impl Limits {
    pub(super) const fn new(config: &Config, max_clock_skew_ms: u64) -> Self {
        Self {
            max: Volume { count: config.count_max, bytes: config.bytes_max },
            sender_count_max: config.sender_count_max,
            nonce_window: config.nonce_window,
            retry_after_ms: config.retry_after_ms,
            max_clock_skew_ms,
        }
    }

    /// The most transactions of one sender.
    pub(super) const fn sender_count_max(&self) -> usize {
        self.sender_count_max
    }

    /// How far a nonce may be beyond the sender's last executable one.
    pub(super) const fn nonce_window(&self) -> u64 {
        self.nonce_window
    }
}

/// The limits against what is in the pool.
pub(super) struct Capacity<'a> {
    pub(super) limits: &'a Limits,
    pub(super) contents: &'a Contents,
    pub(super) draft: &'a Draft,
}

impl Capacity<'_> {
    /// Whether the pool's own rules let the transaction in: `POOL_FULL`, `SENDER_LIMIT`,
    /// `CLOCK_SKEW`.
    pub(super) fn room_for(
        &self,
        tx: &CheckedTx,
        newcomer: Newcomer,
        now_ms: u64,
    ) -> Result<Room, Rejection> {
        let own = self.contents.senders().find(tx.from()).map(|(_, sender)| sender);
        let is_free = self.fits(tx, newcomer, own.map_or(0, |sender| sender.queued.len()));
        let is_executable = newcomer == Newcomer::Executable;
        let room = match is_free {
            // Even if there is room with all others: there it would have to go for whoever offers more.
            _ if is_executable && self.givers(tx).is_some_and(|it| !it.is_empty()) => Room::Shared,
            true => Room::Free,
            false if is_executable && self.is_dearer(tx) => Room::Dearer,
            false => return Err(self.pool_full()),
        };
        let (count, max) = (own.map_or(0, |s| s.count()), self.limits.sender_count_max);
        if count >= max {
            let got = format_args!("{} with {count} transactions in the pool", tx.from());
            let expected = format_args!("a sender with fewer than {max}");
            return Err(Rejection::new(Code::SenderLimit, "from", got, expected)
                .with("limit", max)
                .with("retryAfterMs", self.limits.retry_after_ms));
        }
        let latest_ms = now_ms.saturating_add(self.limits.max_clock_skew_ms);
        if tx.timestamp() > latest_ms {
            let expected = format_args!("at most {latest_ms}");
            return Err(Rejection::new(Code::ClockSkew, "timestamp", tx.timestamp(), expected)
                .with("now", now_ms));
        }
        Ok(room)
    }

    fn fits(&self, tx: &CheckedTx, newcomer: Newcomer, own_queue: usize) -> bool {
        let halves = self.contents.halves();
        if newcomer == Newcomer::Executable && self.is_within_tenth(tx) {
            return true;
        }
        if self.has_room(tx, halves.total(), Volume::default()) {
            return true;
        }
        match newcomer {
            // Everything queued could go.
            Newcomer::Executable => self.has_room(tx, halves.total(), halves.queued),
            Newcomer::Queued => self.victim().is_some_and(|(queue, victim)| {
                let freed = Volume { count: 1, bytes: victim.encoded_bytes() };
                queue >= own_queue.saturating_add(2) && self.has_room(tx, halves.total(), freed)
            }),
        }
    }

    /// Whether the transaction fits if of all that there is so much is freed.
    fn has_room(&self, tx: &CheckedTx, total: Volume, freed: Volume) -> bool {
        let (used, limit) = self.used_and_limit(total);
        let bytes = used.bytes.saturating_add(tx.encoded_bytes()).saturating_sub(freed.bytes);
        let count = used.count.saturating_add(1).saturating_sub(freed.count);
        count <= limit.count && bytes <= limit.bytes
    }

    /// What counts of `total`, and how much that may be.
    pub(super) fn used_and_limit(&self, total: Volume) -> (Volume, Volume) {
        let Some(market) = self.contents.market() else { return (total, self.limits.max) };
        let (kept, others) = (market.kept(), self.nine_tenths());
        let used = Volume {
            count: total.count.saturating_sub(kept.count),
            bytes: total.bytes.saturating_sub(kept.bytes),
        };
        // A pool that was full when v7 began does not have to shrink at once.
        let limit =
            Volume { count: others.count.max(used.count), bytes: others.bytes.max(used.bytes) };
        (used, limit)
    }

    /// How much there may be from v7 on beside what is kept for steps and ends of runs.
    const fn nine_tenths(&self) -> Volume {
        let Volume { count, bytes } = self.limits.max;
        Volume { count: count.saturating_sub(count / 10), bytes: bytes.saturating_sub(bytes / 10) }
    }

    /// Whether the transaction has a place in the tenth that is kept.
    fn is_within_tenth(&self, tx: &CheckedTx) -> bool {
        let (max, total) = (self.limits.max, self.contents.halves().total());
        let bytes = total.bytes.saturating_add(tx.encoded_bytes());
        self.fits_tenth(tx) && total.count < max.count && bytes <= max.bytes
    }

    fn fits_tenth(&self, tx: &CheckedTx) -> bool {
        let Some(market) = self.contents.market().filter(|_| is_favoured(tx)) else {
            return false;
        };
        let id = self.contents.senders().find(tx.from()).map(|(id, _)| id);
        market.fits_tenth(id, tx.encoded_bytes())
    }

    /// Those with more in the tenth that have to give way to the transaction; none if it may have no place
    /// there, or waits for the base fee to fall.
    pub(super) fn givers(&self, tx: &CheckedTx) -> Option<Vec<SenderId>> {
        let market = self.contents.market().filter(|_| is_favoured(tx))?;
        let id = self.contents.senders().find(tx.from()).map(|(id, _)| id);
        let most = self.draft.highest_base_fee(tx);
        market.worth(id, 0, most)?;
        if market.is_kept(id) { market.givers(id, tx.encoded_bytes()) } else { None }
    }

    /// What room there is beside the tenth.
    pub(super) fn room_beside_tenth(&self) -> Volume {
        let total = self.contents.halves().total();
        let (used, limit) = self.used_and_limit(total);
        Volume {
            count: limit.count.saturating_sub(used.count),
            bytes: limit.bytes.saturating_sub(used.bytes),
        }
    }

    /// How much has to go for the transaction.
    pub(super) fn lack(&self, tx: &CheckedTx, newcomer: Newcomer) -> Volume {
        let total = self.contents.halves().total();
        let (used, limit) = self.used_and_limit(total);
        let bytes = tx.encoded_bytes();
        if newcomer == Newcomer::Executable && self.fits_tenth(tx) {
            let (max, others) = (self.limits.max, self.nine_tenths());
            let over = total.bytes.saturating_add(bytes).saturating_sub(max.bytes);
            return Volume {
                count: (used.count.saturating_sub(others.count))
                    .max(total.count.saturating_add(1).saturating_sub(max.count)),
                bytes: used.bytes.saturating_sub(others.bytes).max(over),
            };
        }
        Volume {
            count: used.count.saturating_add(1).saturating_sub(limit.count),
            bytes: used.bytes.saturating_add(bytes).saturating_sub(limit.bytes),
        }
    }

    /// Which queued transaction goes next: its sender's queue length, and the transaction.
    pub(super) fn victim(&self) -> Option<(usize, CheckedTx)> {
        let (length, id) = self.contents.senders().longest_queue()?;
        let (_, slot) = self.contents.senders().get(id)?.queued.last_key_value()?;
        Some((length, self.contents.entries().get(*slot)?.tx.clone()))
    }

    /// Whether enough is worth less than the transaction would be for it to fit.
    fn is_dearer(&self, tx: &CheckedTx) -> bool {
        let Some(market) = self.contents.market() else { return false };
        market.can_free(self.worth(tx), self.lack_beyond_queue(tx), VICTIMS_MAX)
    }

    /// What the transaction would be worth; none if it would wait for the base fee to fall.
    pub(super) fn worth(&self, tx: &CheckedTx) -> Option<Rate> {
        let id = self.contents.senders().find(tx.from()).map(|(id, _)| id);
        let most = self.draft.highest_base_fee(tx);
        self.contents.market()?.worth(id, rate(tx), most)
    }

    /// Whether there is more beside the tenth than there may be, or more in all with the transaction, even
    /// when nothing is queued any more.
    pub(super) fn exceeds(&self, limit: Volume, tx: &CheckedTx) -> bool {
        let queued = self.contents.halves().queued;
        let (used, _) = self.used_and_limit(self.contents.halves().total());
        let lack = self.lack_beyond_queue(tx);
        used.count.saturating_sub(queued.count) > limit.count
            || used.bytes.saturating_sub(queued.bytes) > limit.bytes
            || lack != Volume::default()
    }

    /// What has to go for the transaction when nothing is queued any more.
    pub(super) fn lack_beyond_queue(&self, tx: &CheckedTx) -> Volume {
        let lack = self.lack(tx, Newcomer::Executable);
        let queued = self.contents.halves().queued;
        Volume {
            count: lack.count.saturating_sub(queued.count),
            bytes: lack.bytes.saturating_sub(queued.bytes),
        }
    }

    /// The rejection of what the pool has no room for.
    pub(super) fn pool_full(&self) -> Rejection {
        let total = self.contents.halves().total();
        let got = format_args!("{} transactions of {} bytes", total.count, total.bytes);
        let (count, bytes) = (self.limits.max.count, self.limits.max.bytes);
        let expected = format_args!("at most {count} transactions and {bytes} bytes");
        Rejection::new(Code::PoolFull, "pool", got, expected)
            .with("retryAfterMs", self.limits.retry_after_ms)
    }
}
