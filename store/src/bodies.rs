//! The transactions of blocks, in segments.

use state::error::StorageError;
use state::table::Key;
use types::transaction::SizeLimits;
use types::{Block, CheckedTx, SealedTx, Transaction, TxLocation};

use super::rocks::Source;
use super::tables::BODIES;

/// A segment ends after the transaction that brings it to this size.
const SEGMENT_BYTES: usize = 64 << 10;

/// What was written is read back, whatever its size.
const ANY_SIZE: SizeLimits = SizeLimits { tx_bytes: usize::MAX, chunk_tx_bytes: usize::MAX };

/// The segments of a block: the position of the first transaction, and the transactions' bytes.
pub(super) fn segments(block: &Block) -> Vec<(u32, Vec<u8>)> {
    let mut segments: Vec<(u32, Vec<u8>)> = Vec::new();
    for (tx, position) in block.transactions.iter().zip(0_u32..) {
        let full = segments.last().is_none_or(|(_, bytes)| bytes.len() >= SEGMENT_BYTES);
        if full {
            segments.push((position, Vec::with_capacity(SEGMENT_BYTES.saturating_mul(9) / 8)));
        }
        if let Some((_, bytes)) = segments.last_mut() {
            tx.encode(bytes);
        }
    }
    segments
}

/// Appends the bytes of all transactions of a block, as they stand in the block's binary form.
pub(super) fn append_all(
    source: &Source<'_>,
    height: u64,
    out: &mut Vec<u8>,
) -> Result<(), StorageError> {
    let from = height.to_be_bytes();
    let to = height.saturating_add(1).to_be_bytes();
    source.walk(BODIES, &from, Some(&to), |_, segment| {
        out.extend_from_slice(segment);
        true
    })
}

/// All transactions of a block.
pub(super) fn all(source: &Source<'_>, height: u64) -> Result<Vec<CheckedTx>, StorageError> {
    each(source, height, |bytes| decode(bytes, height))
}

/// All transactions of a block as they are shown.
pub(super) fn sealed(source: &Source<'_>, height: u64) -> Result<Vec<SealedTx>, StorageError> {
    each(source, height, |bytes| {
        SealedTx::decode(bytes).map_err(|source| StorageError::Transaction { height, source })
    })
}

/// Reads one transaction of a block after the other from what `read` leaves.
fn each<T>(
    source: &Source<'_>,
    height: u64,
    read: impl Fn(&[u8]) -> Result<(T, &[u8]), StorageError>,
) -> Result<Vec<T>, StorageError> {
    let mut bytes = Vec::new();
    append_all(source, height, &mut bytes)?;
    let mut rest = bytes.as_slice();
    let mut txs = Vec::new();
    while !rest.is_empty() {
        let (tx, after) = read(rest)?;
        txs.push(tx);
        rest = after;
    }
    Ok(txs)
}

/// The transactions at `places`, in the order of `places`. A segment is read once for neighbours,
/// so ascending or descending places are cheapest.
pub(super) fn at(
    source: &Source<'_>,
    places: &[TxLocation],
) -> Result<Vec<CheckedTx>, StorageError> {
    let mut segment: Option<Segment> = None;
    let mut txs = Vec::with_capacity(places.len());
    for place in places {
        let found = match &segment {
            Some(segment) => segment.tx(*place)?,
            None => None,
        };
        let tx = if let Some(tx) = found {
            tx
        } else {
            let missing = StorageError::Inconsistent { what: "an indexed transaction is missing" };
            let read = Segment::read(source, *place)?;
            let tx = read.as_ref().map(|segment| segment.tx(*place)).transpose()?.flatten();
            segment = read;
            tx.ok_or(missing)?
        };
        txs.push(tx);
    }
    Ok(txs)
}

/// One segment in memory.
struct Segment {
    height: u64,
    first: u32,
    bytes: Vec<u8>,
}

impl Segment {
    /// The segment that would hold the transaction at `place`.
    fn read(source: &Source<'_>, place: TxLocation) -> Result<Option<Self>, StorageError> {
        let TxLocation { height, position } = place;
        let from = (height, 0_u32).to_bytes();
        let to = match position.checked_add(1) {
            Some(next) => (height, next).to_bytes(),
            None => height.saturating_add(1).to_bytes(),
        };
        let mut found = None;
        source.walk_back(BODIES, &from, &to, |key, bytes| {
            let first = <(u64, u32)>::from_bytes(key).map(|(_, first)| first);
            found = first.map(|first| Self { height, first, bytes: bytes.to_vec() });
            false
        })?;
        Ok(found)
    }

    /// The transaction at `place`, if it is here.
    fn tx(&self, place: TxLocation) -> Result<Option<CheckedTx>, StorageError> {
        let TxLocation { height, position } = place;
        let Some(skip) = position.checked_sub(self.first).filter(|_| height == self.height) else {
            return Ok(None);
        };
        let mut rest = self.bytes.as_slice();
        for _ in 0..skip {
            match after_one(rest) {
                Some(after) if !after.is_empty() => rest = after,
                Some(_) => return Ok(None),
                None => return Err(StorageError::Inconsistent { what: "a segment is cut off" }),
            }
        }
        if rest.is_empty() { Ok(None) } else { decode(rest, height).map(|(tx, _)| Some(tx)) }
    }
}

/// Skips one transaction without looking into it.
fn after_one(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    rest.get(length.checked_add(64)?..)
}

fn decode(bytes: &[u8], height: u64) -> Result<(CheckedTx, &[u8]), StorageError> {
    let (tx, rest) = Transaction::decode(bytes, &ANY_SIZE)
        .map_err(|source| StorageError::Transaction { height, source })?;
    Ok((CheckedTx::trust(tx), rest))
}
