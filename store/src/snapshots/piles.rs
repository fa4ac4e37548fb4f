//! Rows in files by some bits of their key hashes.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use types::Hash;

use super::error::{MakeError, file_error};
use super::format::CHUNK_BYTES_MAX;
use crate::tree::subtree::bit;

/// By how many bits rows are dealt out at once.
pub(super) const BITS: usize = 6;
/// To how many files.
const PILES: usize = 1 << BITS;
/// What a file waits for before it is written to.
const BUFFER_BYTES: usize = 16 << 10;

/// A file of rows whose key hashes have the same first bits.
#[derive(Debug)]
pub(super) struct Pile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// The bytes of all of them.
pub(super) fn bytes_of(piles: &[Pile]) -> u64 {
    piles.iter().map(|pile| pile.bytes).fold(0, u64::saturating_add)
}

/// Deals rows out by the [`BITS`] bits after the first `bits`, which they have in common.
pub(super) struct Dealer {
    bits: usize,
    piles: Vec<(Pile, BufWriter<File>)>,
}

impl Dealer {
    /// Makes the files.
    pub(super) fn create(folder: &Path, bits: usize) -> Result<Self, MakeError> {
        let mut piles = Vec::with_capacity(PILES);
        for number in 0..PILES {
            let path = folder.join(format!("pile-{bits}-{number}"));
            let file = File::create(&path).map_err(file_error(&path))?;
            let file = BufWriter::with_capacity(BUFFER_BYTES, file);
            piles.push((Pile { path, bytes: 0 }, file));
        }
        Ok(Self { bits, piles })
    }

    /// Adds a row as it stands in a chunk.
    pub(super) fn add(&mut self, hash: &Hash, row: &[u8]) -> Result<(), MakeError> {
        let bits = self.bits..self.bits.saturating_add(BITS);
        let number = bits.fold(0_usize, |number, at| (number << 1) | usize::from(bit(hash, at)));
        let Some((pile, file)) = self.piles.get_mut(number) else { return Ok(()) };
        pile.bytes = pile.bytes.saturating_add(u64::try_from(row.len()).unwrap_or(u64::MAX));
        file.write_all(row).map_err(file_error(&pile.path))
    }

    /// The files in the order of their bits.
    pub(super) fn finish(self) -> Result<Vec<Pile>, MakeError> {
        let mut piles = Vec::with_capacity(PILES);
        for (pile, mut file) in self.piles {
            file.flush().map_err(file_error(&pile.path))?;
            piles.push(pile);
        }
        Ok(piles)
    }
}

/// Reads the next row of a pile into `row`; answers where its key stands in it, and nothing at the
/// end.
pub(super) fn read_row(
    file: &mut impl Read,
    row: &mut Vec<u8>,
) -> io::Result<Option<Range<usize>>> {
    row.clear();
    let mut more = |row: &mut Vec<u8>, bytes: u64| -> io::Result<usize> {
        if bytes > CHUNK_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a row is too long"));
        }
        let before = row.len();
        let read = file.by_ref().take(bytes).read_to_end(row)?;
        let is_whole = u64::try_from(read).ok() == Some(bytes);
        if is_whole || (before == 0 && read == 0) {
            return Ok(read);
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a row is cut off"))
    };
    if more(row, 1)? == 0 {
        return Ok(None);
    }
    let length = |row: &Vec<u8>| {
        let length = row.last_chunk::<4>().copied().unwrap_or_default();
        u64::from(u32::from_le_bytes(length))
    };
    more(row, 4)?;
    let from = row.len();
    let key = length(row);
    more(row, key)?;
    let key = from..row.len();
    more(row, 4)?;
    let value = length(row);
    more(row, value)?;
    Ok(Some(key))
}
