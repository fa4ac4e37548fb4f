//! Agent runs and their steps.

use state::error::StorageError;
use state::table::Key;
use state::tables::{
    Deadlines, Runs, RunsByConversation, RunsByMiner, RunsByStatus, RunsBySubmitter, Steps,
};
use state::view::{self, Range};
use types::{Address, Amount, CheckedTx, Hash, Run, RunStatus, Step, TxLocation};

use super::walk::{self, Bounds, List, Walked};
use crate::open_rows::is_kept;
use crate::snapshot::Snapshot;

/// How many runs and rows of indexes one page of a list looks at, at most, but for one round over its
/// lists. What is asked for seldom gives a short page with a mark: a stranger's question must not take
/// longer, the more is stored.
pub const RUN_ROWS_MAX: usize = 200;

/// Deadlines that are read at the same time.
const DEADLINES_TOGETHER: usize = 1_024;

const MISSING: StorageError = StorageError::Inconsistent { what: "an indexed run is missing" };

/// A run with the transactions that made it what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunDetail {
    /// The run.
    pub run: Run,
    /// The AGENT_REQUEST.
    pub request: CheckedTx,
    /// The standing AGENT_CLAIM.
    pub claim: Option<CheckedTx>,
    /// The AGENT_FINISH or AGENT_CANCEL.
    pub finish: Option<CheckedTx>,
}

/// A step with its transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepDetail {
    /// The step.
    pub step: Step,
    /// The AGENT_STEP.
    pub tx: CheckedTx,
}

/// Which runs a list has; all conditions must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunFilter {
    /// Only runs in this status now.
    pub status: Option<RunStatus>,
    /// Only runs that this account requested.
    pub submitter: Option<Address>,
    /// Only runs that this account has claimed now, or had when they ended.
    pub miner: Option<Address>,
    /// Only runs of this conversation.
    pub conversation_id: Option<Hash>,
}

/// A page of runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunPage {
    /// The runs, newest request first.
    pub runs: Vec<Run>,
    /// Where to go on; none when there is nothing more. A page can be short, even empty, and have
    /// a mark: few of the runs that were looked at met the filter.
    pub next: Option<TxLocation>,
}

impl RunFilter {
    fn accepts(&self, run: &Run) -> bool {
        let Self { status, submitter, miner, conversation_id } = *self;
        status.is_none_or(|status| run.status == status)
            && submitter.is_none_or(|submitter| run.submitter == submitter)
            && miner.is_none_or(|miner| run.miner == Some(miner))
            && conversation_id.is_none_or(|id| run.conversation_id == id)
    }
}

impl Snapshot<'_> {
    /// A run.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn run(&self, id: &Hash) -> Result<Option<Run>, StorageError> {
        self.get::<Runs>(id)
    }

    /// A run with the transactions that its texts are in.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn run_detail(&self, id: &Hash) -> Result<Option<RunDetail>, StorageError> {
        let Some(run) = self.run(id)? else { return Ok(None) };
        self.with_transactions(vec![run]).map(|mut details| details.pop())
    }

    /// Adds to each run the transactions that its texts are in.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a transaction is not there.
    pub fn with_transactions(&self, runs: Vec<Run>) -> Result<Vec<RunDetail>, StorageError> {
        let places = runs.iter().flat_map(|run| [Some(run.request), run.claim, run.finish]);
        let mut order: Vec<TxLocation> = places.flatten().collect();
        order.sort_unstable();
        order.dedup();
        let txs = self.bodies_at(&order)?;
        let tx = |place: TxLocation| {
            let index = order.binary_search(&place).ok();
            index.and_then(|index| txs.get(index)).cloned()
        };
        let missing = StorageError::Inconsistent { what: "a run's transaction is missing" };
        let details = runs.into_iter().map(|run| {
            let request = tx(run.request)?;
            let (claim, finish) = (run.claim.and_then(tx), run.finish.and_then(tx));
            Some(RunDetail { run, request, claim, finish })
        });
        details.collect::<Option<_>>().ok_or(missing)
    }

    /// The records of a run's steps by step index: those after `after`, at most `limit`.
    ///
    /// # Errors
    /// [`StorageError::History`] if some are before [`Snapshot::earliest`]; [`StorageError`] if the
    /// database fails or a row does not decode.
    pub fn step_records(
        &self,
        run: &Hash,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Step>, StorageError> {
        let from = (*run, after.map_or(0, |index| index.saturating_add(1))).to_bytes();
        let to = [run.as_bytes().as_slice(), &[0xff; 9]].concat();
        let rows = view::scan::<Steps>(self, Range { from: &from, to: Some(&to), limit })?;
        self.require_steps(run)?;
        Ok(rows.into_iter().map(|(_, step)| step).collect())
    }

    /// Refuses a run of which steps were recorded before this database began: they are in the blocks
    /// that it does not have.
    fn require_steps(&self, id: &Hash) -> Result<(), StorageError> {
        let Some(run) = self.run(id)?.filter(|run| run.request.height < self.earliest()) else {
            return Ok(());
        };
        let to = [id.as_bytes().as_slice(), &[0xff; 9]].concat();
        let range = Range { from: id.as_bytes(), to: Some(&to), limit: usize::MAX };
        let there = view::scan::<Steps>(self, range)?.len();
        if u64::try_from(there).ok() == Some(run.step_count) {
            return Ok(());
        }
        self.require(run.request.height)
    }

    /// [`Snapshot::step_records`] with their transactions.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn steps(
        &self,
        run: &Hash,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StepDetail>, StorageError> {
        let steps = self.step_records(run, after, limit)?;
        let places: Vec<TxLocation> = steps.iter().map(|step| step.tx).collect();
        let txs = self.bodies_at(&places)?;
        Ok(steps.into_iter().zip(txs).map(|(step, tx)| StepDetail { step, tx }).collect())
    }

    /// Runs that meet a filter, newest request first: those requested before `before`, at most
    /// `limit`. The indexes of several conditions are walked side by side, so that what meets only
    /// one of them is mostly stepped over; a page looks at [`RUN_ROWS_MAX`] rows all the same.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn runs(
        &self,
        filter: &RunFilter,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<RunPage, StorageError> {
        if limit == 0 {
            return Ok(RunPage { runs: Vec::new(), next: None });
        }
        let RunFilter { status, submitter, miner, conversation_id } = *filter;
        let mut lists = Vec::new();
        if let Some(status) = status {
            lists.push(self.of_status(status, before)?);
        }
        if let Some(submitter) = submitter {
            lists.push(self.list::<RunsBySubmitter>(&submitter.to_bytes(), before)?);
        }
        if let Some(miner) = miner {
            lists.push(self.list::<RunsByMiner>(&miner.to_bytes(), before)?);
        }
        if let Some(id) = conversation_id {
            lists.push(self.list::<RunsByConversation>(&id.to_bytes(), before)?);
        }
        let bounds = Bounds { limit, rows_max: RUN_ROWS_MAX };
        let take = |id: Hash| -> Result<Option<Run>, StorageError> {
            let run = self.run(&id)?.ok_or(MISSING)?;
            Ok(Some(run).filter(|run| filter.accepts(run)))
        };
        let Walked { items: runs, next } = if lists.is_empty() {
            for status in RunStatus::ALL {
                lists.push(self.of_status(status, before)?);
            }
            walk::in_any(lists, bounds, take)?
        } else {
            walk::in_all(lists, bounds, take)?
        };
        Ok(RunPage { runs, next })
    }

    /// A walk over the runs of a status, from the first run below `before`.
    fn of_status(
        &self,
        status: RunStatus,
        before: Option<TxLocation>,
    ) -> Result<List<'_>, StorageError> {
        let place = RunsByStatus::place(status);
        match self.beside.as_ref().filter(|_| is_kept(status)) {
            Some(beside) => self.kept::<RunsByStatus>(beside.open_runs, place, before),
            None => self.list::<RunsByStatus>(&[place], before),
        }
    }

    /// Shows every run that holds money to `visit`, with how much: those that have not ended, and those
    /// whose reward is held. All of them have a deadline, and they come in the order of these.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn visit_escrows(&self, mut visit: impl FnMut(&Run, Amount)) -> Result<(), StorageError> {
        const ORPHAN: StorageError =
            StorageError::Inconsistent { what: "a deadline belongs to no run" };
        let lowest = self.beside.as_ref().map(|beside| beside.lowest_deadline.clone());
        let mut from = lowest.unwrap_or_default();
        loop {
            let range = Range { from: &from, to: None, limit: DEADLINES_TOGETHER };
            let rows = view::scan::<Deadlines>(self, range)?;
            let is_end = rows.len() < DEADLINES_TOGETHER;
            for (deadline, ()) in rows {
                from = deadline.to_bytes();
                from.push(0);
                if deadline.1 != Deadlines::RUN {
                    continue;
                }
                let id = Hash::parse(&deadline.2).map_err(|_not_hex| ORPHAN)?;
                let run = self.run(&id)?.ok_or(ORPHAN)?;
                let held = match run.settlement {
                    None => run.max_fee,
                    Some(settlement) => settlement.miner_reward,
                };
                visit(&run, held);
            }
            if is_end {
                return Ok(());
            }
        }
    }
}
