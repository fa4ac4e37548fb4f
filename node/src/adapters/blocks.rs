//! Blocks for peers that are behind: the chain as the network for transactions serves it.

use std::sync::Arc;

use p2p::ports::{EncodedBlock, ReadError, SnapshotHead, Status};
use state::StorageError;
use store::snapshots::{self, OfferHead};
use types::Hash;

use crate::chain::NodeChain;

/// The committed chain, in binary form.
pub(crate) struct ServedChain(pub(crate) Arc<NodeChain>);

impl p2p::ports::ChainSource for ServedChain {
    fn status(&self) -> Status {
        Status { earliest: self.0.store().earliest(), tip: self.0.tip().height }
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
        let first = first.max(1);
        if first < self.0.store().earliest() {
            return Ok(blocks);
        }
        for height in first..first.saturating_add(u64::from(count)) {
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

    fn snapshots(&self, format: u32) -> Vec<SnapshotHead> {
        if format != snapshots::FORMAT {
            return Vec::new();
        }
        let offers = self
            .0
            .snapshot_store()
            .map(|snapshot_store| snapshot_store.offers())
            .unwrap_or_default();
        let head =
            |OfferHead { height, hash, bytes }: OfferHead| SnapshotHead { height, hash, bytes };
        offers.into_iter().map(head).collect()
    }

    fn piece(&self, hash: &Hash, offset: u64, bytes_max: usize) -> Result<Vec<u8>, ReadError> {
        let Some(snapshot_store) = self.0.snapshot_store() else { return Ok(Vec::new()) };
        let piece = snapshot_store.piece(hash, offset, bytes_max);
        piece.map(Option::unwrap_or_default).map_err(|error| ReadError(error.to_string()))
    }
}
