//! From which block on a database has events. Programs before 0.3 wrote none; nobody executes their
//! blocks again to get them.

use state::error::StorageError;
use types::codec;

use super::commit::Durability;
use super::rocks::{Batch, Rocks, Source};
use super::tables::META;
use super::{EVENTS_FROM_CELL, TIP_CELL, Tip, read_cell};

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
    match read_cell(source, EVENTS_FROM_CELL)? {
        Some(first) => Ok(first),
        None => after_tip(source),
    }
}

fn after_tip(source: &Source<'_>) -> Result<u64, StorageError> {
    let tip: Option<Tip> = read_cell(source, TIP_CELL)?;
    Ok(tip.map_or(1, |tip| tip.height.saturating_add(1)))
}
