//! What was decided about runs: a note per run, of which strangers make as many as they like. So only
//! those are kept that were looked at last. A run that waits for a miner is looked at again and again;
//! what gives way first is what the chain does not list any more.

use redb::{
    ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition, WriteTransaction,
};
use types::Hash;

use super::entry::Noted;
use super::tables::{Result, json, read};
use crate::policy::Decision;

const DECIDED: TableDefinition<'_, [u8; 32], &[u8]> = TableDefinition::new("decided");
/// The rows of DECIDED by the time of their last decision.
const LOOKED: TableDefinition<'_, (u64, [u8; 32]), ()> = TableDefinition::new("looked");

/// Runs with a note: more than twice what one look at the waiting runs lists (2,000).
pub(super) const RUNS_MAX: u64 = 5_000;
/// Decisions kept per run.
const DECISIONS_MAX: usize = 16;
/// Bytes kept per run, at least the last decision: reasons quote the request.
const BYTES_MAX: usize = 8 * 1024;

/// Makes the tables. The journal of an older version has no times, and as many notes as there were
/// runs.
pub(super) fn prepare(write: &WriteTransaction) -> Result<()> {
    let notes = write.open_table(DECIDED)?;
    let mut looked = write.open_table(LOOKED)?;
    if notes.len()? != looked.len()? {
        looked.retain(|_, ()| false)?;
        for row in notes.iter()? {
            let (run, noted) = row?;
            let noted: Vec<Noted> = read(noted.value())?;
            looked.insert((last_ms(&noted), run.value()), ())?;
        }
    }
    drop((notes, looked));
    make_room(write)
}

/// Notes a decision. One that repeats the last one only counts.
pub(super) fn note(
    write: &WriteTransaction,
    run: &Hash,
    decision: Decision,
    now_ms: u64,
) -> Result<()> {
    let mut notes = write.open_table(DECIDED)?;
    let found: Option<Vec<Noted>> =
        notes.get(run.as_bytes())?.map(|row| read(row.value())).transpose()?;
    let mut looked = write.open_table(LOOKED)?;
    if let Some(found) = &found {
        looked.remove((last_ms(found), *run.as_bytes()))?;
    }
    let mut noted = found.unwrap_or_default();
    match noted.last_mut().filter(|last| last.decision == decision) {
        Some(last) => {
            last.last_ms = now_ms;
            last.times = last.times.saturating_add(1);
        }
        None => noted.push(Noted { decision, first_ms: now_ms, last_ms: now_ms, times: 1 }),
    }
    let excess = noted.len().saturating_sub(DECISIONS_MAX);
    noted.drain(..excess);
    let mut bytes = json(&noted)?;
    while bytes.len() > BYTES_MAX && noted.len() > 1 {
        noted.remove(0);
        bytes = json(&noted)?;
    }
    notes.insert(run.as_bytes(), bytes.as_slice())?;
    looked.insert((now_ms, *run.as_bytes()), ())?;
    drop((notes, looked));
    make_room(write)
}

/// The decisions about a run, oldest first.
pub(super) fn of(read_in: &ReadTransaction, run: &Hash) -> Result<Vec<Noted>> {
    let notes = read_in.open_table(DECIDED)?;
    let row = notes.get(run.as_bytes())?;
    row.map_or_else(|| Ok(Vec::new()), |row| read(row.value()))
}

/// Drops the notes that were made longest ago, as many as there are too many.
fn make_room(write: &WriteTransaction) -> Result<()> {
    let (mut notes, mut looked) = (write.open_table(DECIDED)?, write.open_table(LOOKED)?);
    while looked.len()? > RUNS_MAX {
        let Some((key, _)) = looked.pop_first()? else { break };
        let (_, run) = key.value();
        notes.remove(&run)?;
    }
    Ok(())
}

fn last_ms(noted: &[Noted]) -> u64 {
    noted.last().map(|last| last.last_ms).unwrap_or_default()
}
