//! Conversations as the model reads them.

use infer::{CALL_END, CALL_START};
use serde_json::{Value, json};

use crate::messages::{Message, Role, ToolCall, ToolSpec};

/// The conversation as the model reads it: tools are described in the first turn, calls and results
/// have the form in which the model is held to write them.
pub(super) fn turns(messages: &[Message], tools: &[ToolSpec]) -> Vec<(infer::Role, String)> {
    let mut turns: Vec<_> = messages.iter().map(turn).collect();
    if tools.is_empty() {
        return turns;
    }
    let described = described(tools);
    match turns.first_mut() {
        Some((infer::Role::System, text)) => *text = format!("{text}\n\n{described}"),
        Some(_) | None => turns.insert(0, (infer::Role::System, described)),
    }
    turns
}

fn turn(message: &Message) -> (infer::Role, String) {
    let Message { role, text, tool_calls, tool_call_id: _ } = message;
    let role = match role {
        Role::System => infer::Role::System,
        Role::User => infer::Role::User,
        Role::Assistant => infer::Role::Assistant,
        Role::Tool => infer::Role::Tool,
    };
    let calls = tool_calls.iter().map(|ToolCall { name, arguments, .. }| {
        format!("{}{}}}{CALL_END}", infer::call_beginning(name), Value::Object(arguments.clone()))
    });
    (role, calls.fold(text.clone(), |text, call| text + &call))
}

fn described(tools: &[ToolSpec]) -> String {
    let mut text = String::from("You can call these tools:\n");
    for ToolSpec { name, description, parameters } in tools {
        let tool = json!({ "name": name, "description": description, "parameters": parameters });
        text.push_str(&tool.to_string());
        text.push('\n');
    }
    text.push_str("To call one, answer only ");
    text.push_str(CALL_START);
    text.push_str("{\"name\":NAME,\"arguments\":{}}");
    text.push_str(CALL_END);
    text.push_str(". Otherwise answer the question.");
    text
}
