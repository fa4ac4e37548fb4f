//! What stands in blocks.

use types::{CheckedTx, Hash, Header, TxLocation};

use super::{PortFault, Slice};

/// A transaction in a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IncludedTx {
    /// The transaction.
    pub tx: CheckedTx,
    /// Where it stands.
    pub location: TxLocation,
    /// The block.
    pub block_hash: Hash,
    /// The block's timestamp.
    pub timestamp: u64,
}

/// Transactions, or runs with theirs, that are loaded before their size is looked at: neighbours cost one
/// read.
pub(crate) const LOADED_TOGETHER: usize = 8;

/// What stands in blocks, by name, by place and by conversation.
pub trait Transactions: Send + Sync {
    /// The included transaction with this hash.
    ///
    /// # Errors
    /// [`PortFault`].
    fn by_hash(&self, hash: &Hash) -> Result<Option<IncludedTx>, PortFault>;

    /// The transactions at these places, in the order asked for; a place that does not exist is
    /// a fault, because positions come from records. At most 1,500 places, often several in one
    /// block.
    ///
    /// # Errors
    /// [`PortFault`].
    fn at(&self, locations: &[TxLocation]) -> Result<Vec<IncludedTx>, PortFault>;

    /// As [`Transactions::at`], but ends with the transaction whose bytes make the sum reach
    /// `bytes_max`, so that no list loads much more than it shows.
    ///
    /// # Errors
    /// [`PortFault`].
    fn at_within(
        &self,
        locations: &[TxLocation],
        bytes_max: usize,
    ) -> Result<Vec<IncludedTx>, PortFault> {
        let (mut included, mut bytes) = (Vec::new(), 0_usize);
        for some in locations.chunks(LOADED_TOGETHER) {
            for one in self.at(some)? {
                bytes = bytes.saturating_add(one.tx.signed_bytes());
                included.push(one);
                if bytes >= bytes_max {
                    return Ok(included);
                }
            }
        }
        Ok(included)
    }

    /// Headers with their hashes from `from` downwards, at most `limit`, ending with block 1.
    ///
    /// # Errors
    /// [`PortFault`].
    fn headers(&self, from: u64, limit: usize) -> Result<Vec<(Hash, Header)>, PortFault>;

    /// Where the turns of a conversation are, in chain order, after `after`.
    ///
    /// # Errors
    /// [`PortFault`].
    fn turns(
        &self,
        conversation_id: &Hash,
        after: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<TxLocation, TxLocation>, PortFault>;
}
