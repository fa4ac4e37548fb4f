//! From JSON to bytes.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Dimension, Parameter};
use super::error::ValueError;
use super::integer::{self, Word};
use super::shape::{Form, Items, Shape, WORD};
use crate::Address;
use crate::json::{Json, JsonPlace};
use crate::text::{Quoted, shorten};

/// The bytes of values, at most `room`.
pub(super) fn encode(
    parameters: &[Parameter],
    given: &Json<'_>,
    room: usize,
) -> Result<Vec<u8>, ValueError> {
    let mut encoder = Encoder { room, max: room };
    encoder.parameters(parameters, given, &JsonPlace::OUTERMOST)
}

struct Encoder {
    /// How many bytes may still come.
    room: usize,
    max: usize,
}

/// What the caller gives for one value, and its place.
type Given<'g, 't> = (&'g Json<'t>, JsonPlace<'g>);

impl Encoder {
    /// Parameters, or the components of a tuple: an array by position or an object by name.
    fn parameters(
        &mut self,
        parameters: &[Parameter],
        given: &Json<'_>,
        place: &JsonPlace<'_>,
    ) -> Result<Vec<u8>, ValueError> {
        let items = Items::Each(parameters);
        self.check_room(items, place)?;
        match given {
            Json::Array(values) => self.elements(items, values, place),
            Json::Object(members) => {
                let names = value_names(parameters);
                let known: BTreeSet<&str> = names.iter().map(String::as_str).collect();
                if let Some((key, _)) = members.iter().find(|(key, _)| !known.contains(&**key)) {
                    let expected = format!("only {}", names.join(", "));
                    return Err(ValueError::new(&place.key(key), shorten(&expected), "this name"));
                }
                let given: BTreeMap<&str, &Json<'_>> =
                    members.iter().map(|(key, value)| (&**key, value)).collect();
                let mut values = Vec::with_capacity(names.len());
                for (name, parameter) in names.iter().zip(parameters) {
                    let value = *given.get(name.as_str()).ok_or_else(|| {
                        let expected = expected(Shape::of(&parameter.of_type));
                        ValueError::new(&place.key(name), expected, "nothing")
                    })?;
                    values.push((value, place.key(name)));
                }
                self.items(items, values.into_iter())
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
                let count = parameters.len();
                let expected = format!("an array of {count} values, or an object");
                Err(ValueError::new(place, expected, &written(given)))
            }
        }
    }

    /// Values of an array, as many as there are items.
    fn elements(
        &mut self,
        items: Items<'_>,
        values: &[Json<'_>],
        place: &JsonPlace<'_>,
    ) -> Result<Vec<u8>, ValueError> {
        if values.len() != items.count() {
            let expected = format!("{} values", items.count());
            return Err(ValueError::new(place, expected, &format!("{} values", values.len())));
        }
        let values = values.iter().enumerate();
        self.items(items, values.map(|(index, value)| (value, place.index(index))))
    }

    /// Writes a head with a slot for each value, followed by the parts that its offsets point to.
    fn items<'g, 't: 'g>(
        &mut self,
        items: Items<'_>,
        values: impl Iterator<Item = Given<'g, 't>>,
    ) -> Result<Vec<u8>, ValueError> {
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        let head_bytes = items.head_words().saturating_mul(WORD);
        for (shape, (given, place)) in items.shapes().zip(values) {
            if shape.is_dynamic() {
                self.take(WORD, &place)?;
                head.extend_from_slice(&length(head_bytes.saturating_add(tail.len())));
                tail.extend(self.value(shape, given, &place)?);
            } else {
                head.extend(self.value(shape, given, &place)?);
            }
        }
        head.append(&mut tail);
        Ok(head)
    }

    fn value(
        &mut self,
        shape: Shape<'_>,
        given: &Json<'_>,
        place: &JsonPlace<'_>,
    ) -> Result<Vec<u8>, ValueError> {
        let wrong = || ValueError::new(place, expected(shape), &written(given));
        let word = match shape.form() {
            Form::Text => {
                let text = given.as_str().ok_or_else(wrong)?;
                return self.bytes(text.as_bytes(), place);
            }
            Form::Bytes => {
                let bytes = given.as_str().and_then(hex).ok_or_else(wrong)?;
                return self.bytes(&bytes, place);
            }
            Form::Tuple(components) => return self.parameters(components, given, place),
            Form::Array(element, dimension) => {
                let values = given.as_array().ok_or_else(wrong)?;
                return self.array(element, dimension, values, place);
            }
            Form::Bool => given.as_bool().map(|is_true| length(usize::from(is_true))),
            Form::Address => given.as_str().and_then(address).map(|it| right(it.as_bytes())),
            Form::Uint(bits) => number(given).and_then(|text| integer::unsigned(text, bits)),
            Form::Int(bits) => number(given).and_then(|text| integer::signed(text, bits)),
            Form::FixedBytes(bytes) => {
                let given = given.as_str().and_then(hex);
                given.filter(|it| it.len() == usize::from(bytes)).map(|it| left(&it))
            }
        };
        self.take(WORD, place)?;
        word.map(|word| word.to_vec()).ok_or_else(wrong)
    }

    fn array(
        &mut self,
        element: Shape<'_>,
        dimension: Dimension,
        values: &[Json<'_>],
        place: &JsonPlace<'_>,
    ) -> Result<Vec<u8>, ValueError> {
        let (count, mut coded) = match dimension {
            Dimension::Fixed(count) => (usize::from(count), Vec::new()),
            Dimension::Any => {
                self.take(WORD, place)?;
                (values.len(), length(values.len()).to_vec())
            }
        };
        let items = Items::Same(element, count);
        self.check_room(items, place)?;
        coded.extend(self.elements(items, values, place)?);
        Ok(coded)
    }

    /// A number of bytes, and the bytes, filled up to a word.
    fn bytes(&mut self, bytes: &[u8], place: &JsonPlace<'_>) -> Result<Vec<u8>, ValueError> {
        let padded = bytes.len().next_multiple_of(WORD);
        self.take(WORD.saturating_add(padded), place)?;
        let mut coded = length(bytes.len()).to_vec();
        coded.extend_from_slice(bytes);
        coded.resize(WORD.saturating_add(padded), 0);
        Ok(coded)
    }

    /// Rejects values that cannot fit, before it looks at any of them.
    fn check_room(&self, items: Items<'_>, place: &JsonPlace<'_>) -> Result<(), ValueError> {
        if items.head_words().saturating_mul(WORD) > self.room {
            return Err(self.too_long(place));
        }
        Ok(())
    }

    fn take(&mut self, bytes: usize, place: &JsonPlace<'_>) -> Result<(), ValueError> {
        self.room = self.room.checked_sub(bytes).ok_or_else(|| self.too_long(place))?;
        Ok(())
    }

    fn too_long(&self, place: &JsonPlace<'_>) -> ValueError {
        ValueError::new(place, format!("at most {} bytes in all", self.max), "more")
    }
}

/// The keys of values in a JSON object: the names of the parameters. A parameter without a name
/// gets the key `arg` and its position, from 0, followed by underscores as long as another
/// parameter has that name.
#[must_use]
pub fn value_names(parameters: &[Parameter]) -> Vec<String> {
    let given: BTreeSet<&str> = parameters.iter().map(|it| it.name.as_str()).collect();
    let name = |(index, Parameter { name, .. }): (usize, &Parameter)| {
        if !name.is_empty() {
            return name.clone();
        }
        let mut made_up = format!("arg{index}");
        while given.contains(made_up.as_str()) {
            made_up.push('_');
        }
        made_up
    };
    parameters.iter().enumerate().map(name).collect()
}

/// Which JSON a caller may give for a value.
fn expected(shape: Shape<'_>) -> String {
    match shape.form() {
        Form::Text => "a string".to_owned(),
        Form::Bytes => "a string of 0x and two hex characters for each byte".to_owned(),
        Form::Bool => "true or false".to_owned(),
        Form::Address => "40 lowercase hex characters, or 0x and 40 hex characters".to_owned(),
        Form::Uint(bits) => format!(
            "an integer without a sign of {bits} bits, plain or as a decimal string, no fraction or exponent"
        ),
        Form::Int(bits) => format!(
            "an integer of {bits} bits, plain or as a decimal string, no fraction or exponent"
        ),
        Form::FixedBytes(bytes) => {
            format!("a string of 0x and {} hex characters", bytes.saturating_mul(2))
        }
        Form::Tuple(components) => {
            format!("an array of {} values, or an object", components.len())
        }
        Form::Array(_, Dimension::Any) => "an array".to_owned(),
        Form::Array(_, Dimension::Fixed(count)) => format!("an array of {count} values"),
    }
}

/// A value as a message shows it.
fn written(given: &Json<'_>) -> String {
    match given {
        Json::Array(values) => format!("an array of {}", values.len()),
        Json::Object(_) => given.kind().to_owned(),
        Json::Null | Json::Bool(_) | Json::Number(_) => {
            let mut text = String::new();
            given.write_to(&mut text);
            text
        }
        Json::String(text) => Quoted(&shorten(text)).to_string(),
    }
}

/// A number as it is written, plain or as a string.
fn number<'j>(given: &'j Json<'_>) -> Option<&'j str> {
    given.as_number().or_else(|| given.as_str())
}

/// `0x` and hex of either case.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| const_hex::decode(digits).ok())?
}

/// The chain's forms, or `0x` and hex of either case.
fn address(text: &str) -> Option<Address> {
    match hex(text) {
        Some(bytes) => <[u8; 20]>::try_from(bytes).ok().map(Address::new),
        None => Address::parse(text).ok(),
    }
}

/// A number as a word.
pub(super) fn length(number: usize) -> Word {
    right(&number.to_be_bytes())
}

/// Bytes at the end of a word.
fn right(bytes: &[u8]) -> Word {
    let mut word = [0; WORD];
    word.iter_mut().rev().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from);
    word
}

/// Bytes at the beginning of a word.
fn left(bytes: &[u8]) -> Word {
    let mut word = [0; WORD];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    word
}
