//! SOCIAL_BLOB_INIT: announce a blob (docs/protocol.md section 5.10).
//!
//! Refused with BLOB_EXISTS.

use types::tx::BlobInit;
use types::{Address, Amount, Blob, Code, Event, Rejection, Transaction};

use super::{Cost, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::ledger;
use crate::rules::Rules;
use crate::runs;
use crate::tables::{Blobs, Deadlines};
use crate::view::{self, Read};
use crate::work;

/// The blob to be created.
pub(crate) struct Plan {
    owner: Address,
    fee: Amount,
    body: BlobInit,
}

impl Kind for BlobInit {
    type Plan = Plan;

    fn cost(&self, _: &Transaction, _: &dyn Read, rules: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "balance", total: Some(fee(rules)) })
    }

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        if view::contains::<Blobs>(state, &self.blob_id)? {
            let id = &self.blob_id;
            return Err(Rejection::new(Code::BlobExists, "blobId", id, "a new id").into());
        }
        Ok(Plan { owner: tx.from(), fee: fee(ctx.rules), body: self.clone() })
    }

    fn work(_: &Plan) -> u64 {
        work::rows(3)
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { owner, fee, body } = plan;
        ledger::burn(draft, fee)?;
        let Self { blob_id, content_type, total_bytes, total_chunks, content_hash } = body;
        let deadline = runs::deadline(ctx.timestamp, ctx.rules.params.blob_ttl_ms)?;
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

/// `blobInitFee` from v7 on.
const fn fee(rules: &Rules) -> Amount {
    if rules.is_v7() { rules.params.blob_init_fee } else { Amount::ZERO }
}
