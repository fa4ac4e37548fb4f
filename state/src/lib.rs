//! The ledger: what transactions do to the state. The rules read the state through a trait
//! ([`view`]). The crate `store` implements it with a database, and [`memory`] implements it for
//! tests.
//!
//! Not here: async, clocks, randomness, floats, iteration over hash maps.

#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::float_arithmetic
)]

mod activation;
pub mod agents;
pub mod block;
pub mod bonds;
pub mod chain;
mod context;
pub mod draft;
pub mod error;
pub mod execute;
pub mod fees;
pub mod forks;
mod genesis_state;
pub mod invariants;
mod ledger;
pub mod market;
pub mod memory;
pub mod params;
pub mod pending;
pub mod pieces;
pub mod rule_votes;
pub mod rules;
pub mod runs;
pub mod settlement;
pub mod simulate;
pub mod sweep;
pub mod table;
pub mod tables;
pub mod timely;
mod tx;
pub mod validators;
pub mod view;
pub mod work;

pub use block::{
    BlockBuilder, BlockError, Executed, Parent, PushError, Resource, check_clock, check_randomness,
    execute_block,
};
pub use chain::{ChainRules, FirstAgent};
pub use context::Context;
pub use draft::{Changes, Draft};
pub use error::{StorageError, TxError};
pub use execute::{check, check_funds, execute};
pub use fees::Price;
pub use genesis_state::FirstStateError;
pub use ledger::supply;
pub use memory::{Memory, MemoryChain};
pub use pending::{Base, PendingState, Retracted, SharedPending};
pub use rules::Rules;
pub use settlement::{Totals, settlement};
pub use simulate::{Effects, simulate};
pub use types::Forks;
pub use view::{Read, Still, View};
