//! Texts within bounds, and their words.

use std::sync::LazyLock;

use regex::Regex;

/// Before the reason why there is no more of an answer.
pub const CUT_OFF: &str = "[cut off: ";

/// The beginning of a text, at most so many bytes, whole characters.
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

/// Whether a character is a letter or a numeral of any script.
///
/// The table is that of the crate `regex`, which Cargo.lock fixes: with the compiler's own, a model would
/// read other words in programs of other compilers.
#[must_use]
pub fn is_of_word(character: char) -> bool {
    static OTHERS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[\p{Alphabetic}\p{N}]$").expect("the pattern is a constant that is tested")
    });
    if character.is_ascii() {
        return character.is_ascii_alphanumeric();
    }
    OTHERS.is_match(character.encode_utf8(&mut [0; 4]))
}

/// An error with its causes, outermost first.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
