//! Executors: what runs an agent of the market for a payload (docs/market.md section 9).
//!
//! ```text
//!   Task ──▶ Executors::run ──▶ Execute: model-1, wasm-1, container
//!                                 │  ▲
//!                                 ▼  │ Scope: the model, the built-in tools, nested agents,
//!                               Meter     and the trace that becomes the receipt's `work`
//! ```
//!
//! Invariants: members of a committee have to agree byte for byte, so what an executor answers, counts and
//! traces is a function of the agent, the payload and the limits of the call alone. It never depends on the
//! time, on the machine, on threads, or on what ran before. What depends on them ends an execution as
//! [`Halt::Unable`], of which no member has to agree with another. Containers are the exception: nobody
//! compares their answers.
//!
//! Entry points: [`Executors::run`], [`Execute`], [`Scope`]. Not here: who is elected, commitments and
//! reveals, and where agents and programs are fetched.

mod agent;
mod container;
mod library;
mod local;
mod meter;
mod model;
mod registry;
mod scope;
mod selftest;
#[cfg(test)]
mod tests;
mod trace;
mod wasm;

pub use agent::{Agent, AgentError, MethodText, ModelSettings};
pub use container::{Containers, ContainersConfig, executor_of};
pub use library::Library;
pub use local::Local;
pub use meter::{Limit, Meter};
pub use model::{MethodTool, ModelAgents};
pub use registry::{Executed, Executors, Task};
pub use scope::{Context, Halt, Nested, Scope, Stop};
pub use selftest::{Fault, Tested, faults_of, selftest};
pub use trace::{Chosen, Reading, Work};
pub use wasm::{Refused as ProgramRefused, Wasm, check as check_program};

use std::fmt::Debug;

use types::{Hash, Usage};

use crate::talk::{Constraint, Message, ToolCall, ToolSpec};

/// How an execution ended for everybody.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The ABI-encoded outputs.
    Success(Vec<u8>),
    /// Why the agent does not answer.
    Failure(String),
}

/// One kind of executor: a pure function of an agent and a payload, as far as committees compare it.
pub trait Execute: Debug + Send + Sync {
    /// Runs an agent whose executor this is, on a thread that it may block.
    ///
    /// # Errors
    /// [`Halt`] where this member cannot execute the agent, or a limit of the call is reached.
    fn execute(
        &self,
        agent: &Agent,
        payload: &[u8],
        scope: &mut Scope<'_>,
    ) -> Result<Verdict, Halt>;

    /// Why it cannot work at the moment; none if it can.
    fn absent(&self) -> Option<String> {
        None
    }
}

/// A language model that agents ask.
pub trait Model: Debug + Send + Sync {
    /// Says which answers can be compared: the `model` of metadata.
    fn manifest(&self) -> Hash;

    /// Whether its answers are the same on every machine. Those of a server are its own.
    fn is_deterministic(&self) -> bool {
        true
    }

    /// Answers one question.
    ///
    /// # Errors
    /// [`ModelFault`].
    fn infer(&self, ask: &ModelAsk<'_>, stop: &Stop) -> Result<Inference, ModelFault>;
}

/// One question to a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelAsk<'a> {
    /// The conversation.
    pub messages: &'a [Message],
    /// The form of the answer.
    pub form: &'a Form,
    /// The most tokens that the model may read, all readings of the question together.
    pub input_tokens_max: u64,
    /// The most tokens that it may choose.
    pub output_tokens_max: u32,
}

/// The form that an answer of a model must have.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// As runs have it.
    Plain(Constraint),
    /// JSON of this schema.
    Schema(serde_json::Value),
    /// Any text, or a call of one of these tools, as runs have it.
    Tools(Vec<ToolSpec>),
    /// A call of one of these tools, or nothing at all.
    Call(Vec<ToolSpec>),
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inference {
    /// The text; empty if it calls a tool.
    pub text: String,
    /// The tools that it calls; none but for [`Form::Tools`] and [`Form::Call`].
    pub tool_calls: Vec<ToolCall>,
    /// Whether it was cut off at `output_tokens_max`.
    pub is_cut: bool,
    /// Everything that the model read and chose for it, in order; nothing of a server's model.
    pub readings: Vec<Reading>,
    /// What a server's model read and put out, by the server's count; nothing else counts then.
    pub served: Option<Served>,
}

/// The tokens of an answer, as a server counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were put out.
    pub output_tokens: u64,
}

impl Inference {
    /// What the call is charged for.
    fn usage(&self) -> Usage {
        let (input_tokens, output_tokens) = match self.served {
            Some(Served { input_tokens, output_tokens }) => (input_tokens, output_tokens),
            None => (
                self.readings.iter().map(Reading::input_tokens).sum(),
                self.readings.iter().map(Reading::output_tokens).sum(),
            ),
        };
        Usage { input_tokens, output_tokens, fuel: 0 }
    }
}

/// Why a model does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelFault {
    /// For everybody: the question does not fit, or its form cannot be kept.
    Question(String),
    /// More tokens would have to be read than [`ModelAsk::input_tokens_max`].
    InputTokens,
    /// Here and now alone.
    Unable(String),
}
