//! The directory of a model file's tensors: which there are, their form, and where.

use std::collections::BTreeMap;
use std::io::Read;

use super::Source;
use crate::error::FileError;

/// The most dimensions of a tensor.
const DIMENSIONS_MAX: u32 = 4;

/// How a tensor's numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 32 bits each.
    F32,
    /// 16 bits each.
    F16,
    /// Blocks of 32: a scale, and 4 bits each, less 8.
    Q4_0,
    /// Blocks of 32: a scale, an offset, and 4 bits each.
    Q4_1,
    /// Blocks of 32: a scale, and 8 bits each.
    Q8_0,
}

impl Kind {
    fn of(number: u32, name: &str) -> Result<Self, FileError> {
        match number {
            0 => Ok(Self::F32),
            1 => Ok(Self::F16),
            2 => Ok(Self::Q4_0),
            3 => Ok(Self::Q4_1),
            8 => Ok(Self::Q8_0),
            found => Err(FileError::TensorKind { name: name.to_owned(), found }),
        }
    }

    /// Numbers in a block.
    pub(crate) const fn block(self) -> usize {
        match self {
            Self::F32 | Self::F16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q8_0 => 32,
        }
    }

    /// Bytes of a block.
    pub(crate) const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q8_0 => 34,
        }
    }
}

/// A tensor as the directory describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorEntry {
    pub(crate) kind: Kind,
    /// Numbers in a row: a multiple of the block.
    pub(crate) cols: usize,
    /// Rows; 1 for a vector.
    pub(crate) rows: usize,
    /// The first byte, counted from the start of the file.
    pub(crate) offset: u64,
    /// Bytes of the whole tensor.
    pub(crate) bytes: u64,
}

/// Reads the directory; the offsets are still counted from the start of the tensors' part.
pub(super) fn read_directory<R: Read>(
    source: &mut Source<R>,
    count: u64,
) -> Result<BTreeMap<String, TensorEntry>, FileError> {
    let mut tensors = BTreeMap::new();
    for _ in 0..count {
        let offset = source.position();
        let name = source.name("the name of a tensor")?;
        let entry = read_entry(source, &name)?;
        if tensors.insert(name.clone(), entry).is_some() {
            return Err(FileError::Twice { offset, name });
        }
    }
    Ok(tensors)
}

fn read_entry<R: Read>(source: &mut Source<R>, name: &str) -> Result<TensorEntry, FileError> {
    const WHAT: &str = "the description of a tensor";
    let dimensions = source.u32(WHAT)?;
    if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
        return Err(FileError::Dimensions { name: name.to_owned(), found: dimensions });
    }
    let cols = source.u64(WHAT)?;
    let mut rows: u64 = 1;
    for _ in 1..dimensions {
        // Too many rows to count are too many for the file as well: the size says so below.
        rows = rows.saturating_mul(source.u64(WHAT)?);
    }
    let kind = Kind::of(source.u32(WHAT)?, name)?;
    let offset = source.u64(WHAT)?;
    let block = kind.block() as u64;
    let too_large = || FileError::TensorSize { name: name.to_owned(), rows, cols };
    if cols == 0 || rows == 0 || !cols.is_multiple_of(block) {
        return Err(too_large());
    }
    let bytes = (cols / block).checked_mul(kind.block_bytes() as u64);
    let bytes = bytes.and_then(|row| row.checked_mul(rows)).ok_or_else(too_large)?;
    let [small_cols, small_rows] = [cols, rows].map(usize::try_from);
    match (small_cols, small_rows) {
        (Ok(cols), Ok(rows)) => Ok(TensorEntry { kind, cols, rows, offset, bytes }),
        _ => Err(too_large()),
    }
}

/// Counts the offsets from the start of the file, and checks that every tensor is within it and
/// that none overlaps another.
pub(super) fn place(
    mut tensors: BTreeMap<String, TensorEntry>,
    start: u64,
    len: u64,
    alignment: u64,
) -> Result<BTreeMap<String, TensorEntry>, FileError> {
    for (name, entry) in &mut tensors {
        let (offset, bytes) = (entry.offset, entry.bytes);
        let left = len.saturating_sub(start);
        let outside = || FileError::Outside { name: name.clone(), offset, bytes, left };
        if !offset.is_multiple_of(alignment) {
            return Err(FileError::Unaligned { name: name.clone(), offset, alignment });
        }
        let offset = start.checked_add(offset).ok_or_else(outside)?;
        let end = offset.checked_add(bytes).ok_or_else(outside)?;
        if end > len {
            return Err(outside());
        }
        entry.offset = offset;
    }
    let mut in_order: Vec<_> = tensors.iter().collect();
    in_order.sort_by_key(|(_, entry)| entry.offset);
    for pair in in_order.windows(2) {
        let [(_, before), (name, after)] = pair else { continue };
        if before.offset + before.bytes > after.offset {
            return Err(FileError::Overlap { name: (*name).clone(), offset: after.offset });
        }
    }
    Ok(tensors)
}
