//! What is wrong with values of a method, and how large they may be.

use crate::json::JsonPlace;
use crate::text::shorten;

/// The most bytes of arguments or of a result as JSON.
pub const VALUES_BYTES_MAX: usize = 262_144;

/// Why a value does not have its type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: expected {expected}, found {found}")]
pub struct ValueError {
    /// The place of the value: a JSON pointer (RFC 6901) that starts at the list of values.
    pub place: String,
    /// What was expected.
    pub expected: String,
    /// The value found, shortened.
    pub found: String,
}

impl ValueError {
    pub(super) fn new(place: &JsonPlace<'_>, expected: impl Into<String>, found: &str) -> Self {
        Self { place: place.pointer(), expected: expected.into(), found: shorten(found) }
    }
}
