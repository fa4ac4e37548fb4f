//! Tools by description: for servers that have no tools, or accept them and ignore them.
//!
//! The model reads what the tools are and answers with one JSON object to call them:
//! `{"tool_calls":[{"name":"…","arguments":{…}}]}`, alone or in a code fence.

use serde_json::{Value, json};

use super::wire::{RawCall, Said};
use crate::messages::{Iteration, Message, Role, ToolSpec};

/// The conversation with the tools described in it, and calls and results as plain text.
pub(super) fn messages(messages: &[Message], tools: &[ToolSpec]) -> Vec<Message> {
    let described = (!tools.is_empty()).then(|| describe(tools));
    let mut plain: Vec<Message> = messages.iter().map(plain).collect();
    match (described, plain.first_mut()) {
        (None, _) => (),
        (Some(text), Some(first)) if first.role == Role::System => {
            first.text = format!("{}\n\n{text}", first.text);
        }
        (Some(text), _) => plain.insert(0, said(Role::System, text)),
    }
    plain
}

fn said(role: Role, text: String) -> Message {
    Message { role, text, tool_calls: Vec::new(), tool_call_id: None }
}

fn describe(tools: &[ToolSpec]) -> String {
    let mut text = String::from("You can call these tools:\n");
    for ToolSpec { name, description, parameters } in tools {
        let tool = json!({ "name": name, "description": description, "parameters": parameters });
        text.push_str(&tool.to_string());
        text.push('\n');
    }
    text.push_str(
        "To call tools, answer with this JSON object and nothing else:\n\
         {\"tool_calls\":[{\"name\":\"NAME\",\"arguments\":{}}]}\n\
         Otherwise answer in plain text.",
    );
    text
}

/// The schema of an output that calls one of the tools.
pub(super) fn call_schema(tools: &[ToolSpec]) -> Value {
    let call = |ToolSpec { name, parameters, .. }: &ToolSpec| {
        json!({
            "type": "object",
            "properties": { "name": { "enum": [name] }, "arguments": parameters },
            "required": ["name", "arguments"],
            "additionalProperties": false,
        })
    };
    let calls: Vec<Value> = tools.iter().map(call).collect();
    json!({
        "type": "object",
        "properties": { "tool_calls": { "type": "array", "items": { "anyOf": calls }, "minItems": 1 } },
        "required": ["tool_calls"],
        "additionalProperties": false,
    })
}

fn plain(message: &Message) -> Message {
    match message.role {
        Role::Assistant if !message.tool_calls.is_empty() => {
            let call = |call: &crate::messages::ToolCall| json!({ "name": call.name, "arguments": call.arguments });
            let calls: Vec<Value> = message.tool_calls.iter().map(call).collect();
            said(Role::Assistant, json!({ "tool_calls": calls }).to_string())
        }
        Role::Tool => said(Role::User, format!("Result of the tool:\n{}", message.text)),
        Role::System | Role::User | Role::Assistant => message.clone(),
    }
}

/// Reads calls out of a text, where tools were described to the model.
pub(super) fn read_calls(said: &mut Said, iteration: &Iteration<'_>) {
    let callable = iteration.constraint.callable(iteration.tools);
    if callable.is_empty() || !said.calls.is_empty() {
        return;
    }
    said.calls = calls(&said.text);
    if said.calls.iter().any(|call| !call.name.is_empty()) {
        said.text.clear();
    }
}

/// What an output says: calls, or text.
fn calls(text: &str) -> Vec<RawCall> {
    let body = unfenced(text.trim());
    let looks_like_a_call = body.starts_with('{') && body.contains("\"tool_calls\"");
    if !looks_like_a_call {
        return Vec::new();
    }
    let object: Option<Value> = serde_json::from_str(body).ok();
    let calls = object.as_ref().and_then(|object| object["tool_calls"].as_array());
    let raw = |call: &Value| RawCall {
        id: String::new(),
        name: call["name"].as_str().unwrap_or_default().to_owned(),
        arguments: call["arguments"].to_string(),
    };
    match calls {
        Some(calls) if !calls.is_empty() => calls.iter().map(raw).collect(),
        // A call that cannot be read is one without a name.
        Some(_) | None => vec![RawCall::default()],
    }
}

fn unfenced(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some(inner) = inner else { return text };
    inner.strip_prefix("json").unwrap_or(inner).trim()
}
