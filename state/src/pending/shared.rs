//! The pending state behind its lock, and simulations that do not hold it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use types::{Body, CheckedTx};

use super::state::{Base, PendingState, context, without_nobody};
use crate::chain::ChainRules;
use crate::context::Context;
use crate::error::{StorageError, TxError};
use crate::rules::Rules;
use crate::simulate::{Effects, simulate};
use crate::table::TableId;
use crate::tx::call_appeal;
use crate::view::{Range, RawRow, Read, Still};

/// So often a simulation begins anew because something was admitted meanwhile; then it holds the lock.
const TRIES_MAX: usize = 3;

/// A [`PendingState`] that several threads use.
#[derive(Debug)]
pub struct SharedPending {
    state: Mutex<PendingState>,
}

impl SharedPending {
    /// Nothing pending on top of `base`.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn new(base: Base, chain: Arc<ChainRules>) -> Result<Self, StorageError> {
        PendingState::new(base, chain).map(|state| Self { state: Mutex::new(state) })
    }

    /// The state, for as long as the guard lives.
    pub fn lock(&self) -> MutexGuard<'_, PendingState> {
        self.state.lock()
    }

    /// Reads what the check of an appeal reads longest, for whoever is about to admit it: without the lock.
    /// The check reads what was not read here, as it does if a block comes in between, and meets the same
    /// faults.
    pub fn prepare(&self, tx: &CheckedTx) {
        let Body::CallAppeal(appeal) = tx.body() else { return };
        let (base, rules, rankings) = self.lock().committed();
        drop(call_appeal::prepare(appeal, &**base.source(), &rules.params, &rankings));
    }

    /// [`PendingState::simulate`], which holds the lock for a moment for each row that it reads, and
    /// not while it works or waits for the database. The rows are of one moment: if something is
    /// admitted meanwhile, it begins anew.
    ///
    /// # Errors
    /// As [`PendingState::simulate`].
    pub fn simulate(
        self: &Arc<Self>,
        tx: &CheckedTx,
        height: u64,
        timestamp: u64,
    ) -> Result<Effects, TxError> {
        for _ in 0..TRIES_MAX {
            let moment = Arc::new(Moment::of(self));
            let base: Arc<dyn Read> = Arc::<Moment>::clone(&moment);
            let rules = &*moment.rules;
            let answer = simulate(tx, &base, &Context { timestamp, ..context(rules, height) });
            if !moment.is_over.load(Ordering::Relaxed) {
                return answer.map(without_nobody);
            }
        }
        self.lock().simulate(tx, height, timestamp)
    }
}

/// The state as it is until something is admitted.
struct Moment {
    shared: Arc<SharedPending>,
    base: Still,
    rules: Arc<Rules>,
    changes: u64,
    /// Whether a row was asked for too late: then no answer counts.
    is_over: AtomicBool,
}

impl Moment {
    fn of(shared: &Arc<SharedPending>) -> Self {
        let state = shared.lock();
        let (base, changes) = (state.base.clone(), state.changes);
        let rules = Arc::new(state.rules.of_block());
        let (shared, is_over) = (Arc::clone(shared), AtomicBool::new(false));
        Self { shared, base, rules, changes, is_over }
    }

    /// The state, if it still is that of this moment.
    fn state(&self) -> Result<MutexGuard<'_, PendingState>, StorageError> {
        let state = self.shared.lock();
        if state.changes == self.changes {
            return Ok(state);
        }
        self.is_over.store(true, Ordering::Relaxed);
        Err(StorageError::Inconsistent { what: "a simulation was overtaken" })
    }
}

impl Read for Moment {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let changed = self.state()?.draft.changed(table, key).cloned();
        match changed {
            Some(changed) => Ok(changed),
            None => self.base.source().get_raw(table, key),
        }
    }

    fn contains_raw(&self, table: TableId, key: &[u8]) -> Result<bool, StorageError> {
        let changed = self.state()?.draft.changed(table, key).map(Option::is_some);
        match changed {
            Some(is_there) => Ok(is_there),
            None => self.base.source().contains_raw(table, key),
        }
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        self.state()?.draft.scan_raw(table, range)
    }
}
