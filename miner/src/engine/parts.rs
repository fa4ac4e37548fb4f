//! What an engine is made of.

use std::sync::Arc;

use agent::backend::Backend;
use agent::clock::Clock;
use tokio::sync::watch;
use types::Keypair;

use super::Config;
use crate::chain::{Ledger, Runs};
use crate::journal::Journal;
use crate::policy::Policy;
use crate::ports::{Counters, Courses, Tools};

/// What an engine is made of.
#[derive(Clone)]
pub struct Parts {
    /// Settings.
    pub config: Config,
    /// The wallet that signs and earns.
    pub key: Keypair,
    /// What is claimed; a new value is used from the next decision on.
    pub policy: watch::Receiver<Arc<Policy>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The chain's runs.
    pub runs: Arc<dyn Runs>,
    /// Accounts and transactions.
    pub ledger: Arc<dyn Ledger>,
    /// Conversations.
    pub courses: Arc<dyn Courses>,
    /// Tools.
    pub tools: Arc<dyn Tools>,
    /// The model.
    pub backend: Arc<dyn Backend>,
    /// The journal of this wallet.
    pub journal: Arc<Journal>,
    /// Metrics.
    pub counters: Arc<dyn Counters>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { config, backend, .. } = self;
        formatter.debug_struct("Parts").field("config", config).field("backend", backend).finish()
    }
}
