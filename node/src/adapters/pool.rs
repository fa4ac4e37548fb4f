//! The pool: what it asks of the ledger, and what the interfaces ask of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rpc::ports::{
    Effects, PendingAccount, PoolCount, PoolTx, PortFault, Projection, SenderContent,
    SettlementNow, Slice, SubmitError,
};
use serde_json::value::RawValue;
use state::{PendingState, Retracted, SharedPending, StorageError, TxError, fees, tables, view};
use store::Snapshot;
use txpool::ports::{
    AdmitError, Extent, PendingLedger, PhasedDraft, PricedDraft, ReadyDraft, TakenBack,
};
use txpool::{Found, Page, Pool, PoolFault};
use types::check::{self, StaticRules};
use types::{
    Account, Address, Amount, BondChange, CheckedTx, Hash, Rejection, SizeLimits, Transaction,
};

use crate::adapters::events::dropped;
use crate::chain::NodeChain;
use crate::clock::now_ms;
use crate::sync::SyncState;

/// The latest state with everything pending applied. The pool writes it under its own lock; the
/// interfaces read it in between. Below it is the state after the block that the pool followed last,
/// whatever is committed meanwhile. What fails here fails for whoever asked: the node stops for faults
/// of execution and commits, not of questions.
pub(crate) struct Pending {
    chain: Arc<NodeChain>,
    state: Arc<SharedPending>,
    /// States that the pool has done with. Taking a large one down takes as long as a small rebuild,
    /// and the pool is waited for.
    spent: Mutex<Vec<PendingState>>,
}

/// So many states wait to be taken down; more are taken down at once.
const SPENT_MAX: usize = 4;

impl Pending {
    /// # Errors
    /// [`StorageError`] if the chain has no genesis yet.
    pub(crate) fn new(chain: Arc<NodeChain>) -> Result<Self, StorageError> {
        let rules = Arc::clone(&chain.spec().rules);
        let state = Arc::new(SharedPending::new(chain.store().pin()?.into(), rules)?);
        Ok(Self { chain, state, spent: Mutex::default() })
    }

    /// Whether there is something to take down.
    pub(crate) fn has_spent(&self) -> bool {
        !self.spent.lock().is_empty()
    }

    /// Takes down what the pool has done with.
    pub(crate) fn take_down(&self) {
        let spent = std::mem::take(&mut *self.spent.lock());
        drop(spent);
    }

    fn keep_spent(&self, state: PendingState) {
        let mut spent = self.spent.lock();
        if spent.len() < SPENT_MAX && !state.is_empty() {
            spent.push(state);
        }
    }
}

/// The state after what waits, for the interfaces.
pub(crate) struct Projected {
    pub(crate) pending: Arc<Pending>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) sync: Arc<SyncState>,
}

impl Projected {
    /// The committed state at this moment, for as long as the pool cannot follow it.
    fn committed(&self) -> Option<Snapshot<'_>> {
        let is_moving = self.sync.is_catching_up();
        is_moving.then(|| self.pending.chain.store().snapshot())
    }
}

/// The pool's handle on [`Pending`].
pub(crate) struct PoolLedger(pub(crate) Arc<Pending>);

fn admit_error(error: TxError) -> AdmitError {
    match error {
        TxError::Rejected(reason) => AdmitError::Rejected(*reason),
        TxError::Storage(fault) => AdmitError::Fault(PoolFault::new(fault)),
    }
}

impl PricedDraft for PoolLedger {
    fn take_back(&mut self, tx: &CheckedTx) -> Result<TakenBack, PoolFault> {
        Ok(match self.0.state.lock().retract(tx).map_err(PoolFault::new)? {
            Retracted::Yes => TakenBack::Yes,
            Retracted::After(hash) => TakenBack::After(hash),
            Retracted::Spent(address) => TakenBack::Spent(address),
            Retracted::Unknown => TakenBack::Unknown,
        })
    }

    fn base_fee(&self) -> Option<u64> {
        self.0.state.lock().rules().price.map(|price| price.base_fee)
    }

    fn highest_base_fee(&self, tx: &CheckedTx) -> Option<u64> {
        fees::highest_base_fee(tx)
    }

    fn is_late(&self, tx: &CheckedTx) -> bool {
        self.0.state.lock().is_late(tx)
    }

    fn check_base_fee(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.base_fee().map_or(Ok(()), |base_fee| fees::check_base_fee(tx, base_fee))
    }
}

impl ReadyDraft for PoolLedger {
    fn stands_alone(&self, tx: &CheckedTx, before: &[CheckedTx]) -> Result<bool, PoolFault> {
        self.0.state.lock().stands_alone(tx, before).map_err(PoolFault::new)
    }

    fn check_lowest_fee(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        let rules = Arc::clone(self.0.state.lock().rules());
        let lowest = rules.price.map_or(0, |_| rules.params.base_fee_floor);
        fees::check_base_fee(tx, lowest)
    }
}

impl PhasedDraft for PoolLedger {
    fn is_early(&self, tx: &CheckedTx) -> Result<bool, PoolFault> {
        self.0.state.lock().is_early(tx).map_err(PoolFault::new)
    }

    fn check_form(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.0.state.lock().check_form(tx)
    }
}

impl PendingLedger for PoolLedger {
    fn account(&self, address: Address) -> Result<Account, PoolFault> {
        self.0.state.lock().account(address).map_err(PoolFault::new)
    }

    fn check(&self, tx: &CheckedTx, extent: Extent) -> Result<(), AdmitError> {
        let state = self.0.state.lock();
        let checked = match extent {
            Extent::Whole => state.check(tx),
            Extent::Funds => state.check_funds(tx),
        };
        checked.map_err(admit_error)
    }

    fn admit(&mut self, tx: &CheckedTx) -> Result<(), AdmitError> {
        self.0.state.lock().admit(tx).map_err(admit_error)
    }

    fn advance(
        &mut self,
        credits: &BTreeMap<Address, Amount>,
        bonds: &BTreeMap<Address, BondChange>,
    ) -> Result<bool, PoolFault> {
        let pinned = self.0.chain.store().pin().map_err(PoolFault::new)?;
        let Some(last) = self.0.chain.recent(pinned.height()) else { return Ok(false) };
        let mut state = self.0.state.lock();
        state
            .advance(pinned.into(), &last.block.transactions, credits, bonds)
            .map_err(PoolFault::new)
    }

    fn reset(&mut self) -> Result<(), PoolFault> {
        let pinned = self.0.chain.store().pin().map_err(PoolFault::new)?;
        let spent = self.0.state.lock().reset(pinned.into()).map_err(PoolFault::new)?;
        self.0.keep_spent(spent);
        Ok(())
    }
}

/// What the pool asks of the committed chain.
pub(crate) struct PoolChain(pub(crate) Arc<Pending>);

impl txpool::ports::CommittedChain for PoolChain {
    fn is_included(&self, hash: Hash) -> Result<bool, PoolFault> {
        self.0.chain.store().snapshot().has_transaction(&hash).map_err(PoolFault::new)
    }

    fn prepare(&self, tx: &CheckedTx) {
        self.0.state.prepare(tx);
    }
}

impl Projection for Projected {
    fn account(&self, address: &Address) -> Result<PendingAccount, PortFault> {
        if let Some(state) = self.committed() {
            let account = view::get::<tables::Accounts>(&state, address);
            let account = account.map_err(|error| PortFault::new("reading an account", error))?;
            let Account { nonce, balance } = account.unwrap_or_default();
            return Ok(PendingAccount { nonce, balance });
        }
        let account = self.pool.account(*address);
        let account =
            account.map_err(|error| PortFault::new("reading a pending account", error))?;
        Ok(PendingAccount { nonce: account.nonce, balance: account.balance })
    }

    fn settlement(&self, agent_run_id: &Hash) -> Result<Option<SettlementNow>, PortFault> {
        let read = || {
            let run = match self.committed() {
                Some(state) => view::get::<tables::Runs>(&state, agent_run_id)?,
                None => self.pending.state.lock().run(agent_run_id)?,
            };
            let Some(run) = run else { return Ok(None) };
            let (tokens, steps) = (run.tokens_out, run.step_count);
            let fees = match run.settlement {
                Some(settled) => settled,
                None => state::settlement(&run)?.settlement,
            };
            Ok(Some(SettlementNow { total_tokens_out: tokens, step_count: steps, fees }))
        };
        read().map_err(|error: StorageError| PortFault::new("computing a settlement", error))
    }

    fn simulate(&self, text: &RawValue) -> Result<Effects, SubmitError> {
        if self.sync.is_catching_up() {
            return Err(SubmitError::Syncing);
        }
        let chain = &self.pending.chain;
        let spec = chain.spec();
        let params = &spec.rules.params;
        let tx = Transaction::parse_unsigned(text.get().as_bytes(), &SizeLimits::from(params))?;
        let is_signed = *tx.signature().as_bytes() != [0; 64];
        let rules = StaticRules {
            chain_id: &spec.rules.chain_id,
            params,
            forks: spec.rules.forks,
            height: chain.tip().height.saturating_add(1),
        };
        let tx = if is_signed {
            check::verify_one(tx, &rules)?
        } else {
            check::verify_unsigned(tx, &rules)?
        };
        let effects = self.pending.state.simulate(&tx, rules.height, now_ms());
        let effects = effects.map_err(|error| match error {
            TxError::Rejected(reason) => SubmitError::Rejected(*reason),
            TxError::Storage(fault) => SubmitError::Fault(PortFault::new("simulating", fault)),
        })?;
        let balances = effects.balances.into_iter();
        Ok(Effects {
            balances: balances.map(|(address, (before, after))| (address, before, after)).collect(),
            run: effects.run,
            burned: effects.burned,
        })
    }
}

/// The pool's content, for the interfaces.
pub(crate) struct PoolReads(pub(crate) Arc<Pool>);

fn count(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn content(content: txpool::SenderContent) -> SenderContent {
    let txpool::SenderContent { address, pending, waiting, queued } = content;
    SenderContent { sender: address, pending, waiting, queued }
}

impl rpc::ports::Pool for PoolReads {
    fn find(&self, hash: &Hash) -> Option<PoolTx> {
        Some(match self.0.find(*hash)? {
            Found::Pending(tx) | Found::Queued(tx) => PoolTx::Pending(tx),
            Found::Waiting { tx, reason } => PoolTx::Waiting { tx, reason },
            Found::Dropped(it) => PoolTx::Dropped(dropped(&it)),
        })
    }

    fn counts(&self) -> Vec<(&'static str, PoolCount)> {
        let kinds = self.0.status().by_type.into_iter();
        kinds
            .map(|(kind, halves)| {
                let bytes = count(halves.total().bytes);
                let (pending, queued) = (count(halves.pending.count), count(halves.queued.count));
                (kind, PoolCount { pending, queued, bytes })
            })
            .collect()
    }

    fn content(&self, after: Option<Address>, limit: usize) -> Slice<SenderContent, Address> {
        let Page { items, next } = self.0.content(after, limit);
        Slice { items: items.into_iter().map(content).collect(), next }
    }

    fn pending(&self, limit: usize) -> Vec<CheckedTx> {
        self.0.pending(limit)
    }

    fn content_from(&self, sender: &Address) -> SenderContent {
        content(self.0.content_from(*sender))
    }
}
