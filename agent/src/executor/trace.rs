//! What an execution did, as its receipt tells it: everything that is needed to do it again, and nothing
//! that differs between honest members.

use serde_json::{Map, Value, json};
use types::call::Outcome;
use types::{Hash, Usage};

use super::inference::Inference;
use super::reading::{Chosen, Reading};
use crate::messages::Message;
use crate::tools::canonical_json;

/// What one agent did; the agents that it asked are in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Work(Value);

impl Work {
    /// The JSON object.
    #[must_use]
    pub const fn as_json(&self) -> &Value {
        &self.0
    }

    /// Its one written form (RFC 8785).
    #[must_use]
    pub fn to_text(&self) -> String {
        canonical_json(&self.0)
    }

    /// SHA-256 of the written form: the `receiptHash` of an answer.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::digest(self.to_text().as_bytes())
    }
}

/// Collects what one agent does.
#[derive(Debug, Default)]
pub(super) struct Trace {
    steps: Vec<Value>,
}

impl Trace {
    /// A question to a model.
    pub(super) fn model(&mut self, manifest: Hash, readings: &[Reading]) {
        let readings: Vec<_> = readings.iter().map(reading).collect();
        self.steps.push(json!({ "model": { "manifest": manifest, "readings": readings } }));
    }

    /// A question to a server's model. Nobody can do it again and get the same bytes, so the question
    /// stands there as a hash.
    pub(super) fn served(&mut self, manifest: Hash, messages: &[Message], answer: &Inference) {
        let asked = canonical_json(&json!(messages));
        self.steps.push(json!({ "served": {
            "manifest": manifest,
            "asked": Hash::digest(asked.as_bytes()),
            "text": answer.text,
            "calls": answer.tool_calls.len(),
        } }));
    }

    /// A call of a built-in tool.
    pub(super) fn tool(
        &mut self,
        name: &str,
        arguments: &Map<String, Value>,
        ok: bool,
        content: &str,
    ) {
        let tool = json!({ "name": name, "arguments": arguments, "ok": ok, "content": content });
        self.steps.push(json!({ "tool": tool }));
    }

    /// A nested agent.
    pub(super) fn agent(&mut self, work: Work) {
        self.steps.push(json!({ "agent": work.0 }));
    }

    /// A line of the program.
    pub(super) fn log(&mut self, line: &str) {
        self.steps.push(json!({ "log": line }));
    }

    /// Something else that an executor of one kind has to tell.
    pub(super) fn other(&mut self, name: &str, value: Value) {
        let member = Map::from_iter([(name.to_owned(), value)]);
        self.steps.push(Value::Object(member));
    }

    /// The whole.
    pub(super) fn finish(self, whose: &Whose<'_>, end: &End<'_>) -> Work {
        let Usage { input_tokens, output_tokens, fuel } = end.usage;
        Work(json!({
            "agentId": whose.id,
            "version": whose.version,
            "payload": const_hex::encode_prefixed(whose.payload),
            "steps": self.steps,
            "outcome": end.outcome.as_str(),
            "result": const_hex::encode_prefixed(end.result),
            "reason": end.reason,
            "usage": { "inputTokens": input_tokens, "outputTokens": output_tokens, "fuel": fuel },
        }))
    }
}

/// Whose work it is.
#[derive(Clone, Copy)]
pub(super) struct Whose<'a> {
    pub(super) id: Hash,
    pub(super) version: &'a str,
    pub(super) payload: &'a [u8],
}

/// How it ended.
#[derive(Clone, Copy)]
pub(super) struct End<'a> {
    pub(super) outcome: Outcome,
    pub(super) result: &'a [u8],
    pub(super) reason: &'a str,
    pub(super) usage: Usage,
}

fn reading(reading: &Reading) -> Value {
    let Reading { prompt, chosen, end, weighed } = reading;
    let one = |Chosen { token, scores }: &Chosen| json!([token, scores]);
    let all = |chosen: &[Chosen]| Value::from_iter(chosen.iter().map(one));
    let mut members = Map::new();
    members.insert("prompt".to_owned(), json!(prompt));
    members.insert("chosen".to_owned(), all(chosen));
    if let Some(end) = end {
        members.insert("end".to_owned(), one(end));
    }
    if !weighed.is_empty() {
        let texts = weighed.iter().map(|text| all(text));
        members.insert("weighed".to_owned(), Value::from_iter(texts));
    }
    Value::Object(members)
}
