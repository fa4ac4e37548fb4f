//! The mining program: takes runs that pay, works on them with a model and tools, and settles.
//!
//! ```text
//! chain ──notices──▶ engine ──decide──▶ policy
//!                      │ one worker per run, one outbox per wallet
//!                      ├──▶ journal    written before each effect
//!                      └──▶ ports      the course of a conversation, tools
//! calls ──drawn────▶ market     agents of the market; the same journal and outbox
//! operator ──asks──▶ operate            status, runs, metrics, alarms
//! ```
//!
//! Models, tools and executors are in the crate `agent`.
//!
//! Entry points: [`engine::Engine`], [`policy::decide`], [`journal::resume::resume`]. Rules:
//! docs/protocol.md section 5, docs/miner.md.

pub mod adapters;
pub mod backoff;
pub mod chain;
pub mod engine;
pub mod journal;
pub mod market;
pub mod operate;
pub mod outbox;
pub mod policy;
pub mod ports;
pub mod program;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod waiting;
