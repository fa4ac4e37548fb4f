//! RocksDB behind four words: open, get, scan, write. Nothing above this file knows its types.

use std::ffi::CStr;
use std::path::Path;

use rocksdb::{
    ColumnFamily, DB, DBPinnableSlice, DBRawIteratorWithThreadMode, ReadOptions, WriteBatch,
    WriteOptions, checkpoint, properties,
};
use serde::de::DeserializeOwned;
use state::error::StorageError;
use state::table::TableId;
use state::view::{Range, RawRow};
use types::codec;

use super::meta::{FORMAT_CELL, check_format};
use super::options::{self, Options};
use super::tables::{self, META};

type Iterator<'a> = DBRawIteratorWithThreadMode<'a, DB>;

/// The column family that every RocksDB has. It stays empty.
const DEFAULT: &str = "default";

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

/// When a commit is safe from a crash of the machine. From a crash of the process it always is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Durability {
    /// When the call returns.
    Synced,
    /// At some time, at the latest after [`Rocks::sync`]. Commits are kept or lost in their order,
    /// each of them whole, because they stand in one log.
    Buffered,
}

/// An open database.
pub(super) struct Rocks {
    db: DB,
}

/// Changes that are written together or not at all.
#[derive(Default)]
pub(super) struct Batch(WriteBatch);

/// A table to write to. Finding it takes a look-up by name, so it is done once for many rows.
pub(super) struct Family<'a>(&'a ColumnFamily);

/// Where reads look: at the newest state, or at that of a moment.
pub(super) struct Source<'db> {
    rocks: &'db Rocks,
    snapshot: Option<rocksdb::Snapshot<'db>>,
}

impl Rocks {
    /// Opens the database, and makes it if it is not there.
    pub(super) fn open(path: &Path, options: &Options) -> Result<Self, StorageError> {
        refuse_other_tables(path)?;
        let settings = options::database(options);
        let families = options::column_families(options);
        let db = DB::open_cf_descriptors(&settings, path, families);
        db.map(|db| Self { db }).map_err(|error| explain(path, error))
    }

    /// Opens an existing database without writing to it. Other programs may have it open.
    pub(super) fn open_read_only(path: &Path, options: &Options) -> Result<Self, StorageError> {
        if !path.join("CURRENT").exists() {
            return Err(StorageError::Missing { path: path.to_path_buf() });
        }
        refuse_other_tables(path)?;
        let mut settings = options::database(options);
        settings.create_if_missing(false);
        settings.create_missing_column_families(false);
        // A table that an older program did not have has no rows to be read.
        let there = DB::list_cf(&settings, path).map_err(|error| explain(path, error))?;
        let mut families = options::column_families(options);
        families.retain(|family| there.iter().any(|name| name == family.name()));
        let db = DB::open_cf_descriptors_read_only(&settings, path, families, false);
        db.map(|db| Self { db }).map_err(|error| explain(path, error))
    }

    fn family(&self, table: TableId) -> Result<&ColumnFamily, StorageError> {
        self.db.cf_handle(table.name).ok_or(StorageError::Inconsistent {
            what: "a table of this program is not in the database",
        })
    }

    /// The newest state.
    pub(super) const fn live(&self) -> Source<'_> {
        Source { rocks: self, snapshot: None }
    }

    /// The state of this moment, whatever is written afterwards.
    pub(super) fn snapshot(&self) -> Source<'_> {
        Source { rocks: self, snapshot: Some(self.db.snapshot()) }
    }

    /// Writes a batch.
    pub(super) fn write(&self, batch: Batch, durability: Durability) -> Result<(), StorageError> {
        let mut options = WriteOptions::default();
        options.set_sync(durability == Durability::Synced);
        self.db.write_opt(batch.0, &options).map_err(database)
    }

    /// Returns when everything that was written is on the disk.
    pub(super) fn sync(&self) -> Result<(), StorageError> {
        self.db.flush_wal(true).map_err(database)
    }

    /// A table to write to.
    pub(super) fn table(&self, table: TableId) -> Result<Family<'_>, StorageError> {
        self.family(table).map(Family)
    }

    /// Rewrites a table into its smallest form. RocksDB does not answer whether it has, but counts what
    /// failed.
    pub(super) fn compact(&self, table: TableId) -> Result<(), StorageError> {
        let family = self.family(table)?;
        self.db.flush_cf(family).map_err(database)?;
        let mut options = rocksdb::CompactOptions::default();
        options.set_bottommost_level_compaction(rocksdb::BottommostLevelCompaction::ForceOptimized);
        self.db.compact_range_cf_opt(family, None::<&[u8]>, None::<&[u8]>, &options);
        if self.is_writable()? {
            return Ok(());
        }
        let what = format!(
            "the table {} was not rewritten: the disk may be full or damaged; the file LOG in the folder \
             of the database says more",
            table.name
        );
        Err(StorageError::Database(what.into()))
    }

    /// Rows (an estimate) and bytes of a table, in files and in memory.
    pub(super) fn size(&self, table: TableId) -> Result<(u64, u64), StorageError> {
        let family = self.family(table)?;
        let property = |name: &CStr| self.db.property_int_value_cf(family, name);
        let rows = property(properties::ESTIMATE_NUM_KEYS).map_err(database)?.unwrap_or(0);
        let files = property(properties::TOTAL_SST_FILES_SIZE).map_err(database)?.unwrap_or(0);
        let blobs = property(c"rocksdb.total-blob-file-size").map_err(database)?.unwrap_or(0);
        let memory = property(properties::CUR_SIZE_ALL_MEM_TABLES).map_err(database)?.unwrap_or(0);
        Ok((rows, files.saturating_add(blobs).saturating_add(memory)))
    }

    /// Memory that the database holds for these tables, in bytes.
    pub(super) fn memory(
        &self,
        tables: impl IntoIterator<Item = TableId>,
    ) -> Result<DatabaseMemory, StorageError> {
        let mut memory = DatabaseMemory::default();
        for table in tables {
            let family = self.family(table)?;
            let property = |name: &CStr| -> Result<u64, StorageError> {
                Ok(self.db.property_int_value_cf(family, name).map_err(database)?.unwrap_or(0))
            };
            // All tables share one cache, and each answers for all of it.
            memory.block_cache = property(properties::BLOCK_CACHE_USAGE)?;
            let written = property(properties::SIZE_ALL_MEM_TABLES)?;
            memory.memtables = memory.memtables.saturating_add(written);
            let readers = property(properties::ESTIMATE_TABLE_READERS_MEM)?;
            memory.table_readers = memory.table_readers.saturating_add(readers);
        }
        Ok(memory)
    }

    /// Whether writes go through: RocksDB has not stopped them and has met no background error.
    pub(super) fn is_writable(&self) -> Result<bool, StorageError> {
        let is_zero = |name: &CStr| -> Result<bool, StorageError> {
            Ok(self.db.property_int_value(name).map_err(database)?.unwrap_or(0) == 0)
        };
        Ok(is_zero(c"rocksdb.background-errors")? && is_zero(c"rocksdb.is-write-stopped")?)
    }

    /// Makes a copy of the database as it is now, mostly out of hard links.
    pub(super) fn checkpoint(&self, path: &Path) -> Result<(), StorageError> {
        checkpoint::Checkpoint::new(&self.db)
            .map_err(database)?
            .create_checkpoint(path)
            .map_err(database)?;
        Ok(())
    }
}

impl Source<'_> {
    /// The value of a key.
    pub(super) fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.pinned(table, key)?.map(|value| value.to_vec()))
    }

    /// Whether a key has a value; the value is not copied.
    pub(super) fn contains(&self, table: TableId, key: &[u8]) -> Result<bool, StorageError> {
        Ok(self.pinned(table, key)?.is_some())
    }

    /// A single value of the table `meta`.
    pub(super) fn cell<T: DeserializeOwned>(&self, name: &[u8]) -> Result<Option<T>, StorageError> {
        let Some(cell) = self.get(META, name)? else { return Ok(None) };
        let value = codec::decode(&cell);
        value.map(Some).map_err(|source| StorageError::Decode { table: META.name, source })
    }

    fn pinned(
        &self,
        table: TableId,
        key: &[u8],
    ) -> Result<Option<DBPinnableSlice<'_>>, StorageError> {
        let family = self.rocks.family(table)?;
        let value = match &self.snapshot {
            Some(snapshot) => snapshot.get_pinned_cf(family, key).map_err(database)?,
            None => self.rocks.db.get_pinned_cf(family, key).map_err(database)?,
        };
        Ok(value)
    }

    /// Rows of a range in ascending order.
    pub(super) fn scan(
        &self,
        table: TableId,
        range: Range<'_>,
    ) -> Result<Vec<RawRow>, StorageError> {
        let mut rows = Vec::new();
        let Range { from, to, limit } = range;
        self.walk(table, from, to, |key, value| {
            if rows.len() < limit {
                rows.push((key.to_vec(), value.to_vec()));
            }
            rows.len() < limit
        })?;
        Ok(rows)
    }

    /// Calls `visit` with the rows of a range in ascending order until it answers false.
    pub(super) fn walk(
        &self,
        table: TableId,
        from: &[u8],
        to: Option<&[u8]>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError> {
        let mut options = ReadOptions::default();
        if let Some(to) = to {
            options.set_iterate_upper_bound(to);
        }
        let mut rows = self.iterator(table, options)?;
        rows.seek(from);
        while let Some((key, value)) = rows.item() {
            if !visit(key, value) {
                return Ok(());
            }
            rows.next();
        }
        rows.status().map_err(database)
    }

    /// Calls `visit` with the rows at or above `from` and below `to` in descending order until it
    /// answers false.
    pub(super) fn walk_back(
        &self,
        table: TableId,
        from: &[u8],
        to: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(from);
        options.set_iterate_upper_bound(to);
        let mut rows = self.iterator(table, options)?;
        rows.seek_to_last();
        while let Some((key, value)) = rows.item() {
            if !visit(key, value) {
                return Ok(());
            }
            rows.prev();
        }
        rows.status().map_err(database)
    }

    /// A walk backwards over the rows at or above `from` and below `to`, that begins at the last one.
    pub(super) fn back(
        &self,
        table: TableId,
        from: &[u8],
        to: &[u8],
    ) -> Result<Back<'_>, StorageError> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(from);
        options.set_iterate_upper_bound(to);
        let mut rows = self.iterator(table, options)?;
        rows.seek_to_last();
        Ok(Back(rows))
    }

    /// A walk over a table that is at no row until it is told where to go.
    pub(super) fn nowhere(&self, table: TableId) -> Result<Back<'_>, StorageError> {
        self.iterator(table, ReadOptions::default()).map(Back)
    }

    /// All rows of a table, from the first one on, to be walked by the caller.
    pub(super) fn rows(&self, table: TableId) -> Result<Rows<'_>, StorageError> {
        let mut rows = self.iterator(table, ReadOptions::default())?;
        rows.seek_to_first();
        Ok(Rows(rows))
    }

    fn iterator(&self, table: TableId, options: ReadOptions) -> Result<Iterator<'_>, StorageError> {
        let family = self.rocks.family(table)?;
        Ok(match &self.snapshot {
            Some(snapshot) => snapshot.raw_iterator_cf_opt(family, options),
            None => self.rocks.db.raw_iterator_cf_opt(family, options),
        })
    }
}

/// A walk over a table.
pub(super) struct Rows<'a>(Iterator<'a>);

impl Rows<'_> {
    /// The row that the walk is at; `None` at the end, or if the database failed.
    pub(super) fn item(&self) -> Option<(&[u8], &[u8])> {
        self.0.item()
    }

    /// Goes to the next row. Only while there is an item.
    pub(super) fn next(&mut self) {
        self.0.next();
    }

    /// What ended the walk.
    pub(super) fn status(&self) -> Result<(), StorageError> {
        self.0.status().map_err(database)
    }
}

/// The key and the value of a row.
type Item<'a> = (&'a [u8], &'a [u8]);

/// A walk backwards over a stretch of a table.
pub(super) struct Back<'a>(Iterator<'a>);

impl Back<'_> {
    /// The row that the walk is at; `None` at the end.
    pub(super) fn item(&self) -> Result<Option<Item<'_>>, StorageError> {
        match self.0.item() {
            None => self.0.status().map(|()| None).map_err(database),
            row => Ok(row),
        }
    }

    /// Goes to the row before. Only while there is an item.
    pub(super) fn prev(&mut self) {
        self.0.prev();
    }

    /// Goes to the last row of the stretch whose key is at most `key`.
    pub(super) fn seek(&mut self, key: &[u8]) {
        self.0.seek_for_prev(key);
    }
}

impl Batch {
    /// An empty batch with room for so many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(WriteBatch::with_capacity_bytes(bytes))
    }

    pub(super) fn put(&mut self, table: &Family<'_>, key: &[u8], value: &[u8]) {
        self.0.put_cf(table.0, key, value);
    }

    pub(super) fn delete(&mut self, table: &Family<'_>, key: &[u8]) {
        self.0.delete_cf(table.0, key);
    }

    /// Deletes a row that was written exactly once. Cheaper than [`Batch::delete`]: the tombstone
    /// goes as soon as it meets the row.
    pub(super) fn delete_once_written(&mut self, table: &Family<'_>, key: &[u8]) {
        self.0.single_delete_cf(table.0, key);
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> usize {
        self.0.size_in_bytes()
    }
}

/// Looks at the format of a database whose tables are not those of this program, before anything is
/// added to it.
fn refuse_other_tables(path: &Path) -> Result<(), StorageError> {
    let settings = rocksdb::Options::default();
    let Ok(mut found) = DB::list_cf(&settings, path) else { return Ok(()) };
    let mut known: Vec<&str> = tables::all().map(|table| table.name).collect();
    known.push(DEFAULT);
    known.sort_unstable();
    found.sort_unstable();
    if found == known || !found.iter().any(|name| name == META.name) {
        return Ok(());
    }
    let db = DB::open_cf_for_read_only(&settings, path, [DEFAULT, META.name], false)
        .map_err(database)?;
    let rocks = Rocks { db };
    check_format(rocks.live().get(META, FORMAT_CELL)?)
}

fn database(error: rocksdb::Error) -> StorageError {
    StorageError::Database(Box::new(error))
}

/// RocksDB reports a held lock as one of many I/O errors, in words.
fn explain(path: &Path, error: rocksdb::Error) -> StorageError {
    let text = error.to_string();
    if text.contains("LOCK") && (text.contains("lock hold by") || text.contains("While lock file"))
    {
        StorageError::Locked { path: path.to_path_buf() }
    } else {
        database(error)
    }
}
