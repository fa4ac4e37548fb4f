//! The executors of this machine without a chain: for agents that nobody has published yet.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use types::agent::{Executor, ExecutorId};
use types::call::CallLimits;
use types::{Address, Hash};

use super::{Agent, Context, Executed, Executors, Library, Model, Stop, Task, Wasm};

/// What can be executed here. Whatever kind of executor or model there is, this is where it is added.
#[derive(Clone, Debug)]
pub struct Local {
    executors: Executors,
    library: Library,
    wasm: Arc<Wasm>,
}

impl Default for Local {
    fn default() -> Self {
        Self::new()
    }
}

impl Local {
    /// Programs without a model, and nothing else.
    #[must_use]
    pub fn new() -> Self {
        let wasm = Arc::new(Wasm::default());
        let mut executors = Executors::default();
        executors.add(ExecutorId::Wasm, wasm.clone());
        Self { executors, library: Library::default(), wasm }
    }

    /// Adds a model, and with it the programs that ask it.
    pub fn add_model(&mut self, model: Arc<dyn Model>) {
        let manifest = model.manifest();
        self.executors.add(ExecutorId::WasmWithModel { manifest }, self.wasm.clone());
        self.executors.add_model(model);
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
