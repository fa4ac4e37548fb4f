//! Settings of the market.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent::executor::ContainersConfig;
use serde::Deserialize;
use tokio::sync::watch;
use types::agent::ExecutorId;
use types::params::{OFFER_CAPACITY_MAX, OFFERS_PER_MINER_MAX};
use types::{Amount, Hash, Offer, Prices};

/// What is in force of the configuration; none while there is no table `[market]`.
pub type InForce = watch::Receiver<Option<Arc<MarketConfig>>>;

/// How calls of agents are served; the table `[market]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MarketConfig {
    /// What is offered; offers on the chain that are not here are taken back.
    pub offers: Vec<OfferConfig>,
    /// What the bond is kept at. If not given: twice the chain's least, and no more than
    /// 100 OMBRA.
    pub bond_micro: Option<u64>,
    /// Neither bond nor offers are paid for from less than this in the account.
    pub balance_micro_min: u64,
    /// Agents that are not executed.
    pub refuse: BTreeSet<Hash>,
    /// Calls of which a member gets less at most are not executed.
    pub budget_micro_min: u64,
    /// How long before the end of the commit phase an execution is given up.
    pub commit_margin_ms: u64,
    /// How long one execution may take at most. The requester chooses the limits of a call and how long it
    /// may take, and pays nothing for members that give up.
    pub work_ms_max: u64,
    /// What all receipts may take of the disk.
    pub receipts_mib_max: u64,
    /// Under which manifest the model of a `[backend]` serves agents, if it does; read at the start alone.
    pub server_manifest: Option<Hash>,
    /// Agents in containers, if they may run; read at the start alone.
    pub containers: Option<ContainersConfig>,
}

/// One offer; the tables `[[market.offers]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferConfig {
    /// For which executor.
    pub executor: ExecutorId,
    /// At how many calls at once the miner works.
    #[serde(default = "one")]
    pub capacity: u64,
    /// The least for a call, whatever it takes.
    pub per_call_micro: u64,
    /// The least for a million tokens that are read.
    #[serde(default)]
    pub prompt_per_m_micro: u64,
    /// The least for a million tokens that are written.
    #[serde(default)]
    pub completion_per_m_micro: u64,
    /// The least for a billion units of fuel.
    #[serde(default)]
    pub fuel_per_g_micro: u64,
}

/// The chain's least bond is a matter of votes; no more than this is bonded without being asked to, 100
/// OMBRA.
const BOND_MICRO_UNASKED_MAX: u64 = 100_000_000;

const fn one() -> u64 {
    1
}

/// Of a call of ten seconds, the shortest that there is, this leaves half.
const MARGIN_MS_MAX: u64 = 5_000;
/// Shorter than this nothing is worth while.
const WORK_MS_MIN: u64 = 1_000;
/// As long as a call may take, docs/protocol.md section 5.
const WORK_MS_MAX: u64 = 600_000;
const MIB: u64 = 1_024 * 1_024;
/// A tebibyte.
const RECEIPTS_MIB_MAX: u64 = MIB;

impl Default for MarketConfig {
    fn default() -> Self {
        Self {
            offers: Vec::new(),
            bond_micro: None,
            balance_micro_min: 1_000_000,
            refuse: BTreeSet::new(),
            budget_micro_min: 0,
            commit_margin_ms: 3_000,
            work_ms_max: 120_000,
            receipts_mib_max: 1_024,
            server_manifest: None,
            containers: None,
        }
    }
}

impl OfferConfig {
    /// As the chain has it.
    #[must_use]
    pub const fn offer(&self) -> Offer {
        let Self { executor: _, capacity, .. } = *self;
        let prices = Prices {
            per_call: Amount::new(self.per_call_micro),
            prompt_per_m: Amount::new(self.prompt_per_m_micro),
            completion_per_m: Amount::new(self.completion_per_m_micro),
            fuel_per_g: Amount::new(self.fuel_per_g_micro),
        };
        Offer { capacity, prices }
    }
}

impl MarketConfig {
    /// The offer for an executor.
    #[must_use]
    pub fn offer(&self, executor: &ExecutorId) -> Option<&OfferConfig> {
        self.offers.iter().find(|it| it.executor == *executor)
    }

    /// At how many calls at once the miner works for an executor. Calls for which it was drawn before an
    /// offer was taken back are worked on one by one.
    #[must_use]
    pub fn capacity(&self, executor: &ExecutorId) -> u64 {
        self.offer(executor).map_or(1, |it| it.capacity)
    }

    /// What the bond is kept at, where the chain's least is `least_micro`.
    #[must_use]
    pub fn bond_micro(&self, least_micro: u64) -> u64 {
        let unasked = || least_micro.saturating_mul(2).min(BOND_MICRO_UNASKED_MAX);
        self.bond_micro.unwrap_or_else(unasked)
    }

    /// The bytes that all receipts may take.
    #[must_use]
    pub const fn receipt_bytes_max(&self) -> u64 {
        self.receipts_mib_max.saturating_mul(MIB)
    }

    /// Everything that is wrong with the values, as sentences that name the setting.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let count = self.offers.len();
        if u32::try_from(count).unwrap_or(u32::MAX) > OFFERS_PER_MINER_MAX {
            faults.push(format!(
                "market.offers has {count} offers; expected at most {OFFERS_PER_MINER_MAX}"
            ));
        }
        let mut seen = BTreeSet::new();
        for OfferConfig { executor, capacity, .. } in &self.offers {
            if !seen.insert(*executor) {
                faults.push(format!("market.offers names {executor} twice; expected once"));
            }
            if !(1..=OFFER_CAPACITY_MAX).contains(capacity) {
                faults.push(format!(
                    "market.offers has the capacity {capacity} for {executor}; expected 1 to \
                     {OFFER_CAPACITY_MAX}"
                ));
            }
        }
        let mut within = |field: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                faults.push(format!("market.{field} is {value}; expected {low} to {high}"));
            }
        };
        within("commit_margin_ms", self.commit_margin_ms, 500, MARGIN_MS_MAX);
        within("work_ms_max", self.work_ms_max, WORK_MS_MIN, WORK_MS_MAX);
        within("receipts_mib_max", self.receipts_mib_max, 1, RECEIPTS_MIB_MAX);
        faults.extend(self.containers.iter().flat_map(ContainersConfig::faults));
        faults
    }
}
