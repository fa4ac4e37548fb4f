//! Writing the rows of a moment into files, cut into chunks.
//!
//! Rows lie in the order of their keys and are wanted in the order of their key hashes, which the
//! database does not have. So they are first dealt out to files by the first bits of the hash, and
//! then each of these, which is a small part of the whole, is sorted in memory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use types::Hash;

use super::chunk::{self, CARRIED};
use super::manifest::{Extra, Manifest, Part};
use super::{CHUNK_BYTES_MAX, DEPTH_MAX};
use crate::error::StorageError;
use crate::store::Snapshot;
use crate::tables;
use crate::tree::key_hash;
use crate::tree::subtree::{self, Subtree};

/// What a chunk should have.
const CHUNK_BYTES: u64 = 512 << 10;

/// How many files the rows are dealt out to: by the first six bits.
const PILES: usize = 64;

/// Called with the bytes that were written since the last call, to slow the work down; answers false
/// to stop it.
pub type Throttle<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Why no snapshot was made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The database failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file could not be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A row is longer than a chunk may be.
    #[error("a chunk of {bytes} bytes is longer than a chunk may be")]
    TooLong {
        /// Its bytes.
        bytes: u64,
    },
    /// [`Throttle`] answered false.
    #[error("the work was stopped")]
    Stopped,
}

pub(super) fn file_error(path: &Path) -> impl Fn(io::Error) -> MakeError {
    move |source| MakeError::File { path: path.to_path_buf(), source }
}

/// The chunks of the subtrees, one after the other.
pub(super) const ROWS: &str = "rows";
/// The extras, one after the other.
pub(super) const EXTRAS: &str = "extras";

/// Writes the files [`ROWS`] and [`EXTRAS`] of a snapshot into a folder that is there and empty.
pub(super) fn write(
    snapshot: &Snapshot<'_>,
    folder: &Path,
    throttle: Throttle<'_>,
) -> Result<Manifest, MakeError> {
    let height = snapshot.tip()?.height;
    let piles = deal(snapshot, folder, throttle)?;
    let depth = (0..DEPTH_MAX)
        .find(|depth| piles.bytes >> depth.saturating_mul(4) <= CHUNK_BYTES)
        .unwrap_or(DEPTH_MAX);
    let parts = cut(&piles, folder, depth, throttle)?;
    let extras = carry(snapshot, folder, throttle)?;
    let depth = u32::try_from(depth).unwrap_or(0);
    Ok(Manifest { height, depth, parts, extras })
}

/// The rows by the first bits of their key hashes.
struct Piles {
    paths: Vec<PathBuf>,
    bytes: u64,
}

fn pile_of(hash: &Hash) -> usize {
    usize::from(hash.as_bytes().first().copied().unwrap_or(0) >> 2)
}

/// Calls `visit` with the rows of a table until it fails or is told to stop.
fn walk(
    snapshot: &Snapshot<'_>,
    table: crate::table::TableId,
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
) -> Result<Piles, MakeError> {
    let paths: Vec<PathBuf> = (0..PILES).map(|pile| folder.join(format!("pile-{pile}"))).collect();
    let mut files = Vec::with_capacity(PILES);
    for path in &paths {
        let file = File::create(path).map_err(file_error(path))?;
        files.push(BufWriter::with_capacity(16 << 10, file));
    }
    let mut bytes = 0_u64;
    let mut row = Vec::new();
    for table in tables::ALL {
        let Some(tag) = table.tag else { continue };
        walk(snapshot, table, throttle, |key, value| {
            let Some(hash) = key_hash(table, key) else { return Ok(0) };
            row.clear();
            chunk::push(tag, key, value, &mut row);
            bytes = bytes.saturating_add(u64::try_from(row.len()).unwrap_or(u64::MAX));
            let file = files.get_mut(pile_of(&hash));
            let written = file.map_or(Ok(()), |file| file.write_all(&row));
            written.map_err(file_error(folder)).map(|()| row.len())
        })?;
    }
    for mut file in files {
        file.flush().map_err(file_error(folder))?;
    }
    Ok(Piles { paths, bytes })
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

/// Sorts the piles and writes a chunk for each subtree of `depth` nibbles.
fn cut(
    piles: &Piles,
    folder: &Path,
    depth: usize,
    throttle: Throttle<'_>,
) -> Result<Vec<Part>, MakeError> {
    const BROKEN: StorageError = StorageError::Inconsistent { what: "a row was not read back" };
    let empty = Part { hash: Subtree::EMPTY.hash, leaves: 0, bytes: 0 };
    let mut parts =
        vec![
            empty;
            1_usize.checked_shl(u32::try_from(depth).unwrap_or(0).saturating_mul(4)).unwrap_or(1)
        ];
    let mut out = Pieces::create(folder.join(ROWS))?;
    let mut chunk_bytes = Vec::new();
    let mut at = 0_usize;
    let mut end = |place: usize, bytes: &mut Vec<u8>| -> Result<(), MakeError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let leaves = chunk::read(bytes, depth).map_err(|_form| BROKEN)?.leaves;
        let Subtree { hash, leaves } = subtree::of_leaves(depth, &leaves);
        let part = Part { hash, leaves, bytes: out.add(bytes)? };
        if let Some(there) = parts.get_mut(place) {
            *there = part;
        }
        bytes.clear();
        Ok(())
    };
    for path in &piles.paths {
        let pile = fs::read(path).map_err(file_error(path))?;
        fs::remove_file(path).map_err(file_error(path))?;
        if !throttle(u64::try_from(pile.len()).unwrap_or(u64::MAX)) {
            return Err(MakeError::Stopped);
        }
        let mut rows = Vec::new();
        for row in chunk::tagged_rows(&pile).map_err(|_form| BROKEN)? {
            rows.push((key_hash(row.table, row.key).ok_or(BROKEN)?, row));
        }
        rows.sort_unstable_by_key(|(hash, _)| *hash);
        for (hash, row) in rows {
            let place = chunk::place(&hash, depth);
            if place != at {
                end(at, &mut chunk_bytes)?;
                at = place;
            }
            chunk::push(row.table.tag.unwrap_or(0), row.key, row.value, &mut chunk_bytes);
        }
    }
    end(at, &mut chunk_bytes)?;
    out.close()?;
    Ok(parts)
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
    let target = usize::try_from(CHUNK_BYTES).unwrap_or(usize::MAX);
    for table in CARRIED {
        walk(snapshot, table, throttle, |key, value| {
            let before = piece.len();
            chunk::push(table.number, key, value, &mut piece);
            let added = piece.len().saturating_sub(before);
            if piece.len() >= target {
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
pub(in crate::store) fn root_of_rows(
    snapshot: &Snapshot<'_>,
    scratch: &Path,
) -> Result<Hash, MakeError> {
    let manifest = write(snapshot, scratch, &mut |_| true)?;
    Ok(Subtree::join_all(manifest.subtrees()).hash)
}
