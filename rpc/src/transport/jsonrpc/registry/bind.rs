//! From the parameters of a call, by position or by name, to the positions of the method.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Method, Param};
use crate::error::RpcError;

/// Checks the parameters of a call and puts them into the method's order. Parameters that are in
/// order already are left as they are, so that a signer's text is never copied, let alone
/// rewritten.
pub(crate) fn bind<'a>(
    method: &Method,
    params: Option<Cow<'a, RawValue>>,
) -> Result<Option<Cow<'a, RawValue>>, RpcError> {
    let text = params.as_deref().map_or("[]", |params| params.get().trim());
    if text.starts_with('{') {
        let members = read_members(text)?;
        return by_name(method, &members).map(Some);
    }
    let max = method.params.len();
    let values = read_elements(if text == "null" { "[]" } else { text }, max)?;
    if let Some(members) = named_in_array(method, &values) {
        return by_name(method, &members).map(Some);
    }
    if values.len() > max {
        let got = format!("more than {max} parameters");
        return Err(RpcError::invalid("params", got, format!("at most {max}")));
    }
    for (index, param) in method.params.iter().enumerate() {
        match values.get(index) {
            Some(value) => param.check(value.get())?,
            None if param.is_required => return Err(missing(param)),
            None => {}
        }
    }
    Ok(if text == "null" { None } else { params })
}

/// The same for a method whose only parameter is the text of a signer: a single value is not looked into,
/// because what a transaction is, the chain says.
pub(crate) fn bind_text<'a>(
    method: &Method,
    params: Option<Cow<'a, RawValue>>,
) -> Result<Option<Cow<'a, RawValue>>, RpcError> {
    let is_one = |params: &RawValue| serde_json::from_str::<(&RawValue,)>(params.get()).is_ok();
    if params.as_deref().is_some_and(is_one) { Ok(params) } else { bind(method, params) }
}

fn missing(param: &Param) -> RpcError {
    RpcError::invalid(param.name, "missing", param.summary)
}

/// `[{"address": …}]` where the method's first parameter cannot be an object: the members.
fn named_in_array<'a>(
    method: &Method,
    values: &[&'a RawValue],
) -> Option<Vec<(Cow<'a, str>, &'a RawValue)>> {
    let ([only], Some(first)) = (values, method.params.first()) else { return None };
    if !only.get().starts_with('{') || first.check(only.get()).is_ok() {
        return None;
    }
    let members = read_members(only.get()).ok()?;
    let is_known = |name: &str| {
        method.params.iter().any(|param| param.is_named(name) || param.has_member(name))
    };
    members.iter().all(|(name, _)| is_known(name)).then_some(members)
}

fn by_name<'b>(
    method: &Method,
    members: &[(Cow<'_, str>, &RawValue)],
) -> Result<Cow<'b, RawValue>, RpcError> {
    let mut values: Vec<Option<String>> = vec![None; method.params.len()];
    let mut spread: Vec<Vec<(&str, &str)>> = vec![Vec::new(); method.params.len()];
    for (name, value) in members {
        if let Some(index) = method.params.iter().position(|param| param.is_named(name)) {
            let earlier =
                values.get_mut(index).and_then(|slot| slot.replace(value.get().to_owned()));
            if earlier.is_some() {
                return Err(RpcError::invalid(name.clone(), "given twice", "one value"));
            }
        } else if let Some(index) = method.params.iter().position(|param| param.has_member(name)) {
            if let Some(group) = spread.get_mut(index) {
                group.push((name, value.get()));
            }
        } else {
            return Err(unknown(method, name));
        }
    }

    let mut text = String::from("[");
    for ((param, value), group) in method.params.iter().zip(values).zip(spread) {
        let value = match (value, group.is_empty()) {
            (Some(_), false) => {
                return Err(RpcError::invalid(param.name, "given twice", "one value"));
            }
            (Some(value), true) => value,
            (None, false) => join(&group),
            (None, true) if param.is_required => return Err(missing(param)),
            (None, true) => "null".to_owned(),
        };
        param.check(&value)?;
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&value);
    }
    text.push(']');
    let joined = RawValue::from_string(text);
    joined.map(Cow::Owned).map_err(|e| RpcError::invalid("params", e.to_string(), "valid JSON"))
}

fn unknown(method: &Method, name: &str) -> RpcError {
    let known: Vec<&str> = method
        .params
        .iter()
        .flat_map(|param| {
            let members = param.members.iter().map(String::as_str);
            std::iter::once(param.name).filter(|_| param.members.is_empty()).chain(members)
        })
        .collect();
    let expected = match known.as_slice() {
        [] => "no parameters".to_owned(),
        names => format!("one of {}", names.join(", ")),
    };
    RpcError::invalid(name, "unknown parameter", expected)
}

fn join(members: &[(&str, &str)]) -> String {
    let mut text = String::from("{");
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        types::json::write_string(name, &mut text);
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

/// The members of an object in the order of the text, none twice.
fn read_members(text: &str) -> Result<Vec<(Cow<'_, str>, &RawValue)>, RpcError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = reader
        .deserialize_map(Members)
        .map_err(|_error| RpcError::invalid("params", text, "an array or an object"))?;
    let twice = members.iter().enumerate().find_map(|(index, (name, _))| {
        members.iter().take(index).any(|(earlier, _)| earlier == name).then_some(name)
    });
    match twice {
        Some(name) => Err(RpcError::invalid(name.clone(), "given twice", "one value")),
        None => Ok(members),
    }
}

/// No method has as many; the rest of a longer object is not looked at.
const MEMBERS_MAX: usize = 64;

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with at most {MEMBERS_MAX} members")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &RawValue>()? {
            if members.len() == MEMBERS_MAX {
                return Err(serde::de::Error::custom("too many members"));
            }
            members.push((name, value));
        }
        Ok(members)
    }
}

/// A key, borrowed unless it has escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        reader.deserialize_str(Text)
    }
}

/// How many elements an array has, counted up to one more than `max`; 0 for anything else.
pub(crate) fn count_elements(text: &[u8], max: usize) -> usize {
    struct Count<'a> {
        counted: &'a mut usize,
        max: usize,
    }

    impl<'de> Visitor<'de> for Count<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
            while *self.counted <= self.max && seq.next_element::<IgnoredAny>()?.is_some() {
                *self.counted = self.counted.saturating_add(1);
            }
            Ok(())
        }
    }

    let mut counted = 0;
    let mut reader = serde_json::Deserializer::from_slice(text);
    // An array that is not read to its end is an error for serde; only the count matters here.
    drop(reader.deserialize_seq(Count { counted: &mut counted, max }));
    counted
}

/// The elements of a positional call, and whether there are more than `max`.
fn read_elements(text: &str, max: usize) -> Result<Vec<&RawValue>, RpcError> {
    struct Elements(usize);

    impl<'de> Visitor<'de> for Elements {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut elements = Vec::with_capacity(self.0.saturating_add(1));
            while elements.len() <= self.0
                && let Some(element) = seq.next_element()?
            {
                elements.push(element);
            }
            // Reads what is left, so that the reader finds the end of the array.
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(elements)
        }
    }

    let mut reader = serde_json::Deserializer::from_str(text);
    reader
        .deserialize_seq(Elements(max))
        .map_err(|_error| RpcError::invalid("params", text, "an array or an object"))
}
