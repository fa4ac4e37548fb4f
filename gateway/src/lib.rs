//! The gateway: the interface that programs for language models speak, paid for out of one wallet.
//!
//! ```text
//! programs ────▶ http ─┐
//! MCP clients ─▶ mcp ──┤
//!                      ▼
//!              request_service ──▶ outbox (of the crate `miner`) ──▶ chain
//!        (one worker for each request)                                 │
//!                      ▲                                               │
//!                      └──────────────────── answer ◀──────────────────┘
//!
//! openai   questions and answers in the words of the interface
//! market   calls of agents: their payload, price and answer
//! money    what a key may spend
//! store    keys, money reserved, requests; written before each effect
//! ```
//!
//! Invariants: a request's money is reserved in the transaction that records it, and released in
//! the one that ends it; one request makes at most one run or call; what was begun is followed to
//! its end, whether or not the client is still there.
//!
//! Not here: models, the rules of the ledger, the command line.

mod arguments;
mod audit;
pub mod books;
pub mod chain;
mod chain_events;
pub mod http;
mod key_turns;
pub mod keys;
pub mod market;
pub mod mcp;
pub mod model;
pub mod money;
pub mod openai;
pub mod operate;
pub mod program;
pub mod question;
pub mod record;
pub mod request_service;
pub mod settings;
pub mod store;
#[cfg(test)]
mod testing;
