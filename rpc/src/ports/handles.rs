//! Handles to every port.

use std::sync::Arc;

use super::{
    Accounts, Admin, Agents, Calls, ChainQueries, Clock, Directory, Events, ForkCounts, Keys,
    Market, Network, Offers, Pool, Projection, Proofs, Readiness, Rules, Runs, Submit,
    Transactions,
};

/// Everything that the interfaces are served from.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "ports are opaque")]
pub struct Ports {
    /// Blocks and validators.
    pub chain: Arc<dyn ChainQueries>,
    /// Included transactions, headers, turns.
    pub transactions: Arc<dyn Transactions>,
    /// Accounts and supply.
    pub accounts: Arc<dyn Accounts>,
    /// Agent runs.
    pub runs: Arc<dyn Runs>,
    /// Miners and blobs.
    pub directory: Arc<dyn Directory>,
    /// Agents of the market.
    pub agents: Arc<dyn Agents>,
    /// Calls of agents.
    pub calls: Arc<dyn Calls>,
    /// Offers of miners.
    pub offers: Arc<dyn Offers>,
    /// The market as requesters see it.
    pub market: Arc<dyn Market>,
    /// Merkle proofs.
    pub proofs: Arc<dyn Proofs>,
    /// Forks that are to come.
    pub forks: Arc<dyn ForkCounts>,
    /// The rules that votes can change, and what places in blocks cost by them.
    pub rules: Arc<dyn Rules>,
    /// What the chain remembers of validators' keys.
    pub keys: Arc<dyn Keys>,
    /// Taking transactions in.
    pub submit: Arc<dyn Submit>,
    /// The state with everything pending applied.
    pub projection: Arc<dyn Projection>,
    /// The pool's content.
    pub pool: Arc<dyn Pool>,
    /// Peers.
    pub network: Arc<dyn Network>,
    /// What happens, as it happens.
    pub events: Arc<dyn Events>,
    /// Health.
    pub readiness: Arc<dyn Readiness>,
    /// The operator's levers.
    pub admin: Arc<dyn Admin>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}
