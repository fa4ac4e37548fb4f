//! The newest committed rows, hot ones from memory, and what the next block stands on.

use std::sync::Arc;

use state::block::Parent;
use state::error::StorageError;
use state::table::TableId;
use state::view::{Range, RawRow, Read};

use super::database::{Inner, Store};
use super::meta::Tip;

impl Store {
    /// The newest committed rows. A commit shows through at once, row by row, so only the one thread
    /// that executes and commits sees a state that stands still; everybody else takes a
    /// [`Store::snapshot`], or [`Store::pin`] for the sake of the memory of hot rows.
    #[must_use]
    pub fn latest(&self) -> Arc<dyn Read> {
        Arc::new(Latest(Arc::clone(&self.0)))
    }

    /// What the next block stands on: the tip, and what its randomness is made of (docs/protocol.md
    /// section 6.1).
    ///
    /// # Errors
    /// [`StorageError::Empty`] before [`Store::init`]; [`StorageError`] if the database fails or has no
    /// header of its tip.
    pub fn parent(&self) -> Result<Parent, StorageError> {
        const NO_HEADER: StorageError =
            StorageError::Inconsistent { what: "the header of the tip is not there" };
        let Tip { height, hash, timestamp, state_root } = self.tip()?;
        let header = match height {
            0 => None,
            _ => Some(self.snapshot().header(height)?.ok_or(NO_HEADER)?.header),
        };
        let randomness = match header.as_ref().and_then(|header| header.randomness) {
            Some(randomness) => randomness.value,
            None => self.genesis_hash()?.ok_or(StorageError::Empty)?,
        };
        let proposer = header.map(|header| header.proposer);
        Ok(Parent { height, hash, timestamp, state_root, randomness, proposer })
    }
}

/// The newest rows.
pub(super) struct Latest(pub(super) Arc<Inner>);

impl Read for Latest {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        match self.0.memory.hot.get(table, key) {
            Some(known) => Ok(known.map(Vec::from)),
            None => self.0.rocks.live().get(table, key),
        }
    }

    fn contains_raw(&self, table: TableId, key: &[u8]) -> Result<bool, StorageError> {
        match self.0.memory.hot.get(table, key) {
            Some(known) => Ok(known.is_some()),
            None => self.0.rocks.live().contains(table, key),
        }
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        if let Some(cursor) = self.0.memory.cursors.of(table) {
            let start = cursor.start(range.from);
            let rows = self.0.rocks.live().scan(table, Range { from: &start.from, ..range })?;
            cursor.learn(&start, &range, &rows);
            return Ok(rows);
        }
        self.0.memory.leading.scan(table, range, &self.0.rocks.live())
    }
}
