//! What passes between the engine, a model and its tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a model is told before it is asked for the answer after its thoughts.
pub(crate) const NOW_ANSWER: &str = "Now give only the answer.";

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// The requester.
    User,
    /// The model.
    Assistant,
    /// A tool: the result of a call.
    Tool,
}

/// One message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said; empty in a message that only calls tools.
    pub text: String,
    /// The tools that the model calls with it; empty unless `role` is the model's.
    pub tool_calls: Vec<ToolCall>,
    /// The call that this message answers; only where `role` is a tool's.
    pub tool_call_id: Option<String>,
}

/// A model's wish to have a tool run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names the call within its conversation.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, as the model gave them: not yet checked against the tool's schema.
    pub arguments: Map<String, Value>,
}

/// A tool as it is described to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name, as on a run's whitelist.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of the arguments; always of an object.
    pub parameters: Value,
}

/// What form a model's output must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Constraint {
    /// Any text, or calls of the tools that are offered.
    Free,
    /// Exactly one of these texts; never empty.
    OneOf(Vec<String>),
    /// A whole number in decimal, within these bounds where there are any; both are decimal texts
    /// of signed 256-bit numbers.
    Integer {
        /// The smallest that is allowed.
        min: Option<String>,
        /// The largest that is allowed.
        max: Option<String>,
    },
    /// A call of one of the tools that are offered.
    Call,
    /// JSON of a schema, or calls of the tools that are offered.
    Json {
        /// The schema, in the form of [`crate::methods::Schema::form`].
        schema: Value,
        /// Whether no tool may be called now, although some are offered.
        alone: bool,
    },
}

impl Constraint {
    /// The tools that may be called under it, of those that are offered.
    #[must_use]
    pub const fn callable<'a>(&self, tools: &'a [ToolSpec]) -> &'a [ToolSpec] {
        if let Self::Json { alone: true, .. } = self { &[] } else { tools }
    }
}

/// One question to a model.
#[derive(Clone, Debug)]
pub struct Iteration<'a> {
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The tools that may be called.
    pub tools: &'a [ToolSpec],
    /// The form of the output.
    pub constraint: &'a Constraint,
    /// Whether the model may think first; the thoughts are apart from the text.
    pub thinks: bool,
    /// What the model has written of this message already, where it was cut off; it goes on after it.
    pub so_far: &'a str,
    /// Texts before the first of which the answer ends. A back end may stop there, and need not.
    pub stops: &'a [String],
    /// The most tokens that it may put out, thoughts and tool calls included; at least 1.
    pub output_tokens_max: u32,
}

/// What a model said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The text; empty if it only calls tools.
    pub text: String,
    /// What it thought first, if it was asked to and did.
    pub thoughts: Option<String>,
    /// The tools that it calls.
    pub tool_calls: Vec<ToolCall>,
    /// Tokens put out, by the model's own count; this is what the requester pays for.
    pub output_tokens: u32,
    /// Tokens read, by the model's own count.
    pub prompt_tokens: u32,
    /// Why it ended.
    pub end: End,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It was done.
    Stop,
    /// It calls tools.
    ToolCalls,
    /// It was cut off at the most tokens.
    Length,
    /// It was cut off at the most tokens while it called tools; the text is what it wrote, and none
    /// of the calls is made.
    CallCut,
}
