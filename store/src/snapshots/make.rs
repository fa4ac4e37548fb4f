//! Writing the rows of a moment into files, cut into chunks.
//!
//! Rows lie in the order of their keys and are wanted in the order of their key hashes, which the
//! database does not have. So they are first dealt out to files by the first bits of the hash, and
//! then each of these is sorted in memory. A file that is too long for that, because many rows have
//! the same first bits, is dealt out again by the bits after them.
//!
//! The ranges are the widest whose rows fit into a chunk, so that neither many rows nor few make
//! chunks of another size, wherever they stand, and the same rows make the same chunks again.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use state::error::StorageError;
use state::table::{Key, Table};
use state::tables::{self, BlobChunks, BlobRemains};
use types::Hash;

use super::chunk::{self, CARRIED, Row};
use super::error::{MakeError, file_error};
use super::format::{CHUNK_BYTES_MAX, FORMAT};
use super::manifest::{Extra, Manifest, Part};
use super::piles::{self, Dealer, Pile};
use crate::snapshot::Snapshot;
use crate::tree::cover::BITS_MAX;
use crate::tree::key_hash;
use crate::tree::subtree::{self, Leaf, Subtree, bit};

/// What a chunk has at most, unless it is one row: what one answer carries.
const CHUNK_BYTES: u64 = 1 << 20;
/// What an extra has, or the last of its rows goes over it.
const EXTRA_BYTES: usize = 512 << 10;
/// What is sorted in memory at once.
const PILE_BYTES_MAX: u64 = 64 << 20;
/// So many chunks of the whole state are wanted at most; beyond it chunks become longer, so that the
/// manifest stays well below what an offer may have.
const CHUNKS_WANTED: u64 = 1 << 16;

/// How much goes into one of what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Bytes of a chunk.
    pub(super) chunk: u64,
    /// Bytes that are sorted in memory.
    pub(super) pile: u64,
}

/// The sizes that all nodes have, so that they make the same chunks.
pub(super) const SIZES: Sizes = Sizes { chunk: CHUNK_BYTES, pile: PILE_BYTES_MAX };

/// Called with the bytes that were written since the last call, to slow the work down; answers false
/// to stop it.
pub type Throttle<'a> = &'a mut dyn FnMut(u64) -> bool;

/// The chunks of the subtrees, one after the other.
pub(super) const ROWS: &str = "rows";
/// The extras, one after the other.
pub(super) const EXTRAS: &str = "extras";

/// Writes the files [`ROWS`] and [`EXTRAS`] of a snapshot into a folder that is there and empty.
pub(super) fn write(
    snapshot: &Snapshot<'_>,
    folder: &Path,
    sizes: Sizes,
    throttle: Throttle<'_>,
) -> Result<Manifest, MakeError> {
    let height = snapshot.tip()?.height;
    let piles = deal(snapshot, folder, throttle)?;
    let bytes = piles::bytes_of(&piles);
    let chunk = sizes.chunk.max(bytes.div_ceil(CHUNKS_WANTED)).min(CHUNK_BYTES_MAX);
    let out = Pieces::create(folder.join(ROWS))?;
    let sizes = Sizes { chunk, ..sizes };
    let (parts, bytes) = (Vec::new(), Vec::new());
    let mut cutter = Cutter { folder, sizes, out, parts, bytes, throttle: &mut *throttle };
    cutter.cover(&piles, 0)?;
    let Cutter { out, parts, .. } = cutter;
    out.close()?;
    let extras = carry(snapshot, folder, throttle)?;
    Ok(Manifest { format: FORMAT, height, parts, extras })
}

/// Calls `visit` with the rows of a table until it fails or is told to stop.
fn walk(
    snapshot: &Snapshot<'_>,
    table: state::table::TableId,
    throttle: Throttle<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<usize, MakeError>,
) -> Result<(), MakeError> {
    let mut fault = None;
    snapshot.source.walk(table, &[], None, |key, value| {
        match visit(key, value) {
            Ok(bytes) if throttle(u64::try_from(bytes).unwrap_or(u64::MAX)) => {}
            Ok(_) => fault = Some(MakeError::Stopped),
            Err(error) => fault = Some(error),
        }
        fault.is_none()
    })?;
    fault.map_or(Ok(()), Err)
}

fn deal(
    snapshot: &Snapshot<'_>,
    folder: &Path,
    throttle: Throttle<'_>,
) -> Result<Vec<Pile>, MakeError> {
    let mut dealer = Dealer::create(folder, 0)?;
    let mut row = Vec::new();
    for table in tables::ALL {
        let Some(tag) = table.tag else { continue };
        walk(snapshot, table, throttle, |key, value| {
            let Some(hash) = key_hash(table, key) else { return Ok(0) };
            row.clear();
            chunk::push(tag, key, value, &mut row);
            dealer.add(&hash, &row)?;
            Ok(row.len())
        })?;
    }
    dealer.finish()
}

/// A file of pieces in a row.
struct Pieces {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Pieces {
    fn create(path: PathBuf) -> Result<Self, MakeError> {
        let file = File::create(&path).map_err(file_error(&path))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 20, file) })
    }

    fn add(&mut self, bytes: &[u8]) -> Result<u64, MakeError> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > CHUNK_BYTES_MAX {
            return Err(MakeError::TooLong { bytes: length });
        }
        self.file.write_all(bytes).map_err(file_error(&self.path))?;
        Ok(length)
    }

    fn close(self) -> Result<(), MakeError> {
        let Self { path, file } = self;
        let file = file.into_inner().map_err(|error| file_error(&path)(error.into_error()))?;
        file.sync_all().map_err(file_error(&path))
    }
}

const BROKEN: StorageError = StorageError::Inconsistent { what: "a row was not read back" };

/// Cuts sorted rows into chunks.
struct Cutter<'a> {
    folder: &'a Path,
    sizes: Sizes,
    out: Pieces,
    parts: Vec<Part>,
    /// The chunk that is being made.
    bytes: Vec<u8>,
    throttle: Throttle<'a>,
}

impl Cutter<'_> {
    /// The ranges of neighbouring piles, which together have all rows whose key hashes have the same
    /// first `bits` bits; their number is a power of two.
    fn cover(&mut self, piles: &[Pile], bits: usize) -> Result<(), MakeError> {
        let bytes = piles::bytes_of(piles);
        let is_last = piles.len() <= 1;
        if bytes <= self.sizes.chunk || (is_last && !self.is_dealt_again(bytes, bits)) {
            return self.sort(piles, bits);
        }
        if let [pile] = piles {
            let piles = self.deal_again(pile, bits)?;
            return self.cover(&piles, bits);
        }
        let (left, right) = piles.split_at_checked(piles.len() / 2).unwrap_or((piles, &[]));
        let below = bits.saturating_add(1);
        self.cover(left, below)?;
        self.cover(right, below)
    }

    /// Whether a pile is too long for the memory. Key hashes differ before their bits end.
    const fn is_dealt_again(&self, bytes: u64, bits: usize) -> bool {
        bytes > self.sizes.pile && bits.saturating_add(piles::BITS) <= BITS_MAX
    }

    fn deal_again(&mut self, pile: &Pile, bits: usize) -> Result<Vec<Pile>, MakeError> {
        let mut dealer = Dealer::create(self.folder, bits)?;
        let file = File::open(&pile.path).map_err(file_error(&pile.path))?;
        let (mut file, mut row) = (BufReader::with_capacity(1 << 20, file), Vec::new());
        while let Some(key) =
            piles::read_row(&mut file, &mut row).map_err(file_error(&pile.path))?
        {
            let (tag, key) = (row.first().copied(), row.get(key).ok_or(BROKEN)?);
            let table = tables::ALL.into_iter().find(|table| tag.is_some() && table.tag == tag);
            let hash = table.and_then(|table| key_hash(table, key)).ok_or(BROKEN)?;
            dealer.add(&hash, &row)?;
            self.slow(row.len())?;
        }
        fs::remove_file(&pile.path).map_err(file_error(&pile.path))?;
        dealer.finish()
    }

    fn slow(&mut self, bytes: usize) -> Result<(), MakeError> {
        let goes_on = (self.throttle)(u64::try_from(bytes).unwrap_or(u64::MAX));
        if goes_on { Ok(()) } else { Err(MakeError::Stopped) }
    }

    /// Sorts the rows of piles in memory, and cuts them.
    fn sort(&mut self, piles: &[Pile], bits: usize) -> Result<(), MakeError> {
        let mut bytes = Vec::new();
        for Pile { path, .. } in piles {
            let pile = fs::read(path).map_err(file_error(path))?;
            fs::remove_file(path).map_err(file_error(path))?;
            self.slow(pile.len())?;
            if bytes.is_empty() {
                bytes = pile;
            } else {
                bytes.extend_from_slice(&pile);
            }
        }
        let mut rows = Vec::new();
        for row in chunk::tagged_rows(&bytes).map_err(|_form| BROKEN)? {
            rows.push((key_hash(row.table, row.key).ok_or(BROKEN)?, row));
        }
        rows.sort_unstable_by_key(|(hash, _)| *hash);
        self.cut(&rows, bits)
    }

    /// The widest ranges of rows that have the same first `bits` bits, of which each fits into a chunk.
    fn cut(&mut self, rows: &[(Hash, Row<'_>)], bits: usize) -> Result<(), MakeError> {
        let bytes = rows.iter().map(|(_, row)| row.length()).fold(0, u64::saturating_add);
        if bytes <= self.sizes.chunk || rows.len() <= 1 {
            return self.end(rows, bits);
        }
        let at = rows.partition_point(|(hash, _)| !bit(hash, bits));
        let (left, right) = rows.split_at_checked(at).unwrap_or((rows, &[]));
        let below = bits.saturating_add(1);
        self.cut(left, below)?;
        self.cut(right, below)
    }

    /// Writes a chunk.
    fn end(&mut self, rows: &[(Hash, Row<'_>)], bits: usize) -> Result<(), MakeError> {
        self.bytes.clear();
        for (_, row) in rows {
            chunk::push(row.table.tag.unwrap_or(0), row.key, row.value, &mut self.bytes);
        }
        let leaves: Vec<Leaf<'_>> =
            rows.iter().map(|(hash, row)| Leaf { key_hash: *hash, value: row.value }).collect();
        let Subtree { hash, leaves } = subtree::of_leaves(bits, &leaves);
        let bytes = if rows.is_empty() { 0 } else { self.out.add(&self.bytes)? };
        let bits = u16::try_from(bits).map_err(|_too_many| BROKEN)?;
        self.parts.push(Part { bits, hash, leaves, bytes });
        Ok(())
    }
}

/// Whether a chunk belonged to a blob that was dropped.
fn is_left_over(snapshot: &Snapshot<'_>, key: &[u8]) -> Result<bool, StorageError> {
    const KEY: StorageError = StorageError::Inconsistent { what: "a key has the wrong length" };
    let (index, id) = <(u32, String)>::from_bytes(key).ok_or(KEY)?;
    Ok(snapshot.get::<BlobRemains>(&id)?.is_some_and(|remains| remains.has(index)))
}

/// Writes the rows that no root covers.
fn carry(
    snapshot: &Snapshot<'_>,
    folder: &Path,
    throttle: Throttle<'_>,
) -> Result<Vec<Extra>, MakeError> {
    let mut out = Pieces::create(folder.join(EXTRAS))?;
    let mut extras = Vec::new();
    let mut piece = Vec::new();
    for table in CARRIED {
        walk(snapshot, table, throttle, |key, value| {
            if table == BlobChunks::ID && is_left_over(snapshot, key)? {
                return Ok(0);
            }
            let before = piece.len();
            chunk::push(table.number, key, value, &mut piece);
            let added = piece.len().saturating_sub(before);
            if piece.len() >= EXTRA_BYTES {
                extras.push(Extra { hash: Hash::digest(&piece), bytes: out.add(&piece)? });
                piece.clear();
            }
            Ok(added)
        })?;
    }
    if !piece.is_empty() {
        extras.push(Extra { hash: Hash::digest(&piece), bytes: out.add(&piece)? });
    }
    out.close()?;
    Ok(extras)
}

/// The root of the authenticated rows of a moment, computed anew from the rows alone. `scratch` is a
/// folder for a copy of them; it must be there, and empty.
pub(crate) fn root_of_rows(snapshot: &Snapshot<'_>, scratch: &Path) -> Result<Hash, MakeError> {
    let manifest = write(snapshot, scratch, SIZES, &mut |_| true)?;
    Ok(manifest.cover().ok_or(BROKEN)?.root.hash)
}
