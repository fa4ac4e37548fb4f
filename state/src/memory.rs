//! A state in memory, and a chain on it: for tests, benchmarks and the genesis state.

mod chain;
mod state;

pub use chain::MemoryChain;
pub use state::Memory;
