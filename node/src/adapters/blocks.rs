//! Blocks for peers that are behind: the chain as the network for transactions serves it.

use std::sync::Arc;

use p2p::ports::{EncodedBlock, ReadError, Status};
use state::StorageError;

use crate::chain::Chain;

/// The committed chain, in binary form.
pub(crate) struct ServedChain(pub(crate) Arc<Chain>);

/// The lowest height with a block. Nothing is pruned.
const EARLIEST: u64 = 1;

impl p2p::ports::Chain for ServedChain {
    fn status(&self) -> Status {
        Status { earliest: EARLIEST, tip: self.0.tip().height }
    }

    fn blocks(
        &self,
        first: u64,
        count: u32,
        bytes_wanted: usize,
    ) -> Result<Vec<EncodedBlock>, ReadError> {
        let failed = |error: StorageError| ReadError(error.to_string());
        let mut blocks = Vec::new();
        let mut read = 0_usize;
        // One height after the other may be read at different moments: what is there stays.
        for height in first.max(EARLIEST)..first.saturating_add(u64::from(count)) {
            let snapshot = self.0.store().snapshot();
            let bytes = snapshot.block_bytes(height).map_err(failed)?;
            let certificate = snapshot.certificate(height).map_err(failed)?;
            let (Some(bytes), Some(certificate)) = (bytes, certificate) else { break };
            read = read.saturating_add(bytes.len()).saturating_add(certificate.len());
            blocks.push(EncodedBlock { bytes, certificate });
            if read >= bytes_wanted {
                break;
            }
        }
        Ok(blocks)
    }
}
