//! The tables of calls, which journals of older versions do not have.
//!
//! ```text
//! calls       | call id, round | JSON of CallEntry |
//! open_calls  | call id, round |                   | those that are not over
//! compared    | executor       | JSON of Compared  | the last answers that others gave, too, or did not
//! paused      | executor       | JSON of Paused    | what is not offered after dissents
//! ```
//!
//! The row `served` of `meta` has the sums, written with the calls that they are of.

use redb::{TableDefinition, WriteTransaction};

use super::tables::Result;

type CallKey = ([u8; 32], u8);

pub(super) const CALLS: TableDefinition<'_, CallKey, &[u8]> = TableDefinition::new("calls");
pub(super) const OPEN_CALLS: TableDefinition<'_, CallKey, ()> = TableDefinition::new("open_calls");
pub(super) const COMPARED: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("compared");
pub(super) const PAUSED: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("paused");
/// So many answers of each executor are remembered with whether others agreed.
pub const COMPARED_KEPT: usize = 10;

/// Makes the tables.
pub(super) fn prepare(write: &WriteTransaction) -> Result<()> {
    write.open_table(CALLS)?;
    write.open_table(OPEN_CALLS)?;
    write.open_table(COMPARED)?;
    write.open_table(PAUSED)?;
    Ok(())
}
