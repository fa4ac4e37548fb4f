//! The arguments of a tool.

use rmcp::model::JsonObject;
use serde_json::Value;
use types::Hash;

use crate::openai::{Fault, short};

/// The longest that a tool waits, seconds: clients give up after a minute.
pub(super) const WAIT_SECONDS_MAX: u64 = 45;
/// The argument that says how long a tool waits.
pub(super) const WAIT_SECONDS: &str = "wait_seconds";
/// The argument that names a run.
pub(super) const RUN_ID: &str = "run_id";

/// The arguments of a tool, and what they are said to be.
#[derive(Debug)]
pub(super) struct Arguments(JsonObject);

impl Arguments {
    /// The arguments of a tool that knows these.
    ///
    /// # Errors
    /// When there is another.
    pub(super) fn of(given: Option<JsonObject>, known: &[&str]) -> Result<Self, Fault> {
        let given = given.unwrap_or_default();
        match given.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self(given)),
            Some(name) => {
                let may = known.join(", ");
                let message = format!("{}: expected one of {may}", short(name));
                Err(Fault::parameter(name.clone(), message))
            }
        }
    }

    /// A text, if it is given.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Fault> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a text", other)),
        }
    }

    /// A text that must be given.
    pub(super) fn needed(&self, name: &str) -> Result<&str, Fault> {
        let missing = || Fault::parameter(name, format!("{name}: expected a text, and missing"));
        self.text(name)?.ok_or_else(missing)
    }

    /// A whole number between two others, if it is given.
    pub(super) fn whole(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Fault> {
        let given = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(given) => given,
        };
        let whole = given.as_u64().filter(|it| (least..=most).contains(it));
        let expected = || wrong(name, &format!("a whole number from {least} to {most}"), given);
        whole.map(Some).ok_or_else(expected)
    }

    /// How long to wait.
    pub(super) fn wait_seconds(&self, default: u64) -> Result<u64, Fault> {
        Ok(self.whole(WAIT_SECONDS, 0, WAIT_SECONDS_MAX)?.unwrap_or(default))
    }

    /// The run that is meant.
    pub(super) fn run_id(&self) -> Result<Hash, Fault> {
        let text = self.needed(RUN_ID)?;
        Hash::parse(text).map_err(|_text| {
            let message =
                format!("{RUN_ID}: expected 64 hexadecimal digits, got {:?}", short(text));
            Fault::parameter(RUN_ID, message)
        })
    }
}

fn wrong(name: &str, expected: &str, got: &Value) -> Fault {
    let got = short(&got.to_string());
    Fault::parameter(name, format!("{name}: expected {expected}, got {got}"))
}

#[cfg(test)]
mod tests {
    //! What is refused, and how.

    use serde_json::{Value, json};

    use super::Arguments;
    use crate::openai::Fault;

    fn given(value: &Value) -> Arguments {
        let known = ["prompt", "wait_seconds", "run_id"];
        Arguments::of(value.as_object().cloned(), &known).unwrap()
    }

    fn said<T: std::fmt::Debug>(answer: Result<T, Fault>) -> String {
        let Fault { message, code, .. } = answer.unwrap_err();
        assert_eq!("invalid_value", code);
        message
    }

    #[test]
    fn an_argument_that_cannot_be_used_is_named_with_what_was_expected() {
        let other = Arguments::of(json!({ "promt": 1 }).as_object().cloned(), &["prompt"]);
        assert_eq!("promt: expected one of prompt", said(other));
        assert_eq!(
            "prompt: expected a text, got 7",
            said(given(&json!({ "prompt": 7 })).text("prompt"))
        );
        assert_eq!(
            "prompt: expected a text, and missing",
            said(given(&json!({})).needed("prompt"))
        );
        for wrong in [json!(46), json!(-1), json!(1.5), json!("1")] {
            let message = said(given(&json!({ "wait_seconds": wrong })).wait_seconds(0));
            let expected = "wait_seconds: expected a whole number from 0 to 45, got";
            assert!(message.starts_with(expected), "{message}");
        }
        let message = said(given(&json!({ "run_id": "0xabc" })).run_id());
        assert!(message.starts_with("run_id: expected 64"), "{message}");
    }

    #[test]
    fn what_is_not_given_is_the_default() {
        assert_eq!(45, given(&json!({})).wait_seconds(45).unwrap());
        assert_eq!(0, given(&json!({ "wait_seconds": 0 })).wait_seconds(45).unwrap());
        assert_eq!(None, given(&json!({ "prompt": null })).text("prompt").unwrap());
    }
}
