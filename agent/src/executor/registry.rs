//! The executors of one miner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use types::agent::{ExecutorId, NESTING_MAX, Tool};
use types::call::{Answer, CallLimits, Outcome};
use types::{Hash, Usage};

#[cfg(feature = "clients")]
use super::Containers;
use super::scope::{Dispatch, Ended};
use super::{
    Agent, Context, Execute, Halt, Library, Limit, Meter, Model, ModelAgents, Scope, Stop, Verdict,
    Wasm, Work,
};

/// The executors of one miner, and the models that they ask.
#[derive(Clone, Debug, Default)]
pub struct Executors {
    executors: BTreeMap<ExecutorId, Arc<dyn Execute>>,
    models: BTreeMap<Hash, Arc<dyn Model>>,
}

/// One execution.
#[derive(Debug)]
pub struct Task<'a> {
    /// Whose call it is.
    pub context: Context,
    /// The agent.
    pub agent: &'a Agent,
    /// The selector and the arguments.
    pub payload: &'a [u8],
    /// What the call allows.
    pub limits: CallLimits,
    /// The agents and programs that it may need.
    pub library: &'a Library,
    /// When to give up.
    pub stop: Stop,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Executed {
    /// What members compare.
    pub answer: Answer,
    /// The ABI-encoded outputs; empty unless the outcome is a success.
    pub result: Vec<u8>,
    /// Why there is no success.
    pub reason: Option<String>,
    /// What the receipt tells; none where this member was unable.
    pub work: Option<Work>,
}

impl Executors {
    /// Everything that this program can execute: programs without a model, and with a model the agents and
    /// the programs that ask it.
    #[must_use]
    pub fn of(model: Option<Arc<dyn Model>>) -> Self {
        let mut executors = Self::default();
        executors.add(ExecutorId::Wasm, Arc::new(Wasm::default()));
        model.into_iter().fold(executors, Self::with_model)
    }

    /// The same, with agents and programs that ask a model.
    #[must_use]
    pub fn with_model(mut self, model: Arc<dyn Model>) -> Self {
        let manifest = model.manifest();
        // Programs are kept compiled once for all.
        let programs = self.executor(&ExecutorId::Wasm);
        let programs = programs.unwrap_or_else(|| Arc::new(Wasm::default()));
        self.add(ExecutorId::WasmWithModel { manifest }, programs);
        self.add(ExecutorId::Model { manifest }, Arc::new(ModelAgents));
        self.add_model(model);
        self
    }

    /// The same, with those of the images that an operator has named.
    #[cfg(feature = "clients")]
    #[must_use]
    pub fn with_containers(mut self, containers: &Arc<Containers>) -> Self {
        for (id, executor) in containers.executors() {
            self.add(id, executor);
        }
        self
    }

    /// Adds an executor.
    pub fn add(&mut self, id: ExecutorId, executor: Arc<dyn Execute>) {
        self.executors.insert(id, executor);
    }

    /// Adds a model.
    pub fn add_model(&mut self, model: Arc<dyn Model>) {
        self.models.insert(model.manifest(), model);
    }

    /// An executor.
    #[must_use]
    pub fn executor(&self, id: &ExecutorId) -> Option<Arc<dyn Execute>> {
        self.executors.get(id).cloned()
    }

    /// Whether an executor is here and can work now.
    #[must_use]
    pub fn is_ready(&self, id: &ExecutorId) -> bool {
        self.executors.get(id).is_some_and(|executor| executor.absent().is_none())
    }

    /// A model.
    #[must_use]
    pub fn model(&self, manifest: &Hash) -> Option<Arc<dyn Model>> {
        self.models.get(manifest).cloned()
    }

    /// Whether what an executor answers here is the same on every machine.
    #[must_use]
    pub fn is_deterministic(&self, id: &ExecutorId) -> bool {
        match id {
            ExecutorId::Container { .. } => false,
            ExecutorId::Wasm => true,
            ExecutorId::Model { manifest } | ExecutorId::WasmWithModel { manifest } => {
                self.models.get(manifest).is_none_or(|model| model.is_deterministic())
            }
        }
    }

    /// The executors that are here.
    pub fn ids(&self) -> impl Iterator<Item = ExecutorId> {
        self.executors.keys().copied()
    }

    /// The first thing that an agent needs and this miner has not, the agents among its tools included.
    #[must_use]
    pub fn missing(&self, agent: &Agent, library: &Library) -> Option<String> {
        self.missing_below(agent, library, NESTING_MAX)
    }

    /// The executors that an agent needs, those of the agents among its tools included.
    #[must_use]
    pub fn needed(agent: &Arc<Agent>, library: &Library) -> BTreeSet<ExecutorId> {
        let mut needed = BTreeSet::from([agent.metadata.executor.id()]);
        let mut level = vec![Arc::clone(agent)];
        for _ in 1..NESTING_MAX {
            let tools = level.iter().flat_map(|agent| &agent.metadata.tools);
            let below = tools.filter_map(|tool| match tool {
                Tool::Agent { id, version } => library.agent(id, version.as_str()),
                Tool::BuiltIn(_) => None,
            });
            level = below.collect();
            needed.extend(level.iter().map(|agent| agent.metadata.executor.id()));
        }
        needed
    }

    /// `levels` is how many agents may be nested, this one included. The chain has seen to it that no more
    /// are; of agents that are not published nobody has.
    fn missing_below(&self, agent: &Agent, library: &Library, levels: u8) -> Option<String> {
        let Some(below) = levels.checked_sub(1) else {
            return Some(format!("agents nest deeper than {NESTING_MAX}"));
        };
        let id = agent.metadata.executor.id();
        let Some(executor) = self.executors.get(&id) else {
            return Some(format!("the executor {id} is not here"));
        };
        if let Some(why) = executor.absent() {
            return Some(why);
        }
        if let types::agent::Executor::Wasm { blob_id, .. } = &agent.metadata.executor
            && library.program(blob_id).is_none()
        {
            return Some(format!("the program {blob_id} is not here"));
        }
        agent.metadata.tools.iter().find_map(|tool| {
            let Tool::Agent { id, version } = tool else { return None };
            match library.agent(id, version.as_str()) {
                Some(nested) => self.missing_below(&nested, library, below),
                None => Some(format!(
                    "the agent {id} {version} is not here",
                    version = version.as_str()
                )),
            }
        })
    }

    /// Executes an agent; takes as long as that takes, on this thread.
    #[must_use]
    pub fn run(&self, task: &Task<'_>) -> Executed {
        let Task { context, agent, payload, limits, library, stop } = task;
        let mut meter = Meter::new(limits.usage);
        let scope = Scope::new(self, library, &mut meter, context, stop);
        let Ended { verdict, work } = match scope.execute(agent, payload) {
            Ok(ended) => ended,
            Err(Halt::Unable(why)) => return Executed::unable(why),
            Err(Halt::Exhausted(limit)) => return Executed::unable(limit.to_string()),
        };
        let failure = |reason: String, usage, work| {
            Executed::of(Outcome::Failure, Vec::new(), Some(reason), usage, Some(work))
        };
        match verdict {
            Ok(Verdict::Success(result)) if is_longer(&result, limits.result_bytes) => {
                failure(Limit::ResultBytes.to_string(), limits.usage, work)
            }
            Ok(Verdict::Success(result)) => {
                Executed::of(Outcome::Success, result, None, meter.used(), Some(work))
            }
            Ok(Verdict::Failure(reason)) => failure(reason, meter.used(), work),
            Err(limit) => failure(limit.to_string(), limits.usage, work),
        }
    }
}

impl Dispatch for Executors {
    fn model(&self, manifest: &Hash) -> Option<Arc<dyn Model>> {
        self.model(manifest)
    }

    fn execute(
        &self,
        agent: &Agent,
        payload: &[u8],
        scope: &mut Scope<'_>,
    ) -> Result<Verdict, Halt> {
        let id = agent.metadata.executor.id();
        let missing = || Halt::Unable(format!("the executor {id} is not here"));
        self.executor(&id).ok_or_else(missing)?.execute(agent, payload, scope)
    }
}

impl Executed {
    fn of(
        outcome: Outcome,
        result: Vec<u8>,
        reason: Option<String>,
        usage: Usage,
        work: Option<Work>,
    ) -> Self {
        let receipt_hash = work.as_ref().map_or_else(|| Hash::digest(&[]), Work::hash);
        let answer = Answer { outcome, result_hash: Hash::digest(&result), usage, receipt_hash };
        Self { answer, result, reason, work }
    }

    /// This member cannot execute it.
    #[must_use]
    pub fn unable(why: String) -> Self {
        Self::of(Outcome::Unable, Vec::new(), Some(why), Usage::default(), None)
    }
}

fn is_longer(result: &[u8], most: u64) -> bool {
    u64::try_from(result.len()).unwrap_or(u64::MAX) > most
}
