//! How messages, tools and forms of output are written for servers, and their outputs read.

use serde_json::{Map, Value, json};

use super::prompted;
use crate::messages::{Constraint, End, Iteration, Message, Output, Role, ToolCall, ToolSpec};

/// Calls of one output that are read; a step may have 64.
const CALLS_MAX: usize = 64;

/// Whether arguments are JSON inside a string, as `OpenAI` has them, or an object, as Ollama has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arguments {
    Text,
    Object,
}

/// Messages as a server reads them.
pub(super) fn messages(messages: &[Message], form: Arguments) -> Vec<Value> {
    messages.iter().map(|it| message(it, form)).collect()
}

/// What a model is asked that cannot write on in its own message.
const GO_ON: &str = "Your last message was cut off at its end. Go on exactly where it stopped: \
                     repeat nothing of it, and say nothing about it.";

/// Adds what the model has written of its message already, if there is anything.
pub(super) fn add_so_far(messages: &mut Vec<Value>, so_far: &str, is_prefix: bool) {
    if so_far.is_empty() {
        return;
    }
    messages.push(json!({ "role": "assistant", "content": so_far }));
    if !is_prefix {
        messages.push(json!({ "role": "user", "content": GO_ON }));
    }
}

fn message(message: &Message, form: Arguments) -> Value {
    let Message { role, text, tool_calls, tool_call_id } = message;
    let mut object = json!({ "role": role_word(*role), "content": text });
    if !tool_calls.is_empty() {
        object["tool_calls"] = tool_calls.iter().map(|it| call(it, form)).collect();
    }
    if let Some(id) = tool_call_id {
        object["tool_call_id"] = json!(id);
    }
    object
}

fn call(call: &ToolCall, form: Arguments) -> Value {
    let ToolCall { id, name, arguments } = call;
    let arguments = match form {
        Arguments::Text => json!(Value::Object(arguments.clone()).to_string()),
        Arguments::Object => Value::Object(arguments.clone()),
    };
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

pub(super) const fn role_word(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// Tools as a server reads them.
pub(super) fn tools(tools: &[ToolSpec]) -> Value {
    let tool = |ToolSpec { name, description, parameters }: &ToolSpec| {
        let function =
            json!({ "name": name, "description": description, "parameters": parameters });
        json!({ "type": "function", "function": function })
    };
    tools.iter().map(tool).collect()
}

/// The schema that holds an output to a form; none where any text will do, and where tools may be called
/// by their own way. Texts and numbers are in an object with the member `answer`.
pub(super) fn schema(iteration: &Iteration<'_>, native_tools: bool) -> Option<Value> {
    let Iteration { constraint, tools, .. } = iteration;
    let answer = match constraint {
        Constraint::Free => return None,
        Constraint::Call => return (!native_tools).then(|| prompted::call_schema(tools)),
        Constraint::Json { schema, .. } => {
            return constraint.callable(tools).is_empty().then(|| schema.clone());
        }
        Constraint::OneOf(texts) => json!({ "type": "string", "enum": texts }),
        Constraint::Integer { .. } => json!({ "type": "string", "pattern": "^-?[0-9]{1,78}$" }),
    };
    Some(json!({
        "type": "object",
        "properties": { "answer": answer },
        "required": ["answer"],
        "additionalProperties": false,
    }))
}

/// The text in an output that [`schema`] held; what is not of that form stays as it is.
pub(super) fn unwrap_answer(text: String, constraint: &Constraint) -> String {
    if !matches!(constraint, Constraint::OneOf(_) | Constraint::Integer { .. }) {
        return text;
    }
    let value: Option<Value> = serde_json::from_str(&text).ok();
    let answer = value.as_ref().and_then(|value| value["answer"].as_str()).map(str::to_owned);
    answer.unwrap_or(text)
}

/// A call as it comes: everything may be missing.
#[derive(Debug, Default)]
pub(super) struct RawCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// What a server said, before it is judged.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) thoughts: String,
    pub(super) calls: Vec<RawCall>,
    /// It ended because of the limit on tokens.
    pub(super) is_cut: bool,
    pub(super) output_tokens: u32,
    pub(super) prompt_tokens: u32,
}

impl Said {
    /// The output. Calls that are cut or cannot be read are not made: the output is then the text
    /// that the model wrote, for it to be told.
    pub(super) fn into_output(self, iteration: &Iteration<'_>) -> Output {
        let Self { mut text, thoughts, calls, is_cut, output_tokens, prompt_tokens } = self;
        let mut end = if is_cut { End::Length } else { End::Stop };
        let mut tool_calls = Vec::new();
        if !calls.is_empty() {
            end = if is_cut { End::CallCut } else { End::ToolCalls };
            match read_calls(&calls, iteration.messages.len()) {
                Some(read) if !is_cut => tool_calls = read,
                Some(_) | None => text = unreadable(&text, &calls),
            }
        }
        let thoughts = (!thoughts.is_empty()).then_some(thoughts);
        Output { text, thoughts, tool_calls, output_tokens, prompt_tokens, end }
    }
}

/// The calls, if every one can be read. Ids that are missing or double are made up; `place` tells
/// those of one question from those of another.
fn read_calls(calls: &[RawCall], place: usize) -> Option<Vec<ToolCall>> {
    if calls.len() > CALLS_MAX {
        return None;
    }
    let mut read: Vec<ToolCall> = Vec::with_capacity(calls.len());
    for (index, RawCall { id, name, arguments }) in calls.iter().enumerate() {
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        let arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
        if name.is_empty() {
            return None;
        }
        let taken = id.is_empty() || read.iter().any(|other| other.id == *id);
        let id = if taken { format!("call_{place}_{index}") } else { id.clone() };
        read.push(ToolCall { id, name: name.clone(), arguments });
    }
    Some(read)
}

fn unreadable(text: &str, calls: &[RawCall]) -> String {
    let mut all = text.to_owned();
    for RawCall { name, arguments, .. } in calls {
        if !all.is_empty() && !name.is_empty() {
            all.push('\n');
        }
        all.push_str(name);
        all.push_str(arguments);
    }
    all
}
