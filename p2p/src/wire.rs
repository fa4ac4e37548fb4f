//! The bytes of messages. Integers are little-endian; every count is bounded before it is believed.
//!
//! ```text
//! pack        transactions in a row, at least one
//! transaction payload's length (4) | payload, UTF-8 | signature (64)
//!
//! question    height of the asking node (8) | kind (1) | content
//!   kind 0    list the pool: 0, or 1 and the sender (20) after whom to go on
//!   kind 1    send transactions: their hashes (32 each)
//! answer to 0 height (8) | 0, or 1 and the sender (20) to go on after | hashes (32 each)
//! answer to 1 a pack, or nothing
//!
//! records     signed peer records in a row: length (4) | record
//! ```

use types::{Address, Hash, Signature};

use crate::SignedTx;
use crate::ports::Listing;

/// Transactions in one pack.
pub(crate) const PACK_MAX: usize = 128;
/// Bytes of a pack of several transactions; one large transaction may be larger alone.
pub(crate) const PACK_BYTES_MAX: usize = 60 * 1024;
/// Hashes in one list. A sender is listed whole, so a list may have the last sender's on top.
pub(crate) const LIST_WANTED: usize = 2_048;
/// Hashes that are read from one answer.
pub(crate) const LIST_MAX: usize = 3 * LIST_WANTED;
/// Bytes of an answer with transactions, from which on no further one is added.
pub(crate) const ANSWER_BYTES_WANTED: usize = 1024 * 1024;
/// Peer records in one message.
pub(crate) const RECORDS_MAX: usize = 32;
/// Bytes of one peer record.
pub(crate) const RECORD_BYTES_MAX: usize = 2_048;
/// Bytes of a question.
pub(crate) const QUESTION_BYTES_MAX: u64 = 8 + 1 + 32 * 256;

const HASH_BYTES: usize = 32;

/// Bytes of a peer that are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("it ends too early")]
    Truncated,
    #[error("it holds nothing")]
    Empty,
    #[error("it holds more than {max} items")]
    TooMany { max: usize },
    #[error("a payload is not UTF-8")]
    NotText,
    #[error("its kind {kind} is unknown")]
    Kind { kind: u8 },
}

impl WireError {
    /// Whether the bytes may be the beginning of something in order. A stream that is given up, as
    /// after a timeout, ends like one that is complete; so that is nobody's fault.
    pub(crate) const fn is_cut_off(self) -> bool {
        matches!(self, Self::Truncated)
    }
}

/// What one node asks of another's pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Question {
    pub(crate) height: u64,
    pub(crate) wish: Wish,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    List { after: Option<Address> },
    Fetch { hashes: Vec<Hash> },
}

pub(crate) fn write_pack<'a>(txs: impl IntoIterator<Item = &'a SignedTx>) -> Vec<u8> {
    let mut out = Vec::new();
    for tx in txs {
        write_length(tx.payload().len(), &mut out);
        out.extend_from_slice(tx.payload().as_bytes());
        out.extend_from_slice(tx.signature().as_bytes());
    }
    out
}

/// Reads a pack of at most `max` transactions.
pub(crate) fn read_pack(mut bytes: &[u8], max: usize) -> Result<Vec<SignedTx>, WireError> {
    let mut txs = Vec::new();
    while !bytes.is_empty() {
        if txs.len() >= max {
            return Err(WireError::TooMany { max });
        }
        let payload = take_counted(&mut bytes)?;
        let signature = take::<64>(&mut bytes)?;
        let payload = std::str::from_utf8(payload).map_err(|_not_text| WireError::NotText)?;
        txs.push(SignedTx::new(payload, Signature::new(signature)));
    }
    if txs.is_empty() { Err(WireError::Empty) } else { Ok(txs) }
}

impl Question {
    pub(crate) fn write(&self) -> Vec<u8> {
        let Self { height, wish } = self;
        let mut out = height.to_le_bytes().to_vec();
        match wish {
            Wish::List { after } => {
                out.push(0);
                write_position(after.as_ref(), &mut out);
            }
            Wish::Fetch { hashes } => {
                out.push(1);
                write_hashes(hashes, &mut out);
            }
        }
        out
    }

    pub(crate) fn read(mut bytes: &[u8]) -> Result<Self, WireError> {
        let height = u64::from_le_bytes(take(&mut bytes)?);
        let [kind] = take(&mut bytes)?;
        let wish = match kind {
            0 => {
                let after = read_position(&mut bytes)?;
                if !bytes.is_empty() {
                    return Err(WireError::TooMany { max: 1 });
                }
                Wish::List { after }
            }
            1 => Wish::Fetch { hashes: read_hashes(bytes, PACK_MAX)? },
            kind => return Err(WireError::Kind { kind }),
        };
        Ok(Self { height, wish })
    }
}

pub(crate) fn write_listing(height: u64, listing: &Listing) -> Vec<u8> {
    let Listing { hashes, next } = listing;
    let mut out = height.to_le_bytes().to_vec();
    write_position(next.as_ref(), &mut out);
    write_hashes(hashes, &mut out);
    out
}

pub(crate) fn read_listing(mut bytes: &[u8]) -> Result<(u64, Listing), WireError> {
    let height = u64::from_le_bytes(take(&mut bytes)?);
    let next = read_position(&mut bytes)?;
    let hashes = read_hashes(bytes, LIST_MAX)?;
    Ok((height, Listing { hashes, next }))
}

pub(crate) fn write_records(records: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records.into_iter().take(RECORDS_MAX) {
        write_length(record.len(), &mut out);
        out.extend_from_slice(&record);
    }
    out
}

pub(crate) fn read_records(mut bytes: &[u8]) -> Result<Vec<&[u8]>, WireError> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        if records.len() >= RECORDS_MAX {
            return Err(WireError::TooMany { max: RECORDS_MAX });
        }
        records.push(take_counted(&mut bytes)?);
    }
    Ok(records)
}

pub(crate) fn write_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn write_position(position: Option<&Address>, out: &mut Vec<u8>) {
    match position {
        None => out.push(0),
        Some(address) => {
            out.push(1);
            out.extend_from_slice(address.as_bytes());
        }
    }
}

fn read_position(bytes: &mut &[u8]) -> Result<Option<Address>, WireError> {
    match take::<1>(bytes)? {
        [0] => Ok(None),
        [1] => Ok(Some(Address::new(take(bytes)?))),
        [kind] => Err(WireError::Kind { kind }),
    }
}

fn write_hashes(hashes: &[Hash], out: &mut Vec<u8>) {
    out.extend(hashes.iter().flat_map(|hash| hash.as_bytes()));
}

fn read_hashes(bytes: &[u8], max: usize) -> Result<Vec<Hash>, WireError> {
    let (hashes, rest) = bytes.as_chunks::<HASH_BYTES>();
    if !rest.is_empty() {
        return Err(WireError::Truncated);
    }
    if hashes.len() > max {
        return Err(WireError::TooMany { max });
    }
    Ok(hashes.iter().map(|bytes| Hash::new(*bytes)).collect())
}

pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], WireError> {
    let (taken, rest) = bytes.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
    *bytes = rest;
    Ok(*taken)
}

/// A length and so many bytes.
fn take_counted<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], WireError> {
    let length = u32::from_le_bytes(take(bytes)?);
    take_bytes(bytes, length)
}

pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8], length: u32) -> Result<&'a [u8], WireError> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let (taken, rest) = bytes.split_at_checked(length).ok_or(WireError::Truncated)?;
    *bytes = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests;
