//! What memory knows of the rows beside the database, and how it follows the commits.
//!
//! ```text
//!   prepare a block     MemoryUpdate::of         what memory has to learn
//!   before its write    Memory::before_write     who reads an earlier height keeps what was there
//!   after its write     Memory::after_write      or, if it failed, Memory::abandon
//! ```

use std::sync::Arc;

use bytes::Bytes;
use state::draft::Changes;
use state::error::StorageError;
use state::tables::{CallsByStatus, RunsByStatus};

use super::cache::{HotRows, HotValues, Nodes};
use super::leading::{Leading, LeadingChanges};
use super::open_rows::{OpenChanges, OpenRows};
use super::options::Options;
use super::pin::Pins;
use super::queue_cursor::QueueCursors;
use super::rocks::Source;
use super::tree::TreeUpdate;

/// What memory knows of the rows.
pub(super) struct Memory {
    /// The newest values of hot tables.
    pub(super) hot: HotValues,
    /// Nodes of the state tree.
    pub(super) nodes: Nodes,
    /// Where tables begin that are read from their start.
    pub(super) cursors: QueueCursors,
    /// The runs that have not ended.
    pub(super) open_runs: OpenRows,
    /// The calls that are not settled.
    pub(super) open_calls: OpenRows,
    /// The first offers for executors.
    pub(super) leading: Leading,
    /// The states that somebody holds.
    pub(super) pins: Pins,
}

/// What memory has to learn from a commit.
pub(super) struct MemoryUpdate {
    tree: TreeUpdate,
    hot: HotRows,
    /// The lowest keys that tables get which are read from their start.
    lowest: [Option<Vec<u8>>; 2],
    open_runs: OpenChanges,
    open_calls: OpenChanges,
    leading: LeadingChanges,
    /// What the rows were, if somebody wants to know.
    former: Option<Arc<Changes>>,
}

/// What memory learns once a commit is in the database.
pub(super) struct Written {
    tree: TreeUpdate,
    hot: HotRows,
    leading: LeadingChanges,
}

impl MemoryUpdate {
    /// That of a block with these changes.
    pub(super) fn of(
        tree: TreeUpdate,
        changes: &Changes,
        former: Option<Arc<Changes>>,
    ) -> Result<Self, StorageError> {
        let (hot, lowest) = (HotRows::of(changes), QueueCursors::lowest(changes));
        let open_runs = OpenChanges::of::<RunsByStatus>(changes)?;
        let open_calls = OpenChanges::of::<CallsByStatus>(changes)?;
        let leading = LeadingChanges::of(changes);
        Ok(Self { tree, hot, lowest, open_runs, open_calls, leading, former })
    }
}

impl Memory {
    /// What has to be known of a database at this height.
    pub(super) fn read(
        live: &Source<'_>,
        height: u64,
        options: &Options,
    ) -> Result<Self, StorageError> {
        let open_runs = OpenRows::read::<RunsByStatus>(live, height)?;
        let open_calls = OpenRows::read::<CallsByStatus>(live, height)?;
        Ok(Self {
            hot: HotValues::new(options.hot_value_bytes),
            nodes: Nodes::new(options.node_cache_bytes),
            cursors: QueueCursors::default(),
            open_runs,
            open_calls,
            leading: Leading::at(height),
            pins: Pins::default(),
        })
    }

    /// A commit is about to be written. Answers what to learn when it is.
    pub(super) fn before_write(&self, height: u64, update: MemoryUpdate) -> Written {
        let MemoryUpdate { tree, hot, lowest, open_runs, open_calls, leading, former } = update;
        self.pins.keep(former.as_ref());
        self.cursors.before_write(lowest);
        self.leading.before_write();
        self.open_runs.before_write(height, open_runs);
        self.open_calls.before_write(height, open_calls);
        Written { tree, hot, leading }
    }

    /// The commit was not written.
    pub(super) fn abandon(&self) {
        self.open_runs.abandon();
        self.open_calls.abandon();
    }

    /// The commit is in the database.
    pub(super) fn after_write(&self, height: u64, written: Written) {
        let Written { tree, hot, leading } = written;
        self.hot.update(hot);
        self.cursors.after_write();
        self.leading.after_write(height, leading);
        for (key, node) in tree.nodes {
            self.nodes.insert(key.into_boxed_slice(), Bytes::from(node));
        }
        for key in &tree.stale {
            self.nodes.remove(key);
        }
    }
}
