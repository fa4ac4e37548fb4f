//! The members of an object that a client sends: each is of its type, or is named with what was expected.

use serde_json::{Map, Value};

use crate::openai::{ApiFault, short};

/// The members, of which all are known.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// The members of an object that may have these.
    ///
    /// # Errors
    /// When there is another.
    pub(crate) fn of(given: Option<Map<String, Value>>, known: &[&str]) -> Result<Self, ApiFault> {
        let given = given.unwrap_or_default();
        match given.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self(given)),
            Some(name) => {
                let may = known.join(", ");
                let message = format!("{}: expected one of {may}", short(name));
                Err(ApiFault::parameter(name.clone(), message))
            }
        }
    }

    /// A text, if it is given.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, ApiFault> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a string", other)),
        }
    }

    /// A text that must be given.
    pub(crate) fn needed(&self, name: &str) -> Result<&str, ApiFault> {
        let missing = || ApiFault::parameter(name, format!("{name} is missing; expected a string"));
        self.text(name)?.ok_or_else(missing)
    }

    /// A whole number between two others, if it is given.
    pub(crate) fn whole(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, ApiFault> {
        let given = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(given) => given,
        };
        let whole = given.as_u64().filter(|it| (least..=most).contains(it));
        let expected = || wrong(name, &format!("a whole number from {least} to {most}"), given);
        whole.map(Some).ok_or_else(expected)
    }

    /// Whatever is given under a name.
    pub(crate) fn any(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|it| !it.is_null())
    }
}

fn wrong(name: &str, expected: &str, got: &Value) -> ApiFault {
    let got = short(&got.to_string());
    ApiFault::parameter(name, format!("{name}: expected {expected}, got {got}"))
}

#[cfg(test)]
mod tests {
    //! What is refused, and how.

    use serde_json::{Value, json};

    use super::Arguments;
    use crate::openai::ApiFault;

    fn given(value: &Value) -> Arguments {
        Arguments::of(value.as_object().cloned(), &["prompt", "number"]).unwrap()
    }

    fn said<T: std::fmt::Debug>(answer: Result<T, ApiFault>) -> String {
        let ApiFault { message, code, .. } = answer.unwrap_err();
        assert_eq!("invalid_value", code);
        message
    }

    #[test]
    fn a_member_that_cannot_be_used_is_named_with_what_was_expected() {
        let other = Arguments::of(json!({ "promt": 1 }).as_object().cloned(), &["prompt"]);
        assert_eq!("promt: expected one of prompt", said(other));
        let number = said(given(&json!({ "prompt": 7 })).text("prompt"));
        assert_eq!("prompt: expected a string, got 7", number);
        let nothing = said(given(&json!({})).needed("prompt"));
        assert_eq!("prompt is missing; expected a string", nothing);
        for wrong in [json!(46), json!(-1), json!(1.5), json!("1")] {
            let message = said(given(&json!({ "number": wrong })).whole("number", 0, 45));
            let expected = "number: expected a whole number from 0 to 45, got";
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn what_is_null_is_not_given() {
        let given = given(&json!({ "prompt": null, "number": null }));
        assert_eq!(None, given.text("prompt").unwrap());
        assert_eq!(None, given.whole("number", 0, 1).unwrap());
        assert!(given.any("prompt").is_none());
    }
}
