//! The gateway: the interface that programs for language models speak, paid for out of one wallet.
//!
//! ```text
//! client ──HTTP──▶ http ──▶ openai    what was asked, in the words of the interface
//!                   │
//!                   ├──▶ store       keys, money reserved, requests; written before each effect
//!                   └──▶ service ──▶ worker ──▶ outbox ──▶ chain
//!                          ▲                              │
//!                          └────────── answer ◀───────────┘
//! ```
//!
//! Invariants: a request's money is reserved in the transaction that records it, and released in the
//! one that ends it; one request makes at most one run; what was begun is followed to its end, whether
//! or not the client is still there.
//!
//! Not here: models, the rules of the ledger, the command line.

mod arguments;
mod audit;
pub mod books;
pub mod chain;
mod chain_events;
pub mod http;
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
