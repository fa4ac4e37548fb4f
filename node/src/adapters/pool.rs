//! The pool: what it asks of the ledger, and what the interfaces ask of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rpc::ports::{
    Effects, Fault, PendingAccount, PoolCount, PoolTx, Projection, SenderContent, SettlementNow,
    Slice, SubmitError,
};
use serde_json::value::RawValue;
use state::pending::PendingState;
use state::store::Snapshot;
use state::{StorageError, TxError, tables, view};
use tokio_util::sync::CancellationToken;
use txpool::ports::{AdmitError, PendingLedger};
use txpool::{Fault as PoolFault, Found, Pool};
use types::check::{self, StaticRules};
use types::{Account, Address, Amount, CheckedTx, Hash, SizeLimits, Transaction};

use crate::adapters::events::dropped;
use crate::chain::Chain;
use crate::clock::now_ms;
use crate::sync::SyncState;

/// The latest state with everything pending applied. The pool writes it under its own lock; the
/// interfaces read it in between.
pub(crate) struct Pending {
    chain: Arc<Chain>,
    state: Mutex<PendingState>,
    alarm: Alarm,
}

/// Rings when the draft cannot be relied on any more, whoever found out: then the node stops.
#[derive(Default)]
struct Alarm {
    rung: CancellationToken,
    message: Mutex<Option<String>>,
}

impl Pending {
    pub(crate) fn new(chain: Arc<Chain>) -> Self {
        let rules = Arc::clone(&chain.spec().rules);
        let state = PendingState::new(chain.store().latest(), rules);
        Self { chain, state: Mutex::new(state), alarm: Alarm::default() }
    }

    /// Ends when the ledger has failed, with the reason. Clients that asked something else may have
    /// got the fault as their answer.
    pub(crate) async fn failed(&self) -> PoolFault {
        self.alarm.rung.cancelled().await;
        PoolFault::new(self.alarm.message.lock().clone().unwrap_or_default())
    }

    /// Does something with the draft. While a block is committed the database below moves, and who
    /// reads meanwhile may find rows that contradict each other: what fails is tried once more when
    /// that is over. A draft is as it was after a failure.
    fn with<T>(
        &self,
        work: impl Fn(&mut PendingState) -> Result<T, TxError>,
    ) -> Result<T, TxError> {
        let answer = work(&mut self.state.lock());
        if !matches!(answer, Err(TxError::Storage(_))) {
            return answer;
        }
        self.chain.store().wait_for_commit();
        let answer = work(&mut self.state.lock());
        if let Err(TxError::Storage(fault)) = &answer {
            self.ring(fault);
        }
        answer
    }

    fn ring(&self, fault: &StorageError) {
        self.alarm.message.lock().get_or_insert_with(|| fault.to_string());
        self.alarm.rung.cancel();
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

impl PendingLedger for PoolLedger {
    fn account(&self, address: Address) -> Result<Account, PoolFault> {
        self.0.with(|state| Ok(state.account(address)?)).map_err(PoolFault::new)
    }

    fn check(&self, tx: &CheckedTx) -> Result<(), AdmitError> {
        self.0.with(|state| state.check(tx)).map_err(admit_error)
    }

    fn admit(&mut self, tx: &CheckedTx) -> Result<(), AdmitError> {
        self.0.with(|state| state.admit(tx)).map_err(admit_error)
    }

    fn advance(&mut self, credits: &BTreeMap<Address, Amount>) -> Result<(), PoolFault> {
        let tip = self.0.chain.tip();
        let Some(last) = self.0.chain.recent(tip.height) else { return self.reset() };
        let advanced = self.0.state.lock().advance(&last.block.transactions, credits);
        advanced.inspect_err(|fault| self.0.ring(fault)).map_err(PoolFault::new)
    }

    fn reset(&mut self) -> Result<(), PoolFault> {
        let chain = &self.0.chain;
        self.0.state.lock().reset(chain.store().latest());
        Ok(())
    }
}

/// Included transactions, for the pool.
pub(crate) struct IncludedTxs(pub(crate) Arc<Chain>);

impl txpool::ports::Chain for IncludedTxs {
    fn is_included(&self, hash: Hash) -> Result<bool, PoolFault> {
        let found = self.0.store().snapshot().transaction(&hash).map_err(PoolFault::new)?;
        Ok(found.is_some())
    }
}

impl Projection for Projected {
    fn account(&self, address: &Address) -> Result<PendingAccount, Fault> {
        if let Some(state) = self.committed() {
            let account = view::get::<tables::Accounts>(&state, address);
            let account = account.map_err(|error| Fault::new("reading an account", error))?;
            let Account { nonce, balance } = account.unwrap_or_default();
            return Ok(PendingAccount { nonce, balance });
        }
        let account = self.pool.account(*address);
        let account = account.map_err(|error| Fault::new("reading a pending account", error))?;
        Ok(PendingAccount { nonce: account.nonce, balance: account.balance })
    }

    fn settlement(&self, agent_run_id: &Hash) -> Result<Option<SettlementNow>, Fault> {
        let read = || {
            let run = match self.committed() {
                Some(state) => view::get::<tables::Runs>(&state, agent_run_id)?,
                None => self.pending.with(|state| Ok(state.run(agent_run_id)?))?,
            };
            let Some(run) = run else { return Ok(None) };
            let (tokens, steps) = (run.tokens_out, run.step_count);
            let fees = match run.settlement {
                Some(settled) => settled,
                None => state::settlement(&run)?.settlement,
            };
            Ok(Some(SettlementNow { total_tokens_out: tokens, step_count: steps, fees }))
        };
        read().map_err(|error: TxError| Fault::new("computing a settlement", error))
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
        let effects = self.pending.with(|state| state.simulate(&tx, rules.height, now_ms()));
        let effects = effects.map_err(|error| match error {
            TxError::Rejected(reason) => SubmitError::Rejected(*reason),
            TxError::Storage(fault) => SubmitError::Fault(Fault::new("simulating", fault)),
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
    let txpool::SenderContent { address, pending, queued } = content;
    SenderContent { sender: address, pending, queued }
}

impl rpc::ports::Pool for PoolReads {
    fn find(&self, hash: &Hash) -> Option<PoolTx> {
        Some(match self.0.find(*hash)? {
            Found::Pending(tx) | Found::Queued(tx) => PoolTx::Waiting(tx),
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
        let mut senders = self.0.content(after, limit.saturating_add(1));
        let more = senders.len() > limit;
        senders.truncate(limit);
        let next = senders.last().map(|sender| sender.address).filter(|_| more);
        Slice { items: senders.into_iter().map(content).collect(), next }
    }

    fn content_from(&self, sender: &Address) -> SenderContent {
        content(self.0.content_from(*sender))
    }
}
