//! Whether the calls and results of a conversation hang together (docs/agent-methods.md section 6): no
//! miner takes one that does not.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fault::ApiFault;

/// The most bytes of the id of a call.
const ID_BYTES_MAX: usize = 128;

/// Checks the messages of an envelope.
pub(super) fn check(messages: &[Value]) -> Result<(), ApiFault> {
    let (mut known, mut waiting) = (BTreeSet::new(), BTreeSet::new());
    for (place, message) in messages.iter().enumerate() {
        let param = format!("messages[{place}]");
        if let Some(id) = message.get("toolCallId").and_then(Value::as_str) {
            if !waiting.remove(id) {
                return Err(wrong(
                    format!("{param}.tool_call_id"),
                    "no call with this id is waiting for a result",
                ));
            }
            continue;
        }
        if let Some(id) = waiting.first() {
            let message = format!("the call {id:?} before it has no result yet");
            return Err(wrong(param, &message));
        }
        for id in ids(message) {
            if id.is_empty() || id.len() > ID_BYTES_MAX {
                let message = format!("expected ids of 1 to {ID_BYTES_MAX} bytes");
                return Err(wrong(format!("{param}.tool_calls"), &message));
            }
            if !known.insert(id) {
                let message = format!("the id {id:?} belongs to another call");
                return Err(wrong(format!("{param}.tool_calls"), &message));
            }
            waiting.insert(id);
        }
    }
    match waiting.first() {
        Some(id) => Err(wrong("messages".to_owned(), &format!("the call {id:?} has no result"))),
        None => Ok(()),
    }
}

fn ids(message: &Value) -> impl Iterator<Item = &str> {
    let calls = message.get("toolCalls").and_then(Value::as_array).into_iter().flatten();
    calls.filter_map(|call| call.get("id").and_then(Value::as_str))
}

fn wrong(param: String, message: &str) -> ApiFault {
    let message = format!("{param}: {message}");
    ApiFault::parameter(param, message)
}
