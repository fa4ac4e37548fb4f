//! What agents ask a language model, and what it answers.

use std::fmt::Debug;

use types::{Hash, Usage};

use super::halt::Stop;
use super::reading::Reading;
use crate::messages::{Constraint, Message, ToolCall, ToolSpec};

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
    pub(super) fn usage(&self) -> Usage {
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
