//! How RocksDB is set up, and why.

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType, DBRecoveryMode, LogLevel,
    Options as DbOptions, WriteBufferManager,
};

use super::tables::{self, Shape};

/// The level at which zstd compresses. Level 3, the default, made the 33 MB of a chain of agent runs no
/// smaller, and took one to three percent of the node's processor time more.
const ZSTD_LEVEL: i32 = 1;
/// RocksDB's default; only zlib uses it.
const WINDOW_BITS: i32 = -14;

/// What an operator may set. Sizes in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// RocksDB's cache of table blocks, filters and indexes.
    pub block_cache_bytes: usize,
    /// Memory for rows that are not yet in table files, all tables together.
    pub write_buffer_bytes: usize,
    /// Memory for the values of rows that recent blocks changed.
    pub hot_value_bytes: u64,
    /// Memory for nodes of the state tree.
    pub node_cache_bytes: u64,
    /// For how many heights before the tip proofs can be made; 0 counts as 1.
    pub provable_heights: u64,
    /// Threads that flush and compact.
    pub background_threads: i32,
    /// Files that may be open at once.
    pub open_files_max: i32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            block_cache_bytes: 96 << 20,
            write_buffer_bytes: 96 << 20,
            hot_value_bytes: 48 << 20,
            node_cache_bytes: 48 << 20,
            provable_heights: 128,
            background_threads: 2,
            open_files_max: 512,
        }
    }
}

pub(super) fn database(options: &Options) -> DbOptions {
    let mut db = DbOptions::default();
    db.create_if_missing(true);
    db.create_missing_column_families(true);
    db.set_paranoid_checks(true);
    // Every commit is synced, so only a commit that nobody was told of can be torn at the end of
    // the log: recovery goes up to the last whole one. That no synced log is missing altogether is
    // checked against the manifest.
    db.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    db.set_track_and_verify_wals_in_manifest(true);
    db.set_max_total_wal_size(128 << 20);
    db.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager(
        options.write_buffer_bytes,
        false,
    ));
    db.set_max_background_jobs(options.background_threads);
    db.set_max_open_files(options.open_files_max);
    db.set_bytes_per_sync(1 << 20);
    db.set_keep_log_file_num(4);
    db.set_max_log_file_size(8 << 20);
    db.set_log_level(LogLevel::Warn);
    db
}

pub(super) fn column_families(options: &Options) -> Vec<ColumnFamilyDescriptor> {
    let cache = Cache::new_lru_cache(options.block_cache_bytes);
    tables::all()
        .map(|table| {
            let shape = tables::shape(table);
            ColumnFamilyDescriptor::new(table.name, column_family(shape, &cache))
        })
        .collect()
}

fn column_family(shape: Shape, cache: &Cache) -> DbOptions {
    let mut options = DbOptions::default();
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(cache);
    blocks.set_format_version(6);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks.set_optimize_filters_for_memory(true);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_max_write_buffer_number(3);
    options.set_write_buffer_size(32 << 20);
    // A table takes memory in steps of this size as soon as it has one row; there are many tables.
    options.set_arena_block_size(128 << 10);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    options.set_bottommost_compression_options(WINDOW_BITS, ZSTD_LEVEL, 0, 0, true);
    match shape {
        Shape::Lookup => {
            blocks.set_bloom_filter(10.0, false);
            blocks.set_block_size(8 << 10);
        }
        Shape::Index => {
            blocks.set_bloom_filter(10.0, false);
            blocks.set_block_size(16 << 10);
        }
        Shape::Queue => {
            blocks.set_block_size(8 << 10);
            // Reading in order has to step over deleted rows. Few of them fit into a small buffer,
            // and a file with many is compacted at once.
            options.set_write_buffer_size(4 << 20);
            options.add_compact_on_deletion_collector_factory(4_096, 1_024, 0.5);
        }
        Shape::Log => {
            blocks.set_block_size(64 << 10);
            // Rows come in ascending order, so that files move down the levels without being
            // written again: what the first write does not compress stays large.
            options.set_compression_type(DBCompressionType::Zstd);
            options.set_compression_options(WINDOW_BITS, ZSTD_LEVEL, 0, 0);
        }
        Shape::Large => {
            blocks.set_block_size(16 << 10);
            // Large values in files of their own are not written again by each compaction.
            options.set_enable_blob_files(true);
            options.set_min_blob_size(16 << 10);
            options.set_blob_compression_type(DBCompressionType::Lz4);
            options.set_enable_blob_gc(true);
        }
    }
    options.set_block_based_table_factory(&blocks);
    options
}
