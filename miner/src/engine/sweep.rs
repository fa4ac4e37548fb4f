//! Money that the wallet does not need goes to an address whose key is not on this machine.
//!
//! A transfer goes through the outbox like every other transaction: signed once, written down, the
//! same bytes sent until their fate is known. So a miner that dies around it moves the money once.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::Inner;
use super::blobs::BASE_FEE_MAX;
use super::error::{EngineError, Halt};
use super::tx_outcome::Verdict;
use crate::market::InForce;
use crate::operate::SweepConfig;

/// How often it is looked whether there is something to move, at most.
const TICK: Duration = Duration::from_secs(5);

/// Moves what the wallet does not need.
#[derive(Clone, Debug)]
pub struct Sweeper {
    inner: Arc<Inner>,
    market: InForce,
}

impl Sweeper {
    pub(super) const fn of(inner: Arc<Inner>, market: InForce) -> Self {
        Self { inner, market }
    }

    /// Moves money again and again, until the engine is stopped.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn run(self, config: SweepConfig) -> Result<(), EngineError> {
        let poll = Duration::from_millis(self.inner.parts.config.poll_ms);
        loop {
            tokio::select! {
                biased;
                () = self.inner.stop.cancelled() => return Ok(()),
                () = sleep(poll.min(TICK)) => (),
            }
            match self.sweep(&config).await {
                Ok(()) => (),
                Err(Halt::Stopped) => return Ok(()),
                Err(Halt::Journal(source)) => {
                    // Nobody works on without it.
                    self.inner.stop.cancel();
                    return Err(EngineError::Journal(source));
                }
            }
        }
    }

    /// Moves what is above `keep_micro`, if it is `min_micro` or more, the last time was `pause_s` ago,
    /// the base fee is low, and no transaction is under way.
    async fn sweep(&self, config: &SweepConfig) -> Result<(), Halt> {
        let Inner { parts, outbox, .. } = &*self.inner;
        let last_ms = parts.journal.swept()?.signed_ms;
        let due_ms = last_ms.saturating_add(config.pause_s.saturating_mul(1_000));
        if last_ms > 0 && parts.clock.now_ms() < due_ms {
            return Ok(());
        }
        // One that waits for a lower base fee would hold up what is signed after it.
        let is_low = |base_fee: u64| base_fee <= BASE_FEE_MAX;
        if !parts.ledger.blob_fees().await.is_ok_and(|fees| fees.base_fee.is_none_or(is_low)) {
            return Ok(());
        }
        // Claims and calls must not stop for it.
        let market_micro = self.market.borrow().as_ref().map_or(0, |it| it.balance_micro_min);
        let floors = [parts.policy.borrow().balance_micro_min, market_micro];
        let keep_micro = floors.into_iter().fold(config.keep_micro, u64::max);
        let verdict = outbox
            .post_transfer(config.address, |funds| {
                let excess_micro = funds.balance_micro.saturating_sub(keep_micro);
                (excess_micro >= config.min_micro).then_some(excess_micro)
            })
            .await?;
        match verdict {
            None => (),
            Some(Verdict::Included { .. }) => tracing::info!(to = %config.address, "swept"),
            Some(Verdict::Refused(code)) => {
                tracing::warn!(to = %config.address, code, "a sweep was rejected");
            }
        }
        Ok(())
    }
}
