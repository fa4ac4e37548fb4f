//! Why a request or an answer is not acceptable.

use std::fmt::Display;

use types::text::shorten;

use super::Method;
use super::path::Path;

/// A request or an answer that breaks a rule: the field, what it holds, what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}, got {got}")]
pub struct Refused {
    /// The field, as a path: `args.allowedValues[2]`.
    pub field: String,
    /// What was there; at most 80 characters and an ellipsis, without control characters.
    pub got: String,
    /// What would have been right.
    pub expected: String,
    /// The method that was asked for, as far as it was known.
    pub method: Option<Method>,
}

impl Refused {
    /// `field` holds `got` where `expected` was wanted.
    pub(super) fn new(
        field: impl Into<String>,
        got: impl Display,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            got: shorten(&got.to_string()),
            expected: expected.into(),
            method: None,
        }
    }

    /// The same, said of a request for `method`.
    pub(super) fn of(self, method: Method) -> Self {
        Self { method: Some(method), ..self }
    }
}

/// Refuses a list that is too long.
pub(super) fn entries_at_most<'p>(
    field: impl Into<Path<'p>>,
    count: usize,
    max: usize,
) -> Result<(), Refused> {
    if count <= max {
        return Ok(());
    }
    let field = field.into();
    Err(Refused::new(field, format_args!("{count} entries"), format!("at most {max} entries")))
}

/// Refuses a text that is too long.
pub(super) fn bytes_at_most<'p>(
    field: impl Into<Path<'p>>,
    text: &str,
    max: usize,
) -> Result<(), Refused> {
    if text.len() <= max {
        return Ok(());
    }
    let field = field.into();
    Err(Refused::new(field, format_args!("{} bytes", text.len()), format!("at most {max} bytes")))
}
