//! Outlines of blocks: made of own proposals, and filled from the pool.

use bytes::Bytes;
use consensus::{Encoded, Verdict};
use types::block::{BlockTx, Filled, Incomplete, Outline};
use types::{Block, Hash, Header, SizeLimits, UncheckedBlock};

use super::ChainLedger;
use crate::clock::now_ms;

/// How long a transaction has to be in the own pool before an outline only names it, in
/// milliseconds. Younger ones may not have reached every other pool, and one that is missing costs
/// a round trip and the whole block.
const SPREAD_MS: u64 = 100;

/// A block that was read, and its encoded form.
pub(super) struct Draft {
    pub(super) header: Header,
    pub(super) transactions: Vec<BlockTx>,
    pub(super) bytes: Bytes,
}

impl ChainLedger {
    /// The outline of an own block: it names what has been in the pool long enough. None if that is
    /// nothing.
    pub(super) fn outline_of(&self, block: &Block) -> Option<Bytes> {
        let hashes: Vec<Hash> = block.transactions.iter().map(|tx| tx.hash()).collect();
        let is_known = self.pool.held_since(&hashes, now_ms().saturating_sub(SPREAD_MS));
        let names_any = is_known.contains(&true);
        names_any.then(|| Outline::encode(block, &is_known).into())
    }

    /// Reads a block; of what is not one, or incomplete, the verdict.
    pub(super) fn read(&self, encoded: Encoded) -> Result<Draft, Verdict> {
        match encoded {
            Encoded::Whole(bytes) => {
                let UncheckedBlock { header, transactions } =
                    self.decode(&bytes).map_err(|reason| Verdict::Undecodable { reason })?;
                let transactions = transactions.into_iter().map(Box::new).map(BlockTx::Unchecked);
                let transactions = transactions.collect();
                Ok(Draft { header, transactions, bytes })
            }
            Encoded::Outline { bytes, size, digest } => {
                let limits = SizeLimits::from(self.chain.spec().params());
                let outline = Outline::decode(&bytes, &limits)
                    .map_err(|error| Verdict::Undecodable { reason: error.to_string() })?;
                let Filled { header, transactions, bytes } = outline
                    .fill(size, &digest, |hashes| self.pool.lookup_all(hashes))
                    .map_err(|Incomplete { missing }| Verdict::Incomplete { missing })?;
                Ok(Draft { header, transactions, bytes: bytes.into() })
            }
        }
    }
}
