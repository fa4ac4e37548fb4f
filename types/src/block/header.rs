//! The header of a block, and its bytes.

use crate::json::{self, ObjectWriter};
use crate::transaction::DecodeTxError;
use crate::tx::fields::Fields;
use crate::{Address, Amount, Hash, Randomness, Rejection};

/// The header of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The id of the chain.
    pub chain_id: String,
    /// The height; the first block after genesis is 1.
    pub index: u64,
    /// The hash of the previous header; the genesis hash for the first block.
    pub previous_hash: Hash,
    /// The block's time in milliseconds since 1970, greater than that of the previous block.
    pub timestamp: u64,
    /// The address of the validator that made the block.
    pub proposer: Address,
    /// The [`super::merkle_root`] of the transaction hashes.
    pub tx_root: Hash,
    /// The root of the authenticated state after the previous block.
    pub state_root: Hash,
    /// The amount that this block burned.
    pub tokens_burned: Amount,
    /// The number of transactions.
    pub tx_count: u64,
    /// A value that nobody could know before the proposer made the block. `None` before fork v7.
    pub randomness: Option<Randomness>,
}

/// Why bytes are not a block.
#[derive(Debug, thiserror::Error)]
pub enum DecodeBlockError {
    /// The bytes end too early, or continue after the block.
    #[error("a block of {bytes} bytes is cut off or followed by more")]
    Length {
        /// The number of bytes.
        bytes: usize,
    },
    /// The header is not a header in canonical form.
    #[error("a block header is refused: {0}")]
    Header(#[source] Rejection),
    /// The header is not in canonical form.
    #[error("a block header is not in canonical form")]
    NotCanonical,
    /// An entry of a [`super::CompactBlock`] is neither a hash nor a transaction.
    #[error("entry {position} of a block's compact block is of kind {kind}; 0 or 1 was expected")]
    Entry {
        /// The position in the block, from 0.
        position: usize,
        /// The entry's kind byte.
        kind: u8,
    },
    /// A transaction cannot be parsed.
    #[error("transaction {position} of a block: {source}")]
    Transaction {
        /// The position in the block, from 0.
        position: usize,
        /// Why it cannot be parsed.
        source: DecodeTxError,
    },
}

impl Header {
    /// The canonical JSON, which is what is hashed.
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

    /// The SHA-256 of the payload, which identifies the block.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::digest(self.payload().as_bytes())
    }

    /// Parses the canonical JSON of a header.
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

/// The last two members. A header has both or neither.
fn randomness(fields: &Fields<'_, '_>) -> Result<Option<Randomness>, Rejection> {
    if !fields.has("randomness") && !fields.has("randomnessProof") {
        return Ok(None);
    }
    let (value, proof) = (fields.hash("randomness")?, fields.parsed("randomnessProof")?);
    Ok(Some(Randomness { value, proof }))
}

/// Appends the header's payload with its length.
pub(super) fn write_header(header: &Header, out: &mut Vec<u8>) {
    let payload = header.payload();
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(payload.as_bytes());
}

/// Parses the header at the front of `bytes`; returns it and the bytes after it.
pub(super) fn read_header(bytes: &[u8]) -> Result<(Header, &[u8]), DecodeBlockError> {
    let length_error = || DecodeBlockError::Length { bytes: bytes.len() };
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(length_error)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (payload, rest) = rest.split_at_checked(length).ok_or_else(length_error)?;
    Ok((Header::parse(payload)?, rest))
}
