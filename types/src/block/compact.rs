//! Blocks that name their transactions: how a proposal travels to nodes whose pools have most of it.
//!
//! ```text
//! compact block  header payload's length (4, little-endian) | payload | entries
//! entry    0 | hash of a transaction (32)
//!          1 | the transaction, as in a block
//! ```

use super::forms::{Block, encode};
use super::header::{DecodeBlockError, Header, read_header, write_header};
use crate::transaction::SizeLimits;
use crate::{CheckedTx, Hash, Transaction};

const NAMED: u8 = 0;
const CARRIED: u8 = 1;
const HASH_BYTES: usize = 32;

/// A block in which most transactions are only named by their hashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompactBlock {
    /// The header of the block.
    pub header: Header,
    /// The transactions in order, as many as the header says.
    pub entries: Vec<CompactBlockEntry>,
}

/// One transaction of a [`CompactBlock`], which has not been checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CompactBlockEntry {
    /// Only the hash of the transaction. The reader of the compact block has to have the
    /// transaction.
    Named(Hash),
    /// The complete transaction.
    Carried(Box<Transaction>),
}

/// A transaction of a block that another node made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockTx {
    /// This node had already checked the transaction, and found it by its hash.
    Checked(CheckedTx),
    /// The transaction came with the block.
    Unchecked(Box<Transaction>),
}

impl BlockTx {
    /// The transaction, checked or not.
    #[must_use]
    pub fn transaction(&self) -> &Transaction {
        match self {
            Self::Checked(tx) => tx,
            Self::Unchecked(tx) => tx,
        }
    }

    /// The transaction, if it has not been checked.
    #[must_use]
    pub fn unchecked(&self) -> Option<&Transaction> {
        match self {
            Self::Checked(_) => None,
            Self::Unchecked(tx) => Some(tx),
        }
    }
}

/// The block that a compact block describes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filled {
    /// The header.
    pub header: Header,
    /// The transactions in order.
    pub transactions: Vec<BlockTx>,
    /// The bytes of [`Block::encode`].
    pub bytes: Vec<u8>,
}

/// The block cannot be made from the compact block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{missing} transactions of a block's compact block are not known, or known with other bytes"
)]
pub struct Incomplete {
    /// The number of unknown transactions; 0 if all are known but the bytes differ.
    pub missing: usize,
}

impl CompactBlock {
    /// Makes the block, which has `size` bytes with this SHA-256. `lookup` finds transactions by
    /// their hashes and returns them in the same order.
    ///
    /// # Errors
    /// [`Incomplete`] if a transaction is not found, or if the bytes do not have the digest,
    /// because a sender can sign one payload in more than one way.
    pub fn fill(
        self,
        size: usize,
        digest: &Hash,
        lookup: impl FnOnce(&[Hash]) -> Vec<Option<CheckedTx>>,
    ) -> Result<Filled, Incomplete> {
        let Self { header, entries } = self;
        let named = entries.iter().filter_map(|entry| match entry {
            CompactBlockEntry::Named(hash) => Some(*hash),
            CompactBlockEntry::Carried(_) => None,
        });
        let mut found = lookup(&named.collect::<Vec<Hash>>()).into_iter();
        let mut missing = 0_usize;
        let mut transactions = Vec::with_capacity(entries.len());
        for entry in entries {
            match entry {
                CompactBlockEntry::Carried(tx) => transactions.push(BlockTx::Unchecked(tx)),
                CompactBlockEntry::Named(_) => match found.next().flatten() {
                    Some(tx) => transactions.push(BlockTx::Checked(tx)),
                    None => missing = missing.saturating_add(1),
                },
            }
        }
        let all = || transactions.iter().map(BlockTx::transaction);
        // Before the bytes are put together: a compact block may name a large transaction many times.
        let least = all().map(Transaction::encoded_bytes).fold(0, usize::saturating_add);
        if missing > 0 || least > size {
            return Err(Incomplete { missing });
        }
        let bytes = encode(&header, all());
        if bytes.len() != size || Hash::digest(&bytes) != *digest {
            return Err(Incomplete { missing: 0 });
        }
        Ok(Filled { header, transactions, bytes })
    }

    /// The binary form of the compact block of `block`. `is_named` says for each transaction
    /// whether its hash is enough; transactions beyond its end are included in full.
    #[must_use]
    pub fn encode(block: &Block, is_named: &[bool]) -> Vec<u8> {
        let mut out = Vec::new();
        write_header(&block.header, &mut out);
        let is_named = is_named.iter().copied().chain(std::iter::repeat(false));
        for (tx, is_named) in block.transactions.iter().zip(is_named) {
            if is_named {
                out.push(NAMED);
                out.extend_from_slice(tx.hash().as_bytes());
            } else {
                out.push(CARRIED);
                tx.encode(&mut out);
            }
        }
        out
    }

    /// Parses the form of [`CompactBlock::encode`].
    ///
    /// # Errors
    /// [`DecodeBlockError`] for any other bytes.
    pub fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, DecodeBlockError> {
        let length_error = || DecodeBlockError::Length { bytes: bytes.len() };
        let (header, mut rest) = read_header(bytes)?;
        let mut entries = Vec::new();
        while let Some((kind, after)) = rest.split_first() {
            let position = entries.len();
            let (entry, after) = match *kind {
                NAMED => {
                    let (hash, after) =
                        after.split_first_chunk::<HASH_BYTES>().ok_or_else(length_error)?;
                    (CompactBlockEntry::Named(Hash::new(*hash)), after)
                }
                CARRIED => {
                    let (tx, after) = Transaction::decode(after, limits)
                        .map_err(|source| DecodeBlockError::Transaction { position, source })?;
                    (CompactBlockEntry::Carried(Box::new(tx)), after)
                }
                kind => return Err(DecodeBlockError::Entry { position, kind }),
            };
            entries.push(entry);
            rest = after;
        }
        if u64::try_from(entries.len()).ok() != Some(header.tx_count) {
            return Err(length_error());
        }
        Ok(Self { header, entries })
    }
}
