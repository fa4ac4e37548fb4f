//! Where the state says which chunks of a blob are there.

use types::Blob;

use super::Pieces;
use crate::error::StorageError;
use crate::tables::BlobPieces;
use crate::view::{self, Read};

/// The chunks of a blob that are there.
///
/// # Errors
/// [`StorageError`] if nothing says it, or the database fails.
pub fn of_blob(state: &dyn Read, blob: &Blob) -> Result<Pieces, StorageError> {
    const MISSING: StorageError =
        StorageError::Inconsistent { what: "nothing says which chunks of a blob are there" };
    if blob.received == 0 {
        return Ok(Pieces::default());
    }
    if blob.received == blob.total_chunks {
        return Ok(Pieces::all(blob.total_chunks));
    }
    view::get::<BlobPieces>(state, &blob.blob_id)?.ok_or(MISSING)
}
