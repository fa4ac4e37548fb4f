//! The limits of the pool, and who makes room for whom.
//!
//! A full pool takes an executable transaction in place of queued ones: of the sender with the
//! longest queue the highest nonce, again and again until it fits. An executable transaction is
//! never evicted. A queued newcomer displaces at most one queued transaction, of a sender whose
//! queue is longer than the newcomer's by two or more, so that two senders cannot displace each
//! other in turn.

use types::{CheckedTx, Code, Rejection};

use super::Core;

/// What the newcomer would be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Newcomer {
    Executable,
    Queued,
}

impl Core {
    /// Whether the pool's own rules let the transaction in: `POOL_FULL`, `SENDER_LIMIT`,
    /// `CLOCK_SKEW`.
    pub(super) fn room_for(
        &self,
        tx: &CheckedTx,
        newcomer: Newcomer,
        now_ms: u64,
    ) -> Result<(), Rejection> {
        let own = self.senders.find(tx.from()).map(|(_, sender)| sender);
        if !self.fits(tx, newcomer, own.map_or(0, |sender| sender.queued.len())) {
            return Err(self.pool_full());
        }
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
        Ok(())
    }

    fn fits(&self, tx: &CheckedTx, newcomer: Newcomer, own_queue: usize) -> bool {
        let (halves, bytes) = (self.tally.halves(), tx.encoded_bytes());
        let total = halves.total();
        let within = |count: usize, used: usize| {
            count < self.config.count_max && used.saturating_add(bytes) <= self.config.bytes_max
        };
        if within(total.count, total.bytes) {
            return true;
        }
        match newcomer {
            // Everything queued could go.
            Newcomer::Executable => within(halves.pending.count, halves.pending.bytes),
            Newcomer::Queued => self.victim().is_some_and(|(queue, victim)| {
                let freed = total.bytes.saturating_sub(victim.encoded_bytes());
                queue >= own_queue.saturating_add(2) && within(total.count.saturating_sub(1), freed)
            }),
        }
    }

    /// Who goes next: its sender's queue length, and the transaction.
    fn victim(&self) -> Option<(usize, CheckedTx)> {
        let (length, id) = self.senders.longest_queue()?;
        let (_, slot) = self.senders.get(id)?.queued.last_key_value()?;
        Some((length, self.entries.get(*slot)?.tx.clone()))
    }

    /// Evicts until the transaction, for which there was room by [`Core::room_for`], fits.
    pub(super) fn make_room(&mut self, tx: &CheckedTx, now_ms: u64) {
        loop {
            let total = self.tally.halves().total();
            let bytes = total.bytes.saturating_add(tx.encoded_bytes());
            if total.count < self.config.count_max && bytes <= self.config.bytes_max {
                return;
            }
            let Some((_, id)) = self.senders.longest_queue() else { return };
            let Some((_, victim)) = self.victim() else { return };
            self.drop_queued(id, victim.nonce(), self.pool_full(), now_ms);
            self.senders.close_if_empty(id);
            self.tally.evicted();
        }
    }

    fn pool_full(&self) -> Rejection {
        let total = self.tally.halves().total();
        let got = format_args!("{} transactions of {} bytes", total.count, total.bytes);
        let (count, bytes) = (self.config.count_max, self.config.bytes_max);
        let expected = format_args!("at most {count} transactions and {bytes} bytes");
        Rejection::new(Code::PoolFull, "pool", got, expected)
            .with("retryAfterMs", self.config.retry_after_ms)
    }
}
