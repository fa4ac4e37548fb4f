//! What a tool answers: structured, and the same as text.

use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use crate::market::CallAnswer;
use crate::openai::{self, ApiFault, Completion};
use crate::request_service::{Answered, Ended, Progress};

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

    /// The tool failed.
    pub(super) fn badly(fault: &ApiFault) -> Self {
        Self { value: failed(fault), is_error: true }
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
pub(super) fn failed(fault: &ApiFault) -> Value {
    let ApiFault { code, param, message, .. } = fault;
    let mut error = json!({ "code": code, "message": message });
    if let Some(param) = param {
        error["argument"] = json!(param);
    }
    if let Some(retry_ms) = fault.retry_ms {
        error["retryAfterMs"] = json!(retry_ms);
    }
    json!({ "status": "failed", "error": error })
}

/// A run or a call that has not ended.
pub(super) fn running(progress: &Progress) -> Value {
    let mut value = json!({ "status": "running", "claimed": progress.is_claimed });
    let counted = if progress.call.is_some() { "revealed" } else { "steps" };
    value[counted] = json!(progress.steps);
    name(&mut value, progress);
    if let Some(tx) = progress.request_tx {
        value["requestTx"] = json!(tx);
    }
    value
}

/// A run or a call that has ended.
pub(super) fn ended(progress: &Progress, ended: &Ended) -> Value {
    let mut value = match ended {
        Ok(Answered::Chat(completion)) => completed(completion),
        Ok(Answered::Call(answer)) => called(answer),
        Err(fault) => failed(fault),
    };
    name(&mut value, progress);
    value
}

/// Says which run or call it is.
fn name(value: &mut Value, progress: &Progress) {
    if let Some(run) = progress.run {
        value["runId"] = json!(run);
    }
    if let Some(call) = progress.call {
        value["callId"] = json!(call);
    }
}

/// Adds a member, if there is something to tell.
fn take(value: &mut Value, name: &str, found: Value) {
    if !found.is_null() {
        value[name] = found;
    }
}

/// The members that matter to a model, out of the interface's object.
fn completed(completion: &Completion) -> Value {
    let mut told = openai::completion(completion);
    let mut value = json!({ "status": "completed" });
    take(&mut value, "answer", told["choices"][0]["message"]["content"].take());
    take(&mut value, "finishReason", told["choices"][0]["finish_reason"].take());
    take(&mut value, "completionTokens", told["usage"]["completion_tokens"].take());
    take(&mut value, "costMicro", told["usage"]["cost_micro"].take());
    for name in ["requestTx", "settlementTx", "block"] {
        take(&mut value, name, told["ombra"][name].take());
    }
    value
}

/// The same of a call.
fn called(CallAnswer(told): &CallAnswer) -> Value {
    let mut value = json!({ "status": "completed" });
    for name in ["answer", "answers", "method", "agent"] {
        take(&mut value, name, told[name].clone());
    }
    let committee = &told["committee"];
    take(&mut value, "committee", committee["size"].clone());
    take(&mut value, "agreeing", committee["agreeing"].clone());
    take(&mut value, "costMicro", told["usage"]["cost_micro"].clone());
    for name in ["requestTx", "block"] {
        take(&mut value, name, told["ombra"][name].clone());
    }
    value
}
