//! Miners and blobs.

use types::{Address, Blob, Hash, Miner, MinerFigures};

use super::{Fault, Slice};

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
    /// [`Fault`].
    fn miners(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Slice<MinerEntry, Address>, Fault>;

    /// The entry of an account.
    ///
    /// # Errors
    /// [`Fault`].
    fn miner(&self, address: &Address) -> Result<Option<MinerEntry>, Fault>;

    /// The entry with this `minerId`.
    ///
    /// # Errors
    /// [`Fault`].
    fn miner_by_id(&self, miner_id: &Hash) -> Result<Option<MinerEntry>, Fault>;

    /// The blob's record.
    ///
    /// # Errors
    /// [`Fault`].
    fn blob(&self, blob_id: &str) -> Result<Option<Blob>, Fault>;

    /// The bytes of a finalized blob; `None` if there is no such blob. Up to `maxBlobBytes`.
    ///
    /// # Errors
    /// [`Fault`].
    fn blob_bytes(&self, blob_id: &str) -> Result<Option<Vec<u8>>, Fault>;
}
