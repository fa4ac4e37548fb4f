//! Limits of agents, and defaults of the parameters about them.

use crate::Amount;

/// The most bytes of an agent's metadata.
pub const METADATA_BYTES_MAX: usize = 65_536;
/// The most bytes of the program of a `wasm` agent.
pub const PROGRAM_BYTES_MAX: u64 = 4_194_304;
/// How deep agents can nest through agents among their tools.
pub const NESTING_MAX: u8 = 3;
/// The default value of the parameter `royaltyMax`.
pub const ROYALTY_MAX: Amount = Amount::new(1_000_000);
/// The default value of the parameter `agentRegisterFee`.
pub const REGISTER_FEE: Amount = Amount::new(10_000);
/// The default value of the parameter `agentRegisterFeePerByte`.
pub const REGISTER_FEE_PER_BYTE: Amount = Amount::new(10);
