//! The node: the only place where the crates meet. Adapters, wiring, command line.
//!
//! ```text
//!            ┌────────────── cli ──────────────┐
//!            │ dev  demo  start …   tx  run …  │
//!            └──────┬──────────────────┬───────┘
//!                   ▼                  ▼ JSON-RPC
//!   supervisor ◀─ node::start ─▶ rpc ─▶ adapters ─▶ state, txpool, consensus
//! ```
//!
//! Entry points: [`cli::main`], [`node::start`].
//! Not here: rules of any domain.

mod adapters;
mod chain;
pub mod cli;
mod clock;
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
mod metrics;
pub mod node;
mod not_started;
mod pace;
mod rebuild;
pub mod replay;
mod snapshot_sync;
mod snapshots;
pub mod supervisor;
mod sync;
mod systemd;
mod threads;
