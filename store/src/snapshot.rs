//! One moment of the database: the state as it was, and every query on it.

use state::error::StorageError;
use state::table::{Key, Table, TableId};
use state::view::{self, Range, RawRow, Read};
use types::{CheckedTx, TxLocation};

use super::bodies;
use super::leading::Leading;
use super::open_rows::OpenRows;
use super::rocks::Source;
use super::row::typed;

/// The state and the blocks at one moment. What is committed afterwards does not show.
///
/// The queries are in `store/query`, one file for each subject. Those that answer several items
/// take a `limit` and a typed mark to go on from; the mark names a place in the chain, so nothing
/// is skipped or repeated when blocks are added between two pages.
pub struct Snapshot<'db> {
    pub(super) source: Source<'db>,
    pub(super) beside: Option<Beside<'db>>,
    earliest: u64,
}

/// What is known beside the database.
pub(super) struct Beside<'db> {
    /// The runs that have not ended.
    pub(super) open_runs: &'db OpenRows,
    /// The calls that are not settled.
    pub(super) open_calls: &'db OpenRows,
    /// The first offers for executors.
    pub(super) leading: &'db Leading,
    /// No deadline has a key below this one.
    pub(super) lowest_deadline: Vec<u8>,
}

impl<'db> Snapshot<'db> {
    pub(super) const fn new(source: Source<'db>, earliest: u64, beside: Beside<'db>) -> Self {
        Self { source, beside: Some(beside), earliest }
    }

    /// One of a database of which nothing is known yet.
    pub(super) const fn alone(source: Source<'db>) -> Self {
        Self { source, beside: None, earliest: 1 }
    }

    /// The first block that the database has: [`super::Store::earliest`].
    #[must_use]
    pub const fn earliest(&self) -> u64 {
        self.earliest
    }

    /// Refuses what would be read in a block that is not there because the database began later.
    ///
    /// # Errors
    /// [`StorageError::History`] for a height from 1 to the one before [`Snapshot::earliest`].
    pub const fn require(&self, height: u64) -> Result<(), StorageError> {
        if height == 0 || height >= self.earliest {
            return Ok(());
        }
        Err(StorageError::History { earliest: self.earliest })
    }

    /// The transactions at `places`, in their order.
    pub(super) fn bodies_at(&self, places: &[TxLocation]) -> Result<Vec<CheckedTx>, StorageError> {
        places.iter().try_for_each(|place| self.require(place.height))?;
        bodies::at(&self.source, places)
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
        match &self.beside {
            Some(beside) => beside.leading.scan_at(table, range, &self.source),
            None => self.source.scan(table, range),
        }
    }
}
