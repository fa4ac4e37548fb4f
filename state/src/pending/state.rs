//! The pending state: a draft of the next block's state that admits transactions, follows the blocks,
//! and says what the next transaction would find.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use types::check::check_before_v8;
use types::tx::CallAppeal;
use types::{Account, Address, Amount, Body, BondChange, CheckedTx, Hash, Rejection, Run};

use super::admitted::{Admitted, Payer, Undo, Writers, add_writer, is_last_of, take_debit};
use crate::bonds;
use crate::chain::ChainRules;
use crate::context::Context;
use crate::draft::{Draft, Notes, RowId, Written};
use crate::error::{StorageError, TxError};
use crate::execute::{check, check_funds, execute_if};
use crate::fees::{Price, charged_bytes, is_vote};
use crate::ledger;
use crate::market::rankings::Rankings;
use crate::rules::Rules;
use crate::simulate::{Effects, simulate};
use crate::table::{Key, Table};
use crate::tables::{Accounts, Bonds, Calls, Runs};
use crate::tx::envelope::Done;
use crate::tx::{is_early, votes};
use crate::view::{self, Read, Still};

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
///
/// From v7 on it checks by the rules of the next block, and of each admitted transaction it sets aside
/// what the inclusion fee may come to while the base fee grows to [`RESERVE_FACTOR`] times what it was
/// when the draft was begun. What a block takes less comes back as a credit. A transaction whose
/// `maxBaseFee` is below the base fee is admitted like any other: it waits until the base fee has
/// fallen ([`crate::fees::check_base_fee`]).
pub struct PendingState {
    chain: Arc<ChainRules>,
    pub(super) base: Still,
    /// The height of the next block.
    height: u64,
    /// The rules of the next block.
    pub(super) rules: Arc<Rules>,
    pub(super) draft: Arc<Draft>,
    /// What was read of the order of offers in the base.
    rankings: Arc<Rankings>,
    /// Grows with every change.
    pub(super) changes: u64,
    /// What each admitted transaction did to the draft, by transaction hash.
    pub(super) admitted: HashMap<Hash, Admitted>,
    /// The admitted transactions that wrote each row.
    pub(super) writers: HashMap<RowId, Writers>,
    /// From v7 on what the admitted transactions of each sender take from it, whatever it gets.
    pub(super) debits: HashMap<Address, u128>,
}

/// So many times the base fee at which a draft was begun are set aside for each transaction.
pub const RESERVE_FACTOR: u64 = 4;

/// A state, and the block after which it is one.
#[derive(Clone, Debug)]
pub struct Base {
    /// The state.
    pub state: Still,
    /// The block's height; 0 for genesis.
    pub height: u64,
}

impl PendingState {
    /// Nothing pending on top of `base`.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn new(base: Base, chain: Arc<ChainRules>) -> Result<Self, StorageError> {
        let Base { state: base, height } = base;
        let height = height.saturating_add(1);
        let rules = Arc::new(pool_rules(&chain, &base, height, None)?);
        let draft = Arc::new(Draft::for_checks(Arc::clone(base.source())));
        Ok(Self {
            chain,
            base,
            height,
            rules,
            draft,
            rankings: Arc::default(),
            changes: 0,
            admitted: HashMap::new(),
            writers: HashMap::new(),
            debits: HashMap::new(),
        })
    }

    /// The rules by which it checks: those of the next block.
    #[must_use]
    pub const fn rules(&self) -> &Arc<Rules> {
        &self.rules
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
        self.admitted.len()
    }

    /// Whether nothing is admitted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.admitted.is_empty()
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
        check_funds(tx, &*self.draft, &self.context())
    }

    /// Whether no block takes an admitted transaction any more because its height has come, or its age:
    /// that of a vote on a rule, or of what evidence is about. What else it depends on changes only with
    /// the validators, or with what was decided.
    #[must_use]
    pub fn is_late(&self, tx: &CheckedTx) -> bool {
        self.rules.is_v7() && votes::is_late(tx.body(), self.height, &self.rules.params)
    }

    /// Whether a transaction that [`PendingState::check`] refuses for the phase of its call may be taken in
    /// a later one, as things are after everything admitted so far.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn is_early(&self, tx: &CheckedTx) -> Result<bool, StorageError> {
        is_early(tx, &*self.draft)
    }

    /// Refuses a transaction whose form the next block takes from no sender.
    ///
    /// # Errors
    /// [`Rejection`] of [`check_before_v8`], before v8.
    pub fn check_form(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        if self.rules.is_v8(self.height) { Ok(()) } else { check_before_v8(tx) }
    }

    /// Executes a transaction after all that were admitted before it. A refused one changes
    /// nothing, nor does one during which the database fails. The fork was checked with the signature, for
    /// the block that comes next.
    ///
    /// # Errors
    /// [`TxError`]: the rejection, or a fault of the database.
    ///
    /// # Panics
    /// Never: no simulation outlives its call.
    pub fn admit(&mut self, tx: &CheckedTx) -> Result<(), TxError> {
        let ctx = Context { rankings: Some(&*self.rankings), ..context(&self.rules, self.height) };
        let draft = Arc::get_mut(&mut self.draft).expect("no simulation outlives its call");
        let Done { charge, had, left, .. } =
            match execute_if(tx, draft, &ctx, |_| Ok::<_, TxError>(())) {
                Ok(done) => done,
                Err(error) => {
                    // A rejection has written nothing; a fault may have come in the middle.
                    draft.undo_written();
                    return Err(error);
                }
            };
        self.changes = self.changes.wrapping_add(1);
        let is_v7 = self.rules.is_v7();
        let Notes { mut written, credited } = draft.take_notes();
        let mut undo = if is_v7 {
            Undo::of(&Payer { address: tx.from(), had, left }, credited)
        } else {
            Undo::default()
        };
        // Of several writes of a row the first stays, which knows what the row was before the transaction.
        written.sort_by(|a, b| a.row.cmp(&b.row));
        written.dedup_by(|later, first| later.row == first.row);
        let mut rows = Vec::with_capacity(written.len());
        for Written { row, before } in written {
            let in_order = is_v7 && row.0 != Accounts::ID;
            let is_shared = add_writer(&mut self.writers, &row, in_order.then(|| tx.hash()));
            if let Some(before) = before.filter(|_| in_order && is_shared) {
                undo.before.push((row.clone(), before));
            }
            rows.push(row);
        }
        if is_v7 {
            let debits = self.debits.entry(tx.from()).or_default();
            *debits = debits.saturating_add(undo.debit());
        }
        self.admitted.insert(tx.hash(), Admitted { rows, charge, undo });
        Ok(())
    }

    /// What a transaction would do after everything admitted so far, in a block of this height and
    /// timestamp. What it pays to the block's proposer is in the sender's balance only, because
    /// nobody knows who that will be.
    ///
    /// # Errors
    /// [`TxError`]: the rejection, or a fault of the database.
    pub fn simulate(
        &self,
        tx: &CheckedTx,
        height: u64,
        timestamp: u64,
    ) -> Result<Effects, TxError> {
        let base: Arc<dyn Read> = Arc::<Draft>::clone(&self.draft);
        let rules = self.rules.of_block();
        let rankings = Some(&*self.rankings);
        let ctx = Context { timestamp, rankings, ..context(&rules, height) };
        simulate(tx, &base, &ctx).map(without_nobody)
    }

    /// A block has brought the state to `base`, with these transactions, and besides credited these
    /// accounts ([`types::BlockEvents::credits`]) and changed these bonds. Answers whether the draft is right with that; if the
    /// rules have changed, the base fee has passed what was set aside, or an appeal took something else, it
    /// must be begun anew.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a sum of money overflows.
    ///
    /// # Panics
    /// Never: no simulation outlives its call.
    pub fn advance(
        &mut self,
        base: Base,
        committed: &[CheckedTx],
        credits: &BTreeMap<Address, Amount>,
        changed_bonds: &BTreeMap<Address, BondChange>,
    ) -> Result<bool, StorageError> {
        let Base { state: base, height } = base;
        let height = height.saturating_add(1);
        let rules = pool_rules(&self.chain, &base, height, self.rules.price)?;
        // One that waits may be about the same key. There is hardly ever any.
        let has_evidence = committed.iter().any(|tx| matches!(tx.body(), Body::Evidence(_)));
        let mut is_right = is_kept((&self.rules, self.height), (&rules, height)) && !has_evidence;
        let taken = self.rules.price.map(|price| price.base_fee);
        let draft = Arc::get_mut(&mut self.draft).expect("no simulation outlives its call");
        draft.rebase(Arc::clone(base.source()));
        self.base = base;
        self.rankings = Arc::default();
        self.height = height;
        self.rules = Arc::new(rules);
        self.changes = self.changes.wrapping_add(1);
        let mut back: Vec<(Address, Amount)> = Vec::new();
        let mut voters: BTreeSet<Address> = BTreeSet::new();
        for tx in committed {
            // Which vote was free the block has decided.
            let has_voted = is_vote(tx) && !voters.insert(tx.from());
            let Some(Admitted { rows, charge, undo }) = self.admitted.remove(&tx.hash()) else {
                continue;
            };
            take_debit(&mut self.debits, tx.from(), &undo);
            if let Body::CallAppeal(appeal) = tx.body() {
                let set_aside = undo.debit().checked_sub(charge.place());
                is_right &= stakes(&**self.base.source(), appeal)? == set_aside;
            }
            for row in rows {
                if is_last_of(&mut self.writers, &row, tx.hash()) {
                    draft.forget(&row);
                }
            }
            let unused = taken.map(|taken| charge.unused(charged_bytes(tx, || has_voted), taken));
            match unused {
                Some(Some(unused)) if !unused.is_zero() => back.push((tx.from(), unused)),
                Some(Some(_)) | None => {}
                Some(None) => is_right = false,
            }
        }
        let credits = credits.iter().map(|(address, amount)| (*address, *amount));
        for (address, amount) in credits.chain(back) {
            // Whoever has no row of its own is looked up in the base, which has the credit.
            if self.writers.contains_key(&(Accounts::ID, address.to_bytes())) {
                ledger::credit(draft, address, amount)?;
            }
        }
        for (miner, change) in changed_bonds {
            let row = (Bonds::ID, miner.to_bytes());
            if let Some(writers) = self.writers.get(&row) {
                bonds::follow(draft, *miner, *change)?;
                // What the row was before one of them is changed alike.
                for hash in &writers.order {
                    if let Some(admitted) = self.admitted.get_mut(hash) {
                        admitted.undo.follow_bond(&row, *change)?;
                    }
                }
            }
        }
        // These writes belong to no transaction.
        drop(draft.take_notes());
        Ok(is_right)
    }

    /// Starts on top of `base` without anything admitted. Answers what was before: to take it down
    /// may take long, if much was admitted.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails; then nothing is changed.
    pub fn reset(&mut self, base: Base) -> Result<Self, StorageError> {
        let changes = self.changes.wrapping_add(1);
        let empty = Self { changes, ..Self::new(base, Arc::clone(&self.chain))? };
        Ok(std::mem::replace(self, empty))
    }

    /// The committed state, the rules, and what was read of the order of offers.
    pub(super) fn committed(&self) -> (Still, Arc<Rules>, Arc<Rankings>) {
        (self.base.clone(), Arc::clone(&self.rules), Arc::clone(&self.rankings))
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context { rankings: Some(&*self.rankings), ..context(&self.rules, self.height) }
    }
}

/// An address that belongs to no key that anybody could find.
pub(super) const NOBODY: Address = Address::new([0xff; 20]);

/// Leaves out the reward of the placeholder proposer: no block has been proposed yet, so nobody receives it.
pub(super) fn without_nobody(mut effects: Effects) -> Effects {
    effects.balances.remove(&NOBODY);
    effects
}

/// No check depends on time and place, and none on the proposer: the fees of pending transfers go to
/// nobody, because nobody knows who will make the block. Of the height depend only which rules hold.
pub(super) fn context(rules: &Rules, height: u64) -> Context<'_> {
    Context { rules, height, timestamp: 0, proposer: NOBODY, position: 0, rankings: None }
}

/// The rules of a block, with the reserve of the pool: that of the draft so far, or a new one.
fn pool_rules(
    chain: &ChainRules,
    base: &Still,
    height: u64,
    before: Option<Price>,
) -> Result<Rules, StorageError> {
    let mut rules = Rules::at(chain, &**base.source(), height)?;
    if let Some(price) = &mut rules.price {
        let reserve = before.and_then(|before| before.reserve);
        let reserve = reserve.unwrap_or_else(|| price.base_fee.saturating_mul(RESERVE_FACTOR));
        price.reserve = Some(reserve);
    }
    Ok(rules)
}

/// What an appeal took in its block, which has just been committed: the size of the second round is that
/// of then. The draft has looked for eligible miners in an earlier state.
fn stakes(state: &dyn Read, appeal: &CallAppeal) -> Result<Option<u128>, StorageError> {
    let call = view::get::<Calls>(state, &appeal.call_id)?;
    let appeal = call.and_then(|call| call.appeal);
    Ok(appeal.map(|it| u128::from(it.payment.get()).saturating_add(it.deposit.get().into())))
}

/// Whether what was admitted by the rules of before may stay under those of now, each at its height.
fn is_kept((before, then): (&Rules, u64), (now, height): (&Rules, u64)) -> bool {
    let is_reserved =
        now.price.is_none_or(|price| price.reserve.is_none_or(|reserve| price.base_fee <= reserve));
    is_reserved
        && before.is_v7() == now.is_v7()
        && before.is_v8(then) == now.is_v8(height)
        && before.params == now.params
}

impl std::fmt::Debug for PendingState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PendingState({} transactions)", self.admitted.len())
    }
}
