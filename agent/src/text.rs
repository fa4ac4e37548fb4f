//! Texts within bounds.

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
