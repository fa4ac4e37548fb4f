//! What recent blocks changed, in memory.
//!
//! Written through and never read through: only a commit puts values here, after the database has
//! them. A reader that put in what it had read could put an old value over a newer one.

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use state::draft::Changes;
use state::table::{Table, TableId};
use state::tables::{
    Accounts, AgentVersions, Agents, Assignments, BlobPieces, Blobs, Bonds, CallMembers, Calls,
    Figures, Miners, Runs, Supplies,
};

/// The tables whose rows execution reads again and again.
const HOT: [TableId; 13] = [
    Accounts::ID,
    Runs::ID,
    Supplies::ID,
    Figures::ID,
    Miners::ID,
    Blobs::ID,
    BlobPieces::ID,
    Bonds::ID,
    Agents::ID,
    AgentVersions::ID,
    Assignments::ID,
    Calls::ID,
    CallMembers::ID,
];

/// A value larger than this is not worth its place.
const VALUE_BYTES_MAX: usize = 16 << 10;

/// What an entry costs beyond its bytes: an estimate.
const OVERHEAD_BYTES: usize = 96;

#[derive(Clone)]
struct Weight;

impl Weighter<Box<[u8]>, Option<Bytes>> for Weight {
    fn weight(&self, key: &Box<[u8]>, value: &Option<Bytes>) -> u64 {
        weigh(key.len(), value.as_ref().map_or(0, Bytes::len))
    }
}

impl Weighter<Box<[u8]>, Bytes> for Weight {
    fn weight(&self, key: &Box<[u8]>, value: &Bytes) -> u64 {
        weigh(key.len(), value.len())
    }
}

fn weigh(key: usize, value: usize) -> u64 {
    let bytes = key.saturating_add(value).saturating_add(OVERHEAD_BYTES);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// How many entries of a common size fill so many bytes.
fn entries(bytes: u64) -> usize {
    usize::try_from(bytes / 256).unwrap_or(usize::MAX)
}

/// Values of hot tables; `None` is a row that is known not to exist.
pub(super) struct HotValues {
    /// A row is kept under its table's number and its key.
    values: Cache<Box<[u8]>, Option<Bytes>, Weight>,
}

impl HotValues {
    pub(super) fn new(bytes: u64) -> Self {
        Self { values: Cache::with_weighter(entries(bytes), bytes, Weight) }
    }

    /// The value of a row, if it is known: the outer `None` is "ask the database".
    pub(super) fn get(&self, table: TableId, key: &[u8]) -> Option<Option<Bytes>> {
        if !HOT.contains(&table) {
            return None;
        }
        let mut buffer = [0_u8; 64];
        match place(table, key, &mut buffer) {
            Some(place) => self.values.get(place),
            None => self.values.get(long_place(table, key).as_slice()),
        }
    }

    /// Takes over what a commit wrote.
    pub(super) fn update(&self, rows: HotRows) {
        for (place, value) in rows.0 {
            match value {
                Some(value) if value.len() > VALUE_BYTES_MAX => drop(self.values.remove(&*place)),
                value => self.values.insert(place, value),
            }
        }
    }
}

/// The hot rows among changes, as the cache wants them.
pub(super) struct HotRows(Vec<(Box<[u8]>, Option<Bytes>)>);

impl HotRows {
    pub(super) fn of(changes: &Changes) -> Self {
        let rows = HOT.iter().filter_map(|table| Some((*table, changes.get(table)?)));
        let rows = rows.flat_map(|(table, rows)| {
            rows.iter().map(move |(key, value)| {
                let value = value.as_deref().map(Bytes::copy_from_slice);
                (long_place(table, key).into_boxed_slice(), value)
            })
        });
        Self(rows.collect())
    }
}

/// The key in the cache, without an allocation; `None` if it is too long for that.
fn place<'a>(table: TableId, key: &[u8], buffer: &'a mut [u8; 64]) -> Option<&'a [u8]> {
    let length = key.len().checked_add(1)?;
    let place = buffer.get_mut(..length)?;
    let (number, rest) = place.split_first_mut()?;
    *number = table.number;
    rest.copy_from_slice(key);
    Some(place)
}

fn long_place(table: TableId, key: &[u8]) -> Vec<u8> {
    let mut place = Vec::with_capacity(key.len().saturating_add(1));
    place.push(table.number);
    place.extend_from_slice(key);
    place
}

/// Nodes of the newest version of the state tree. A node never changes, so reads may fill it too.
pub(super) struct Nodes {
    nodes: Cache<Box<[u8]>, Bytes, Weight>,
}

impl Nodes {
    pub(super) fn new(bytes: u64) -> Self {
        Self { nodes: Cache::with_weighter(entries(bytes), bytes, Weight) }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.nodes.get(key)
    }

    pub(super) fn insert(&self, key: Box<[u8]>, node: Bytes) {
        self.nodes.insert(key, node);
    }

    pub(super) fn remove(&self, key: &[u8]) {
        drop(self.nodes.remove(key));
    }
}
