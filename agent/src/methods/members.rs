//! Strict reading of the members of a JSON object: every key is known, every value of its type.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use types::json::{self, Json, JsonError};

use super::Refused;
use super::path::Path;

/// Whether `text` is one JSON object, and nothing else, with the key `key`.
///
/// This is more lenient than [`read`]: what is only *meant* as such an object is to be refused with
/// a reason, and not to be taken for something else.
pub(super) fn is_object_with(text: &str, key: &str) -> bool {
    serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text)
        .is_ok_and(|members| members.contains_key(key))
}

/// Reads `text`, the value of `field`, as JSON: no key twice, at most `depth_max` levels.
pub(super) fn read<'a, 'p>(
    field: impl Into<Path<'p>>,
    text: &'a str,
    depth_max: usize,
) -> Result<Json<'a>, Refused> {
    let field = field.into();
    json::parse(text.as_bytes(), depth_max).map_err(|e| match e {
        JsonError::DuplicateKey { .. } => Refused::new(field, e, "every key once"),
        JsonError::Depth { .. } => Refused::new(field, e, format!("at most {depth_max} levels")),
        JsonError::Utf8 { .. }
        | JsonError::Unexpected { .. }
        | JsonError::Surrogate { .. }
        | JsonError::TooMany { .. } => Refused::new(field, e, "JSON"),
    })
}

/// The members of one JSON object.
#[derive(Debug)]
pub(super) struct Members<'a, 'b, 'p> {
    members: &'a [(Cow<'b, str>, Json<'b>)],
    path: Path<'p>,
}

impl<'a, 'b, 'p> Members<'a, 'b, 'p> {
    /// The members of `value`, which messages call `path`; empty for the outermost object.
    pub(super) fn of(value: &'a Json<'b>, path: impl Into<Path<'p>>) -> Result<Self, Refused> {
        let path = path.into();
        let Json::Object(members) = value else {
            let field =
                if matches!(path, Path::Text("")) { Path::Text("ombraAgent") } else { path };
            return Err(Refused::new(field, value.kind(), "an object"));
        };
        Ok(Self { members, path })
    }

    /// Refuses every key but these.
    pub(super) fn only(self, known: &[&str]) -> Result<Self, Refused> {
        match self.members.iter().find(|(key, _)| !known.contains(&key.as_ref())) {
            None => Ok(self),
            Some((key, _)) => Err(Refused::new(
                self.field(key),
                "an unknown key",
                format!("only {}", known.join(", ")),
            )),
        }
    }

    /// The path of a member.
    pub(super) const fn field<'s>(&'s self, key: &'s str) -> Path<'s> {
        Path::Member(&self.path, key)
    }

    /// Whether there is such a member.
    pub(super) fn has(&self, key: &str) -> bool {
        self.members.iter().any(|(name, _)| name == key)
    }

    /// The keys, in the order of the text.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.members.iter().map(|(key, _)| key.as_ref())
    }

    /// A member as what `read` makes of it.
    fn typed<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Json<'b>) -> Option<T>,
    ) -> Result<T, Refused> {
        let Some((_, value)) = self.members.iter().find(|(name, _)| name == key) else {
            return Err(Refused::new(self.field(key), "nothing", expected));
        };
        read(value).ok_or_else(|| Refused::new(self.field(key), value.kind(), expected))
    }

    /// A member of any type.
    pub(super) fn value(&self, key: &str, expected: &str) -> Result<&'a Json<'b>, Refused> {
        self.typed(key, expected, Some)
    }

    /// A string.
    pub(super) fn text(&self, key: &str) -> Result<&'a str, Refused> {
        self.typed(key, "a string", Json::as_str)
    }

    /// `true` or `false`.
    pub(super) fn boolean(&self, key: &str) -> Result<bool, Refused> {
        self.typed(key, "true or false", Json::as_bool)
    }

    /// A whole number of 32 bits in plain digits.
    pub(super) fn integer(&self, key: &str, expected: &str) -> Result<u32, Refused> {
        let literal = self.typed(key, expected, Json::as_number)?;
        literal.parse().ok().ok_or_else(|| Refused::new(self.field(key), literal, expected))
    }

    /// A number, as it is written.
    pub(super) fn number(&self, key: &str, expected: &str) -> Result<&'b str, Refused> {
        self.typed(key, expected, Json::as_number)
    }

    /// An array.
    pub(super) fn array(&self, key: &str) -> Result<&'a [Json<'b>], Refused> {
        self.typed(key, "an array", Json::as_array)
    }

    /// An array of strings.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, Refused> {
        let items = self.typed(key, "an array of strings", Json::as_array)?.iter().enumerate();
        let read = |(index, item): (usize, &Json<'_>)| {
            item.as_str().map(str::to_owned).ok_or_else(|| {
                Refused::new(format!("{}[{index}]", self.field(key)), item.kind(), "a string")
            })
        };
        items.map(read).collect()
    }

    /// An object of any shape.
    pub(super) fn map(&self, key: &str) -> Result<Map<String, Value>, Refused> {
        let value = self.value(key, "an object")?;
        let plain = to_value(value).map_err(|literal| {
            Refused::new(self.field(key), literal, "numbers of ordinary size")
        })?;
        match plain {
            Value::Object(members) => Ok(members),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(Refused::new(self.field(key), value.kind(), "an object")),
        }
    }
}

/// The same as plain data; the error is a number that does not fit.
pub(super) fn to_value(json: &Json<'_>) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(literal) => {
            Value::Number(serde_json::from_str(literal).ok().ok_or_else(|| (*literal).to_owned())?)
        }
        Json::String(text) => Value::String(text.clone().into_owned()),
        Json::Array(items) => Value::Array(items.iter().map(to_value).collect::<Result<_, _>>()?),
        Json::Object(members) => Value::Object(
            members
                .iter()
                .map(|(key, value)| Ok((key.clone().into_owned(), to_value(value)?)))
                .collect::<Result<_, String>>()?,
        ),
    })
}

/// Appends `value` without white space, the keys of every object in the order of their bytes.
pub(super) fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(text) => json::write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => write_map(members, out),
    }
}

/// [`write_value`] of an object.
pub(super) fn write_map(members: &Map<String, Value>, out: &mut String) {
    let sorted: BTreeMap<_, _> = members.iter().collect();
    out.push('{');
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        json::write_string(key, out);
        out.push(':');
        write_value(value, out);
    }
    out.push('}');
}

/// Adds a member to the object with which `out` ends; `value` is JSON.
pub(super) fn append(out: &mut String, key: &str, value: &str) {
    out.pop();
    if !out.ends_with('{') {
        out.push(',');
    }
    json::write_string(key, out);
    out.push(':');
    out.push_str(value);
    out.push('}');
}
