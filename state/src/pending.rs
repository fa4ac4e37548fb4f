//! The latest committed state with transactions applied to it that wait for a block: what the pool
//! asks whether one more fits.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{Account, Address, Amount, CheckedTx, Hash, Run};

use crate::chain::{Chain, Context};
use crate::draft::{Draft, RowId};
use crate::error::{StorageError, TxError};
use crate::execute::{check, check_funds, execute};
use crate::ledger;
use crate::simulate::{Effects, simulate};
use crate::table::{Key, Table};
use crate::tables::{Accounts, Runs};
use crate::view::{Read, Still};

mod shared;

pub use shared::SharedPending;

/// A draft that lives as long as the pool. When a block commits some of its transactions, the rows
/// that only they wrote are forgotten: the committed state has them. A row that a waiting
/// transaction wrote, too, stays: it holds the effects of both.
///
/// That is right as long as the block's transactions were all admitted here, those that touch
/// the same row in a way that does not commute were executed in the order of their admission
/// (which nonces and the rules of runs see to), and no sweep changed a row that stays, but for
/// credits. In every other case: [`PendingState::reset`], and admit again.
///
/// The base stands still and is changed together with the draft, so the two are always of one height.
///
/// No bytes of blobs are here, and no hash of them: a blob whose last chunk waits is complete, and what
/// its hash is shows in the block that takes the chunk.
pub struct PendingState {
    chain: Arc<Chain>,
    base: Still,
    draft: Arc<Draft>,
    /// Grows with every change.
    changes: u64,
    /// The rows that each admitted transaction wrote, by transaction hash.
    writes: BTreeMap<Hash, Vec<RowId>>,
    /// How many admitted transactions wrote each row.
    writers: BTreeMap<RowId, u32>,
}

impl PendingState {
    /// Nothing pending on top of `base`.
    #[must_use]
    pub fn new(base: Still, chain: Arc<Chain>) -> Self {
        let draft = Arc::new(Draft::for_checks(Arc::clone(base.source())));
        let (writes, writers) = (BTreeMap::new(), BTreeMap::new());
        Self { chain, base, draft, changes: 0, writes, writers }
    }

    /// An account after everything admitted so far.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn account(&self, address: Address) -> Result<Account, StorageError> {
        Ok(self.draft.get::<Accounts>(&address)?.unwrap_or_default())
    }

    /// A run after everything admitted so far. Its places in the chain and its times are those of
    /// no block.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn run(&self, agent_run_id: &Hash) -> Result<Option<Run>, StorageError> {
        self.draft.get::<Runs>(agent_run_id)
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

    /// Whether a transaction could be admitted now.
    ///
    /// # Errors
    /// As [`check`].
    pub fn check(&self, tx: &CheckedTx) -> Result<(), TxError> {
        check(tx, &*self.draft, &self.context())
    }

    /// Whether the sender could pay for a transaction after everything admitted so far, even if
    /// it would be refused for another reason.
    ///
    /// # Errors
    /// As [`check_funds`].
    pub fn check_funds(&self, tx: &CheckedTx) -> Result<(), TxError> {
        check_funds(tx, &*self.draft, &self.chain)
    }

    /// Executes a transaction after all that were admitted before it. A refused one changes
    /// nothing, nor does one during which the database fails. The fork was checked with the signature, for
    /// the block that comes next.
    ///
    /// # Errors
    /// As [`execute`].
    ///
    /// # Panics
    /// Never: no simulation outlives its call.
    pub fn admit(&mut self, tx: &CheckedTx) -> Result<(), TxError> {
        let ctx = context(&self.chain);
        let draft = Arc::get_mut(&mut self.draft).expect("no simulation outlives its call");
        if let Err(error) = execute(tx, draft, &ctx) {
            // A refusal has written nothing; a fault may have come in the middle.
            draft.undo_written();
            return Err(error);
        }
        self.changes = self.changes.wrapping_add(1);
        let mut rows = draft.take_written();
        rows.sort_unstable();
        rows.dedup();
        for row in &rows {
            let writers = self.writers.entry(row.clone()).or_default();
            *writers = writers.saturating_add(1);
        }
        self.writes.insert(tx.hash(), rows);
        Ok(())
    }

    /// What a transaction would do after everything admitted so far, in a block of this height and
    /// timestamp. What it pays to the block's proposer is in the sender's balance only, because
    /// nobody knows who that will be.
    ///
    /// # Errors
    /// As [`execute`].
    pub fn simulate(
        &self,
        tx: &CheckedTx,
        height: u64,
        timestamp: u64,
    ) -> Result<Effects, TxError> {
        let base: Arc<dyn Read> = Arc::<Draft>::clone(&self.draft);
        let ctx = Context { height, timestamp, ..self.context() };
        simulate(tx, &base, &ctx).map(without_nobody)
    }

    /// A block has brought the state to `base`, with these transactions, and besides credited these
    /// accounts ([`types::BlockEvents::credits`]).
    ///
    /// # Errors
    /// [`StorageError`] if a sum of money overflows.
    ///
    /// # Panics
    /// Never: no simulation outlives its call.
    pub fn advance(
        &mut self,
        base: Still,
        committed: &[CheckedTx],
        credits: &BTreeMap<Address, Amount>,
    ) -> Result<(), StorageError> {
        let draft = Arc::get_mut(&mut self.draft).expect("no simulation outlives its call");
        draft.rebase(Arc::clone(base.source()));
        self.base = base;
        self.changes = self.changes.wrapping_add(1);
        for tx in committed {
            for row in self.writes.remove(&tx.hash()).unwrap_or_default() {
                let Some(writers) = self.writers.get_mut(&row) else { continue };
                *writers = writers.saturating_sub(1);
                if *writers == 0 {
                    self.writers.remove(&row);
                    draft.forget(&row);
                }
            }
        }
        for (address, amount) in credits {
            // Whoever has no row of its own is looked up in the base, which has the credit.
            if self.writers.contains_key(&(Accounts::ID, address.to_bytes())) {
                ledger::credit(draft, *address, *amount)?;
            }
        }
        // These writes belong to no transaction.
        drop(draft.take_written());
        Ok(())
    }

    /// Starts on top of `base` without anything admitted. Answers what was before: to take it down
    /// may take long, if much was admitted.
    pub fn reset(&mut self, base: Still) -> Self {
        let changes = self.changes.wrapping_add(1);
        let empty = Self { changes, ..Self::new(base, Arc::clone(&self.chain)) };
        std::mem::replace(self, empty)
    }

    fn context(&self) -> Context<'_> {
        context(&self.chain)
    }
}

/// An address that belongs to no key that anybody could find.
const NOBODY: Address = Address::new([0xff; 20]);

/// What the proposer of no block would get is told to nobody.
fn without_nobody(mut effects: Effects) -> Effects {
    effects.balances.remove(&NOBODY);
    effects
}

/// No check depends on height, time and place, and none on the proposer: the fees of pending
/// transfers go to nobody, because nobody knows who will make the block.
fn context(chain: &Chain) -> Context<'_> {
    Context { chain, height: u64::MAX, timestamp: 0, proposer: NOBODY, position: 0 }
}

impl std::fmt::Debug for PendingState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PendingState({} transactions)", self.writes.len())
    }
}
