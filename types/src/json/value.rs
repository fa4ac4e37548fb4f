//! A JSON value with the literal text of its numbers and the order of its members.

use std::borrow::Cow;

use super::write::write_string;

/// A JSON value that keeps what the signer wrote.
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

    /// Appends the canonical form: no white space, and escapes as ECMAScript writes them.
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
