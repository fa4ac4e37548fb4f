//! Agent runs.

use types::{Address, Hash, Run, RunStatus, Step, TxLocation};

use super::{PortFault, Slice};

/// Which runs to list. Conditions that are given must all hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunFilter {
    /// The run's status now.
    pub status: Option<RunStatus>,
    /// Who asked.
    pub submitter: Option<Address>,
    /// Who claimed it.
    pub miner: Option<Address>,
    /// Its conversation.
    pub conversation_id: Option<Hash>,
}

/// Agent runs.
pub trait Runs: Send + Sync {
    /// The run's record.
    ///
    /// # Errors
    /// [`PortFault`].
    fn run(&self, agent_run_id: &Hash) -> Result<Option<Run>, PortFault>;

    /// The run's steps by ascending index, after the step `after`; empty for an unknown run.
    ///
    /// # Errors
    /// [`PortFault`].
    fn steps(
        &self,
        agent_run_id: &Hash,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Slice<Step, u64>, PortFault>;

    /// Runs that fit the filter, newest request first, with requests before `before`. A filter
    /// with several conditions may have to look at many runs: bound it and answer short.
    ///
    /// # Errors
    /// [`PortFault`].
    fn list(
        &self,
        filter: &RunFilter,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<Run, TxLocation>, PortFault>;
}
