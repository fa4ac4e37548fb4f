//! From which block on a database has events. Programs before 0.3 wrote none; nobody executes their
//! blocks again to get them.

use state::error::StorageError;
use types::codec;

use super::meta::{EVENTS_FROM_CELL, TIP_CELL, Tip};
use super::rocks::{Batch, Durability, Rocks, Source};
use super::tables::META;

/// Notes, once in a database's life, that its next block is the first with events.
pub(super) fn mark_once(rocks: &Rocks) -> Result<(), StorageError> {
    if rocks.live().contains(META, EVENTS_FROM_CELL)? {
        return Ok(());
    }
    let mut batch = Batch::default();
    let first = after_tip(&rocks.live())?;
    batch.put(&rocks.table(META)?, EVENTS_FROM_CELL, &codec::encode(&first));
    rocks.write(batch, Durability::Synced)
}

/// The first block with events. Of a database that is read as a program before 0.3 left it: the one that
/// comes next.
pub(super) fn first(source: &Source<'_>) -> Result<u64, StorageError> {
    match source.cell(EVENTS_FROM_CELL)? {
        Some(first) => Ok(first),
        None => after_tip(source),
    }
}

fn after_tip(source: &Source<'_>) -> Result<u64, StorageError> {
    let tip: Option<Tip> = source.cell(TIP_CELL)?;
    Ok(tip.map_or(1, |tip| tip.height.saturating_add(1)))
}
