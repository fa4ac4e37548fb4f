//! How large the tables are, and making them smaller.

use super::Progress;
use super::error::ToolError;
use crate::database::Store;
use crate::tables;

/// The size of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableStats {
    /// The table.
    pub table: &'static str,
    /// Rows, as RocksDB estimates them.
    pub rows: u64,
    /// Bytes in files and in memory, compressed as they are.
    pub bytes: u64,
}

/// The size of every table.
///
/// # Errors
/// [`ToolError`] if the database fails.
pub fn stats(store: &Store) -> Result<Vec<TableStats>, ToolError> {
    let one = |table: state::table::TableId| {
        let (rows, bytes) = store.0.rocks.size(table)?;
        Ok(TableStats { table: table.name, rows, bytes })
    };
    tables::all().map(one).collect()
}

/// Rewrites every table into its smallest form.
///
/// # Errors
/// [`ToolError`] if the database fails.
pub fn compact(store: &Store, progress: Progress<'_>) -> Result<(), ToolError> {
    let total = u64::try_from(tables::all().count()).unwrap_or(u64::MAX);
    for (table, done) in tables::all().zip(0_u64..) {
        progress(done, total);
        store.0.rocks.compact(table)?;
    }
    progress(total, total);
    Ok(())
}
