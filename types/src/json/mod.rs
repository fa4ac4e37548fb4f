//! JSON as the protocol needs it (docs/protocol.md section 3): key order and the literal text of
//! numbers are kept, duplicate keys are refused, and there is exactly one written form.

mod parse;
mod place;
mod reader;
mod repeats;
mod tape;
mod write;

use std::borrow::Cow;

pub(crate) use parse::{Bounds, parse_canonical};
pub use parse::{JsonError, parse};
pub use place::Place;
pub use reader::{Located, Manner, parse_tape};
pub(crate) use repeats::Repeats;
pub use tape::{Items, Members, Tape, Value};
pub use write::{ObjectWriter, write_string};

/// A JSON value that remembers what the signer wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as its literal text.
    Number(&'a str),
    /// A string, unescaped.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Self>),
    /// An object: members in the order of the text, keys unescaped and distinct.
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl<'a> Json<'a> {
    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The literal text of a number.
    #[must_use]
    pub const fn as_number(&self) -> Option<&'a str> {
        if let Self::Number(literal) = self { Some(literal) } else { None }
    }

    /// The value of a boolean.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// The items of an array.
    #[must_use]
    pub const fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items.as_slice()) } else { None }
    }

    /// The members of an object.
    #[must_use]
    pub const fn as_object(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        if let Self::Object(members) = self { Some(members.as_slice()) } else { None }
    }

    /// The name of the JSON type, for messages.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// Appends the canonical form: no white space, escapes as ECMAScript writes them.
    pub fn write_to(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Number(literal) => out.push_str(literal),
            Self::String(text) => write_string(text, out),
            Self::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_to(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_string(key, out);
                    out.push(':');
                    value.write_to(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends a step of a JSON pointer (RFC 6901).
fn push_key(key: &str, pointer: &mut String) {
    pointer.push('/');
    for character in key.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

#[cfg(test)]
mod tests;
