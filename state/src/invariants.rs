//! The invariants of docs/protocol.md section 10 as code. Streams over the state, a page of rows at
//! a time, so it works on any database; tests call it after every block, `ombra db verify` on a
//! stopped node.

use types::{Address, Amount, Blob, Bond, Hash, Params, Run, RunStatus, Settlement, Supply};

use crate::error::StorageError;
use crate::ledger::supply;
use crate::table::{Key, Table};
use crate::tables::{Accounts, Blobs, Bonds, Deadlines, Runs, RunsByStatus, Steps, Unbondings};
use crate::view::{self, Range, Read};
use crate::{bonds, pieces, runs, settlement::settlement};

mod agents;
mod calls;
mod offers;
mod validators;

/// What was counted, and the rules that the state breaks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Accounts.
    pub accounts: u64,
    /// Runs.
    pub runs: u64,
    /// Recorded steps.
    pub steps: u64,
    /// Blobs.
    pub blobs: u64,
    /// Broken rules, at most [`BROKEN_MAX`].
    pub broken: Vec<Broken>,
}

/// How many broken rules a report lists.
pub const BROKEN_MAX: usize = 100;

/// How many rows are looked at together.
const PAGE: usize = 1_000;

/// A rule that the state breaks.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Broken {
    /// Invariant 1.
    #[error(
        "balances {balances} and escrows {escrows} are not genesis {} + minted {} - burned {}",
        supply.genesis, supply.minted, supply.burned
    )]
    Money {
        /// Σ balances.
        balances: u128,
        /// Σ escrows.
        escrows: u128,
        /// What the chain counted.
        supply: Supply,
    },
    /// The counted escrow is not the sum over the runs.
    #[error("escrows sum up to {escrows}, the supply row says {counted}")]
    Escrow {
        /// Σ escrows.
        escrows: u128,
        /// What the chain counted.
        counted: Amount,
    },
    /// Invariant 2, or an open run that is settled already.
    #[error("run {run}: the settlement does not fit its status {}", status.as_str())]
    Settlement {
        /// The run.
        run: Hash,
        /// Its status.
        status: RunStatus,
    },
    /// Invariant 3.
    #[error("run {run}: {what}")]
    Steps {
        /// The run.
        run: Hash,
        /// Which part of the invariant.
        what: &'static str,
    },
    /// A row that follows from others is missing, wrong or left over.
    #[error("{table}: {what}")]
    Index {
        /// The table.
        table: &'static str,
        /// What is wrong.
        what: String,
    },
    /// Invariant 5.
    #[error("validators: {what}")]
    Validators {
        /// What is wrong.
        what: String,
    },
    /// The metadata of a version of an agent is not that of its record.
    #[error("agent {agent_id}: the metadata of version {version} is not the text of its record")]
    AgentText {
        /// The agent.
        agent_id: Hash,
        /// The version.
        version: String,
    },
    /// A blob contradicts itself.
    #[error("blob {blob_id}: the chunks received do not fit its state")]
    Blob {
        /// The blob.
        blob_id: String,
    },
}

/// Checks every invariant.
///
/// # Errors
/// [`StorageError`] if the database fails or a row does not decode.
pub fn verify(state: &dyn Read, params: &Params) -> Result<Report, StorageError> {
    verify_from(state, params, 1)
}

/// Checks every invariant of a state whose blocks begin at `earliest`: steps that were recorded before
/// need not be there.
///
/// # Errors
/// [`StorageError`] if the database fails or a row does not decode.
pub fn verify_from(
    state: &dyn Read,
    params: &Params,
    earliest: u64,
) -> Result<Report, StorageError> {
    let report = Report::default();
    let mut walk =
        Walk { state, params, earliest, report, balances: 0, escrows: 0, locked: 0, waiting: 0 };
    let supply = supply(state)?;
    pages::<Accounts>(state, |_: Address, account| {
        walk.report.accounts = walk.report.accounts.saturating_add(1);
        walk.balances = walk.balances.saturating_add(u128::from(account.balance.get()));
        Ok(())
    })?;
    pages::<Runs>(state, |id, run| walk.run(id, &run))?;
    pages::<Blobs>(state, |_, blob| walk.blob(&blob))?;
    walk.calls()?;
    walk.bonds(&supply)?;
    walk.money(&supply);
    walk.leftovers()?;
    walk.validators()?;
    walk.agents()?;
    walk.offers()?;
    Ok(walk.report)
}

/// Calls `visit` with every row of a table, in order.
fn pages<T: Table>(
    state: &dyn Read,
    mut visit: impl FnMut(T::Key, T::Value) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let mut from = Vec::new();
    loop {
        let rows = view::scan::<T>(state, Range { from: &from, to: None, limit: PAGE })?;
        let is_last = rows.len() < PAGE;
        for (key, value) in rows {
            from = key.to_bytes();
            visit(key, value)?;
        }
        if is_last {
            return Ok(());
        }
        from.push(0);
    }
}

struct Walk<'a> {
    state: &'a dyn Read,
    params: &'a Params,
    earliest: u64,
    report: Report,
    balances: u128,
    escrows: u128,
    /// Σ of what is locked for runs.
    locked: u128,
    /// Runs, blobs and payments that must have a deadline.
    waiting: u64,
}

impl Walk<'_> {
    fn broken(&mut self, broken: Broken) {
        if self.report.broken.len() < BROKEN_MAX {
            self.report.broken.push(broken);
        }
    }

    fn index(&mut self, table: &'static str, what: String) {
        self.broken(Broken::Index { table, what });
    }

    fn run(&mut self, id: Hash, run: &Run) -> Result<(), StorageError> {
        self.report.runs = self.report.runs.saturating_add(1);
        if run.agent_run_id != id {
            self.index(Runs::ID.name, format!("the run {} stands under {id}", run.agent_run_id));
        }
        if !is_settled_rightly(run) {
            self.broken(Broken::Settlement { run: id, status: run.status });
        }
        let held = match run.settlement {
            None => run.max_fee,
            Some(settlement) if run.is_held() => settlement.miner_reward,
            Some(_) => Amount::ZERO,
        };
        self.escrows = self.escrows.saturating_add(u128::from(held.get()));
        let locked = run.locked_bond.unwrap_or(Amount::ZERO);
        self.locked = self.locked.saturating_add(u128::from(locked.get()));
        let key = runs::status_key(run.status, run.request);
        if view::get::<RunsByStatus>(self.state, &key)? != Some(id) {
            self.index(RunsByStatus::ID.name, format!("run {id} is missing"));
        }
        self.run_deadline(id, run)?;
        self.steps(id, run)
    }

    fn run_deadline(&mut self, id: Hash, run: &Run) -> Result<(), StorageError> {
        match run.deadline_at {
            None if run.status.is_terminal() => Ok(()),
            None => {
                self.index(Deadlines::ID.name, format!("run {id} has no deadline"));
                Ok(())
            }
            Some(at) => self.deadline(&runs::deadline_key(at, &id)),
        }
    }

    fn deadline(&mut self, key: &(u64, u8, String)) -> Result<(), StorageError> {
        self.waiting = self.waiting.saturating_add(1);
        if !view::contains::<Deadlines>(self.state, key)? {
            self.index(Deadlines::ID.name, format!("{} is missing", key.2));
        }
        Ok(())
    }

    fn steps(&mut self, id: Hash, run: &Run) -> Result<(), StorageError> {
        let (from, to) = ((id, 0_u64).to_bytes(), (id, u64::MAX).to_bytes());
        let (mut count, mut tokens) = (0_u64, Some(0_u64));
        let mut last = None;
        // A run has at most `maxSteps` = 200 steps, so they fit into one page.
        let range = Range { from: &from, to: Some(&to), limit: PAGE };
        for ((_, index), step) in view::scan::<Steps>(self.state, range)? {
            count = count.saturating_add(1);
            tokens = tokens.and_then(|sum| sum.checked_add(step.output_tokens));
            last = Some(index);
            if index != step.step_index || index >= run.max_steps {
                self.broken(Broken::Steps { run: id, what: "a step index is out of range" });
            }
        }
        self.report.steps = self.report.steps.saturating_add(count);
        if run.request.height < self.earliest && count < run.step_count {
            let fits = tokens.is_some_and(|tokens| tokens <= run.tokens_out)
                && (last.is_none() || last == run.last_step_index);
            if !fits {
                self.broken(Broken::Steps { run: id, what: "the later steps do not fit" });
            }
            return Ok(());
        }
        let rules = [
            (count == run.step_count, "stepCount is not the number of steps"),
            (tokens == Some(run.tokens_out), "tokensOut is not the sum over the steps"),
            (last == run.last_step_index, "the last step index is wrong"),
        ];
        for (_, what) in rules.into_iter().filter(|(holds, _)| !holds) {
            self.broken(Broken::Steps { run: id, what });
        }
        Ok(())
    }

    fn blob(&mut self, blob: &Blob) -> Result<(), StorageError> {
        self.report.blobs = self.report.blobs.saturating_add(1);
        let is_complete = blob.received == blob.total_chunks;
        let is_hashed = blob.received_hash.is_some();
        let is_right = blob.received_hash == Some(blob.content_hash);
        let pieces = pieces::of_blob(self.state, blob)?;
        if is_complete != is_hashed
            || (blob.is_final && !is_right)
            || pieces.count() != blob.received
        {
            self.broken(Broken::Blob { blob_id: blob.blob_id.clone() });
        }
        if blob.is_final {
            return Ok(());
        }
        let deadline = runs::deadline(blob.created_at, self.params.blob_ttl_ms)?;
        self.deadline(&(deadline, Deadlines::BLOB, blob.blob_id.clone()))
    }

    fn money(&mut self, supply: &Supply) {
        let Supply { genesis, minted, burned, escrowed, bonded, unbonding } = *supply;
        let (balances, escrows) = (self.balances, self.escrows);
        let counted = [burned, bonded, unbonding].map(|amount| u128::from(amount.get()));
        let held = balances.saturating_add(escrows);
        let held = counted.into_iter().fold(held, u128::saturating_add);
        if held != u128::from(genesis.get()).saturating_add(u128::from(minted.get())) {
            self.broken(Broken::Money { balances, escrows, supply: *supply });
        }
        if escrows != u128::from(escrowed.get()) {
            self.broken(Broken::Escrow { escrows, counted: escrowed });
        }
    }

    /// Bonds and what was taken out of them are what the supply says, and of bonds as much is locked as
    /// runs say.
    fn bonds(&mut self, supply: &Supply) -> Result<(), StorageError> {
        let (mut bonded, mut locked, mut unbonding) = (0_u128, 0_u128, 0_u128);
        let mut faults = Vec::new();
        pages::<Bonds>(self.state, |miner: Address, bond: Bond| {
            bonded = bonded.saturating_add(u128::from(bond.bonded.get()));
            locked = locked.saturating_add(u128::from(bond.locked.get()));
            if bond.locked > bond.bonded {
                faults.push(format!("more of the bond of {miner} is locked than there is"));
            }
            Ok(())
        })?;
        let mut due = Vec::new();
        pages::<Unbondings>(self.state, |(miner, at): (Address, u64), amount: Amount| {
            unbonding = unbonding.saturating_add(u128::from(amount.get()));
            due.push(bonds::deadline_key(at, &miner));
            Ok(())
        })?;
        for key in due {
            self.deadline(&key)?;
        }
        let sums = [
            ("bonds", bonded, u128::from(supply.bonded.get())),
            ("what was taken out", unbonding, u128::from(supply.unbonding.get())),
            ("what is locked", locked, self.locked),
        ];
        for (what, got, expected) in sums.into_iter().filter(|(_, got, it)| got != it) {
            faults.push(format!("{what} sums up to {got}, expected {expected}"));
        }
        for what in faults {
            self.index(Bonds::ID.name, what);
        }
        Ok(())
    }

    /// Every run stands once among its status and every waiting thing has one deadline; equal
    /// numbers of rows then mean that none is left over.
    fn leftovers(&mut self) -> Result<(), StorageError> {
        let (by_status, deadlines, steps) = (
            count::<RunsByStatus>(self.state)?,
            count::<Deadlines>(self.state)?,
            count::<Steps>(self.state)?,
        );
        let tables = [
            (RunsByStatus::ID.name, by_status, self.report.runs),
            (Deadlines::ID.name, deadlines, self.waiting),
            (Steps::ID.name, steps, self.report.steps),
        ];
        for (table, got, expected) in tables {
            if got != expected {
                self.index(table, format!("{got} rows, expected {expected}"));
            }
        }
        Ok(())
    }
}

fn count<T: Table>(state: &dyn Read) -> Result<u64, StorageError> {
    let mut rows = 0_u64;
    pages::<T>(state, |_, _| {
        rows = rows.saturating_add(1);
        Ok(())
    })?;
    Ok(rows)
}

/// Invariant 2: an ended run is settled and the parts sum up to its escrow; an open one is not
/// settled, and its steps have not cost more than its escrow.
fn is_settled_rightly(run: &Run) -> bool {
    match run.settlement {
        None => !run.status.is_terminal() && settlement(run).is_ok(),
        Some(Settlement { miner_reward, user_refund, network_fee }) => {
            let sum =
                miner_reward.checked_add(user_refund).and_then(|sum| sum.checked_add(network_fee));
            run.status.is_terminal() && sum == Some(run.max_fee)
        }
    }
}
