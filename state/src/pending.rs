//! The latest committed state with transactions applied to it that wait for a block: what the pool
//! asks whether one more fits.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{Account, Address, CheckedTx, Hash};

use crate::chain::{Chain, Context};
use crate::draft::{Draft, RowId};
use crate::error::{StorageError, TxError};
use crate::execute::execute;
use crate::tables::Accounts;
use crate::view::{self, Read};

/// A draft that lives as long as the pool. When a block commits some of its transactions, the rows
/// that only they wrote are forgotten: the committed state has them. A row that a waiting
/// transaction wrote, too, stays: it holds the effects of both.
///
/// That is right as long as the block's transactions were all admitted here, those that touch
/// the same row in a way that does not commute were executed in the order of their admission
/// (which nonces and the rules of runs see to), and no sweep changed a row that stays. In every
/// other case: [`Pending::reset`], and admit again.
pub struct Pending {
    chain: Arc<Chain>,
    base: Arc<dyn Read>,
    draft: Draft,
    next: Next,
    /// The rows that each admitted transaction wrote, by transaction hash.
    writes: BTreeMap<Hash, Vec<RowId>>,
    /// How many admitted transactions wrote each row.
    writers: BTreeMap<RowId, u32>,
}

/// Height and earliest timestamp of the block that comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Next {
    /// The block's index.
    pub height: u64,
    /// A lower bound of its timestamp, in milliseconds. No check depends on it.
    pub timestamp: u64,
}

impl Pending {
    /// Nothing pending on top of `base`.
    #[must_use]
    pub fn new(chain: Arc<Chain>, base: Arc<dyn Read>, next: Next) -> Self {
        let draft = Draft::for_checks(Arc::clone(&base));
        Self { chain, base, draft, next, writes: BTreeMap::new(), writers: BTreeMap::new() }
    }

    /// An account in the committed state.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn committed(&self, address: Address) -> Result<Account, StorageError> {
        Ok(view::get::<Accounts>(&*self.base, &address)?.unwrap_or_default())
    }

    /// An account after everything admitted so far.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn pending(&self, address: Address) -> Result<Account, StorageError> {
        Ok(self.draft.get::<Accounts>(&address)?.unwrap_or_default())
    }

    /// How many transactions are admitted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether nothing is admitted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Executes a transaction after all that were admitted before it. A refused one changes
    /// nothing. Fees of pending transfers are credited to nobody, because nobody knows the
    /// proposer yet.
    ///
    /// # Errors
    /// As [`execute`].
    pub fn admit(&mut self, tx: &CheckedTx) -> Result<(), TxError> {
        let Next { height, timestamp } = self.next;
        let proposer = Address::default();
        let ctx = Context { chain: &self.chain, height, timestamp, proposer, position: 0 };
        execute(tx, &mut self.draft, &ctx)?;
        let mut rows = self.draft.take_written();
        rows.sort_unstable();
        rows.dedup();
        for row in &rows {
            let writers = self.writers.entry(row.clone()).or_default();
            *writers = writers.saturating_add(1);
        }
        self.writes.insert(tx.hash(), rows);
        Ok(())
    }

    /// Whether the transaction is admitted.
    #[must_use]
    pub fn contains(&self, hash: &Hash) -> bool {
        self.writes.contains_key(hash)
    }

    /// Moves on to the state after a block. `committed` are the hashes of its transactions.
    pub fn advance(
        &mut self,
        base: Arc<dyn Read>,
        next: Next,
        committed: impl IntoIterator<Item = Hash>,
    ) {
        self.draft.set_base(Arc::clone(&base));
        self.base = base;
        self.next = next;
        for hash in committed {
            for row in self.writes.remove(&hash).unwrap_or_default() {
                self.release(row);
            }
        }
    }

    fn release(&mut self, row: RowId) {
        let Some(writers) = self.writers.get_mut(&row) else { return };
        *writers = writers.saturating_sub(1);
        if *writers == 0 {
            self.writers.remove(&row);
            self.draft.forget(&row);
        }
    }

    /// Forgets everything that was admitted and starts on top of `base`.
    pub fn reset(&mut self, base: Arc<dyn Read>, next: Next) {
        *self = Self::new(Arc::clone(&self.chain), base, next);
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pending({} transactions)", self.writes.len())
    }
}
