//! Blocks that name their transactions: how a proposal travels to nodes whose pools have most of it.
//!
//! ```text
//! outline  header payload's length (4, little-endian) | payload | entries
//! entry    0 | hash of a transaction (32)
//!          1 | the transaction, as in a block
//! ```

use super::{Block, DecodeBlockError, Header};
use crate::transaction::SizeLimits;
use crate::{CheckedTx, Hash, Transaction};

const NAMED: u8 = 0;
const CARRIED: u8 = 1;
const HASH_BYTES: usize = 32;

/// A block as far as the bytes at hand tell it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outline {
    /// The block's header.
    pub header: Header,
    /// Its transactions, in order; as many as the header says.
    pub entries: Vec<OutlineEntry>,
}

/// One transaction of an [`Outline`]; it has not been checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutlineEntry {
    /// Only its name: whoever reads the outline has to know it.
    Named(Hash),
    /// All of it.
    Carried(Box<Transaction>),
}

/// A transaction of a block that another node made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockTx {
    /// It was checked before, and found again by its name.
    Checked(CheckedTx),
    /// It came with the block.
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

    /// The transaction, if it was not checked.
    #[must_use]
    pub fn unchecked(&self) -> Option<&Transaction> {
        match self {
            Self::Checked(_) => None,
            Self::Unchecked(tx) => Some(tx),
        }
    }
}

/// The block of an outline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filled {
    /// The header.
    pub header: Header,
    /// The transactions, in order.
    pub transactions: Vec<BlockTx>,
    /// The bytes of [`Block::encode`].
    pub bytes: Vec<u8>,
}

/// An outline of which the block cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{missing} transactions of a block's outline are not known, or known with other bytes")]
pub struct Incomplete {
    /// How many are not known; 0 if all are and the bytes differ.
    pub missing: usize,
}

impl Outline {
    /// Makes the block, which is known to have `size` bytes with this digest (SHA-256). `lookup`
    /// finds transactions by their names and answers in the order of these.
    ///
    /// # Errors
    /// [`Incomplete`] if a transaction is not found, or the bytes are not those of the digest: a
    /// sender can sign one payload in more than one way.
    pub fn fill(
        self,
        size: usize,
        digest: &Hash,
        lookup: impl FnOnce(&[Hash]) -> Vec<Option<CheckedTx>>,
    ) -> Result<Filled, Incomplete> {
        let Self { header, entries } = self;
        let named = entries.iter().filter_map(|entry| match entry {
            OutlineEntry::Named(hash) => Some(*hash),
            OutlineEntry::Carried(_) => None,
        });
        let mut found = lookup(&named.collect::<Vec<Hash>>()).into_iter();
        let mut missing = 0_usize;
        let mut transactions = Vec::with_capacity(entries.len());
        for entry in entries {
            match entry {
                OutlineEntry::Carried(tx) => transactions.push(BlockTx::Unchecked(tx)),
                OutlineEntry::Named(_) => match found.next().flatten() {
                    Some(tx) => transactions.push(BlockTx::Checked(tx)),
                    None => missing = missing.saturating_add(1),
                },
            }
        }
        let all = || transactions.iter().map(BlockTx::transaction);
        // Before the bytes are put together: an outline may name a large transaction many times.
        let least = all().map(Transaction::encoded_bytes).fold(0, usize::saturating_add);
        if missing > 0 || least > size {
            return Err(Incomplete { missing });
        }
        let bytes = super::encode(&header, all());
        if bytes.len() != size || Hash::digest(&bytes) != *digest {
            return Err(Incomplete { missing: 0 });
        }
        Ok(Filled { header, transactions, bytes })
    }

    /// The binary form of a block's outline. `is_named` says of each transaction whether its name
    /// is enough; those beyond its end are carried.
    #[must_use]
    pub fn encode(block: &Block, is_named: &[bool]) -> Vec<u8> {
        let mut out = Vec::new();
        super::write_header(&block.header, &mut out);
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

    /// Reads [`Outline::encode`].
    ///
    /// # Errors
    /// [`DecodeBlockError`] for any other bytes.
    pub fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, DecodeBlockError> {
        let length_error = || DecodeBlockError::Length { bytes: bytes.len() };
        let (header, mut rest) = super::read_header(bytes)?;
        let mut entries = Vec::new();
        while let Some((kind, after)) = rest.split_first() {
            let position = entries.len();
            let (entry, after) = match *kind {
                NAMED => {
                    let (hash, after) =
                        after.split_first_chunk::<HASH_BYTES>().ok_or_else(length_error)?;
                    (OutlineEntry::Named(Hash::new(*hash)), after)
                }
                CARRIED => {
                    let (tx, after) = Transaction::decode(after, limits)
                        .map_err(|source| DecodeBlockError::Transaction { position, source })?;
                    (OutlineEntry::Carried(Box::new(tx)), after)
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
