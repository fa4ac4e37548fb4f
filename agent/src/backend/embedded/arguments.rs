//! Arguments that are copied out of the conversation.
//!
//! A small model invents addresses, hashes and dates. Where a tool's schema says that it wants one,
//! only those that somebody has written are allowed.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::names::{is_hex, words};
use crate::messages::{Message, ToolSpec};

/// What an argument is, as far as its schema tells.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A number in hexadecimal with so many digits; or a height, or the word `latest`, where the
    /// description has these words.
    Hex { digits: Vec<usize>, height: bool, latest: bool },
    /// A date.
    Date,
    /// Something to calculate.
    Expression,
    /// A whole number within bounds.
    Integer { min: i64, max: i64 },
}

/// How a description says that an argument is a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dates {
    /// By these letters, in whatever word: what members of a committee agree on.
    Letters,
    /// By a word: what updates something is no date.
    Words,
}

/// The tool with a schema that allows only arguments of the conversation, the last message first;
/// none if an argument is needed that nobody has written.
pub(super) fn narrowed(tool: &ToolSpec, messages: &[Message], dates: Dates) -> Option<ToolSpec> {
    let Some(properties) = tool.parameters.get("properties").and_then(Value::as_object) else {
        return Some(tool.clone());
    };
    let required: Vec<&str> = tool
        .parameters
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let kinds: Vec<_> = properties.iter().map(|(name, schema)| kind(name, schema, dates)).collect();
    let dates = kinds.iter().filter(|kind| **kind == Some(Kind::Date)).count();
    let mut date = 0_usize;
    let mut narrow = Map::new();
    for ((name, schema), kind) in properties.iter().zip(&kinds) {
        let Some(kind) = kind else {
            narrow.insert(name.clone(), schema.clone());
            continue;
        };
        let mut found = newest(kind, messages);
        if *kind == Kind::Date && found.len() == dates {
            // As many as there are arguments: each is the next one.
            found = found.into_iter().skip(date).take(1).collect();
            date = date.saturating_add(1);
        }
        if !found.is_empty() {
            narrow.insert(name.clone(), json!({ "enum": found }));
        } else if matches!(kind, Kind::Integer { .. }) && required.contains(&name.as_str()) {
            narrow.insert(name.clone(), schema.clone());
        } else if required.contains(&name.as_str()) {
            return None;
        }
    }
    let parameters = json!({
        "type": "object",
        "properties": narrow,
        "required": narrow.keys().filter(|name| {
            required.contains(&name.as_str()) || narrow[*name].get("enum").is_some()
        }).collect::<Vec<_>>(),
        "additionalProperties": false,
    });
    Some(ToolSpec { parameters, ..tool.clone() })
}

fn kind(name: &str, schema: &Value, dates: Dates) -> Option<Kind> {
    let text = |key| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    if schema.get("enum").is_some() {
        return None;
    }
    if text("type") == "integer" {
        let bound = |key| schema.get(key).and_then(Value::as_i64);
        let (min, max) = (bound("minimum").unwrap_or(0), bound("maximum").unwrap_or(i64::MAX));
        return Some(Kind::Integer { min, max });
    }
    if text("type") != "string" {
        return None;
    }
    let about = text("description").to_ascii_lowercase();
    let digits: Vec<usize> = HEX_DIGITS
        .captures_iter(&about)
        .filter_map(|found| found.get(1)?.as_str().parse().ok())
        .collect();
    if !digits.is_empty() {
        let (height, latest) = (about.contains("height"), about.contains("latest"));
        return Some(Kind::Hex { digits, height, latest });
    }
    if name == "expression" {
        return Some(Kind::Expression);
    }
    let is_date = match dates {
        Dates::Letters => about.contains("date"),
        Dates::Words => words(&about).any(|word| matches!(word, "date" | "dates")),
    };
    is_date.then_some(Kind::Date)
}

/// What the newest message has that has any, in its order, each once.
fn newest(kind: &Kind, messages: &[Message]) -> Vec<Value> {
    let found = messages.iter().rev().map(|message| candidates(kind, &message.text));
    found.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
}

static HEX_DIGITS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d+)(?: lower-case)? hex"));
static DATES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?)?")
});
static EXPRESSIONS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9(][0-9+\-*/^%(). ]*[+\-*/^%][0-9+\-*/^%(). ]*[0-9)]"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is right")
}

fn candidates(kind: &Kind, text: &str) -> Vec<Value> {
    let mut found: Vec<Value> = match kind {
        Kind::Hex { digits, height, latest } => {
            let fits = |word: &&str| {
                digits.iter().any(|digits| is_hex(word, *digits))
                    || (*height && word.parse::<u64>().is_ok())
                    || (*latest && *word == "latest")
            };
            words(text).filter(fits).map(Value::from).collect()
        }
        Kind::Date => DATES.find_iter(text).map(|found| found.as_str().into()).collect(),
        Kind::Expression => {
            EXPRESSIONS.find_iter(text).map(|found| found.as_str().trim().into()).collect()
        }
        Kind::Integer { min, max } => words(text)
            .filter_map(|word| word.parse::<i64>().ok())
            .filter(|number| (min..=max).contains(&number))
            .map(Value::from)
            .collect(),
    };
    let mut seen = Vec::new();
    found.retain(|value| {
        let is_new = !seen.contains(value);
        if is_new {
            seen.push(value.clone());
        }
        is_new
    });
    found
}
