//! The open database: the rows on the disk, what memory knows of them, and where the chain ends.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use state::error::StorageError;
use state::view::Range;
use types::Hash;

use super::folder::refuse_interrupted;
use super::forks::Forks;
use super::memory::Memory;
use super::meta::{EARLIEST_CELL, FORMAT_CELL, GENESIS_CELL, TIP_CELL, Tip, check_format};
use super::options::Options;
use super::rocks::{DatabaseMemory, Rocks, Source};
use super::snapshot::{Beside, Snapshot};
use super::tables::{self, META, TREE_NODES, TREE_STALE};
use super::tree::NodeSource;
use super::{events, pieces};

/// An open database. Clones share it; it is closed when the last one goes.
#[derive(Clone)]
pub struct Store(pub(crate) Arc<Inner>);

/// What all clones share: the rows on the disk, and what memory knows of them.
pub(crate) struct Inner {
    pub(crate) rocks: Rocks,
    pub(crate) options: Options,
    pub(crate) memory: Memory,
    pub(crate) forks: RwLock<Forks>,
    /// Held by who counts votes in blocks that are there already; before [`Inner::writer`].
    pub(crate) counting: Mutex<()>,
    pub(crate) tip: RwLock<Option<Tip>>,
    /// The first block that is in the database.
    pub(crate) earliest: u64,
    /// The first block whose events are.
    pub(crate) events_from: u64,
    /// Held while a commit is written: one at a time.
    pub(crate) writer: Mutex<()>,
    /// The lowest height whose stale nodes may still be there.
    pub(crate) oldest_stale: AtomicU64,
}

impl Store {
    /// Opens the database in the folder `path`, and makes an empty one if there is none.
    ///
    /// # Errors
    /// [`StorageError::Locked`] if another process has it open, [`StorageError::Format`] if another
    /// version of the program wrote it, [`StorageError::Interrupted`] if there is none but what an
    /// interrupted rollback left, [`StorageError::Database`] for anything else.
    pub fn open(path: &Path, options: Options) -> Result<Self, StorageError> {
        refuse_interrupted(path)?;
        let rocks = Rocks::open(path, &options)?;
        check_format(rocks.live().get(META, FORMAT_CELL)?)?;
        pieces::fill_once(&rocks)?;
        events::mark_once(&rocks)?;
        Self::with(rocks, options)
    }

    /// Opens an existing database for reading, as it was at this moment. A running node may have
    /// it open.
    ///
    /// # Errors
    /// [`StorageError::Missing`] if there is none; else as [`Store::open`].
    pub fn open_read_only(path: &Path, options: Options) -> Result<Self, StorageError> {
        Self::with(Rocks::open_read_only(path, &options)?, options)
    }

    fn with(rocks: Rocks, options: Options) -> Result<Self, StorageError> {
        let (tip, earliest): (Option<Tip>, Option<u64>) = {
            let source = rocks.live();
            check_format(source.get(META, FORMAT_CELL)?)?;
            (source.cell(TIP_CELL)?, source.cell(EARLIEST_CELL)?)
        };
        let earliest = earliest.unwrap_or(1);
        let events_from = events::first(&rocks.live())?.max(earliest);
        let forks = RwLock::new(Forks::read(&rocks)?);
        let height = tip.map_or(0, |tip| tip.height);
        let oldest_stale = oldest(&rocks.live(), height)?;
        let memory = Memory::read(&rocks.live(), height, &options)?;
        Ok(Self(Arc::new(Inner {
            rocks,
            options,
            memory,
            forks,
            tip: RwLock::new(tip),
            earliest,
            events_from,
            writer: Mutex::new(()),
            counting: Mutex::new(()),
            oldest_stale: AtomicU64::new(oldest_stale),
        })))
    }

    /// The genesis hash of the chain in this database; none before [`Store::init`].
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn genesis_hash(&self) -> Result<Option<Hash>, StorageError> {
        self.0.rocks.live().cell(GENESIS_CELL)
    }

    /// The end of the chain, from memory.
    ///
    /// # Errors
    /// [`StorageError::Empty`] before [`Store::init`].
    pub fn tip(&self) -> Result<Tip, StorageError> {
        self.0.tip.read().ok_or(StorageError::Empty)
    }

    /// The first block that this database has, or will have: 1, unless it began with a snapshot of a
    /// later height. Transactions and texts of the blocks before are not there; their effects are.
    #[must_use]
    pub fn earliest(&self) -> u64 {
        self.0.earliest
    }

    /// The first block whose events this database has, or will have: [`Store::earliest`], unless a
    /// program before 0.3 committed later blocks.
    #[must_use]
    pub fn events_from(&self) -> u64 {
        self.0.events_from
    }

    /// How many calls of agents are not settled.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.0.memory.open_calls.count()
    }

    /// Memory that the database holds now.
    ///
    /// # Errors
    /// [`StorageError`] if the database does not say.
    pub fn memory(&self) -> Result<DatabaseMemory, StorageError> {
        self.0.rocks.memory(tables::all())
    }

    /// Whether writes go through: the database has not stopped them and has met no error in the
    /// background.
    ///
    /// # Errors
    /// [`StorageError`] if the database does not say.
    pub fn is_writable(&self) -> Result<bool, StorageError> {
        self.0.rocks.is_writable()
    }

    /// The state and the blocks of this moment. While it lives, RocksDB keeps what it needs: hold
    /// it for one query, not for long.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_> {
        let Memory { cursors, open_runs, open_calls, leading, .. } = &self.0.memory;
        let (source, lowest_deadline) = cursors.deadlines.beside(|| self.0.rocks.snapshot());
        let beside = Beside { open_runs, open_calls, leading, lowest_deadline };
        Snapshot::new(source, self.0.earliest, beside)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({:?})", *self.0.tip.read())
    }
}

impl NodeSource for Inner {
    fn node(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        if let Some(node) = self.memory.nodes.get(key) {
            return Ok(Some(node));
        }
        let Some(node) = self.rocks.live().get(TREE_NODES, key)?.map(Bytes::from) else {
            return Ok(None);
        };
        self.memory.nodes.insert(key.into(), node.clone());
        Ok(Some(node))
    }
}

impl NodeSource for Source<'_> {
    fn node(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        Ok(self.get(TREE_NODES, key)?.map(Bytes::from))
    }
}

/// The lowest height with a list of stale nodes; the one after the tip if there is none yet.
fn oldest(source: &Source<'_>, tip: u64) -> Result<u64, StorageError> {
    let first = source.scan(TREE_STALE, Range { from: &[], to: None, limit: 1 })?;
    let height = first.first().and_then(|(key, _)| key.as_slice().try_into().ok());
    Ok(height.map_or_else(|| tip.saturating_add(1), u64::from_be_bytes))
}
