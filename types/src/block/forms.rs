//! The forms of a block: as it is executed, stored, shown and received.

use super::header::{DecodeBlockError, Header, read_header, write_header};
use crate::transaction::{SealedTx, SizeLimits};
use crate::{BlockEvents, CheckedTx, Hash, Transaction};

/// A header and its transactions, all of which passed the static checks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// The header.
    pub header: Header,
    /// The transactions in the order of execution.
    pub transactions: Vec<CheckedTx>,
}

/// A committed block together with its events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedBlock {
    /// The header and the transactions.
    pub block: Block,
    /// The hash of the header.
    pub hash: Hash,
    /// The events of the block; `None` if the node committed the block with a program that kept no
    /// events.
    pub events: Option<BlockEvents>,
}

/// A committed block in the form in which clients see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedBlock {
    /// The header.
    pub header: Header,
    /// The hash of the header.
    pub hash: Hash,
    /// The transactions in the order of execution.
    pub transactions: Vec<SealedTx>,
}

/// A block from a peer or from disk, whose transactions have not been checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UncheckedBlock {
    /// The header.
    pub header: Header,
    /// The transactions in order.
    pub transactions: Vec<Transaction>,
}

impl Block {
    /// The binary form: the header's payload with its length as `u32` little-endian, then each
    /// transaction ([`Transaction::encode`]).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.header, self.transactions.iter().map(|tx| &**tx))
    }

    /// The hash of the header, which identifies the block.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.header.hash()
    }
}

impl UncheckedBlock {
    /// Parses the form of [`Block::encode`].
    ///
    /// # Errors
    /// [`DecodeBlockError`] for any other bytes.
    pub fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, DecodeBlockError> {
        let length_error = || DecodeBlockError::Length { bytes: bytes.len() };
        let (header, mut rest) = read_header(bytes)?;
        let mut transactions = Vec::new();
        while !rest.is_empty() {
            let position = transactions.len();
            let (tx, after) = Transaction::decode(rest, limits)
                .map_err(|source| DecodeBlockError::Transaction { position, source })?;
            transactions.push(tx);
            rest = after;
        }
        if u64::try_from(transactions.len()).ok() != Some(header.tx_count) {
            return Err(length_error());
        }
        Ok(Self { header, transactions })
    }
}

/// The bytes of [`Block::encode`].
pub(super) fn encode<'a>(
    header: &Header,
    transactions: impl Iterator<Item = &'a Transaction> + Clone,
) -> Vec<u8> {
    let mut out = Vec::new();
    write_header(header, &mut out);
    out.reserve_exact(transactions.clone().map(Transaction::encoded_bytes).sum());
    for tx in transactions {
        tx.encode(&mut out);
    }
    out
}
