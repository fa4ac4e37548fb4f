//! What a market is made of, and what its tasks share.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::executor::Executors;
use parking_lot::Mutex;
use tokio::sync::Notify;
use types::Hash;

use super::agents::AgentCache;
use super::config::InForce;
use super::fitness::Fitness;
use super::receipts::Receipts;
use super::slots::Slots;
use crate::chain::Calls;
use crate::engine::Inner;

/// What a market is made of beside the engine.
#[derive(Clone, Debug)]
pub struct MarketParts {
    /// The configuration; a new value is used from the next step on.
    pub config: InForce,
    /// What executes agents.
    pub executors: Arc<Executors>,
    /// Whether it computes what others compute.
    pub fitness: Fitness,
    /// Calls, agents and offers.
    pub calls: Arc<dyn Calls>,
    /// The agents that were fetched.
    pub agents: Arc<AgentCache>,
    /// Where receipts are kept.
    pub receipts: Receipts,
    /// Wakes who keeps the offers when something about executors changed.
    pub resumed: Arc<Notify>,
}

/// A call, and the round for which this miner was drawn.
pub(super) type Key = (Hash, u8);

/// What the market's tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) inner: Arc<Inner>,
    pub(super) market: MarketParts,
    pub(super) slots: Slots,
    /// Calls with a worker, and what wakes it.
    pub(super) busy: Mutex<BTreeMap<Key, Arc<Notify>>>,
}
