//! The bytes of chunks.
//!
//! ```text
//! chunk of a range     rows in ascending order of their key hashes, each
//!   tag                1 byte, docs/protocol.md section 14.1
//!   key                length u32, bytes
//!   value              length u32, bytes: what is stored and hashed
//! extra                rows in the order of table and key, each
//!   table              1 byte: 7 blob_chunks, 10 turns, 32 agent_texts
//!   key, value         as above
//! ```
//! Integers are little-endian.

use state::table::{Table, TableId};
use state::tables::{self, AgentTexts, BlobChunks, Turns};
use types::Hash;

use super::error::OfferError;
use crate::tree::key_hash;
use crate::tree::subtree::{self, Leaf, Subtree, bit};

/// The tables whose rows no root covers, and that are carried.
pub(super) const CARRIED: [TableId; 3] = [BlobChunks::ID, Turns::ID, AgentTexts::ID];

/// A row on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row<'a> {
    pub(super) table: TableId,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

impl Row<'_> {
    /// The bytes that it takes in a chunk.
    pub(super) fn length(&self) -> u64 {
        let bytes = self.key.len().saturating_add(self.value.len()).saturating_add(9);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Appends a row. `mark` is the tag of its table, or the table's number in an extra.
pub(super) fn push(mark: u8, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(mark);
    for part in [key, value] {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(part);
    }
}

fn part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(part)
}

/// The rows of a chunk; `table` says which one a mark stands for.
fn rows<'a>(
    mut bytes: &'a [u8],
    what: &'static str,
    table: impl Fn(u8) -> Option<TableId>,
) -> Result<Vec<Row<'a>>, OfferError> {
    let broken = || OfferError::Form { what };
    let mut rows = Vec::new();
    while let Some((&mark, rest)) = bytes.split_first() {
        bytes = rest;
        let table = table(mark).ok_or_else(broken)?;
        let key = part(&mut bytes).ok_or_else(broken)?;
        let value = part(&mut bytes).ok_or_else(broken)?;
        rows.push(Row { table, key, value });
    }
    Ok(rows)
}

/// The rows of an extra. Its hash is the caller's to check.
pub(super) fn extra_rows(bytes: &[u8]) -> Result<Vec<Row<'_>>, OfferError> {
    let carried = |number| CARRIED.into_iter().find(|table| table.number == number);
    rows(bytes, "an extra of a snapshot", carried)
}

const WHAT: &str = "a chunk of a snapshot";

/// Rows of tables that are in the tree, in whatever order.
pub(super) fn tagged_rows(bytes: &[u8]) -> Result<Vec<Row<'_>>, OfferError> {
    let tagged = |tag| tables::ALL.into_iter().find(|table| table.tag == Some(tag));
    rows(bytes, WHAT, tagged)
}

/// The rows of a chunk, and its leaves.
#[derive(Debug)]
pub(super) struct Chunk<'a> {
    pub(super) rows: Vec<Row<'a>>,
    pub(super) leaves: Vec<Leaf<'a>>,
}

/// Reads the rows of a chunk: they ascend and have the same first `bits` bits.
pub(super) fn read(bytes: &[u8], bits: usize) -> Result<Chunk<'_>, OfferError> {
    let rows = tagged_rows(bytes)?;
    let mut leaves: Vec<Leaf<'_>> = Vec::with_capacity(rows.len());
    for row in &rows {
        let key_hash = key_hash(row.table, row.key).ok_or(OfferError::Form { what: WHAT })?;
        let follows = leaves
            .last()
            .is_none_or(|last| last.key_hash < key_hash && shares(&last.key_hash, &key_hash, bits));
        if !follows {
            return Err(OfferError::Form { what: WHAT });
        }
        leaves.push(Leaf { key_hash, value: row.value });
    }
    Ok(Chunk { rows, leaves })
}

/// The rows of the chunk of a range of `bits` bits, if they have its hash. That is proved, and it
/// proves the rows.
pub(super) fn check(bytes: &[u8], bits: usize, expected: Hash) -> Result<Chunk<'_>, OfferError> {
    let chunk = read(bytes, bits)?;
    let Subtree { hash: found, .. } = subtree::of_leaves(bits, &chunk.leaves);
    if found == expected { Ok(chunk) } else { Err(OfferError::Chunk { found, expected }) }
}

/// Whether two hashes have the same first bits.
fn shares(one: &Hash, other: &Hash, bits: usize) -> bool {
    (0..bits).all(|at| bit(one, at) == bit(other, at))
}
