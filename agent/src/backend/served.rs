//! The model of a server, as agents of the market ask it.
//!
//! What it answers differs from server to server, so it is asked only for calls whose answers are
//! collected and not compared (docs/market.md section 9.3).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};
use types::Hash;

use crate::backend::{Backend, BackendError};
use crate::executor::{Form, Inference, Model, ModelAsk, ModelFault, Served, Stop};
use crate::messages::{Constraint, End, Iteration, Message, Output, Role, ToolSpec};

/// A question is given up after this, where the call has no end.
const LONGEST: Duration = Duration::from_secs(600);

/// The model of a back end, under the manifest that the operator gives it.
#[derive(Debug)]
pub struct ServedModel {
    manifest: Hash,
    backend: Arc<dyn Backend>,
    runtime: Handle,
}

impl ServedModel {
    /// Must be called within a runtime of several threads, which does the asking.
    #[must_use]
    pub fn new(manifest: Hash, backend: Arc<dyn Backend>) -> Self {
        Self { manifest, backend, runtime: Handle::current() }
    }

    async fn ask(&self, iteration: &Iteration<'_>, stop: &Stop) -> Result<Output, ModelFault> {
        let token = stop.token().child_token();
        let _guard = token.clone().drop_guard();
        let longest = Instant::now().checked_add(LONGEST).unwrap_or_else(Instant::now);
        let until = stop.until().map_or(longest, Instant::from_std);
        tokio::select! {
            biased;
            output = self.backend.infer(iteration, &token) => output.map_err(fault),
            () = sleep_until(until) => {
                Err(ModelFault::Unable("the model's server took too long".to_owned()))
            }
        }
    }
}

impl Model for ServedModel {
    fn manifest(&self) -> Hash {
        self.manifest
    }

    fn is_deterministic(&self) -> bool {
        false
    }

    fn infer(&self, ask: &ModelAsk<'_>, stop: &Stop) -> Result<Inference, ModelFault> {
        let question = Question::of(ask);
        let iteration = question.iteration(ask.output_tokens_max);
        let output = self.runtime.block_on(self.ask(&iteration, stop))?;
        let served = Served {
            input_tokens: output.prompt_tokens.into(),
            output_tokens: output.output_tokens.into(),
        };
        if served.input_tokens > ask.input_tokens_max {
            return Err(ModelFault::InputTokens);
        }
        let Output { text, tool_calls, end, .. } = output;
        let is_cut = matches!(end, End::Length | End::CallCut);
        Ok(Inference { text, tool_calls, is_cut, readings: Vec::new(), served: Some(served) })
    }
}

/// A question in the words of a back end.
struct Question {
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    constraint: Constraint,
}

impl Question {
    fn of(ask: &ModelAsk<'_>) -> Self {
        let (mut messages, mut tools) = (ask.messages.to_vec(), Vec::new());
        let mut constraint = Constraint::Free;
        match ask.form {
            Form::Plain(of_runs) => constraint = of_runs.clone(),
            Form::Tools(offered) => tools.clone_from(offered),
            Form::Call(offered) => {
                tools.clone_from(offered);
                constraint = Constraint::Call;
            }
            Form::Schema(schema) => {
                messages = with_schema(messages, schema);
                constraint = Constraint::Json { schema: schema.clone(), alone: true };
            }
        }
        Self { messages, tools, constraint }
    }

    fn iteration(&self, output_tokens_max: u32) -> Iteration<'_> {
        let Self { messages, tools, constraint } = self;
        Iteration {
            messages,
            tools,
            constraint,
            thinks: false,
            so_far: "",
            stops: &[],
            output_tokens_max,
        }
    }
}

/// The conversation with the form of the answer in its instructions.
fn with_schema(messages: Vec<Message>, schema: &Value) -> Vec<Message> {
    let form = format!("Answer with JSON of this schema, and with nothing else:\n{schema}");
    let mut messages = messages;
    match messages.first_mut().filter(|first| first.role == Role::System) {
        Some(first) => first.text = format!("{}\n\n{form}", first.text),
        None => {
            let (role, tool_calls, tool_call_id) = (Role::System, Vec::new(), None);
            messages.insert(0, Message { role, text: form, tool_calls, tool_call_id });
        }
    }
    messages
}

/// What is wrong with the question is so at every try; all else is this miner's own.
fn fault(error: BackendError) -> ModelFault {
    if matches!(error, BackendError::TooLong { .. } | BackendError::Truncated { .. }) {
        return ModelFault::Question("the question does not fit the model's context".to_owned());
    }
    // Its address is nobody's business.
    tracing::warn!(%error, "the model's server gave a call no answer");
    ModelFault::Unable("the model's server gave no answer".to_owned())
}
