//! What the store tells whoever counts: how long requests take, and what they cost.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Counters, Event, Uncounted};
use crate::money::Refused;
use crate::record::{Phase, Record, RequestId, Unpaid};

/// What the store tells.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) counters: Arc<dyn Counters>,
    /// When open requests were first claimed.
    claimed_ms: Mutex<BTreeMap<RequestId, u64>>,
}

impl Default for Meter {
    fn default() -> Self {
        Self::of(Arc::new(Uncounted))
    }
}

impl Meter {
    pub(crate) fn of(counters: Arc<dyn Counters>) -> Self {
        Self { counters, claimed_ms: Mutex::default() }
    }

    /// A request is written down that has gone on.
    pub(crate) fn went_on(&self, record: &Record, now_ms: u64) {
        let mut claimed_ms = self.claimed_ms.lock();
        let after_ms = now_ms.saturating_sub(record.created_ms);
        let outcome = match &record.phase {
            Phase::Running { .. } => {
                // A run that waits again after its claim has lapsed may be claimed once more.
                if let Entry::Vacant(vacant) = claimed_ms.entry(record.id) {
                    vacant.insert(now_ms);
                    self.counters.count(Event::Claimed { after_ms });
                }
                return;
            }
            Phase::Reserved | Phase::Signed { .. } | Phase::Refused { .. } | Phase::Sent { .. } => {
                return;
            }
            Phase::Settled(_) => "paid",
            Phase::Unpaid { why, .. } => unpaid(why),
        };
        let answer_ms = claimed_ms.remove(&record.id).map(|it| now_ms.saturating_sub(it));
        let micro = record.cost_micro();
        self.counters.count(Event::Ended { outcome, micro, after_ms, answer_ms });
    }

    /// A request does not fit what its key may spend.
    pub(crate) fn refused(&self, refused: &Refused) {
        let limit = match refused {
            Refused::Expired => "expired",
            Refused::Model { .. } => "model",
            Refused::PerRequest { .. } => "per_request",
            Refused::Parallel { .. } => "parallel",
            Refused::Rate { .. } => "rate",
            Refused::Budget { .. } => "budget",
        };
        self.counters.count(Event::Refused { limit });
    }

    /// The wallet does not have what a request may cost.
    pub(crate) fn wallet_is_empty(&self) {
        self.counters.count(Event::Refused { limit: "wallet" });
    }
}

const fn unpaid(why: &Unpaid) -> &'static str {
    match why {
        Unpaid::NoMiner => "no_miner",
        Unpaid::Cancelled => "cancelled",
        Unpaid::Refused(_) => "refused",
        Unpaid::Failed(_) => "failed",
        Unpaid::Interrupted => "interrupted",
    }
}
