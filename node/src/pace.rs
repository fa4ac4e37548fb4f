//! When a block is due (docs/protocol.md section 6): when the pool has something that the block could
//! take, when a deadline has passed, and otherwise at every heartbeat; never faster than the chain's
//! minimum interval.
//!
//! How long ago the last block was made is measured by [`TipAge`](crate::tip_age::TipAge), not by the clock alone: a block
//! may have a timestamp that lies ahead, because its proposer's clock was ahead or because this
//! machine's was put back.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use consensus::Pace;
use state::Rules;
use tokio::sync::Notify;
use txpool::Pool;
use types::Params;

use crate::chain::NodeChain;
use crate::clock::now_ms;

/// Wakes whoever waits for a block to be due.
#[derive(Debug, Default)]
pub(crate) struct Wake(Notify);

impl Wake {
    /// The pool has something for a block now, or the chain has moved.
    pub(crate) fn block_may_be_due(&self) {
        self.0.notify_waiters();
    }
}

/// What decides how long to wait.
struct Situation {
    /// Milliseconds since the last block.
    age_ms: u64,
    /// The timestamp of a block that is made now.
    block_time: u64,
    has_offers: bool,
    /// When the sweep has something to do, by block time.
    deadline: Option<u64>,
}

impl Situation {
    /// Milliseconds until the next block may be made.
    const fn until_earliest(&self, params: &Params) -> u64 {
        params.min_block_interval_ms.saturating_sub(self.age_ms)
    }

    /// Milliseconds until the next block is due.
    fn until_due(&self, params: &Params) -> u64 {
        let earliest = self.until_earliest(params);
        if self.has_offers {
            return earliest;
        }
        let heartbeat = params.heartbeat_ms.saturating_sub(self.age_ms);
        // A sweep acts on deadlines that lie before the block's time.
        let deadline = self
            .deadline
            .map_or(u64::MAX, |at| at.saturating_add(1).saturating_sub(self.block_time));
        earliest.max(heartbeat.min(deadline))
    }
}

/// The pace of this chain's blocks.
pub(crate) struct BlockPace {
    pub(crate) chain: Arc<NodeChain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) wake: Arc<Wake>,
}

impl BlockPace {
    /// The parameters of the next block, which votes may have changed. What cannot be read is as genesis
    /// says; whoever executes the block finds the fault.
    fn params(&self) -> Params {
        let (spec, next) = (self.chain.spec(), self.chain.tip().height.saturating_add(1));
        match Rules::at(&spec.rules, &self.chain.store().snapshot(), next) {
            Ok(rules) => rules.params,
            Err(_fault) => spec.params().clone(),
        }
    }

    fn situation(&self) -> Situation {
        let (tip, age) = self.chain.tip_and_age();
        Situation {
            age_ms: age.ms(),
            block_time: now_ms().max(tip.timestamp.saturating_add(1)),
            has_offers: self.pool.has_offers(),
            deadline: self.chain.next_deadline(),
        }
    }
}

impl BlockPace {
    /// Never ends where the next block belongs to a fork that this program does not know: it must not
    /// be begun. Elsewhere ends at once.
    async fn end(&self) {
        if self.chain.store().require_known_fork().is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Pace for BlockPace {
    async fn due(&self, _height: u64) {
        self.end().await;
        let params = self.params();
        loop {
            let woken = self.wake.0.notified();
            let wait = self.situation().until_due(&params);
            if wait == 0 {
                return;
            }
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep(Duration::from_millis(wait)) => {}
            }
        }
    }

    async fn earliest(&self, _height: u64) {
        self.end().await;
        let params = self.params();
        loop {
            let wait = self.situation().until_earliest(&params);
            if wait == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    //! When blocks are due, whatever the clocks say.

    use super::*;
    use crate::tip_age::TipAge;

    const HOUR: u64 = 3_600_000;
    const IDLE: Situation =
        Situation { age_ms: 0, block_time: 1_000_000, has_offers: false, deadline: None };

    fn params() -> Params {
        Params { min_block_interval_ms: 200, heartbeat_ms: 10_000, ..Params::default() }
    }

    #[test]
    fn an_idle_chain_waits_for_the_heartbeat_and_a_busy_one_for_the_interval() {
        let params = params();
        assert_eq!(IDLE.until_due(&params), 10_000);
        assert_eq!(Situation { age_ms: 4_000, ..IDLE }.until_due(&params), 6_000);
        assert_eq!(Situation { age_ms: HOUR, ..IDLE }.until_due(&params), 0);
        let busy = Situation { has_offers: true, ..IDLE };
        assert_eq!(busy.until_due(&params), 200);
        assert_eq!(Situation { age_ms: 150, ..busy }.until_due(&params), 50);
        assert_eq!(Situation { age_ms: 150, ..IDLE }.until_earliest(&params), 50);
    }

    #[test]
    fn a_deadline_is_due_when_a_block_would_lie_behind_it_and_not_before_the_interval() {
        let params = params();
        let at = |deadline| Situation { deadline: Some(deadline), ..IDLE };
        assert_eq!(at(1_000_999).until_due(&params), 1_000);
        assert_eq!(at(999_999).until_due(&params), 200);
        assert_eq!(at(2_000_000).until_due(&params), 10_000);
    }

    #[test]
    fn a_timestamp_that_lies_ahead_stops_nobody() {
        // The clock was an hour ahead, or another validator's is.
        let age = TipAge::new(2 * HOUR, HOUR).ms();
        assert!(age < HOUR / 2, "{age}");
        let params = params();
        let situation = Situation { age_ms: age, block_time: 2 * HOUR + 1, ..IDLE };
        assert!(situation.until_due(&params) <= params.heartbeat_ms);
        assert!(situation.until_earliest(&params) <= params.min_block_interval_ms);
    }

    #[test]
    fn what_a_block_is_behind_the_clock_at_its_commit_counts() {
        let age = TipAge::new(HOUR, HOUR + 150).ms();
        assert!((150..HOUR).contains(&age), "{age}");
    }
}
