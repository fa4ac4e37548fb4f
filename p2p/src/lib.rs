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
//! - The pool's error decides who is to blame for a message (`verdict.rs`). If the message is wrong
//!   for every node at any time, the sender loses score, and is disconnected when its score is too
//!   low. If the message only came too late, nobody is blamed.
//! - Gossip does not repeat old messages. When a node connects to a peer, it asks the peer for the
//!   transactions that it missed; later it asks again for a few at a time (`pull.rs`).
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
mod frames;
mod gossip;
mod group;
mod handle;
mod intake;
mod limits;
mod metrics;
mod muxer;
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
