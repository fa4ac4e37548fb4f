//! Blobs.

use state::error::StorageError;
use state::tables::{BlobChunks, Blobs};
use types::Blob;

use crate::snapshot::Snapshot;

impl Snapshot<'_> {
    /// A blob's record.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn blob(&self, blob_id: &str) -> Result<Option<Blob>, StorageError> {
        self.get::<Blobs>(&blob_id.to_owned())
    }

    /// The bytes of a finalised blob; none if there is no such blob or it is not final. Up to
    /// `maxBlobBytes` of memory.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a chunk is not there.
    pub fn blob_bytes(&self, blob_id: &str) -> Result<Option<Vec<u8>>, StorageError> {
        let Some(blob) = self.blob(blob_id)?.filter(|blob| blob.is_final) else { return Ok(None) };
        let mut bytes = Vec::with_capacity(usize::try_from(blob.total_bytes).unwrap_or(0));
        for index in 0..blob.total_chunks {
            let missing = || StorageError::Inconsistent { what: "a chunk of a blob is missing" };
            let Ok(index) = u32::try_from(index) else { return Err(missing()) };
            let chunk = self.get::<BlobChunks>(&(index, blob_id.to_owned()))?;
            bytes.extend_from_slice(&chunk.ok_or_else(missing)?);
        }
        Ok(Some(bytes))
    }
}
