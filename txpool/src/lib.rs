//! The transaction pool: accepted transactions that wait for a block.
//!
//! ```text
//! texts ─▶ Verifier (parse, signature, limits) ─▶ Pool::submit ─▶ pending ─▶ Pool::candidates ─▶ block
//!                                                  │             ▲             Pool::committed ◀─┘
//!                                                  └─▶ queued ───┘ (a nonce gap closes)
//!                                                          └─▶ dropped, with a reason
//! ```
//!
//! - A transaction is *pending* when it has been executed on the draft, which is the committed
//!   state with all pending transactions applied. So money that a pending transaction spends cannot
//!   be spent again, and a claim, its steps and its finish can wait together. The draft is executed
//!   with the same code as blocks; the pool has no ledger rules of its own.
//! - A transaction is *queued* when its sender's nonces before it are missing, within a window, or while
//!   it waits for a phase of its call (`held.rs`).
//! - The order between senders is arrival. While more waits than fits into a block, no sender gets
//!   more than its share of it; from fork v7 on tips decide who gets in, and who makes room in a full
//!   pool (`market.rs`).
//! - Every structure is bounded: see [`Config`]. Who makes room for whom is in `core/limits.rs`
//!   and, from fork v7 on, in `core/evict.rs`; why a commit needs no new execution, in
//!   `core/commit.rs`.
//!
//! Entry points: [`Verifier`], [`Pool`], [`ports`]. Rules: docs/protocol.md sections 4, 6, 9
//! and 15.6.
//!
//! Not here: ledger rules, the database, the network, clocks (`now_ms` comes with each call),
//! anything asynchronous. The one thing on disk is the journal.

#![deny(clippy::arithmetic_side_effects, clippy::as_conversions, clippy::indexing_slicing)]

mod config;
mod core;
mod dropped;
mod entries;
mod error;
mod event;
mod held;
mod journal;
mod market;
mod order;
mod pool;
pub mod ports;
mod senders;
mod slab;
mod subject;
mod tally;
pub mod verifier;

pub use config::Config;
pub use core::{Committed, Found, Page, SenderContent, Touched};
pub use error::{JournalError, PoolFault, RestoreError};
pub use event::{Accepted, Dropped, PoolEvent, TxStanding};
pub use journal::{Flushed, Restored};
pub use market::Offered;
pub use order::BlockLimits;
pub use pool::{Pool, Ports};
pub use tally::{Halves, Stats, Status, Volume};
pub use verifier::Verifier;

// The ledger of the benchmarks serves a unit test, too, and knows this crate by its name.
#[cfg(test)]
extern crate self as txpool;
