//! The runtime of a node, as a library: the place where ledger, pool, consensus, network and RPC meet.
//! Adapters and wiring.
//!
//! ```text
//!                      cli
//!                       │
//!                       ▼
//!   supervisor ◀─ start(NodeSpec) ─▶ rpc ─▶ adapters ─▶ state, store, txpool, consensus, p2p
//! ```
//!
//! Entry point: [`start`].
//! Not here: rules of any domain, and the command line.

mod adapters;
mod chain;
pub mod chain_spec;
pub mod clock;
pub mod config;
mod disk_watch;
mod endpoints;
mod engine;
mod evidence;
pub mod fault;
mod forks;
mod ingest;
mod journal;
pub mod keyfile;
pub mod logging;
pub mod metrics;
mod node;
mod not_started;
mod pace;
mod rebuild;
mod recent_blocks;
pub mod replay;
mod snapshot_sync;
mod snapshots;
pub mod supervisor;
mod sync;
pub mod systemd;
mod threads;
mod tip_age;
pub mod validator_sets;
mod version;

pub use node::{NodeSpec, Running, StartError, start};
pub use version::COMMIT;
