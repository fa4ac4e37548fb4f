//! What rows were before later commits changed them, for each pin.

use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use state::draft::Changes;
use state::error::StorageError;
use state::table::TableId;

use super::tables::pinned_tables;

/// After so many commits a pin is lost. The pool takes a new one after each block, and a simulation
/// takes no longer than a block.
const COMMITS_MAX: usize = 4;

/// What later commits changed.
#[derive(Default)]
pub(super) struct Kept(pub(super) RwLock<Former>);

#[derive(Default)]
pub(super) struct Former {
    /// For each commit, the earliest first, what the rows were that it changed.
    pub(super) values: Vec<Arc<Changes>>,
    is_lost: bool,
}

/// Everybody's pins.
#[derive(Default)]
pub(crate) struct Pins(Mutex<Vec<Weak<Kept>>>);

impl Pins {
    /// A pin of the newest state.
    pub(super) fn add(&self) -> Arc<Kept> {
        let kept = Arc::new(Kept::default());
        self.0.lock().push(Arc::downgrade(&kept));
        kept
    }

    /// Whether anybody has a pin that is not lost.
    pub(crate) fn is_any(&self) -> bool {
        self.0.lock().iter().any(|kept| kept.strong_count() > 0)
    }

    /// A commit is about to be written that changes rows with these values. Without them, because the
    /// pin was taken after the block had been prepared, a pin is lost.
    pub(crate) fn keep(&self, former: Option<&Arc<Changes>>) {
        self.0.lock().retain(|pin| {
            let Some(kept) = pin.upgrade() else { return false };
            let mut kept = kept.0.write();
            match former {
                Some(values) if kept.values.len() < COMMITS_MAX => {
                    kept.values.push(Arc::clone(values));
                }
                _ => {
                    kept.is_lost = true;
                    kept.values.clear();
                }
            }
            !kept.is_lost
        });
    }
}

impl Former {
    /// Refuses if the pin is lost, or has no such table.
    pub(super) fn check(&self, height: u64, table: TableId) -> Result<(), StorageError> {
        const OTHER: StorageError =
            StorageError::Inconsistent { what: "a transaction read a table that is not pinned" };
        if self.is_lost {
            return Err(StorageError::Moved { height });
        }
        if pinned_tables().any(|pinned| pinned == table) { Ok(()) } else { Err(OTHER) }
    }

    /// What a row was, if it was changed since: the value before the first change.
    pub(super) fn value(&self, table: TableId, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        self.values.iter().find_map(|values| values.get(&table)?.get(key))
    }
}
