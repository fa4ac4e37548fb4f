//! What the definitions of built-in tools have in common.

use serde_json::{Map, Value, json};

use super::tool::{Class, Code, Failure, Limits, Terms};
use crate::messages::ToolSpec;

/// The terms of a built-in tool of this class: all are idempotent.
pub(super) const fn terms(class: Class) -> Terms {
    Terms { class, is_idempotent: true, limits: Limits::DEFAULT }
}

/// The description of a tool. `properties` is the JSON object of its arguments' schemas; those in
/// `required` must be given, and no others may.
pub(super) fn spec(
    name: &str,
    description: &str,
    properties: &Value,
    required: &[&str],
) -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters }
}

/// A text argument; empty if it is not given, which the schema allows only where it may be.
pub(super) fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Runs what takes the processor for a while on a thread where it holds up nobody.
pub(super) async fn computed(
    work: impl FnOnce() -> Result<String, Failure> + Send + 'static,
) -> Result<String, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
        Err(_) => Err(Failure::new(Code::Cancelled, "the miner stops")),
    }
}
