//! What a tool answers: structured, and the same as text.

use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use types::Hash;

use crate::desk::{Answered, Ended, Progress};
use crate::openai::{self, Fault};

/// What came of a tool that looked at a run.
#[derive(Debug)]
pub(super) struct Told {
    /// The structured content.
    pub(super) value: Value,
    /// Whether the tool failed.
    pub(super) is_error: bool,
}

impl Told {
    /// The tool did what it is for.
    pub(super) const fn well(value: Value) -> Self {
        Self { value, is_error: false }
    }

    /// The result as the protocol has it.
    pub(super) fn result(self) -> CallToolResult {
        let Self { value, is_error } = self;
        if is_error {
            CallToolResult::structured_error(value)
        } else {
            CallToolResult::structured(value)
        }
    }
}

/// A fault that is no run's.
pub(super) fn failed(fault: &Fault) -> Value {
    let Fault { code, param, message, .. } = fault;
    let mut error = json!({ "code": code, "message": message });
    if let Some(param) = param {
        error["argument"] = json!(param);
    }
    if let Some(retry_ms) = fault.retry_ms {
        error["retryAfterMs"] = json!(retry_ms);
    }
    json!({ "status": "failed", "error": error })
}

/// A run that has not ended.
pub(super) fn running(run: Option<Hash>, progress: &Progress) -> Value {
    let mut value = json!({
        "status": "running",
        "claimed": progress.is_claimed,
        "steps": progress.steps,
    });
    if let Some(run) = progress.run.or(run) {
        value["runId"] = json!(run);
    }
    if let Some(tx) = progress.request_tx {
        value["requestTx"] = json!(tx);
    }
    value
}

/// A run that has ended.
pub(super) fn ended(run: Option<Hash>, ended: &Ended) -> Value {
    let mut value = match ended {
        Ok(answered) => completed(answered),
        Err(fault) => failed(fault),
    };
    if let Some(run) = run {
        value["runId"] = json!(run);
    }
    value
}

/// The members that matter to a model, out of the interface's object.
fn completed(Answered(completion): &Answered) -> Value {
    let mut told = openai::completion(completion);
    let mut value = json!({ "status": "completed" });
    let mut take = |name: &str, found: Value| {
        if !found.is_null() {
            value[name] = found;
        }
    };
    take("answer", told["choices"][0]["message"]["content"].take());
    take("finishReason", told["choices"][0]["finish_reason"].take());
    take("completionTokens", told["usage"]["completion_tokens"].take());
    take("costMicro", told["usage"]["cost_micro"].take());
    for name in ["requestTx", "settlementTx", "block"] {
        take(name, told["ombra"][name].take());
    }
    value
}
