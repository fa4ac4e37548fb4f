//! The executors of this machine without a chain: for agents that nobody has published yet.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use types::agent::Executor;
use types::call::CallLimits;
use types::{Address, Hash};

#[cfg(feature = "clients")]
use super::Containers;
use super::{Agent, Context, Executed, Executors, Library, Model, Stop, Task};

/// What can be executed here, and the agents and programs that it is executed for.
#[derive(Clone, Debug)]
pub struct Local {
    executors: Executors,
    library: Library,
}

impl Local {
    /// What this program can execute, with a model or without one.
    #[must_use]
    pub fn new(model: Option<Arc<dyn Model>>) -> Self {
        Self { executors: Executors::of(model), library: Library::default() }
    }

    /// The same, with agents in containers.
    #[cfg(feature = "clients")]
    #[must_use]
    pub fn with_containers(mut self, containers: &Arc<Containers>) -> Self {
        self.executors = self.executors.with_containers(containers);
        self
    }

    /// Adds an agent that others may call.
    pub fn add_agent(&mut self, agent: Arc<Agent>) {
        self.library.add_agent(agent);
    }

    /// Adds the program that an agent's metadata name; nothing for an agent of another kind.
    pub fn add_program(&mut self, agent: &Agent, program: Arc<[u8]>) {
        if let Executor::Wasm { blob_id, .. } = &agent.metadata.executor {
            self.library.add_program(blob_id.clone(), program);
        }
    }

    /// Executes an agent for a call that nobody has made: its id is zero.
    #[must_use]
    pub fn run(
        &self,
        agent: &Agent,
        payload: &[u8],
        limits: CallLimits,
        requester: Address,
    ) -> Executed {
        if let Some(missing) = self.executors.missing(agent, &self.library) {
            return Executed::unable(missing);
        }
        self.executors.run(&Task {
            context: Context { call_id: Hash::ZERO, requester },
            agent,
            payload,
            limits,
            library: &self.library,
            stop: Stop::new(CancellationToken::new(), None),
        })
    }
}
