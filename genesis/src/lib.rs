//! The beginning of a chain: its file, its hash, its first state.
//!
//! ```text
//! text ──Genesis::parse──▶ Genesis ──hash──▶ the chain's identity
//!                             │────state──▶ the rows of height 0
//! fields ──Genesis::new──────▶│────chain──▶ the rules that execution follows
//! ```
//!
//! Whatever makes a [`Genesis`] reports every fault of its input at once, each with its place in
//! the file. Holding one is the proof that it is right.
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
