//! What the kinds that name blobs have in common.

use types::{Address, Blob, Code, Rejection};

use crate::draft::Draft;
use crate::error::TxError;
use crate::pieces::Pieces;
use crate::tables::{BlobRemains, Blobs};
use crate::view::{self, Read};

/// The blob of that id, or BLOB_NOT_FOUND.
pub(crate) fn find(state: &dyn Read, field: &'static str, id: &String) -> Result<Blob, TxError> {
    let missing = || Rejection::new(Code::BlobNotFound, field, id, "the id of an announced blob");
    view::get::<Blobs>(state, id)?.ok_or_else(|| missing().into())
}

/// BLOB_NOT_FOUND if any of these blobs is missing, then BLOB_NOT_FINAL if any is not final.
pub(crate) fn require_final(
    state: &dyn Read,
    references: &[(&'static str, &String)],
) -> Result<(), TxError> {
    let mut unfinished = None;
    for (field, id) in references {
        let blob = find(state, field, id)?;
        if !blob.is_final {
            unfinished = unfinished.or(Some((*field, id)));
        }
    }
    match unfinished {
        None => Ok(()),
        Some((field, id)) => {
            Err(Rejection::new(Code::BlobNotFinal, field, id, "the id of a finalised blob").into())
        }
    }
}

/// NOT_BLOB_OWNER unless the blob is `sender`'s.
pub(crate) fn require_owner(blob: &Blob, sender: Address) -> Result<(), Rejection> {
    if sender == blob.owner {
        return Ok(());
    }
    Err(Rejection::new(Code::NotBlobOwner, "from", sender, blob.owner)
        .with("blobId", &blob.blob_id))
}

/// Notes which rows of a dropped blob are still to be deleted.
pub(crate) fn save_remains(draft: &mut Draft, id: &String, remains: &Pieces) {
    if remains.is_empty() {
        draft.delete::<BlobRemains>(id);
    } else {
        draft.put::<BlobRemains>(id, remains);
    }
}
