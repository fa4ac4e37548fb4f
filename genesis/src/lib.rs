//! The beginning of a chain: its file, its hash, its first state.
//!
//! ```text
//! text ──Genesis::parse──▶ Genesis ──hash──▶ the chain's identity
//!                             │────state──▶ the rows of height 0
//! fields ──Genesis::new──────▶│────chain──▶ the rules that execution follows
//! ```
//!
//! A [`Genesis`] can only be made from valid input, so code that has one need not check it. If the
//! input is invalid, the error lists every fault with its place in the file.
//!
//! Not here: files, the network, clocks.

#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::float_arithmetic
)]

mod check;
mod dev;
mod fault;
mod genesis;
mod params;
mod read;
mod spec;
mod write;

pub use dev::DevError;
pub use fault::{FAULTS_MAX, Faults, GenesisFault};
pub use genesis::Genesis;
pub use params::{ParamError, param_names, set_param};
pub use spec::{ACCOUNTS_MAX, AGENTS_MAX, Spec, Validator};
pub use state::FirstAgent;
pub use types::params::{POWER_MAX, VALIDATORS_MAX};
