//! Compact blocks of blocks: made of own proposals, and filled from the pool.

use bytes::Bytes;
use consensus::{Encoded, Verdict};
use txpool::Pool;
use types::block::{BlockTx, CompactBlock, Filled, Incomplete};
use types::{Block, Hash, Header, SizeLimits, UncheckedBlock};

use crate::clock::now_ms;

/// How long a transaction has to be in the own pool before a compact block only names it, in
/// milliseconds. Younger ones may not have reached every other pool, and one that is missing costs
/// a round trip and the whole block.
const SPREAD_MS: u64 = 100;

/// A block that was read, and its encoded form.
pub(super) struct Draft {
    pub(super) header: Header,
    pub(super) transactions: Vec<BlockTx>,
    pub(super) bytes: Bytes,
}

/// The compact block of an own block: it names what has been in the pool long enough. None if that is
/// nothing.
pub(super) fn make(pool: &Pool, block: &Block) -> Option<Bytes> {
    let hashes: Vec<Hash> = block.transactions.iter().map(|tx| tx.hash()).collect();
    let is_known = pool.held_since(&hashes, now_ms().saturating_sub(SPREAD_MS));
    let names_any = is_known.contains(&true);
    names_any.then(|| CompactBlock::encode(block, &is_known).into())
}

/// Reads a block; of what is not one, or incomplete, the verdict.
pub(super) fn read(pool: &Pool, encoded: Encoded, limits: &SizeLimits) -> Result<Draft, Verdict> {
    match encoded {
        Encoded::Whole(bytes) => {
            let UncheckedBlock { header, transactions } =
                decode(&bytes, limits).map_err(|reason| Verdict::Undecodable { reason })?;
            let transactions = transactions.into_iter().map(Box::new).map(BlockTx::Unchecked);
            let transactions = transactions.collect();
            Ok(Draft { header, transactions, bytes })
        }
        Encoded::CompactBlock { bytes, size, digest } => {
            let compact_block = CompactBlock::decode(&bytes, limits)
                .map_err(|error| Verdict::Undecodable { reason: error.to_string() })?;
            let Filled { header, transactions, bytes } = compact_block
                .fill(size, &digest, |hashes| pool.lookup_all(hashes))
                .map_err(|Incomplete { missing }| Verdict::Incomplete { missing })?;
            Ok(Draft { header, transactions, bytes: bytes.into() })
        }
    }
}

/// Reads a whole block.
pub(super) fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<UncheckedBlock, String> {
    UncheckedBlock::decode(bytes, limits).map_err(|error| error.to_string())
}
