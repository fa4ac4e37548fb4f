//! The gateway: the interface that programs for language models speak, paid for out of one wallet.
//!
//! ```text
//! client ──HTTP──▶ http ──▶ openai    what was asked, in the words of the interface
//!                   │
//!                   ├──▶ store       keys, money reserved, requests; written before each effect
//!                   └──▶ desk ──▶ worker ──▶ outbox ──▶ chain
//!                          ▲                              │
//!                          └────────── answer ◀───────────┘
//! ```
//!
//! Invariants: a request's money is reserved in the transaction that records it, and released in the
//! one that ends it; one request makes at most one run; what was begun is followed to its end, whether
//! or not the client is still there.
//!
//! Not here: models, the rules of the ledger, the command line.

mod audit;
pub mod books;
pub mod chain;
pub mod desk;
pub mod http;
pub mod keys;
mod lookout;
pub mod mcp;
pub mod model;
pub mod money;
pub mod openai;
pub mod program;
pub mod question;
pub mod record;
pub mod settings;
pub mod store;
