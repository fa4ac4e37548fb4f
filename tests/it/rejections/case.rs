//! One text that is refused, and exactly how.

use serde_json::{Value, json};
use testkit::actor::Actor;
use types::{Address, Body, Code, Rejection};

/// What a text in an error must be.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Is(String),
    /// The rest is a measure that the case does not know.
    Begins(String),
}

impl<T: ToString> From<T> for Text {
    fn from(text: T) -> Self {
        Self::Is(text.to_string())
    }
}

pub(super) fn begins(text: &str) -> Text {
    Text::Begins(text.to_owned())
}

impl Text {
    fn fits(&self, told: &str) -> bool {
        match self {
            Self::Is(text) => told == text,
            Self::Begins(beginning) => told.starts_with(beginning),
        }
    }
}

/// A signed text that is refused.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) code: Code,
    /// Whose account stays as it is.
    pub(super) sender: Address,
    pub(super) text: String,
    field: Text,
    got: Text,
    expected: Text,
    /// Further members of `data`; null for one whose value the case does not know.
    more: Vec<(&'static str, Value)>,
}

/// `body`, signed by `actor` with its next nonce, is refused.
pub(super) fn case(code: Code, actor: &Actor, body: &Body) -> Case {
    case_of_text(code, actor.address(), actor.draft(body))
}

/// The name of every chain with the agent market, which the market's transactions have to name.
pub(super) const MARKET: &str = "with-a-market";

/// The same with a transaction of the agent market.
pub(super) fn market_case(code: Code, actor: &Actor, body: &Body) -> Case {
    case_of_text(code, actor.address(), actor.draft_on(MARKET, body))
}

pub(super) fn case_of_text(code: Code, sender: Address, text: String) -> Case {
    let [field, got, expected] = [(); 3].map(|()| begins(""));
    Case { code, sender, text, field, got, expected, more: Vec::new() }
}

impl Case {
    /// What the rejection says.
    pub(super) fn says(self, field: &str, got: impl Into<Text>, expected: impl Into<Text>) -> Self {
        Self { field: field.into(), got: got.into(), expected: expected.into(), ..self }
    }

    /// A further member of `data`, a text.
    pub(super) fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.more.push((key, value.to_string().into()));
        self
    }

    /// A further member of `data`: any text.
    pub(super) fn with_some(mut self, key: &'static str) -> Self {
        self.more.push((key, Value::Null));
        self
    }

    /// A further member of `data`: a number.
    pub(super) fn with_number(mut self, key: &'static str, value: u64) -> Self {
        self.more.push((key, value.into()));
        self
    }

    /// The hash that the text states, if it is one.
    pub(super) fn hash(&self) -> Option<String> {
        let tx: Value = serde_json::from_str(&self.text).ok()?;
        Some(tx["hash"].as_str()?.to_owned())
    }

    /// Fails unless `error` is the rejection.
    pub(super) fn assert_told(&self, error: &Value) {
        let Self { code, field, got, expected, more, .. } = self;
        let data = &error["data"];
        assert_eq!(json!([-32050, code.as_str()]), json!([error["code"], data["code"]]), "{error}");
        let told = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
        for (wanted, key) in [(field, "field"), (got, "got"), (expected, "expected")] {
            assert!(wanted.fits(&told(key)), "{key} must be {wanted:?}: {error}");
        }
        let same = Rejection::new(*code, told("field"), told("got"), told("expected"));
        assert_eq!(error["message"], same.message());

        let members = data.as_object().expect("data is an object").iter();
        let own = ["code", "field", "got", "expected"];
        let further = members.filter(|(key, _)| !own.contains(&key.as_str())).count();
        assert_eq!(more.len(), further, "{error}");
        for (key, value) in more {
            let fits = if value.is_null() { data[key].is_string() } else { data[key] == *value };
            assert!(fits, "{key} must be {value}: {error}");
        }
    }
}
