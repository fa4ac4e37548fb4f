//! What this crate needs from the rest of the node. The crate `node` implements each port over
//! `state`, `txpool` and `consensus`, and hands them over in [`Ports`].
//!
//! Reading ports show the latest committed state. They are called on threads that may block; a
//! cost is stated where it is more than a few point reads. Lists take a typed position and a
//! limit; a [`Slice`] says where the next one begins.

mod accounts;
mod agents;
mod calls;
mod chain;
mod directory;
mod facts;
mod fault;
mod feed;
mod handles;
mod market;
mod node;
mod offers;
mod pool;
mod proofs;
mod rules;
mod runs;
mod slice;
mod transactions;

pub use accounts::{Accounts, Census, Escrows, Group, Stake};
pub use agents::{AgentEntry, AgentFilter, Agents};
pub use calls::{CallEntry, CallFilter, Calls};
pub use chain::{
    Certificate, ChainQueries, Equivocation, ShownBlock, Tip, Validator, ValidatorVote,
};
pub use directory::{Directory, MinerEntry};
pub use facts::ChainFacts;
pub use fault::{Missing, PortFault};
pub use feed::{Feed, FeedBounds, FeedError, Feeder};
pub use handles::Ports;
pub use market::{CallEstimate, CallWish, HeldElection, Market};
pub use node::{
    Admin, AdminError, Check, Clock, Endpoints, Events, Identity, Network, Peer, PeerChange,
    PoolEvent, PoolStanding, Readiness, Trust,
};
pub use offers::{OfferEntry, OfferFilter, OfferPlace, Offers};
pub use pool::{
    DroppedTx, Effects, PendingAccount, Pool, PoolCount, PoolTx, Projection, SenderContent,
    SettlementNow, Submit, SubmitError,
};
pub use proofs::{Proof, ProofTarget, Proofs};
pub use rules::{
    ForkCounts, ForkState, ForkVoter, ForkVotes, Keys, NextRules, NextValue, ParamState,
    ParamVoter, ParamVotes, PunishedKey, Rules,
};
pub use runs::{RunFilter, Runs};
pub use slice::Slice;
pub(crate) use transactions::LOADED_TOGETHER;
pub use transactions::{IncludedTx, Transactions};
