//! What is wrong with an agent's metadata, and readers of values that report it.

use std::fmt;
use std::ops::RangeInclusive;

use crate::json::{Items, JsonError, JsonPlace, Located, Members, Value};
use crate::text::{Quoted, shorten};
use crate::{Code, Rejection};

/// The first fault in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetadataFault {
    /// A JSON pointer to the faulty value, or to the place where something is missing.
    pub path: String,
    /// The rule of docs/market.md section 3 that the text breaks.
    pub rule: u8,
    /// What was expected.
    pub expected: String,
    /// The value found, shortened.
    pub found: String,
}

/// One sentence: the place, what was expected, and what is there.
impl fmt::Display for MetadataFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, rule, expected, found } = self;
        if path.is_empty() {
            f.write_str("the document")?;
        } else {
            f.write_str(&shorten(path))?;
        }
        write!(f, ": expected {expected}, found {found} (rule {rule})")
    }
}

impl From<Located> for MetadataFault {
    fn from(Located { path, error }: Located) -> Self {
        let (expected, found) = match error {
            JsonError::Utf8 { at } => ("UTF-8".to_owned(), format!("another byte at {at}")),
            JsonError::Unexpected { expected, at } => {
                (expected.to_owned(), format!("something else at byte {at}"))
            }
            JsonError::Surrogate { at } => {
                ("whole surrogate pairs".to_owned(), format!("half of one at byte {at}"))
            }
            JsonError::Depth { max, at } => {
                (format!("at most {max} nested arrays and objects"), format!("more at byte {at}"))
            }
            JsonError::TooMany { max, at } => {
                (format!("at most {max} values"), format!("more at byte {at}"))
            }
            JsonError::DuplicateKey { key } => {
                ("each key once".to_owned(), format!("{} twice", Quoted(&key)))
            }
        };
        Self { path, rule: 1, expected, found }
    }
}

/// The longest path, in bytes, that a rejection contains in full.
const PATH_BYTES_MAX: usize = 1_024;

/// AGENT_METADATA, with `path` and `rule` in its data. A path of more than 1,024 bytes is cut; only
/// a path into members without meaning can be that long.
impl From<MetadataFault> for Rejection {
    fn from(MetadataFault { mut path, rule, expected, found }: MetadataFault) -> Self {
        if path.len() > PATH_BYTES_MAX {
            let end = (0..=PATH_BYTES_MAX).rev().find(|at| path.is_char_boundary(*at));
            path.truncate(end.unwrap_or_default());
            path.push('…');
        }
        let rejection = Self::new(Code::AgentMetadata, "metadata", found, expected);
        rejection.with("path", path).with("rule", rule)
    }
}

/// A value at its place, under a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'p, 't> {
    pub(super) place: &'p JsonPlace<'p>,
    pub(super) value: Value<'t>,
    pub(super) rule: u8,
}

impl<'t> Spot<'_, 't> {
    /// The fault that something else was expected than this value.
    pub(super) fn fault(&self, expected: impl Into<String>) -> MetadataFault {
        let found = match (self.value.as_str(), self.value.as_number()) {
            (Some(text), _) => Quoted(&shorten(text)).to_string(),
            (None, Some(literal)) => shorten(literal),
            (None, None) => self.value.kind().to_owned(),
        };
        self.fault_of(expected, found)
    }

    /// The fault that something else was expected than `found`.
    pub(super) fn fault_of(&self, expected: impl Into<String>, found: String) -> MetadataFault {
        let (path, rule) = (self.place.pointer(), self.rule);
        MetadataFault { path, rule, expected: expected.into(), found }
    }

    /// The fault of an object at this place that lacks this member.
    pub(super) fn missing(&self, key: &str) -> MetadataFault {
        let expected = format!("a member {key}");
        let path = self.place.key(key).pointer();
        MetadataFault { path, rule: self.rule, expected, found: "none".to_owned() }
    }

    /// A string.
    pub(super) fn text(&self) -> Result<&'t str, MetadataFault> {
        self.value.as_str().ok_or_else(|| self.fault("a string"))
    }

    /// A string of so many bytes.
    pub(super) fn text_of(&self, bytes: RangeInclusive<usize>) -> Result<&'t str, MetadataFault> {
        let expected = || format!("a string of {}", between(&bytes, "bytes"));
        let text = self.value.as_str().ok_or_else(|| self.fault(expected()))?;
        if bytes.contains(&text.len()) {
            return Ok(text);
        }
        Err(self.fault_of(expected(), format!("{} bytes", text.len())))
    }

    /// An array of so many items.
    pub(super) fn items(&self, count: RangeInclusive<usize>) -> Result<Items<'t>, MetadataFault> {
        let expected = || format!("an array of {}", between(&count, "items"));
        let items = self.value.items().ok_or_else(|| self.fault(expected()))?;
        if count.contains(&items.len()) {
            return Ok(items);
        }
        Err(self.fault_of(expected(), format!("{} items", items.len())))
    }

    /// An object that has these members, and perhaps others.
    pub(super) fn members(&self, required: &[&str]) -> Result<Members<'t>, MetadataFault> {
        let members = self.value.members().ok_or_else(|| self.fault("an object"))?;
        match required.iter().find(|key| members.find(key).is_none()) {
            Some(key) => Err(self.missing(key)),
            None => Ok(members),
        }
    }

    /// An integer within these bounds, without fraction and exponent.
    pub(super) fn integer(&self, bounds: RangeInclusive<u64>) -> Result<u64, MetadataFault> {
        let literal = self.value.as_number().filter(|literal| is_integer(literal));
        let number = literal.and_then(|literal| literal.parse().ok());
        number.filter(|number| bounds.contains(number)).ok_or_else(|| {
            self.fault(format!("an integer from {} to {}", bounds.start(), bounds.end()))
        })
    }
}

/// Whether the literal of a number has neither fraction nor exponent.
pub(super) fn is_integer(literal: &str) -> bool {
    !literal.contains(['.', 'e', 'E'])
}

/// `1 to 64 bytes`, `at most 512 bytes`.
fn between(bounds: &RangeInclusive<usize>, unit: &str) -> String {
    match (*bounds.start(), *bounds.end()) {
        (0, usize::MAX) => format!("any number of {unit}"),
        (0, max) => format!("at most {max} {unit}"),
        (min, usize::MAX) => format!("at least {min} {unit}"),
        (min, max) => format!("{min} to {max} {unit}"),
    }
}
