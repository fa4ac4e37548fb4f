//! The transactions of blocks, in segments.

use state::error::StorageError;
use state::table::Key;
use types::transaction::SizeLimits;
use types::{Block, CheckedTx, SealedTx, Transaction, TxLocation};

use super::rocks::{Back, Source};
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
    const MISSING: StorageError =
        StorageError::Inconsistent { what: "an indexed transaction is missing" };
    let mut segments = Segments { rows: source.nowhere(BODIES)?, place: None };
    places.iter().map(|place| segments.tx(*place)?.ok_or(MISSING)).collect()
}

/// A walk over segments, that stays where it is as long as its segment is wanted: to find one and to
/// decompress it takes longer than all that is done with it.
struct Segments<'a> {
    rows: Back<'a>,
    /// The height and the first transaction of the segment at which the walk is.
    place: Option<(u64, u32)>,
}

impl Segments<'_> {
    /// The transaction at `place`, if there is one.
    fn tx(&mut self, place: TxLocation) -> Result<Option<CheckedTx>, StorageError> {
        if let Some(found) = self.here(place)? {
            return Ok(Some(found));
        }
        self.rows.seek(&(place.height, place.position).to_bytes());
        self.place = self.rows.item()?.and_then(|(key, _)| <(u64, u32)>::from_bytes(key));
        self.here(place)
    }

    /// The transaction at `place`, if it is in this segment.
    fn here(&self, place: TxLocation) -> Result<Option<CheckedTx>, StorageError> {
        let TxLocation { height, position } = place;
        let first = self.place.filter(|(here, _)| *here == height).map(|(_, first)| first);
        let Some(skip) = first.and_then(|first| position.checked_sub(first)) else {
            return Ok(None);
        };
        let Some((_, mut rest)) = self.rows.item()? else { return Ok(None) };
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
