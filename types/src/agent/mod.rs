//! Agents of the market: their ids, and what an author writes about one (docs/market.md).
//!
//! [`Document::read`] and [`Document::check`] hold the rules that a text alone decides; what the state
//! decides is listed in [`Checked::pending`], and AGENT_REGISTER asks it.

mod describe;
mod executor;
mod fault;
mod metadata;
mod methods;
mod reference;
mod run;
mod version;

pub use executor::{BUILT_IN_TOOLS, Executor, ExecutorId, Tool};
pub use fault::Fault;
pub use metadata::{Checked, Document, Metadata, ModelWork, Pending, Question};
pub use reference::is_image;
pub use version::{Version, VersionError};

use crate::Amount;

/// The most bytes of an agent's metadata.
pub const METADATA_BYTES_MAX: usize = 65_536;
/// The most bytes of the program of a `wasm` agent.
pub const PROGRAM_BYTES_MAX: u64 = 4_194_304;
/// How deep agents nest that are tools of agents.
pub const NESTING_MAX: u8 = 3;
/// The default of the parameter `royaltyMax`.
pub const ROYALTY_MAX: Amount = Amount::new(1_000_000);
/// The default of the parameter `agentRegisterFee`.
pub const REGISTER_FEE: Amount = Amount::new(10_000);
/// The default of the parameter `agentRegisterFeePerByte`.
pub const REGISTER_FEE_PER_BYTE: Amount = Amount::new(10);

#[cfg(test)]
mod tests;
