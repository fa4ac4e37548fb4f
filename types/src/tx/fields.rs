//! Typed reading of a transaction's members. Every error is MALFORMED and names the field.

use std::fmt::Display;
use std::str::FromStr;

use crate::json::Json;
use crate::params::INTEGER_MAX;
use crate::text::ParseTextError;
use crate::{Amount, Hash, Rejection};

/// The members of one JSON object, by key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a, 'b> {
    members: &'a [(std::borrow::Cow<'b, str>, Json<'b>)],
    /// Where the object is, for messages: empty, or `toolCalls[3].`.
    path: &'a str,
}

impl<'a, 'b> Fields<'a, 'b> {
    pub(crate) fn of(value: &'a Json<'b>, path: &'a str) -> Result<Self, Rejection> {
        match value {
            Json::Object(members) => Ok(Self { members, path }),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                let field = if path.is_empty() { "transaction" } else { path };
                Err(Rejection::malformed(
                    field.trim_end_matches('.').to_owned(),
                    value.kind(),
                    "an object",
                ))
            }
        }
    }

    fn find(&self, key: &str) -> Option<&'a Json<'b>> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn error(&self, key: &str, got: impl Display, expected: impl Display) -> Rejection {
        Rejection::malformed(format!("{}{key}", self.path), got, expected)
    }

    fn required(&self, key: &str, expected: &'static str) -> Result<&'a Json<'b>, Rejection> {
        self.find(key).ok_or_else(|| self.error(key, "missing", expected))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    pub(crate) fn text(&self, key: &str) -> Result<&'a str, Rejection> {
        match self.required(key, "a string")? {
            Json::String(text) => Ok(text),
            other => Err(self.error(key, other.kind(), "a string")),
        }
    }

    pub(crate) fn string(&self, key: &str) -> Result<String, Rejection> {
        self.text(key).map(str::to_owned)
    }

    pub(crate) fn optional_string(&self, key: &str) -> Result<Option<String>, Rejection> {
        if self.has(key) { self.string(key).map(Some) } else { Ok(None) }
    }

    /// A string that is read by the type's own rule: a hash, an address, an amount.
    pub(crate) fn parsed<T: FromStr<Err = ParseTextError>>(
        &self,
        key: &str,
    ) -> Result<T, Rejection> {
        self.text(key)?.parse().map_err(|e: ParseTextError| self.error(key, e.got, e.expected))
    }

    pub(crate) fn hash(&self, key: &str) -> Result<Hash, Rejection> {
        self.parsed(key)
    }

    pub(crate) fn optional_hash(&self, key: &str) -> Result<Option<Hash>, Rejection> {
        if self.has(key) { self.hash(key).map(Some) } else { Ok(None) }
    }

    pub(crate) fn amount(&self, key: &str) -> Result<Amount, Rejection> {
        self.parsed(key)
    }

    /// An integer from 0 to 2^53−1, written in plain digits.
    pub(crate) fn integer(&self, key: &str) -> Result<u64, Rejection> {
        const EXPECTED: &str = "an integer from 0 to 9007199254740991 in plain digits";
        let literal = match self.required(key, EXPECTED)? {
            Json::Number(literal) => *literal,
            other => return Err(self.error(key, other.kind(), EXPECTED)),
        };
        let plain = literal.bytes().all(|byte| byte.is_ascii_digit());
        match literal.parse() {
            Ok(value) if plain && value <= INTEGER_MAX => Ok(value),
            _ => Err(self.error(key, literal, EXPECTED)),
        }
    }

    pub(crate) fn boolean(&self, key: &str) -> Result<bool, Rejection> {
        match self.required(key, "true or false")? {
            Json::Bool(value) => Ok(*value),
            other => Err(self.error(key, other.kind(), "true or false")),
        }
    }

    pub(crate) fn array(&self, key: &str) -> Result<&'a [Json<'b>], Rejection> {
        match self.required(key, "an array")? {
            Json::Array(items) => Ok(items),
            other => Err(self.error(key, other.kind(), "an array")),
        }
    }

    pub(crate) fn strings(&self, key: &str) -> Result<Vec<String>, Rejection> {
        let read = |item: &Json<'_>| match item {
            Json::String(text) => Ok(text.clone().into_owned()),
            other => Err(self.error(
                key,
                format_args!("an array with {}", other.kind()),
                "an array of strings",
            )),
        };
        self.array(key)?.iter().map(read).collect()
    }

    /// An optional array of objects; absent is empty.
    pub(crate) fn optional_objects<T>(
        &self,
        key: &str,
        read: impl Fn(Fields<'_, 'b>) -> Result<T, Rejection>,
    ) -> Result<Option<Vec<T>>, Rejection> {
        if !self.has(key) {
            return Ok(None);
        }
        let items = self.array(key)?.iter().enumerate();
        items
            .map(|(index, item)| {
                let path = format!("{}{key}[{index}].", self.path);
                read(Fields::of(item, &path)?)
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }
}
