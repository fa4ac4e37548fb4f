//! Runs that were skipped for what their prompts ask for. To read a prompt costs time, and the answer is
//! the same until the policy or the tools change; so it is remembered. Who asks for many such runs waits
//! behind others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::tools::Grant;
use types::{Address, Hash};

use crate::policy::Policy;
use crate::ports::Tools;

/// How long a skip is remembered: what it depends on beside the policy and the tools, such as an agent
/// that could not be executed, is looked at again after this.
const AGE_MAX: Duration = Duration::from_secs(300);
/// Runs that are remembered: more than twice what one look at the waiting runs lists.
const RUNS_MAX: usize = 4_096;
/// Bytes of the names that a run may use; where there are more, the run is not remembered.
const NAMES_BYTES_MAX: usize = 16 * 1_024;

/// The tools on which a skip depends.
#[derive(Clone, Debug)]
pub(super) struct ToolsSeen {
    grant: Grant,
    offered: Vec<String>,
    missing: Vec<String>,
}

impl ToolsSeen {
    /// The tools of a grant as they are.
    pub(super) fn of(grant: Grant, tools: &dyn Tools) -> Self {
        let (offered, missing) = (tools.offered(&grant), tools.missing(&grant));
        Self { grant, offered, missing }
    }

    /// Names of the tools that are offered, and of those that are missing.
    pub(super) const fn names(&self) -> (&Vec<String>, &Vec<String>) {
        (&self.offered, &self.missing)
    }

    fn still_holds(&self, tools: &dyn Tools) -> bool {
        tools.offered(&self.grant) == self.offered && tools.missing(&self.grant) == self.missing
    }

    fn is_small(&self) -> bool {
        let granted = self.grant.tools.iter().chain(&self.grant.servers);
        let all = granted.chain(&self.offered).chain(&self.missing);
        all.map(String::len).fold(0, usize::saturating_add) <= NAMES_BYTES_MAX
    }
}

/// A run that was skipped.
#[derive(Debug)]
struct Skip {
    at: Instant,
    submitter: Address,
    policy: Arc<Policy>,
    code: &'static str,
    /// None if the prompt could not even be read.
    tools: Option<ToolsSeen>,
}

impl Skip {
    fn is_old(&self) -> bool {
        self.at.elapsed() >= AGE_MAX
    }
}

/// Runs that were skipped for what their prompts ask for.
#[derive(Debug, Default)]
pub(super) struct Declined {
    runs: BTreeMap<Hash, Skip>,
    of_submitters: BTreeMap<Address, u32>,
}

impl Declined {
    /// The code for which a run was skipped, if it would be skipped again.
    pub(super) fn code(
        &self,
        run: &Hash,
        policy: &Arc<Policy>,
        tools: &dyn Tools,
    ) -> Option<&'static str> {
        let skip = self.runs.get(run).filter(|skip| !skip.is_old())?;
        let holds = Arc::ptr_eq(&skip.policy, policy)
            && skip.tools.as_ref().is_none_or(|seen| seen.still_holds(tools));
        holds.then_some(skip.code)
    }

    /// Remembers that a run was skipped by this policy, with these tools.
    pub(super) fn remember(
        &mut self,
        (run, submitter): (Hash, Address),
        policy: Arc<Policy>,
        code: &'static str,
        tools: Option<ToolsSeen>,
    ) {
        self.forget(&run);
        if self.runs.len() >= RUNS_MAX || tools.as_ref().is_some_and(|seen| !seen.is_small()) {
            return;
        }
        let count = self.of_submitters.entry(submitter).or_default();
        *count = count.saturating_add(1);
        self.runs.insert(run, Skip { at: Instant::now(), submitter, policy, code, tools });
    }

    /// How far behind others the runs of a submitter wait: the more of them were skipped, the farther.
    pub(super) fn rank(&self, submitter: &Address) -> u32 {
        let count = self.of_submitters.get(submitter).copied().unwrap_or_default();
        count.checked_ilog2().map_or(0, |log| log.saturating_add(1))
    }

    /// Forgets what is old and, where there is little room, runs that wait for no miner any more.
    pub(super) fn tidy(&mut self, pending: &BTreeSet<Hash>) {
        let is_full = self.runs.len() > RUNS_MAX / 2;
        let is_gone =
            |(run, skip): &(&Hash, &Skip)| skip.is_old() || is_full && !pending.contains(*run);
        let gone: Vec<Hash> = self.runs.iter().filter(is_gone).map(|(run, _)| *run).collect();
        for run in gone {
            self.forget(&run);
        }
    }

    fn forget(&mut self, run: &Hash) {
        let Some(skip) = self.runs.remove(run) else { return };
        if let Some(count) = self.of_submitters.get_mut(&skip.submitter) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_submitters.remove(&skip.submitter);
            }
        }
    }
}
