//! What decisions about several runs need of the node and of the model: asked once for all of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use types::Address;

use crate::chain::Stake;
use crate::policy::Refusals;

/// How long answers serve at most. What a claim relies on is asked again before it is signed.
const AGE_MAX: Duration = Duration::from_secs(1);

/// The node and the model as they were a moment ago.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The miner's balance.
    pub(super) balance_micro: u64,
    /// The time of the newest block.
    pub(super) block_ms: u64,
    /// The most tokens that the chain takes for one step.
    pub(super) step_tokens_max: u64,
    /// Whether the node is behind the chain.
    pub(super) node_syncing: bool,
    /// Why the back end cannot be asked; none if it can.
    pub(super) backend_down: Option<String>,
    /// What the miner has at stake.
    pub(super) stake: Stake,
}

/// The last look, and what requesters did with rewards as far as it was asked for since.
#[derive(Debug)]
struct Seen {
    at: Instant,
    look: Look,
    refusals: BTreeMap<Address, Refusals>,
}

/// The last look, while it serves.
#[derive(Debug)]
pub(super) struct Looks {
    age_max: Duration,
    last: Mutex<Option<Seen>>,
}

impl Looks {
    /// Nothing was looked at. No answer serves for longer than from one listing of runs to the next.
    pub(super) fn new(poll_ms: u64) -> Self {
        Self { age_max: Duration::from_millis(poll_ms).min(AGE_MAX), last: Mutex::default() }
    }

    fn is_fresh(&self, seen: &Seen) -> bool {
        seen.at.elapsed() < self.age_max
    }

    /// The last look, if it still serves.
    pub(super) fn last(&self) -> Option<Look> {
        let last = self.last.lock();
        last.as_ref().filter(|seen| self.is_fresh(seen)).map(|seen| seen.look.clone())
    }

    /// Keeps what was seen just now.
    pub(super) fn keep(&self, look: Look) {
        let (at, refusals) = (Instant::now(), BTreeMap::new());
        *self.last.lock() = Some(Seen { at, look, refusals });
    }

    /// The next decision looks again.
    pub(super) fn forget(&self) {
        *self.last.lock() = None;
    }

    /// What a requester did with rewards, if that was asked for since the last look.
    pub(super) fn refusals(&self, requester: &Address) -> Option<Refusals> {
        let last = self.last.lock();
        let seen = last.as_ref().filter(|seen| self.is_fresh(seen))?;
        seen.refusals.get(requester).copied()
    }

    /// Keeps the same.
    pub(super) fn keep_refusals(&self, requester: Address, refusals: Refusals) {
        if let Some(seen) = self.last.lock().as_mut() {
            seen.refusals.insert(requester, refusals);
        }
    }
}
