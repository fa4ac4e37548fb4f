//! Deadlines: what happens at the end of a block to runs and blobs that were left alone for too
//! long, so that no escrow is locked for ever (docs/protocol.md sections 5.7 and 5.10).

use types::{Hash, Params, Run, RunStatus, Sweep};

use crate::draft::Draft;
use crate::error::StorageError;
use crate::table::Key;
use crate::tables::{BlobChunks, Blobs, Deadlines, Runs};
use crate::view::{self, Range, Read};
use crate::{runs, settlement};

/// The earliest deadline that is set, in milliseconds since 1970.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn next_deadline(state: &dyn Read) -> Result<Option<u64>, StorageError> {
    let rows = view::scan::<Deadlines>(state, Range { from: &[], to: None, limit: 1 })?;
    Ok(rows.first().map(|((deadline, _, _), ())| *deadline))
}

/// Whether a block with this timestamp would sweep anything: a deadline lies before it.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn is_due(state: &dyn Read, timestamp: u64) -> Result<bool, StorageError> {
    Ok(next_deadline(state)?.is_some_and(|deadline| deadline < timestamp))
}

/// Acts on the deadlines before `timestamp` in order of (deadline, id), as many as a block may.
pub(crate) fn sweep(
    draft: &mut Draft,
    params: &Params,
    timestamp: u64,
) -> Result<Vec<Sweep>, StorageError> {
    let limit = usize::try_from(params.max_expiries_per_block).unwrap_or(usize::MAX);
    let end = timestamp.to_bytes();
    let range = Range { from: &[], to: Some(&end), limit };
    view::scan::<Deadlines>(draft, range)?
        .into_iter()
        .map(|((deadline, kind, id), ())| {
            if kind == Deadlines::BLOB {
                return drop_blob(draft, deadline, id);
            }
            let id = Hash::parse(&id).map_err(|_not_hex| ORPHAN)?;
            let run = draft.get::<Runs>(&id)?.ok_or(ORPHAN)?;
            expire(draft, run, params, timestamp)
        })
        .collect()
}

const ORPHAN: StorageError =
    StorageError::Inconsistent { what: "a deadline belongs to nothing that waits" };

fn expire(
    draft: &mut Draft,
    mut run: Run,
    params: &Params,
    timestamp: u64,
) -> Result<Sweep, StorageError> {
    if let Some(miner) = run.miner {
        runs::count(draft, miner, |figures| {
            figures.timed_out = figures.timed_out.saturating_add(1);
        })?;
    }
    match (run.status, run.miner) {
        (RunStatus::Claimed, Some(miner)) => {
            run.excluded_miners.push(miner);
            if run.reopens < params.max_reopens {
                return reopen(draft, run, params, timestamp);
            }
        }
        (RunStatus::Pending, None) | (RunStatus::Running, Some(_)) => {}
        (
            RunStatus::Pending
            | RunStatus::Claimed
            | RunStatus::Running
            | RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Timeout
            | RunStatus::InsufficientFunds
            | RunStatus::Cancelled,
            _,
        ) => return Err(ORPHAN),
    }
    let agent_run_id = run.agent_run_id;
    let settlement = settlement::refund(&run)?;
    runs::end(draft, run, RunStatus::Timeout, settlement, timestamp)?;
    Ok(Sweep::TimedOut { agent_run_id, settlement })
}

/// A claim lapsed without a step: the run waits for another miner, for a whole new period.
fn reopen(
    draft: &mut Draft,
    mut run: Run,
    params: &Params,
    timestamp: u64,
) -> Result<Sweep, StorageError> {
    let miner = run.miner.take().ok_or(ORPHAN)?;
    let agent_run_id = run.agent_run_id;
    run.reopens = run.reopens.checked_add(1).ok_or(ORPHAN)?;
    run.claimed_at = None;
    run.claim = None;
    let deadline = runs::deadline(timestamp, params.pending_ttl_ms)?;
    runs::save(draft, run, RunStatus::Pending, Some(deadline));
    Ok(Sweep::Reopened { agent_run_id, miner })
}

fn drop_blob(draft: &mut Draft, deadline: u64, id: String) -> Result<Sweep, StorageError> {
    let blob = draft.get::<Blobs>(&id)?.filter(|blob| !blob.is_final).ok_or(ORPHAN)?;
    // Whoever sends no chunk has promised them for nothing.
    let mut left = blob.received;
    for index in 0..blob.total_chunks {
        if left == 0 {
            break;
        }
        let key = (u32::try_from(index).map_err(|_too_many| ORPHAN)?, id.clone());
        if view::contains::<BlobChunks>(draft, &key)? {
            draft.delete::<BlobChunks>(&key);
            left = left.saturating_sub(1);
        }
    }
    draft.delete::<Blobs>(&id);
    draft.delete::<Deadlines>(&(deadline, Deadlines::BLOB, id.clone()));
    Ok(Sweep::BlobDropped { blob_id: id })
}
