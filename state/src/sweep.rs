//! Deadlines: what happens at the end of a block to runs and blobs that were left alone for too
//! long, so that no escrow is locked for ever (docs/protocol.md sections 5.7 and 5.10). A sweep reads
//! records and no bytes of blobs, and what it leaves behind is deleted by later blocks, little by
//! little.

use types::{Address, Amount, Ender, Event, Hash, Run, RunStatus};

use crate::draft::Draft;
use crate::error::StorageError;
use crate::market::phases::{self, Now, Room};
use crate::market::{calls, draw, offers};
use crate::rules::Rules;
use crate::table::Key;
use crate::tables::{BlobChunks, BlobPieces, BlobRemains, Blobs, Deadlines, Runs};
use crate::tx::blobs;
use crate::view::{self, Range, Read};
use crate::{bonds, pieces, runs, settlement, work};

/// The earliest deadline that is set, in milliseconds since 1970.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn next_deadline(state: &dyn Read) -> Result<Option<u64>, StorageError> {
    // An election that waits has been due since its call was made.
    if draw::is_waiting(state)? {
        return Ok(Some(0));
    }
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

/// Acts on the deadlines before `timestamp` in order of (deadline, id), as many as a block may. From v7
/// on it may so many of runs, so many of blobs and so many of what was taken out of bonds, so that none
/// waits for another: before, whoever left blobs unfinished kept the escrows of others. The phases of calls
/// take of `room`, and before them the offers of miners that lose a part of their bonds.
pub(crate) fn sweep(
    draft: &mut Draft,
    rules: &Rules,
    now: Now,
    room: &mut Room,
) -> Result<Vec<Event>, StorageError> {
    let (params, timestamp) = (&rules.params, now.timestamp);
    let limit = usize::try_from(params.max_expiries_per_block).unwrap_or(usize::MAX);
    let due = if rules.is_v7() {
        due(draft, now, limit)?.concat()
    } else {
        let end = timestamp.to_bytes();
        let rows = view::scan::<Deadlines>(draft, Range { from: &[], to: Some(&end), limit })?;
        rows.into_iter().map(|(deadline, ())| deadline).collect()
    };
    let mut events = Vec::new();
    for (deadline, kind, id) in due {
        match kind {
            Deadlines::BLOB => events.push(drop_blob(draft, deadline, id)?),
            Deadlines::UNBONDING => {
                let miner = Address::parse(&id).map_err(|_not_hex| ORPHAN)?;
                events.push(bonds::pay_out(draft, miner, deadline)?);
            }
            Deadlines::RUN if room.is_used_up() => {}
            // Calls are the last kind: what is left waits where it is.
            Deadlines::CALL if room.is_used_up() => break,
            Deadlines::CALL => {
                let (_, id) = calls::read_deadline(&id).ok_or(ORPHAN)?;
                events.extend(phases::advance(draft, &id, now, room)?);
            }
            _ => events.push(end_of_run(draft, &id, (rules, timestamp), room)?),
        }
    }
    Ok(events)
}

fn end_of_run(
    draft: &mut Draft,
    id: &str,
    (rules, timestamp): (&Rules, u64),
    room: &mut Room,
) -> Result<Event, StorageError> {
    let id = Hash::parse(id).map_err(|_not_hex| ORPHAN)?;
    let run = draft.get::<Runs>(&id)?.ok_or(ORPHAN)?;
    if run.is_held() {
        return runs::pay_held(draft, run);
    }
    // Nobody has offers before v8.
    if let Some(miner) = run.miner.filter(|_| run.locked_bond.is_some()) {
        room.take(work::moved_offers(offers::count(draft, miner)?));
    }
    expire(draft, run, rules, timestamp)
}

/// What has a deadline, in the order in which a block acts on it.
const KINDS: [u8; 4] = [Deadlines::RUN, Deadlines::BLOB, Deadlines::UNBONDING, Deadlines::CALL];
/// How many deadlines are read in one scan.
const ROWS_TOGETHER: usize = 64;
/// How many scans a block makes at most. Each passes over [`ROWS_TOGETHER`] deadlines, or over everything
/// of one kind that waits for the same moment.
const SCANS_MAX: usize = 1_024;

/// The first deadlines of each kind before `timestamp`, at most `limit` of each. All kinds are looked for
/// in one walk: how long it takes depends on what it finds and passes over, and not on what the block's
/// transactions did to other deadlines.
fn due(
    state: &dyn Read,
    now: Now,
    limit: usize,
) -> Result<[Vec<Deadline>; KINDS.len()], StorageError> {
    let end = now.timestamp.to_bytes();
    let mut found: [Vec<Deadline>; KINDS.len()] = Default::default();
    let mut from = Vec::new();
    for _ in 0..SCANS_MAX {
        let range = Range { from: &from, to: Some(&end), limit: ROWS_TOGETHER };
        let rows = view::scan::<Deadlines>(state, range)?;
        let is_end = rows.len() < ROWS_TOGETHER;
        let mut passed = None;
        for (deadline, ()) in rows {
            let place = KINDS.iter().position(|kind| *kind == deadline.1);
            let of_its_kind = place.and_then(|place| found.get_mut(place)).ok_or(ORPHAN)?;
            let (at, kind) = (deadline.0, deadline.1);
            passed = Some(if of_its_kind.len() < limit {
                let mut key = deadline.to_bytes();
                key.push(0);
                if is_ripe(&deadline, now) {
                    of_its_kind.push(deadline);
                }
                key
            } else {
                (at, kind.saturating_add(1), String::new()).to_bytes()
            });
        }
        let Some(behind) = passed.filter(|_| !is_end) else { break };
        from = behind;
        if found.iter().all(|those| those.len() >= limit) {
            break;
        }
    }
    Ok(found)
}

/// Whether a block may act on a deadline whose time has come: a phase of a call has some blocks, too.
fn is_ripe(deadline: &Deadline, now: Now) -> bool {
    deadline.1 != Deadlines::CALL
        || calls::read_deadline(&deadline.2).is_none_or(|(height, _)| height <= now.height)
}

/// A row of [`Deadlines`].
type Deadline = (u64, u8, String);

const ORPHAN: StorageError =
    StorageError::Inconsistent { what: "a deadline belongs to nothing that waits" };

fn expire(
    draft: &mut Draft,
    mut run: Run,
    rules: &Rules,
    timestamp: u64,
) -> Result<Event, StorageError> {
    let params = &rules.params;
    // A miner that let a run lapse loses what is locked for it.
    bonds::release(draft, &mut run, Amount::MAX);
    if let Some(miner) = run.miner {
        runs::count(draft, miner, |figures| {
            figures.timed_out = figures.timed_out.saturating_add(1);
        })?;
    }
    match (run.status, run.miner) {
        (RunStatus::Claimed, Some(miner)) => {
            run.excluded_miners.push(miner);
            if runs::can_reopen(&run, params) {
                let agent_run_id = runs::reopen(draft, run, params, timestamp)?;
                return Ok(Event::RunReopened { agent_run_id, miner });
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
    let Run { agent_run_id, submitter, miner, .. } = run;
    let settlement = settlement::refund(&run)?;
    let by = rules.is_v7().then_some(Ender::Sweep);
    let status = RunStatus::Timeout;
    runs::end(draft, run, runs::End { status, settlement, timestamp, by, held_until: None })?;
    Ok(Event::RunTimedOut { agent_run_id, submitter, miner, settlement })
}

/// Drops a blob's record. The rows of its chunks go later ([`clear_remains`]); without the record
/// nobody sees them.
fn drop_blob(draft: &mut Draft, deadline: u64, id: String) -> Result<Event, StorageError> {
    let blob = draft.get::<Blobs>(&id)?.filter(|blob| !blob.is_final).ok_or(ORPHAN)?;
    let mut remains = pieces::of_blob(draft, &blob)?;
    if !remains.is_empty() {
        // An earlier blob of this id may have left some, too.
        if let Some(earlier) = draft.get::<BlobRemains>(&id)? {
            remains.join(&earlier);
        }
        blobs::save_remains(draft, &id, &remains);
    }
    if blob.received > 0 && blob.received < blob.total_chunks {
        draft.delete::<BlobPieces>(&id);
    }
    draft.delete::<Blobs>(&id);
    draft.delete::<Deadlines>(&(deadline, Deadlines::BLOB, id.clone()));
    Ok(Event::BlobDropped { blob_id: id })
}

/// How many rows of chunks a block deletes at most: a few milliseconds of work, and more than a block
/// of default size can have brought.
const CLEARED_MAX: usize = 2_048;

/// Deletes rows that dropped blobs left, so many in each block. No value is read for it.
pub(crate) fn clear_remains(draft: &mut Draft) -> Result<(), StorageError> {
    let range = Range { from: &[], to: None, limit: CLEARED_MAX };
    let mut room = CLEARED_MAX;
    for (id, mut remains) in view::scan::<BlobRemains>(draft, range)? {
        if room == 0 {
            break;
        }
        let indexes: Vec<u32> = remains.iter().take(room).collect();
        for index in &indexes {
            draft.delete::<BlobChunks>(&(*index, id.clone()));
            remains.remove(*index);
        }
        room = room.saturating_sub(indexes.len());
        blobs::save_remains(draft, &id, &remains);
    }
    Ok(())
}
