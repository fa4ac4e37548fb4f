//! What the engine needs from others: the course of a conversation, tools, counters.

use std::fmt::Debug;

use agent::messages::{Constraint, Message, Output, ToolCall, ToolSpec};
use agent::tools::Grant;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use types::RunStatus;

use crate::chain::{ChainError, RunView};
use crate::journal::call::CallStanding;

/// What a model is to be asked next.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The conversation so far; where no model is asked, what an agent's own model reads first.
    pub messages: &'a [Message],
    /// The tools that may be called.
    pub tools: &'a [ToolSpec],
    /// The form of the output.
    pub constraint: &'a Constraint,
    /// Whether the model may think first.
    pub thinks: bool,
    /// What the model has written of its message already, where it was cut off; else empty.
    pub so_far: &'a str,
    /// Texts before the first of which the answer ends.
    pub stops: &'a [String],
    /// The most tokens that the model may still put out in this run, at least 1, if its requester says;
    /// where no model is asked, the most of one answer of an agent's own model.
    pub output_tokens_left: Option<u32>,
    /// What stands for the output where no model is asked.
    pub unasked: Option<&'a Output>,
}

/// How a run ends by its miner's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// One of the statuses that AGENT_FINISH may state.
    pub status: RunStatus,
    /// What the requester reads: the answer, or the reason why there is none.
    pub answer: Option<String>,
}

impl Ending {
    /// An ending without an answer, and why.
    #[must_use]
    pub fn without_answer(status: RunStatus, reason: impl Into<String>) -> Self {
        Self { status, answer: Some(reason.into()) }
    }
}

/// What follows from a model's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// These tools are to be run, in this order, and their results given to [`AgentSession::results`].
    Tools(Vec<ToolCall>),
    /// The model is to be asked again.
    Again,
    /// The run ends.
    Finish(Ending),
}

/// The result of one call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// Whether the tool did what it was asked.
    pub ok: bool,
    /// What the model reads.
    pub text: String,
    /// How long the call took, milliseconds.
    pub duration_ms: u64,
    /// Tokens that a model put out for it, which are billed with those of the step.
    #[serde(default)]
    pub tokens: u64,
}

/// Begins conversations.
pub trait Courses: Debug + Send + Sync {
    /// The conversation that a run asks for; `blob` is the text of its prompt blob, if it has one.
    /// Of the tools that its model was offered before, those that nothing is known of now stay on
    /// offer.
    ///
    /// # Errors
    /// A sentence for the requester, when the run asks for something that is not understood.
    fn begin(
        &self,
        run: &RunView,
        blob: Option<&str>,
        before: &[ToolSpec],
    ) -> Result<Box<dyn AgentSession>, String>;
}

/// The course of one conversation. It is a pure function of what it was told: the engine begins it
/// anew before each question and tells it the same outputs and results.
pub trait AgentSession: Debug + Send + Sync {
    /// What the run may use.
    fn grant(&self) -> Grant;
    /// What to ask the model now.
    fn ask(&self) -> Ask<'_>;
    /// Takes what the model said. An output with [`agent::messages::End::ToolCalls`] and no calls is one
    /// whose calls cannot be read; its text is what the model wrote, and the model is to be told.
    fn take(&mut self, output: &Output) -> Move;
    /// Takes the results of the calls of the last [`Move::Tools`], in their order; what follows is
    /// not [`Move::Tools`].
    fn results(&mut self, results: &[ToolResult]) -> Move;
    /// What the requester reads when the run ends early, for a reason; what the model has written of
    /// an answer that was cut off comes first.
    fn reason(&self, why: &str) -> String;
}

/// The tools that this miner runs.
#[async_trait]
pub trait Tools: Debug + Send + Sync {
    /// Fetches the agents that a run is of or has among its tools. Those that there are not are missing.
    ///
    /// # Errors
    /// When the node cannot be asked.
    async fn fetch(&self, run: &RunView) -> Result<(), ChainError>;
    /// Names of a grant's tools and servers that cannot be had now.
    fn missing(&self, grant: &Grant) -> Vec<String>;
    /// Names of the tools that a grant gives, those of its servers too as far as they are known.
    fn offered(&self, grant: &Grant) -> Vec<String>;
    /// Whether a call may be made a second time when the outcome of the first was lost.
    fn is_idempotent(&self, grant: &Grant, name: &str) -> bool;
    /// Makes a call. What goes wrong is a result for the model.
    async fn call(&self, grant: &Grant, call: &ToolCall, stop: &CancellationToken) -> ToolResult;
}

/// Something to count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A run was looked at; the code is that of the decision.
    Decided(&'static str),
    /// A claim was included.
    Claimed,
    /// A claim came too late or was refused.
    LostRace,
    /// A step was included, with so many output tokens.
    Step {
        /// Tokens put out.
        tokens: u64,
    },
    /// The model gave an output.
    Answered {
        /// Tokens of the prompt.
        prompt_tokens: u64,
        /// Tokens put out.
        output_tokens: u64,
        /// How long it took, milliseconds.
        duration_ms: u64,
    },
    /// A tool was run.
    ToolCall {
        /// The name that the model called; any text.
        name: String,
        /// Whether it did what it was asked.
        ok: bool,
        /// How long it took, milliseconds.
        duration_ms: u64,
    },
    /// A run was settled.
    Finished {
        /// How it ended.
        status: RunStatus,
        /// Micro-OMBRA that the miner got.
        reward_micro: u64,
        /// From the decision to claim it to now, milliseconds.
        duration_ms: u64,
    },
    /// The model's server failed.
    BackendFailed,
    /// The journal was written and synced.
    Written {
        /// How long it took, microseconds.
        micros: u64,
    },
    /// This miner was drawn for a call.
    Drawn,
    /// A call is settled.
    Served {
        /// How this miner stood.
        standing: CallStanding,
        /// Micro-OMBRA that it got.
        paid_micro: u64,
        /// Micro-OMBRA that it lost of its bond.
        penalty_micro: u64,
    },
    /// A transfer to the cold address was included.
    Swept {
        /// Micro-OMBRA that it moved.
        micro: u64,
    },
}

/// Counts, for metrics.
pub trait Counters: Debug + Send + Sync {
    /// Counts one event.
    fn count(&self, event: Event);
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncounted;

impl Counters for Uncounted {
    fn count(&self, _: Event) {}
}
