//! Agent runs and their steps.

use state::error::StorageError;
use state::table::{Key, Table};
use state::tables::{
    Deadlines, Runs, RunsByConversation, RunsByMiner, RunsByStatus, RunsBySubmitter, Steps,
};
use state::view::{self, Range};
use types::{Address, Amount, CheckedTx, Hash, Run, RunStatus, Step, TxLocation};

use crate::open_runs::{Below, OpenRuns, is_kept};
use crate::rocks::Back;
use crate::{Snapshot, TIP_CELL, Tip, read_cell, snapshot};

/// How many runs and rows of indexes one page of a list looks at, at most, but for one round over its
/// lists. What is asked for seldom gives a short page with a mark: a stranger's question must not take
/// longer, the more is stored.
pub const RUN_ROWS_MAX: usize = 200;

/// Deadlines that are read at the same time.
const DEADLINES_TOGETHER: usize = 1_024;

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
        if lists.is_empty() {
            for status in RunStatus::ALL {
                lists.push(self.of_status(status, before)?);
            }
            return self.runs_in_any(lists, limit);
        }
        self.runs_in_all(lists, filter, limit)
    }

    /// Shows every run that holds money to `visit`, with how much: those that have not ended, and those
    /// whose reward is held. All of them have a deadline, and they come in the order of these.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn visit_escrows(&self, mut visit: impl FnMut(&Run, Amount)) -> Result<(), StorageError> {
        const MISSING: StorageError =
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
                let id = Hash::parse(&deadline.2).map_err(|_not_hex| MISSING)?;
                let run = self.run(&id)?.ok_or(MISSING)?;
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

    /// The newest runs that are in every list. Each list is in order, so a run that is in all of them
    /// is no newer than the oldest of their heads.
    fn runs_in_all(
        &self,
        mut lists: Vec<List<'_>>,
        filter: &RunFilter,
        limit: usize,
    ) -> Result<RunPage, StorageError> {
        let mut runs = Vec::new();
        let mut seen = lists.len();
        // A list that has ended has no head: `None` is less than any.
        while let Some(place) = lists.iter().map(List::place).min().flatten() {
            if runs.len() >= limit || seen >= RUN_ROWS_MAX {
                return Ok(RunPage { runs, next: Some(just_after(place)) });
            }
            for list in lists.iter_mut().filter(|list| list.place() > Some(place)) {
                list.go_to(place)?;
                seen = seen.saturating_add(1);
            }
            if lists.iter().any(|list| list.place() != Some(place)) {
                continue;
            }
            let Some(list) = lists.first_mut() else { break };
            let run = self.take_run(list)?;
            seen = seen.saturating_add(1);
            if filter.accepts(&run) {
                runs.push(run);
            }
        }
        Ok(RunPage { runs, next: None })
    }

    /// The newest runs that are in one of the lists, none of which is in two.
    fn runs_in_any(&self, mut lists: Vec<List<'_>>, limit: usize) -> Result<RunPage, StorageError> {
        let mut runs = Vec::new();
        let mut seen = lists.len();
        while let Some(list) = lists.iter_mut().max_by_key(|list| list.place())
            && let Some(place) = list.place()
        {
            if runs.len() >= limit || seen >= RUN_ROWS_MAX {
                return Ok(RunPage { runs, next: Some(just_after(place)) });
            }
            runs.push(self.take_run(list)?);
            seen = seen.saturating_add(1);
        }
        Ok(RunPage { runs, next: None })
    }

    /// The run at the head of a list, which goes on to the next one.
    fn take_run(&self, list: &mut List<'_>) -> Result<Run, StorageError> {
        const MISSING: StorageError =
            StorageError::Inconsistent { what: "an indexed run is missing" };
        let (_, id) = list.head.ok_or(MISSING)?;
        let run = self.run(&id)?.ok_or(MISSING)?;
        list.go_on()?;
        Ok(run)
    }

    /// A walk over the runs of a status, from the first run below `before`.
    fn of_status(
        &self,
        status: RunStatus,
        before: Option<TxLocation>,
    ) -> Result<List<'_>, StorageError> {
        let place = RunsByStatus::place(status);
        let Some(beside) = self.beside.as_ref().filter(|_| is_kept(status)) else {
            return self.list::<RunsByStatus>(&[place], before);
        };
        let tip: Option<Tip> = read_cell(&self.source, TIP_CELL)?;
        let height = tip.map_or(0, |tip| tip.height);
        let walk = OpenWalk { snapshot: self, runs: beside.open_runs, status: place, height };
        let end = TxLocation { height: u64::MAX, position: u32::MAX };
        let head = walk.below(before.unwrap_or(end))?;
        Ok(List { rows: Rows::Kept(walk), head })
    }

    /// A walk over the rows of an index that begin with `prefix`, from the first run below `before`.
    fn list<T>(&self, prefix: &[u8], before: Option<TxLocation>) -> Result<List<'_>, StorageError>
    where
        T: Table<Value = Hash>,
        T::Key: Place,
    {
        let to = match before {
            Some(TxLocation { height, position }) => {
                [prefix, &(height, position).to_bytes()].concat()
            }
            None => [prefix, &[0xff; 13]].concat(),
        };
        let rows = self.source.back(T::ID, prefix, &to)?;
        let read = |key: &[u8], value: &[u8]| {
            snapshot::typed::<T>(key, value).map(|(key, id)| (key.place(), id))
        };
        let walk = StoredWalk { rows, prefix: prefix.to_vec(), read };
        let head = walk.head()?;
        Ok(List { rows: Rows::Stored(walk), head })
    }
}

/// An index of runs that is walked from its newest run on.
struct List<'a> {
    rows: Rows<'a>,
    head: Option<Head>,
}

/// Where the rows of an index are.
enum Rows<'a> {
    /// In the database: rows of this index are never deleted.
    Stored(StoredWalk<'a>),
    /// In memory.
    Kept(OpenWalk<'a>),
}

/// The place of a run's request, and its id.
type Head = (TxLocation, Hash);

impl List<'_> {
    /// Where the run was requested that the walk is at; none at its end.
    fn place(&self) -> Option<TxLocation> {
        self.head.map(|(place, _)| place)
    }

    /// Goes to the next older run.
    fn go_on(&mut self) -> Result<(), StorageError> {
        let Some((place, _)) = self.head else { return Ok(()) };
        self.head = match &mut self.rows {
            Rows::Stored(walk) => {
                walk.rows.prev();
                walk.head()?
            }
            Rows::Kept(walk) => walk.below(place)?,
        };
        Ok(())
    }

    /// Goes to the newest run that is no newer than `place`.
    fn go_to(&mut self, place: TxLocation) -> Result<(), StorageError> {
        self.head = match &mut self.rows {
            Rows::Stored(walk) => {
                let TxLocation { height, position } = place;
                let key = [walk.prefix.as_slice(), &(height, position).to_bytes()].concat();
                walk.rows.seek(&key);
                walk.head()?
            }
            Rows::Kept(walk) => walk.below(just_after(place))?,
        };
        Ok(())
    }
}

/// A walk over rows of the database.
struct StoredWalk<'a> {
    rows: Back<'a>,
    /// What the keys of the rows begin with.
    prefix: Vec<u8>,
    read: fn(&[u8], &[u8]) -> Result<Head, StorageError>,
}

impl StoredWalk<'_> {
    fn head(&self) -> Result<Option<Head>, StorageError> {
        self.rows.item()?.map(|(key, value)| (self.read)(key, value)).transpose()
    }
}

/// A walk over the runs of a status that runs leave.
struct OpenWalk<'a> {
    snapshot: &'a Snapshot<'a>,
    runs: &'a OpenRuns,
    status: u8,
    /// That of the snapshot.
    height: u64,
}

impl OpenWalk<'_> {
    /// The newest run that was requested before a place. The database is asked only if it has moved on
    /// by two blocks since the snapshot was taken.
    fn below(&self, place: TxLocation) -> Result<Option<Head>, StorageError> {
        let place = (self.status, place.height, place.position);
        match self.runs.below(place, self.height) {
            Below::Known(head) => Ok(head),
            Below::Forgotten => {
                let (from, to) = ([self.status], place.to_bytes());
                let rows = self.snapshot.source.back(RunsByStatus::ID, &from, &to)?;
                let row = rows.item()?.map(|(key, id)| snapshot::typed::<RunsByStatus>(key, id));
                Ok(row.transpose()?.map(|(key, id)| (key.place(), id)))
            }
        }
    }
}

/// The cursor from which the next page begins with the run at `place`.
const fn just_after(TxLocation { height, position }: TxLocation) -> TxLocation {
    match position.checked_add(1) {
        Some(position) => TxLocation { height, position },
        None => TxLocation { height: height.saturating_add(1), position: 0 },
    }
}

/// The place in the chain at the end of an index key.
trait Place {
    fn place(&self) -> TxLocation;
}

impl<A> Place for (A, u64, u32) {
    fn place(&self) -> TxLocation {
        TxLocation { height: self.1, position: self.2 }
    }
}
