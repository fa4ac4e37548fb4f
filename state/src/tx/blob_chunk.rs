//! SOCIAL_BLOB_CHUNK: one piece of a blob (docs/protocol.md section 5.10).
//!
//! Refused with BLOB_NOT_FOUND, BLOB_CHUNK, NOT_BLOB_OWNER, in this order.

use sha2::{Digest, Sha256};
use types::params::BLOB_CHUNK_BYTES;
use types::tx::BlobChunk;
use types::{Amount, Blob, Code, Event, Hash, Rejection, Transaction};

use super::{Cost, Kind, blobs};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::ledger;
use crate::pieces::{self, Pieces};
use crate::rules::Rules;
use crate::table::{Key, Table, bytes_of_value};
use crate::tables::{BlobChunks, BlobPieces, BlobRemains, Blobs};
use crate::view::Read;
use crate::work;

/// The blob as it was, the new piece and what it costs.
pub(crate) struct Plan {
    blob: Blob,
    pieces: Pieces,
    index: u32,
    data: Vec<u8>,
    fee: Amount,
}

impl Kind for BlobChunk {
    type Plan = Plan;

    fn cost(&self, _: &Transaction, _: &dyn Read, rules: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "balance", total: Some(rules.params.blob_fee_per_chunk) })
    }

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        let blob = blobs::find(state, "blobId", &self.blob_id)?;
        let index = check_index(self, &blob)?;
        let pieces = pieces::of_blob(state, &blob)?;
        if pieces.has(index) {
            let expected = "a chunk that is not there yet";
            return Err(Rejection::new(Code::BlobChunk, "chunkIndex", index, expected).into());
        }
        check_size(self, &blob)?;
        blobs::require_owner(&blob, tx.from())?;
        let (data, fee) = (self.chunk_data.clone(), ctx.rules.params.blob_fee_per_chunk);
        Ok(Plan { blob, pieces, index, data, fee })
    }

    fn work(plan: &Plan) -> u64 {
        // The one that completes the blob has it hashed as a whole.
        let is_last = plan.blob.received.saturating_add(1) == plan.blob.total_chunks;
        let hashed = if is_last { plan.blob.total_bytes } else { 0 };
        let stored = u64::try_from(plan.data.len()).unwrap_or(u64::MAX);
        work::rows(4)
            .saturating_add(work::bytes(stored, work::STORED_KIB))
            .saturating_add(work::bytes(hashed, work::HASHED_KIB))
    }

    fn apply(plan: Plan, draft: &mut Draft, _: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { mut blob, mut pieces, index, data, fee } = plan;
        const MANY: StorageError = StorageError::Inconsistent { what: "a blob's chunks overflow" };
        ledger::burn(draft, fee)?;
        draft.put::<BlobChunks>(&(index, blob.blob_id.clone()), &data);
        take_from_remains(draft, &blob.blob_id, index)?;
        let is_first = blob.received == 0;
        blob.received = blob.received.checked_add(1).ok_or(MANY)?;
        let is_last = blob.received == blob.total_chunks;
        pieces.insert(index);
        match (is_first, is_last) {
            (true, true) => {}
            (true, false) => draft.insert::<BlobPieces>(&blob.blob_id, &pieces),
            (false, false) => draft.put::<BlobPieces>(&blob.blob_id, &pieces),
            (false, true) => draft.delete::<BlobPieces>(&blob.blob_id),
        }
        // The pool and a simulation leave the hash open: it takes long, and nobody asks them for it.
        if is_last && draft.is_of_a_block() {
            blob.received_hash = Some(hash_chunks(draft, &blob)?);
        }
        draft.put::<Blobs>(&blob.blob_id, &blob);
        let is_as_announced = blob.received_hash.map(|received| received == blob.content_hash);
        Ok(Event::BlobChunkStored { blob_id: blob.blob_id, index, is_as_announced })
    }
}

/// What an earlier blob of the same id left at this place has just been written over.
fn take_from_remains(draft: &mut Draft, id: &String, index: u32) -> Result<(), StorageError> {
    if !draft.keeps(BlobRemains::ID) {
        return Ok(());
    }
    let Some(mut remains) = draft.get::<BlobRemains>(id)? else { return Ok(()) };
    if remains.remove(index) {
        blobs::save_remains(draft, id, &remains);
    }
    Ok(())
}

fn check_index(body: &BlobChunk, blob: &Blob) -> Result<u32, Rejection> {
    match u32::try_from(body.chunk_index) {
        Ok(index) if body.chunk_index < blob.total_chunks => Ok(index),
        _ => {
            let expected = format_args!("less than {}, the blob's totalChunks", blob.total_chunks);
            Err(Rejection::new(Code::BlobChunk, "chunkIndex", body.chunk_index, expected))
        }
    }
}

fn check_size(body: &BlobChunk, blob: &Blob) -> Result<(), Rejection> {
    let before = body.chunk_index.saturating_mul(BLOB_CHUNK_BYTES);
    let expected = blob.total_bytes.saturating_sub(before).min(BLOB_CHUNK_BYTES);
    let got = body.chunk_data.len();
    if u64::try_from(got).ok() == Some(expected) {
        return Ok(());
    }
    let (got, expected) = (format_args!("{got} bytes"), format_args!("{expected} bytes"));
    Err(Rejection::new(Code::BlobChunk, "chunkDataBase64", got, expected))
}

/// SHA-256 of all chunks. Taken once, in the block that completes the blob, so that
/// SOCIAL_BLOB_FINALIZE costs nothing, however often it is refused.
fn hash_chunks(draft: &Draft, blob: &Blob) -> Result<Hash, StorageError> {
    const GAP: StorageError = StorageError::Inconsistent { what: "a chunk of a blob is missing" };
    let mut hasher = Sha256::new();
    for index in 0..blob.total_chunks {
        let index = u32::try_from(index).map_err(|_too_many| GAP)?;
        let key = (index, blob.blob_id.clone()).to_bytes();
        let chunk = draft.get_raw(BlobChunks::ID, &key)?.ok_or(GAP)?;
        // Not decoded, which takes longer than to hash.
        hasher.update(bytes_of_value::<BlobChunks>(&chunk)?);
    }
    Ok(Hash::new(hasher.finalize().into()))
}
