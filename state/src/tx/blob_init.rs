//! SOCIAL_BLOB_INIT: announce a blob (docs/protocol.md section 5.10).
//!
//! Refused with BLOB_EXISTS.

use types::tx::BlobInit;
use types::{Address, Blob, Code, Event, Rejection, Transaction};

use super::Kind;
use crate::chain::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::runs;
use crate::tables::{Blobs, Deadlines};
use crate::view::{self, Read};

/// The blob to be created.
pub(crate) struct Plan {
    owner: Address,
    body: BlobInit,
}

impl Kind for BlobInit {
    type Plan = Plan;

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        if view::contains::<Blobs>(state, &self.blob_id)? {
            let id = &self.blob_id;
            return Err(Rejection::new(Code::BlobExists, "blobId", id, "a new id").into());
        }
        Ok(Plan { owner: tx.from(), body: self.clone() })
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { owner, body } = plan;
        let Self { blob_id, content_type, total_bytes, total_chunks, content_hash } = body;
        let deadline = runs::deadline(ctx.timestamp, ctx.chain.params.blob_ttl_ms)?;
        draft.insert::<Deadlines>(&(deadline, Deadlines::BLOB, blob_id.clone()), &());
        let blob = Blob {
            blob_id,
            owner,
            content_type,
            total_bytes,
            total_chunks,
            received: 0,
            content_hash,
            received_hash: None,
            is_final: false,
            created_at: ctx.timestamp,
        };
        draft.put::<Blobs>(&blob.blob_id, &blob);
        Ok(Event::BlobAnnounced { blob_id: blob.blob_id })
    }
}
