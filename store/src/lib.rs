//! The database: the state, the blocks, their indexes and the state tree, in one RocksDB.
//!
//! ```text
//!   execution ──Changes──▶ Store::prepare ──Prepared──▶ Store::commit   one synced batch
//!   execution ◀──Read───── Store::latest                newest rows, hot ones from memory
//!   queries   ◀─────────── Store::snapshot              one moment, whatever is committed meanwhile
//!   pool      ◀─────────── Store::pin                   one height, hot rows from memory
//!   consensus ◀──────────▶ Store::put_undecided …       proposals that must survive a crash
//! ```
//!
//! A commit is one write: state, block, certificate, indexes, tree and tip are all there after a
//! crash, or none of them is. docs/storage.md has the byte layouts.

#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::float_arithmetic
)]

mod bodies;
mod cache;
mod commit;
mod equivocations;
mod events;
mod floor;
mod forks;
mod history;
mod leading;
mod market;
pub mod offers;
mod open_rows;
mod options;
mod pieces;
mod pin;
mod query;
mod rocks;
mod snapshot;
pub mod tables;
pub mod tools;
pub mod tree;
mod undecided;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use state::block::Parent;
use state::draft::Changes;
use state::error::StorageError;
use state::table::TableId;
use state::tables::{CallsByStatus, RunsByStatus};
use state::view::{Range, RawRow, Read};
use types::{Hash, codec};

use self::cache::{HotValues, Nodes};
use self::floor::Floors;
use self::leading::Leading;
use self::open_rows::OpenRows;
use self::pin::Pins;
use self::rocks::{Rocks, Source};
use self::tables::{META, TREE_NODES, TREE_STALE};
use crate::tree::NodeSource;

pub(crate) use self::commit::Durability;
pub use self::commit::{CommitBlock, Prepared};
pub use self::forks::ForkCount;
pub use self::options::Options;
pub use self::pin::{Pinned, pinned_tables};
pub use self::query::{
    CALL_ROWS_MAX, CallDetail, CallFilter, CallPage, KEY_ROWS_MAX, MinerDetail, PunishedPage,
    RUN_ROWS_MAX, RunDetail, RunFilter, RunPage, StateProof, StepDetail, StoredHeader, StoredSet,
    StoredTx, TurnDetail,
};
use self::snapshot::Beside;
pub use self::snapshot::Snapshot;
pub use self::tables::{Equivocation, Equivocations, SignedChoice, ValidatorStats};
pub use self::undecided::{Undecided, UndecidedHead};

/// The format that this program writes. Another one is refused, never guessed at.
pub const FORMAT: u32 = 1;

const FORMAT_CELL: &[u8] = b"format";
const GENESIS_CELL: &[u8] = b"genesis";
const TIP_CELL: &[u8] = b"tip";
/// Only in a database that began with a snapshot: the first block that is in it.
const EARLIEST_CELL: &[u8] = b"earliest";
/// The first block whose events are in the database. Absent until this program opens a database for
/// writing for the first time.
const EVENTS_FROM_CELL: &[u8] = b"eventsFrom";
/// Up to which block the votes for later forks are counted.
const FORKS_CELL: &[u8] = b"forks";

/// Memory that the database holds, in bytes; beside it there is what it allocates while it works.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DatabaseMemory {
    /// Cached blocks, filters and indexes; bounded by [`Options::block_cache_bytes`].
    pub block_cache: u64,
    /// Rows that are not in files yet, or that somebody still reads; bounded by
    /// [`Options::write_buffer_bytes`], about.
    pub memtables: u64,
    /// What open files take outside the cache; an estimate.
    pub table_readers: u64,
}

/// The end of the chain as it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tip {
    /// The height; 0 is genesis.
    pub height: u64,
    /// The block's hash; the genesis hash at height 0.
    pub hash: Hash,
    /// The block's time, milliseconds since 1970; the genesis time at height 0.
    pub timestamp: u64,
    /// The root of the state after the block: what the next header carries.
    pub state_root: Hash,
}

/// What the first commit of a chain says.
#[derive(Clone, Copy, Debug)]
pub struct GenesisState<'a> {
    /// The hash of the genesis file.
    pub hash: Hash,
    /// The genesis time, milliseconds since 1970.
    pub timestamp: u64,
    /// The rows of height 0.
    pub changes: &'a Changes,
}

/// An open database. Clones share it; it is closed when the last one goes.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    rocks: Rocks,
    options: Options,
    hot: HotValues,
    nodes: Nodes,
    floors: Floors,
    open_runs: OpenRows,
    open_calls: OpenRows,
    leading: Leading,
    pins: Pins,
    forks: RwLock<forks::Forks>,
    /// Held by who counts votes in blocks that are there already; before [`Inner::writer`].
    counting: Mutex<()>,
    tip: RwLock<Option<Tip>>,
    /// The first block that is in the database.
    earliest: u64,
    /// The first block whose events are.
    events_from: u64,
    /// Held while a commit is written: one at a time.
    writer: Mutex<()>,
    /// The lowest height whose stale nodes may still be there.
    oldest_stale: AtomicU64,
}

impl Store {
    /// Opens the database in the folder `path`, and makes an empty one if there is none.
    ///
    /// # Errors
    /// [`StorageError::Locked`] if another process has it open, [`StorageError::Format`] if another
    /// version of the program wrote it, [`StorageError::Interrupted`] if there is none but what an
    /// interrupted rollback left, [`StorageError::Database`] for anything else.
    pub fn open(path: &Path, options: Options) -> Result<Self, StorageError> {
        tools::refuse_interrupted(path)?;
        let rocks = Rocks::open(path, &options)?;
        check_format(&rocks.live())?;
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
            check_format(&source)?;
            (read_cell(&source, TIP_CELL)?, read_cell(&source, EARLIEST_CELL)?)
        };
        let earliest = earliest.unwrap_or(1);
        let events_from = events::first(&rocks.live())?.max(earliest);
        let forks = RwLock::new(forks::Forks::read(&rocks)?);
        let height = tip.map_or(0, |tip| tip.height);
        let oldest_stale = oldest(&rocks.live(), height)?;
        let open_runs = OpenRows::read::<RunsByStatus>(&rocks.live(), height)?;
        let open_calls = OpenRows::read::<CallsByStatus>(&rocks.live(), height)?;
        Ok(Self(Arc::new(Inner {
            rocks,
            options,
            hot: HotValues::new(options.hot_value_bytes),
            nodes: Nodes::new(options.node_cache_bytes),
            floors: Floors::default(),
            open_runs,
            open_calls,
            leading: Leading::at(height),
            pins: Pins::default(),
            forks,
            tip: RwLock::new(tip),
            earliest,
            events_from,
            writer: Mutex::new(()),
            counting: Mutex::new(()),
            oldest_stale: AtomicU64::new(oldest_stale),
        })))
    }

    /// Writes height 0 into an empty database; a database that has it already must have the same.
    /// Answers the tip, which is beyond genesis if the chain was started earlier.
    ///
    /// # Errors
    /// [`StorageError::Genesis`] if the database belongs to another chain.
    pub fn init(&self, genesis: &GenesisState<'_>) -> Result<Tip, StorageError> {
        if let Some(found) = self.genesis_hash()? {
            if found != genesis.hash {
                return Err(StorageError::Genesis { found, expected: genesis.hash });
            }
            return self.tip();
        }
        self.commit_genesis(genesis)
    }

    /// The genesis hash of the chain in this database; none before [`Store::init`].
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn genesis_hash(&self) -> Result<Option<Hash>, StorageError> {
        read_cell(&self.0.rocks.live(), GENESIS_CELL)
    }

    /// The end of the chain, from memory.
    ///
    /// # Errors
    /// [`StorageError::Empty`] before [`Store::init`].
    pub fn tip(&self) -> Result<Tip, StorageError> {
        self.0.tip.read().ok_or(StorageError::Empty)
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
        self.0.open_calls.count()
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

    /// The newest committed rows. A commit shows through at once, row by row, so only the one thread
    /// that executes and commits sees a state that stands still; everybody else takes a
    /// [`Store::snapshot`], or [`Store::pin`] for the sake of the memory of hot rows.
    #[must_use]
    pub fn latest(&self) -> Arc<dyn Read> {
        Arc::new(Latest(Arc::clone(&self.0)))
    }

    /// The state and the blocks of this moment. While it lives, RocksDB keeps what it needs: hold
    /// it for one query, not for long.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_> {
        let (source, lowest_deadline) = self.0.floors.deadlines.beside(|| self.0.rocks.snapshot());
        let Inner { open_runs, open_calls, leading, .. } = &*self.0;
        let beside = Beside { open_runs, open_calls, leading, lowest_deadline };
        Snapshot::new(source, self.0.earliest, beside)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({:?})", *self.0.tip.read())
    }
}

/// The newest rows.
struct Latest(Arc<Inner>);

impl Read for Latest {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        match self.0.hot.get(table, key) {
            Some(known) => Ok(known.map(Vec::from)),
            None => self.0.rocks.live().get(table, key),
        }
    }

    fn contains_raw(&self, table: TableId, key: &[u8]) -> Result<bool, StorageError> {
        match self.0.hot.get(table, key) {
            Some(known) => Ok(known.is_some()),
            None => self.0.rocks.live().contains(table, key),
        }
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        if let Some(floor) = self.0.floors.of(table) {
            let start = floor.start(range.from);
            let rows = self.0.rocks.live().scan(table, Range { from: &start.from, ..range })?;
            floor.learn(&start, &range, &rows);
            return Ok(rows);
        }
        self.0.leading.scan(table, range, &self.0.rocks.live())
    }
}

impl NodeSource for Inner {
    fn node(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        if let Some(node) = self.nodes.get(key) {
            return Ok(Some(node));
        }
        let Some(node) = self.rocks.live().get(TREE_NODES, key)?.map(Bytes::from) else {
            return Ok(None);
        };
        self.nodes.insert(key.into(), node.clone());
        Ok(Some(node))
    }
}

impl NodeSource for Source<'_> {
    fn node(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        Ok(self.get(TREE_NODES, key)?.map(Bytes::from))
    }
}

/// Refuses a database of another format. An empty one has none yet.
fn check_format(source: &Source<'_>) -> Result<(), StorageError> {
    let Some(cell) = source.get(META, FORMAT_CELL)? else { return Ok(()) };
    let found = cell.try_into().map_or(0, u32::from_le_bytes);
    if found == FORMAT { Ok(()) } else { Err(StorageError::Format { found, expected: FORMAT }) }
}

fn read_cell<T: serde::de::DeserializeOwned>(
    source: &Source<'_>,
    name: &[u8],
) -> Result<Option<T>, StorageError> {
    let Some(cell) = source.get(META, name)? else { return Ok(None) };
    let value = codec::decode(&cell);
    value.map(Some).map_err(|source| StorageError::Decode { table: META.name, source })
}

/// The lowest height with a list of stale nodes; the one after the tip if there is none yet.
fn oldest(source: &Source<'_>, tip: u64) -> Result<u64, StorageError> {
    let first = source.scan(TREE_STALE, Range { from: &[], to: None, limit: 1 })?;
    let height = first.first().and_then(|(key, _)| key.as_slice().try_into().ok());
    Ok(height.map_or_else(|| tip.saturating_add(1), u64::from_be_bytes))
}
