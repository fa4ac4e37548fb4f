//! The ledger: what transactions do to the state, and the database that keeps it.
//!
//! Not here: async, clocks, randomness, floats, iteration over hash maps.

#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::float_arithmetic
)]

pub mod draft;
pub mod error;
pub mod table;
pub mod tables;
pub mod view;

pub use draft::{Changes, Draft};
pub use error::{StorageError, TxError};
pub use view::{Read, View};
