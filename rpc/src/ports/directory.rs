//! Miners and blobs.

use types::{Address, Blob, Hash, Miner, MinerFigures};

use super::{PortFault, Slice};

/// An entry of the miner directory with what the miner has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MinerEntry {
    /// The entry.
    pub miner: Miner,
    /// Its figures.
    pub figures: MinerFigures,
}

/// Miners and blobs.
pub trait Directory: Send + Sync {
    /// Registered miners in order of addresses, after `after`.
    ///
    /// # Errors
    /// [`PortFault`].
    fn miners(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Slice<MinerEntry, Address>, PortFault>;

    /// The entry of an account.
    ///
    /// # Errors
    /// [`PortFault`].
    fn miner(&self, address: &Address) -> Result<Option<MinerEntry>, PortFault>;

    /// The entry with this `minerId`.
    ///
    /// # Errors
    /// [`PortFault`].
    fn miner_by_id(&self, miner_id: &Hash) -> Result<Option<MinerEntry>, PortFault>;

    /// The blob's record.
    ///
    /// # Errors
    /// [`PortFault`].
    fn blob(&self, blob_id: &str) -> Result<Option<Blob>, PortFault>;

    /// The bytes of a finalized blob; `None` if there is no such blob. Up to `maxBlobBytes`.
    ///
    /// # Errors
    /// [`PortFault`].
    fn blob_bytes(&self, blob_id: &str) -> Result<Option<Vec<u8>>, PortFault>;
}
