//! Blocks (docs/protocol.md section 6).

mod compact;
mod forms;
mod header;
mod merkle;

pub use compact::{BlockTx, CompactBlock, CompactBlockEntry, Filled, Incomplete};
pub use forms::{Block, CommittedBlock, SealedBlock, UncheckedBlock};
pub use header::{DecodeBlockError, Header};
pub use merkle::merkle_root;

#[cfg(test)]
mod tests;
