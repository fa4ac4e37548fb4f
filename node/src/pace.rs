//! When a block is due (docs/protocol.md section 6): when the pool has executable transactions,
//! when a deadline has passed, and otherwise at every heartbeat; never faster than the chain's
//! minimum interval.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use consensus::Pace;
use tokio::sync::Notify;
use txpool::Pool;

use crate::chain::Chain;
use crate::clock::now_ms;

/// Wakes whoever waits for a block to be due.
#[derive(Debug, Default)]
pub(crate) struct Wake(Notify);

impl Wake {
    /// The pool has executable transactions now, or the chain has moved.
    pub(crate) fn block_may_be_due(&self) {
        self.0.notify_waiters();
    }
}

/// The pace of this chain's blocks.
pub(crate) struct BlockPace {
    pub(crate) chain: Arc<Chain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) wake: Arc<Wake>,
}

impl BlockPace {
    /// When the next block is due as things stand, in milliseconds since 1970.
    fn due_at(&self) -> u64 {
        let tip = self.chain.tip();
        let params = self.chain.spec().params();
        let earliest = tip.timestamp.saturating_add(params.min_block_interval_ms);
        if self.pool.pending_count() > 0 {
            return earliest;
        }
        let heartbeat = tip.timestamp.saturating_add(params.heartbeat_ms);
        // A sweep acts on deadlines that lie before the block's time.
        let deadline = self.chain.next_deadline().map_or(u64::MAX, |at| at.saturating_add(1));
        earliest.max(heartbeat.min(deadline))
    }
}

#[async_trait]
impl Pace for BlockPace {
    async fn due(&self, _height: u64) {
        loop {
            let woken = self.wake.0.notified();
            let due = self.due_at();
            let Some(wait) = due.checked_sub(now_ms()).filter(|wait| *wait > 0) else { return };
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep(Duration::from_millis(wait)) => {}
            }
        }
    }
}
