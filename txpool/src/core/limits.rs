//! The limits of the pool, and who makes room for whom.
//!
//! A full pool takes an executable transaction in place of queued ones: of the sender with the
//! longest queue the highest nonce, again and again until it fits. Before fork v7 an executable
//! transaction is never evicted; from then on `evict` says for whom. A queued newcomer displaces at most
//! one queued transaction, of a sender whose queue is longer than the newcomer's by two or more, so that
//! two senders cannot displace each other in turn.
//!
//! From v7 on a tenth of the pool is kept for steps and ends of runs that are executable now. What of
//! them fits into that tenth is not counted with the others, which have nine tenths.

use types::{CheckedTx, Code, Rejection};

use super::Core;
use crate::Config;
use crate::market::is_favoured;
use crate::tally::Volume;

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
    /// Executable transactions that are worth less make some.
    Dearer,
}

impl Core {
    /// Whether the pool's own rules let the transaction in: `POOL_FULL`, `SENDER_LIMIT`,
    /// `CLOCK_SKEW`.
    pub(super) fn room_for(
        &self,
        tx: &CheckedTx,
        newcomer: Newcomer,
        now_ms: u64,
    ) -> Result<Room, Rejection> {
        let own = self.senders.find(tx.from()).map(|(_, sender)| sender);
        let is_free = self.fits(tx, newcomer, own.map_or(0, |sender| sender.queued.len()));
        let is_dearer = || newcomer == Newcomer::Executable && self.is_dearer(tx);
        let room = match is_free {
            true => Room::Free,
            false if is_dearer() => Room::Dearer,
            false => return Err(self.pool_full()),
        };
        let (count, max) = (own.map_or(0, |s| s.count()), self.config.sender_count_max);
        if count >= max {
            let got = format_args!("{} with {count} transactions in the pool", tx.from());
            let expected = format_args!("a sender with fewer than {max}");
            return Err(Rejection::new(Code::SenderLimit, "from", got, expected)
                .with("limit", max)
                .with("retryAfterMs", self.config.retry_after_ms));
        }
        let latest_ms = now_ms.saturating_add(self.max_clock_skew_ms);
        if tx.timestamp() > latest_ms {
            let expected = format_args!("at most {latest_ms}");
            return Err(Rejection::new(Code::ClockSkew, "timestamp", tx.timestamp(), expected)
                .with("now", now_ms));
        }
        Ok(room)
    }

    fn fits(&self, tx: &CheckedTx, newcomer: Newcomer, own_queue: usize) -> bool {
        let halves = self.tally.halves();
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
    fn used_and_limit(&self, total: Volume) -> (Volume, Volume) {
        let Config { count_max, bytes_max, .. } = self.config;
        let Some(market) = &self.market else {
            return (total, Volume { count: count_max, bytes: bytes_max });
        };
        let (lead, tenth) = (market.lead(), self.tenth());
        let used = Volume {
            count: total.count.saturating_sub(lead.count.min(tenth.count)),
            bytes: total.bytes.saturating_sub(lead.bytes.min(tenth.bytes)),
        };
        // A pool that was full when v7 began does not have to shrink at once.
        let limit = Volume {
            count: count_max.saturating_sub(tenth.count).max(used.count),
            bytes: bytes_max.saturating_sub(tenth.bytes).max(used.bytes),
        };
        (used, limit)
    }

    /// What is kept for steps and ends of runs.
    const fn tenth(&self) -> Volume {
        Volume { count: self.config.count_max / 10, bytes: self.config.bytes_max / 10 }
    }

    /// Whether the transaction has a place in the tenth that is kept.
    fn is_within_tenth(&self, tx: &CheckedTx) -> bool {
        let Some(market) = self.market.as_ref().filter(|_| is_favoured(tx)) else { return false };
        let id = self.senders.find(tx.from()).map(|(id, _)| id);
        let (lead, tenth) = (market.lead(), self.tenth());
        id.is_none_or(|id| market.is_in_lead(id))
            && lead.count < tenth.count
            && lead.bytes.saturating_add(tx.encoded_bytes()) <= tenth.bytes
    }

    /// Whether the tenth has no place for everything that it is kept for: then the worst of that makes
    /// room as others do.
    pub(super) fn is_tenth_full(&self, newcomer: &CheckedTx) -> bool {
        let Some(market) = &self.market else { return false };
        let (lead, tenth) = (market.lead(), self.tenth());
        let is_over = lead.count > tenth.count || lead.bytes > tenth.bytes;
        is_over || (is_favoured(newcomer) && !self.is_within_tenth(newcomer))
    }

    /// How much has to go for the transaction.
    pub(super) fn lack(&self, tx: &CheckedTx) -> Volume {
        if self.is_within_tenth(tx) {
            return Volume::default();
        }
        let (used, limit) = self.used_and_limit(self.tally.halves().total());
        let bytes = used.bytes.saturating_add(tx.encoded_bytes());
        Volume {
            count: used.count.saturating_add(1).saturating_sub(limit.count),
            bytes: bytes.saturating_sub(limit.bytes),
        }
    }

    /// Who goes next: its sender's queue length, and the transaction.
    fn victim(&self) -> Option<(usize, CheckedTx)> {
        let (length, id) = self.senders.longest_queue()?;
        let (_, slot) = self.senders.get(id)?.queued.last_key_value()?;
        Some((length, self.entries.get(*slot)?.tx.clone()))
    }

    /// Evicts queued transactions until the transaction, for which there was room by
    /// [`Core::room_for`], fits.
    pub(super) fn make_room(&mut self, tx: &CheckedTx, now_ms: u64) {
        while self.lack(tx) != Volume::default() {
            let Some((_, id)) = self.senders.longest_queue() else { return };
            let Some((_, victim)) = self.victim() else { return };
            self.drop_queued(id, victim.nonce(), self.pool_full(), now_ms);
            self.senders.close_if_empty(id);
            self.tally.evicted();
        }
    }

    pub(super) fn pool_full(&self) -> Rejection {
        let total = self.tally.halves().total();
        let got = format_args!("{} transactions of {} bytes", total.count, total.bytes);
        let (count, bytes) = (self.config.count_max, self.config.bytes_max);
        let expected = format_args!("at most {count} transactions and {bytes} bytes");
        Rejection::new(Code::PoolFull, "pool", got, expected)
            .with("retryAfterMs", self.config.retry_after_ms)
    }
}
