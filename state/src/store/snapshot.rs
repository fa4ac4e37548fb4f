//! One moment of the database: the state as it was, and every query on it.

use types::TxLocation;

use super::rocks::Source;
use crate::error::StorageError;
use crate::table::{Key, Table, TableId, decode_value};
use crate::view::{self, Range, RawRow, Read};

/// The state and the blocks at one moment. What is committed afterwards does not show.
///
/// The queries are in `store/query`, one file for each subject. Those that answer several items
/// take a `limit` and a typed mark to go on from; the mark names a place in the chain, so nothing
/// is skipped or repeated when blocks are added between two pages.
pub struct Snapshot<'db> {
    pub(super) source: Source<'db>,
}

impl<'db> Snapshot<'db> {
    pub(super) const fn new(source: Source<'db>) -> Self {
        Self { source }
    }

    /// The value of a row.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the value does not decode.
    pub fn get<T: Table>(&self, key: &T::Key) -> Result<Option<T::Value>, StorageError> {
        view::get::<T>(self, key)
    }

    /// Rows with keys that begin with `prefix`, in descending order, from the first key below
    /// `below`, until `visit` answers false.
    pub(super) fn walk_back<T: Table>(
        &self,
        prefix: &[u8],
        below: Option<TxLocation>,
        mut visit: impl FnMut(T::Key, T::Value) -> Result<bool, StorageError>,
    ) -> Result<(), StorageError> {
        let to = match below {
            Some(TxLocation { height, position }) => {
                [prefix, &(height, position).to_bytes()].concat()
            }
            None => [prefix, &[0xff; 13]].concat(),
        };
        let mut fault = None;
        self.source.walk_back(T::ID, prefix, &to, |key, value| {
            let row = typed::<T>(key, value).and_then(|(key, value)| visit(key, value));
            row.unwrap_or_else(|error| {
                fault = Some(error);
                false
            })
        })?;
        fault.map_or(Ok(()), Err)
    }
}

/// A row as its table has it.
pub(super) fn typed<T: Table>(
    key: &[u8],
    value: &[u8],
) -> Result<(T::Key, T::Value), StorageError> {
    let key = T::Key::from_bytes(key)
        .ok_or(StorageError::Inconsistent { what: "a key has the wrong length" })?;
    Ok((key, decode_value::<T>(value)?))
}

impl std::fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Snapshot")
    }
}

impl Read for Snapshot<'_> {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.source.get(table, key)
    }

    fn contains_raw(&self, table: TableId, key: &[u8]) -> Result<bool, StorageError> {
        self.source.contains(table, key)
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        self.source.scan(table, range)
    }
}
