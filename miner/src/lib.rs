//! The mining program: takes runs that pay, works on them with a model and tools, and settles.
//!
//! ```text
//! chain ──notices──▶ engine ──decide──▶ policy
//!                      │ one worker per run, one outbox per wallet
//!                      ├──▶ journal    written before each effect
//!                      ├──▶ backend    the model
//!                      └──▶ ports      the course of a conversation, tools
//! calls ──drawn────▶ market ──▶ executor   agents of the market; the same journal and outbox
//! operator ──asks──▶ operate            status, runs, metrics, alarms
//! ```
//!
//! Entry points: [`engine::Engine`], [`policy::decide`], [`journal::resume::resume`],
//! [`backend::Backend`]. Rules: docs/protocol.md section 5, docs/miner.md.

pub mod adapters;
pub mod backend;
pub mod chain;
pub mod engine;
pub mod executor;
pub mod journal;
pub mod market;
pub mod methods;
pub mod model_file;
pub mod operate;
pub mod outbox;
pub mod patience;
pub mod policy;
pub mod ports;
pub mod program;
pub mod settings;
pub mod talk;
#[cfg(test)]
mod testing;
mod text;
mod tls;
pub mod tools;
pub mod waiting;
