//! Transactions between nodes: a libp2p network of its own, beside the one of the consensus engine.
//!
//! ```text
//!            announce                                    gossip, pulled transactions
//! own pool ───────────▶ packs ─▶ ┌─────────┐ ─▶ intake (bounded) ─▶ Pool::submit
//!                                │  swarm  │                            │
//!   admin: add, remove, ban ───▶ │ (loop)  │ ◀── verdict: accept, ignore, reject
//!                                └─────────┘
//!                                 │  │  └── serve: what peers ask of the pool
//!                                 │  ├───── pull:  what this node missed
//!                                 │  └───── sync:  blocks, for nodes that are behind
//!                                 └──────── peers: static ones, exchange, limits, scores, bans
//! ```
//!
//! - A transaction that the own pool accepted is published once. What comes from a peer goes to the
//!   own pool first and is forwarded only if the pool takes it.
//! - The verdict on a message comes from the error class of the pool's answer (`verdict.rs`): what
//!   is wrong for every node at every time is the sender's fault and lowers its score until it is
//!   cut off; a lost race is nobody's.
//! - Gossip forgets. What a node missed while it was away it pulls from its peers when it connects,
//!   and a little of it again from time to time (`pull.rs`).
//! - Every queue has a bound. What finds no room is dropped and counted, and comes back by the pull.
//!
//! Entry points: [`start`], [`Handle`], [`ports::Pool`], [`ports::ChainSource`]. Description: docs/network.md.
//!
//! Not here: rules of the ledger, the pool, the database, and the engine's network.

mod accounting;
mod address_book;
mod bans;
mod behaviour;
mod command;
mod config;
mod connections;
mod credit;
mod dial;
mod error;
mod exchange;
mod gossip;
mod group;
mod handle;
mod intake;
mod ip_limit;
mod metrics;
mod network;
mod peers;
mod places;
mod pool_requests;
pub mod ports;
mod pull;
mod pull_queue;
mod rate;
mod reachability;
mod recent;
mod serve;
mod service;
mod start;
mod sync;
mod tx;
mod verdict;
mod wire;

pub use config::{Config, Limits};
pub use error::{NetworkFault, PeerError, StartError};
pub use handle::{Direction, Handle, Peer, PeerKey};
pub use metrics::Counters;
pub use network::NetworkId;
pub use start::{Setup, Started, Task, start};
pub use sync::{AskError, DownloadFigures, Range};
pub use tx::SignedTx;
