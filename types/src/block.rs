//! Blocks (docs/protocol.md section 6).

use crate::json::{self, ObjectWriter};
use crate::transaction::{DecodeTxError, SealedTx, SizeLimits};
use crate::tx::fields::Fields;
use crate::{Address, Amount, BlockEvents, CheckedTx, Hash, Randomness, Rejection, Transaction};

mod outline;

pub use outline::{BlockTx, Filled, Incomplete, Outline, OutlineEntry};

/// What a block says about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The chain's name.
    pub chain_id: String,
    /// The height; the first block after genesis is 1.
    pub index: u64,
    /// The previous header's hash; the genesis hash for the first block.
    pub previous_hash: Hash,
    /// Milliseconds since 1970, greater than the previous block's.
    pub timestamp: u64,
    /// The validator that made the block.
    pub proposer: Address,
    /// [`merkle_root`] of the transactions' hashes.
    pub tx_root: Hash,
    /// Root of the authenticated state after the previous block.
    pub state_root: Hash,
    /// What this block burned.
    pub tokens_burned: Amount,
    /// How many transactions it has.
    pub tx_count: u64,
    /// From fork v7 on: what nobody could know before its proposer made it. None before.
    pub randomness: Option<Randomness>,
}

/// Why bytes are not a block.
#[derive(Debug, thiserror::Error)]
pub enum DecodeBlockError {
    /// The bytes end too early, or go on after the block.
    #[error("a block of {bytes} bytes is cut off or followed by more")]
    Length {
        /// How many bytes there are.
        bytes: usize,
    },
    /// The header is not a header in canonical form.
    #[error("a block header is refused: {0}")]
    Header(#[source] Rejection),
    /// The header is not in canonical form.
    #[error("a block header is not in canonical form")]
    NotCanonical,
    /// An entry of an [`Outline`] is neither a name nor a transaction.
    #[error("entry {position} of a block's outline is of kind {kind}; 0 or 1 was expected")]
    Entry {
        /// Its place in the block, from 0.
        position: usize,
        /// What it says that it is.
        kind: u8,
    },
    /// A transaction cannot be read.
    #[error("transaction {position} of a block: {source}")]
    Transaction {
        /// Its place in the block, from 0.
        position: usize,
        /// What is wrong with it.
        source: DecodeTxError,
    },
}

impl Header {
    /// The canonical JSON that is hashed.
    #[must_use]
    pub fn payload(&self) -> String {
        let mut payload = String::with_capacity(760);
        let mut object = ObjectWriter::new(&mut payload);
        object.string("chainId", &self.chain_id);
        object.integer("index", self.index);
        object.display("previousHash", &self.previous_hash);
        object.integer("timestamp", self.timestamp);
        object.display("proposer", &self.proposer);
        object.display("txRoot", &self.tx_root);
        object.display("stateRoot", &self.state_root);
        object.display("tokensBurned", &self.tokens_burned);
        object.integer("txCount", self.tx_count);
        if let Some(Randomness { value, proof }) = &self.randomness {
            object.display("randomness", value);
            object.display("randomnessProof", proof);
        }
        object.end();
        payload
    }

    /// SHA-256 of the payload: the block's name.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::digest(self.payload().as_bytes())
    }

    /// Reads the canonical JSON of a header.
    ///
    /// # Errors
    /// [`DecodeBlockError`] for anything but the exact text of [`Header::payload`].
    pub fn parse(payload: &[u8]) -> Result<Self, DecodeBlockError> {
        let refused = |e| Rejection::malformed("header", e, "a block header");
        let value = json::parse(payload, 1).map_err(refused).map_err(DecodeBlockError::Header)?;
        let header = Fields::of_named(&value, "header")
            .and_then(|fields| {
                Ok(Self {
                    chain_id: fields.string("chainId")?,
                    index: fields.integer("index")?,
                    previous_hash: fields.hash("previousHash")?,
                    timestamp: fields.integer("timestamp")?,
                    proposer: fields.parsed("proposer")?,
                    tx_root: fields.hash("txRoot")?,
                    state_root: fields.hash("stateRoot")?,
                    tokens_burned: fields.amount("tokensBurned")?,
                    tx_count: fields.integer("txCount")?,
                    randomness: randomness(&fields)?,
                })
            })
            .map_err(DecodeBlockError::Header)?;
        if header.payload().as_bytes() != payload {
            return Err(DecodeBlockError::NotCanonical);
        }
        Ok(header)
    }
}

/// The two last members, which a header has together or not at all.
fn randomness(fields: &Fields<'_, '_>) -> Result<Option<Randomness>, Rejection> {
    if !fields.has("randomness") && !fields.has("randomnessProof") {
        return Ok(None);
    }
    let (value, proof) = (fields.hash("randomness")?, fields.parsed("randomnessProof")?);
    Ok(Some(Randomness { value, proof }))
}

/// A header and its transactions, each of which passed the static checks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// The header.
    pub header: Header,
    /// The transactions, in order of execution.
    pub transactions: Vec<CheckedTx>,
}

/// A committed block with what it did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedBlock {
    /// The header and the transactions.
    pub block: Block,
    /// The header's hash.
    pub hash: Hash,
    /// What it did; none if the node committed it with a program that kept no events.
    pub events: Option<BlockEvents>,
}

/// A committed block as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedBlock {
    /// The header.
    pub header: Header,
    /// The header's hash.
    pub hash: Hash,
    /// The transactions, in order of execution.
    pub transactions: Vec<SealedTx>,
}

/// A block as a peer or a disk gives it: its transactions have not been checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UncheckedBlock {
    /// The header.
    pub header: Header,
    /// The transactions, in order.
    pub transactions: Vec<Transaction>,
}

impl Block {
    /// The binary form: the header's payload with its length as `u32` little-endian, then each
    /// transaction ([`Transaction::encode`]).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.header, self.transactions.iter().map(|tx| &**tx))
    }

    /// The block's name.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.header.hash()
    }
}

impl UncheckedBlock {
    /// Reads [`Block::encode`].
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
fn encode<'a>(
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

fn write_header(header: &Header, out: &mut Vec<u8>) {
    let payload = header.payload();
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(payload.as_bytes());
}

/// The header at the front of `bytes`, and what follows.
fn read_header(bytes: &[u8]) -> Result<(Header, &[u8]), DecodeBlockError> {
    let length_error = || DecodeBlockError::Length { bytes: bytes.len() };
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(length_error)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (payload, rest) = rest.split_at_checked(length).ok_or_else(length_error)?;
    Ok((Header::parse(payload)?, rest))
}

/// The binary Merkle root of RFC 6962 section 2.1 over 32-byte leaves.
#[must_use]
pub fn merkle_root(leaves: &[Hash]) -> Hash {
    root(leaves, |leaf| leaf.as_bytes())
}

fn root<T>(leaves: &[T], bytes: fn(&T) -> &[u8]) -> Hash {
    match leaves {
        [] => Hash::digest(&[]),
        [leaf] => Hash::digest_parts(&[&[0], bytes(leaf)]),
        _ => {
            let half = leaves.len().next_power_of_two() / 2;
            let (left, right) = leaves.split_at(half);
            let (left, right) = (root(left, bytes), root(right, bytes));
            Hash::digest_parts(&[&[1], left.as_bytes(), right.as_bytes()])
        }
    }
}

#[cfg(test)]
mod tests;
