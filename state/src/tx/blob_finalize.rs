//! SOCIAL_BLOB_FINALIZE: close a blob (docs/protocol.md section 5.10).
//!
//! Refused with BLOB_NOT_FOUND, BLOB_EXISTS (it is final already), BLOB_CHUNK, BLOB_HASH,
//! NOT_BLOB_OWNER, in this order.

use types::tx::BlobFinalize;
use types::{Blob, Code, Event, Rejection, Transaction};

use super::{Kind, blobs};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::runs;
use crate::tables::{Blobs, Deadlines};
use crate::view::Read;
use crate::work;

/// The blob as it was.
pub(crate) struct Plan {
    blob: Blob,
}

impl Kind for BlobFinalize {
    type Plan = Plan;

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let blob = blobs::find(state, "blobId", &self.blob_id)?;
        if blob.is_final {
            let expected = "a blob that is not final yet";
            return Err(Rejection::new(Code::BlobExists, "blobId", &self.blob_id, expected).into());
        }
        if blob.received < blob.total_chunks {
            let (got, expected) = (blob.received, format_args!("all {}", blob.total_chunks));
            return Err(Rejection::new(Code::BlobChunk, "totalChunks", got, expected).into());
        }
        // A block always has the hash of a complete blob. Only where its last chunk still waits for
        // a block, in the pool, it is not known yet: then the block that takes both will judge.
        if let Some(received) = blob.received_hash
            && received != blob.content_hash
        {
            let expected = blob.content_hash;
            return Err(Rejection::new(Code::BlobHash, "contentHash", received, expected).into());
        }
        blobs::require_owner(&blob, tx.from())?;
        Ok(Plan { blob })
    }

    fn work(_: &Plan) -> u64 {
        work::rows(2)
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { mut blob } = plan;
        let deadline = runs::deadline(blob.created_at, ctx.rules.params.blob_ttl_ms)?;
        draft.delete::<Deadlines>(&(deadline, Deadlines::BLOB, blob.blob_id.clone()));
        blob.is_final = true;
        draft.put::<Blobs>(&blob.blob_id, &blob);
        Ok(Event::BlobFinalized { blob_id: blob.blob_id })
    }
}
