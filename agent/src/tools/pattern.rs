//! `regex_match`: finds a pattern in a text, in time that grows with both and no more.

use async_trait::async_trait;
use regex::{Captures, Regex, RegexBuilder};
use serde_json::{Map, Value, json};

use super::definition::{computed, spec, terms, text};
use super::hashes::canonical_json;
use super::tool::{Class, Failure, Terms, Tool};
use crate::messages::ToolSpec;

/// Characters of a pattern.
const PATTERN_CHARACTERS_MAX: usize = 500;
/// Memory of a compiled pattern, in bytes. The time for one match grows with it.
const COMPILED_BYTES_MAX: usize = 512 * 1024;
/// Bytes of the compiled pattern times those of the text, where no time ends a call: less than half a second
/// for one look at the whole text, and at most one look for each match that is listed.
const WORK_MAX: usize = 1 << 30;
/// Nested groups of a pattern.
const NESTED_MAX: u32 = 30;
/// Matches that are listed.
const MATCHES_MAX: usize = 20;

/// The tool `regex_match`.
#[derive(Debug)]
pub(super) struct RegexMatch {
    spec: ToolSpec,
}

impl RegexMatch {
    pub(super) fn new() -> Self {
        let properties = json!({
            "pattern": {
                "type": "string", "maxLength": PATTERN_CHARACTERS_MAX,
                "description": "a regular expression, without look-around and back-references",
            },
            "text": {"type": "string", "description": "where to look"},
        });
        let what = "Finds every match of a regular expression in a text, up to 20 of them, with \
                    the groups of each.";
        Self { spec: spec("regex_match", what, &properties, &["pattern", "text"]) }
    }
}

#[async_trait]
impl Tool for RegexMatch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn terms(&self) -> Terms {
        terms(Class::Pure)
    }

    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure> {
        let arguments = arguments.clone();
        computed(move || run(&arguments)).await
    }
}

/// The result, which depends on the arguments alone.
fn run(arguments: &Map<String, Value>) -> Result<String, Failure> {
    let (pattern, text) = (text(arguments, "pattern"), text(arguments, "text"));
    Ok(matches(&compile(pattern, COMPILED_BYTES_MAX, "a pattern with less repetition")?, text))
}

/// The same where no time ends it: the longer the text, the smaller the compiled pattern has to be.
pub(super) fn run_bounded(arguments: &Map<String, Value>) -> Result<String, Failure> {
    let (pattern, text) = (text(arguments, "pattern"), text(arguments, "text"));
    let compiled_bytes_max = WORK_MAX.checked_div(text.len()).unwrap_or(COMPILED_BYTES_MAX);
    let smaller = "a pattern with less repetition, or a shorter text";
    Ok(matches(&compile(pattern, compiled_bytes_max.min(COMPILED_BYTES_MAX), smaller)?, text))
}

fn matches(regex: &Regex, text: &str) -> String {
    let names: Vec<_> = regex.capture_names().collect();
    let mut found = regex.captures_iter(text);
    let listed: Vec<_> =
        found.by_ref().take(MATCHES_MAX).map(|it| described(&it, &names)).collect();
    let has_more = found.next().is_some();
    canonical_json(&json!({"matches": listed, "more": has_more}))
}

/// `smaller` says what would be right instead of a pattern that is too large.
fn compile(
    pattern: &str,
    compiled_bytes_max: usize,
    smaller: &'static str,
) -> Result<Regex, Failure> {
    let expected = |fault: &regex::Error| {
        if matches!(fault, regex::Error::CompiledTooBig(_)) {
            smaller
        } else {
            "a regular expression without look-around and back-references, at most 30 groups deep"
        }
    };
    RegexBuilder::new(pattern)
        .size_limit(compiled_bytes_max)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .nest_limit(NESTED_MAX)
        .build()
        .map_err(|fault| Failure::argument("pattern", pattern, expected(&fault)))
}

fn described(found: &Captures<'_>, names: &[Option<&str>]) -> Value {
    let mut groups = Map::new();
    for (index, name) in names.iter().enumerate().skip(1) {
        let key = name.map_or_else(|| index.to_string(), str::to_owned);
        groups.insert(key, json!(found.get(index).map(|group| group.as_str())));
    }
    json!({"text": &found[0], "groups": groups})
}

#[cfg(test)]
mod tests;
