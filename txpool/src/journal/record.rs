//! The bytes of a segment.

use types::{CheckedTx, Hash};

/// The first bytes of every segment that is written.
pub(super) const HEADER: &[u8; 16] = b"ombra-pool-log-2";
/// Those of the version before, which had no tombstones and is else the same.
pub(super) const HEADER_WITHOUT_TOMBSTONES: &[u8; 16] = b"ombra-pool-log-1";
/// What a header of any version begins with.
pub(super) const HEADER_OF_ANY_VERSION: &[u8] = b"ombra-pool-log-";

const MARK: &[u8; 4] = b"\x00TX\n";
const CHECKSUM_BYTES: usize = 8;
/// Mark and checksum: what the checksum does not cover.
const UNCOVERED_BYTES: usize = MARK.len() + CHECKSUM_BYTES;
/// Length and arrival, which stand before the transaction.
const COVERED_BYTES: usize = 4 + 8;
/// No record is longer: the largest transaction there can be, with room to spare.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long a tombstone is.
pub(super) const TOMBSTONE_BYTES: usize = UNCOVERED_BYTES + COVERED_BYTES;

/// How long a record is.
pub(super) fn bytes(tx: &CheckedTx) -> usize {
    tx.encoded_bytes().saturating_add(UNCOVERED_BYTES + COVERED_BYTES)
}

/// Appends the record of a transaction.
pub(super) fn write(tx: &CheckedTx, arrival: u64, out: &mut Vec<u8>) {
    let length = u32::try_from(tx.encoded_bytes()).unwrap_or(u32::MAX);
    frame(length, arrival, out, |out| tx.encode(out));
}

/// Appends a tombstone: the transaction of this arrival was dropped.
pub(super) fn write_tombstone(arrival: u64, out: &mut Vec<u8>) {
    frame(0, arrival, out, |_| ());
}

fn frame(length: u32, arrival: u64, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(MARK);
    out.extend_from_slice(&[0; CHECKSUM_BYTES]);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&arrival.to_le_bytes());
    body(out);
    let covered = start.saturating_add(UNCOVERED_BYTES);
    let checksum = checksum(out.get(covered..).unwrap_or_default());
    let place = out.get_mut(start.saturating_add(MARK.len())..covered);
    if let Some(place) = place {
        place.copy_from_slice(&checksum);
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let digest = Hash::digest(bytes);
    let mut checksum = [0; CHECKSUM_BYTES];
    for (to, from) in checksum.iter_mut().zip(digest.as_bytes()) {
        *to = *from;
    }
    checksum
}

/// Where a whole record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Located {
    pub(super) arrival: u64,
    /// Of the encoded transaction, from the start of the file.
    pub(super) offset: u64,
    pub(super) bytes: usize,
}

impl Located {
    /// Whether the record only says that the transaction of this arrival was dropped.
    pub(super) const fn is_tombstone(&self) -> bool {
        self.bytes == 0
    }
}

/// What a segment holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Scan {
    pub(super) records: Vec<Located>,
    /// Bytes that belong to no whole record.
    pub(super) damaged_bytes: usize,
}

/// Finds the whole records of a segment.
pub(super) fn scan(segment: &[u8]) -> Scan {
    let mut found = Scan::default();
    let mut at = HEADER.len().min(segment.len());
    while let Some(rest) = segment.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some((arrival, bytes)) = read(rest) {
            let body = at.saturating_add(UNCOVERED_BYTES + COVERED_BYTES);
            let offset = u64::try_from(body).unwrap_or(u64::MAX);
            found.records.push(Located { arrival, offset, bytes });
            at = body.saturating_add(bytes);
        } else {
            let skipped = next_mark(rest);
            found.damaged_bytes = found.damaged_bytes.saturating_add(skipped);
            at = at.saturating_add(skipped);
        }
    }
    found
}

/// The arrival and body length of the record at the front, if it is whole.
fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let covered = bytes.strip_prefix(MARK)?;
    let (stated, covered) = covered.split_first_chunk::<CHECKSUM_BYTES>()?;
    let (length, after) = covered.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (arrival, after) = after.split_first_chunk::<8>()?;
    if length > BODY_BYTES_MAX || length > after.len() {
        return None;
    }
    let covered = covered.get(..length.saturating_add(COVERED_BYTES))?;
    (checksum(covered) == *stated).then(|| (u64::from_le_bytes(*arrival), length))
}

/// How far it is from a damaged record to the next mark, or to the end.
fn next_mark(bytes: &[u8]) -> usize {
    let after_first = bytes.get(1..).unwrap_or_default();
    after_first
        .windows(MARK.len())
        .position(|window| window == MARK)
        .map_or(bytes.len(), |position| position.saturating_add(1))
}
