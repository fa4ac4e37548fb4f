//! Sentences as a pattern.

use std::collections::BTreeSet;

use regex::Regex;

/// What is between numbers, and does not end a sentence.
const WORDS: &str = r"[^0-9.!?\n]";
/// What ends a sentence.
const END: &str = r"[.!?]";
/// Numbers, dates and times: digits, and single signs between them.
const NUMBER: &str = r"[0-9]+(?:[.:,-][0-9]+)*";

/// The pattern of [`super::Grammars::sentence`].
pub(super) fn pattern(text: &str, needed: &[&str]) -> String {
    let numbers = Regex::new(NUMBER).expect("the pattern is right");
    let numbers: BTreeSet<_> =
        numbers.find_iter(text).map(|found| escape(found.as_str())).collect();
    let numbers: Vec<_> = numbers.into_iter().collect();
    let part = if numbers.is_empty() {
        WORDS.to_owned()
    } else {
        // A number ends where the next character is no part of one.
        format!("(?:{WORDS}|(?:{})[^0-9.!?:,\\n-])", numbers.join("|"))
    };
    let needed: Vec<_> =
        needed.iter().filter(|text| !text.is_empty()).map(|text| escape(text)).collect();
    if needed.is_empty() {
        let last = if numbers.is_empty() { String::new() } else { numbers.join("|") };
        return format!("{WORDS}{part}*(?:{last})?{END}");
    }
    let needed = needed.join("|");
    let rest = format!("(?:[^0-9.!?\\n]{part}*)?");
    format!("{part}*(?:{needed}){rest}{END}")
}

/// A text as itself, also between slashes.
fn escape(text: &str) -> String {
    regex::escape(text).replace('/', r"\/").replace('\n', " ")
}

#[cfg(test)]
mod tests;
