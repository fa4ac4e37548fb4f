//! What tools have given, as lines that a small model can read.

use serde_json::Value;

use crate::messages::{Message, Role};
use crate::text::cut;
use crate::tools::Code;

/// The most lines, and the most bytes of a value.
const LINES_MAX: usize = 24;
const VALUE_BYTES_MAX: usize = 120;

/// Names and values out of the results of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts(Vec<(String, String)>);

impl Facts {
    /// Those of the calls in these messages that did not fail, without what the calls were given.
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut facts = Self::default();
        for message in messages.iter().filter(|message| message.role == Role::Tool) {
            if is_failure(&message.text) {
                continue;
            }
            let mut calls = messages.iter().flat_map(|message| &message.tool_calls);
            let call = calls.find(|call| Some(&call.id) == message.tool_call_id.as_ref());
            let given: Vec<&str> = call
                .map(|call| call.arguments.values().filter_map(Value::as_str).collect())
                .unwrap_or_default();
            match serde_json::from_str(&message.text) {
                Ok(value @ (Value::Object(_) | Value::Array(_))) => {
                    facts.add("", &value, &given);
                }
                // A bare value is what the arguments are worth.
                Ok(_) | Err(_) => {
                    let name = if given.is_empty() { "result" } else { &given.join(", ") };
                    facts.push(name, &message.text);
                }
            }
        }
        facts
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A line for each.
    pub(super) fn lines(&self) -> String {
        let lines = self.0.iter().map(|(name, value)| format!("{name}: {value}"));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The values.
    pub(super) fn values(&self) -> Vec<&str> {
        self.0.iter().map(|(_, value)| value.as_str()).collect()
    }

    fn add(&mut self, name: &str, value: &Value, given: &[&str]) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    self.add(name, value, given);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(name, item, given)),
            Value::String(text) if given.contains(&text.as_str()) => {}
            Value::String(text) => self.push(name, text),
            Value::Bool(_) | Value::Number(_) => self.push(name, &value.to_string()),
            Value::Null => {}
        }
    }

    fn push(&mut self, name: &str, value: &str) {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.0.len() < LINES_MAX && !value.is_empty() {
            self.0.push((name.to_owned(), cut(&value, VALUE_BYTES_MAX).to_owned()));
        }
    }
}

/// Whether a result says that the call failed.
fn is_failure(text: &str) -> bool {
    let word = text.split_once(": ").map(|(word, _)| word);
    word.is_some_and(|word| word == "error" || Code::ALL.iter().any(|code| code.as_str() == word))
}
