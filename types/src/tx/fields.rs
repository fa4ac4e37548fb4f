//! Typed reading of a transaction's members. Every error is MALFORMED and names the field.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Display;
use std::str::FromStr;

use crate::json::{Json, write_string};
use crate::params::INTEGER_MAX;
use crate::text::ParseTextError;
use crate::{Amount, Hash, Rejection};

/// The members of one JSON object, by key.
///
/// Kinds read their members in the order of the protocol's table, in which most wallets write them,
/// so a search begins after the member that was found last.
#[derive(Debug)]
pub(crate) struct Fields<'a, 'b> {
    members: &'a [(Cow<'b, str>, Json<'b>)],
    path: Path<'a>,
    /// Where the next search begins.
    next: Cell<usize>,
    /// Which of the first 64 members have been read, one bit each.
    asked: Cell<u64>,
    /// The bytes of unread members inside objects that have been read.
    unknown_within: Cell<usize>,
}

/// Where an object is, for messages.
#[derive(Clone, Copy, Debug)]
enum Path<'a> {
    /// Outermost: fields go by their own names.
    Outermost,
    /// An object of that name: `header.index`.
    Named(&'a str),
    /// An element of an array of that name: `toolCalls[3].ok`.
    Element(&'a str, usize),
}

impl<'a, 'b> Fields<'a, 'b> {
    /// The members of a transaction.
    pub(crate) fn of(value: &'a Json<'b>) -> Result<Self, Rejection> {
        Self::at(value, Path::Outermost)
    }

    /// The members of something else, which messages call `name`.
    pub(crate) fn of_named(value: &'a Json<'b>, name: &'a str) -> Result<Self, Rejection> {
        Self::at(value, Path::Named(name))
    }

    fn at(value: &'a Json<'b>, path: Path<'a>) -> Result<Self, Rejection> {
        match value {
            Json::Object(members) => Ok(Self {
                members,
                path,
                next: Cell::new(0),
                asked: Cell::new(0),
                unknown_within: Cell::new(0),
            }),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                let field = match path {
                    Path::Outermost => "transaction".to_owned(),
                    Path::Named(name) => name.to_owned(),
                    Path::Element(name, index) => format!("{name}[{index}]"),
                };
                Err(Rejection::malformed(field, value.kind(), "an object"))
            }
        }
    }

    fn position(&self, key: &str) -> Option<usize> {
        let start = self.next.get().min(self.members.len());
        let (before, after) = self.members.split_at(start);
        let is_wanted = |(name, _): &(Cow<'b, str>, Json<'b>)| name == key;
        match after.iter().position(is_wanted) {
            Some(ahead) => Some(start.saturating_add(ahead)),
            None => before.iter().position(is_wanted),
        }
    }

    fn find(&self, key: &str) -> Option<&'a Json<'b>> {
        let position = self.position(key)?;
        self.next.set(position.saturating_add(1));
        self.asked.set(self.asked.get() | bit(position));
        self.members.get(position).map(|(_, value)| value)
    }

    /// Reads members that count as unknown nevertheless: what a fork adds must not change how much room
    /// others had before it.
    pub(crate) fn unasked<T>(&self, read: impl FnOnce(&Self) -> T) -> T {
        let before = (self.asked.get(), self.unknown_within.get());
        let answer = read(self);
        self.asked.set(before.0);
        self.unknown_within.set(before.1);
        answer
    }

    /// The bytes that unread members take in the canonical text, except `known` ones.
    pub(crate) fn unknown_bytes(&self, known: &[&str]) -> usize {
        let asked = self.asked.get();
        let is_unknown = |(position, (key, _)): &(usize, &(Cow<'b, str>, Json<'b>))| {
            asked & bit(*position) == 0 && !known.contains(&&**key)
        };
        let unknown = self.members.iter().enumerate().filter(is_unknown);
        let within = self.unknown_within.get();
        unknown
            .map(|(_, (key, value))| member_bytes(key, value))
            .fold(within, usize::saturating_add)
    }

    fn error(&self, key: &str, got: impl Display, expected: impl Display) -> Rejection {
        let field = match self.path {
            Path::Outermost => key.to_owned(),
            Path::Named(name) => format!("{name}.{key}"),
            Path::Element(name, index) => format!("{name}[{index}].{key}"),
        };
        Rejection::malformed(field, got, expected)
    }

    fn required(&self, key: &str, expected: &'static str) -> Result<&'a Json<'b>, Rejection> {
        self.find(key).ok_or_else(|| self.error(key, "missing", expected))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// A required member, as what `read` makes of it; else the error says that `expected` was
    /// wanted.
    fn typed<T>(
        &self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Json<'b>) -> Option<T>,
    ) -> Result<T, Rejection> {
        let value = self.required(key, expected)?;
        read(value).ok_or_else(|| self.error(key, value.kind(), expected))
    }

    pub(crate) fn text(&self, key: &str) -> Result<&'a str, Rejection> {
        self.typed(key, "a string", Json::as_str)
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

    pub(crate) fn amount(&self, key: &str) -> Result<Amount, Rejection> {
        self.parsed(key)
    }

    /// An integer from 0 to 2^53−1, written in plain digits.
    pub(crate) fn integer(&self, key: &str) -> Result<u64, Rejection> {
        const EXPECTED: &str = "an integer from 0 to 9007199254740991 in plain digits";
        let literal = self.typed(key, EXPECTED, Json::as_number)?;
        let plain = literal.bytes().all(|byte| byte.is_ascii_digit());
        match literal.parse() {
            Ok(value) if plain && value <= INTEGER_MAX => Ok(value),
            _ => Err(self.error(key, literal, EXPECTED)),
        }
    }

    pub(crate) fn boolean(&self, key: &str) -> Result<bool, Rejection> {
        self.typed(key, "true or false", Json::as_bool)
    }

    pub(crate) fn array(&self, key: &str) -> Result<&'a [Json<'b>], Rejection> {
        self.typed(key, "an array", Json::as_array)
    }

    pub(crate) fn strings(&self, key: &str) -> Result<Vec<String>, Rejection> {
        let read = |item: &Json<'_>| {
            item.as_str().map(str::to_owned).ok_or_else(|| {
                let got = format_args!("an array with {}", item.kind());
                self.error(key, got, "an array of strings")
            })
        };
        self.array(key)?.iter().map(read).collect()
    }

    /// An object.
    pub(crate) fn object<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Fields<'_, 'b>) -> Result<T, Rejection>,
    ) -> Result<T, Rejection> {
        let value = self.required(key, "an object")?;
        let object = Fields::at(value, Path::Named(key))?;
        let read = read(&object)?;
        let unknown = self.unknown_within.get().saturating_add(object.unknown_bytes(&[]));
        self.unknown_within.set(unknown);
        Ok(read)
    }

    /// An array of objects.
    pub(crate) fn objects<T>(
        &self,
        key: &str,
        read: impl Fn(&Fields<'_, 'b>) -> Result<T, Rejection>,
    ) -> Result<Vec<T>, Rejection> {
        let items = self.array(key)?.iter().enumerate();
        let read = |(index, item)| {
            let element = Fields::at(item, Path::Element(key, index))?;
            let value = read(&element)?;
            let unknown = self.unknown_within.get().saturating_add(element.unknown_bytes(&[]));
            self.unknown_within.set(unknown);
            Ok(value)
        };
        items.map(read).collect()
    }
}

/// The bit of a member. Members after the 64th have none and count as unknown; no kind has that
/// many.
fn bit(position: usize) -> u64 {
    u32::try_from(position)
        .ok()
        .and_then(|position| 1_u64.checked_shl(position))
        .unwrap_or_default()
}

/// The bytes that a member takes in the canonical text: key, colon, value, and a comma.
fn member_bytes(key: &str, value: &Json<'_>) -> usize {
    let mut text = String::new();
    write_string(key, &mut text);
    value.write_to(&mut text);
    text.len().saturating_add(2)
}
