//! From bytes to JSON. Accepts only the canonical encoding: the parts that offsets point to follow
//! each other without gaps, in order, and padding is zeros.

use super::super::{Dimension, Parameter};
use super::encode::length;
use super::error::{VALUES_BYTES_MAX, ValueError};
use super::integer::{self, Word};
use super::shape::{Form, Items, Shape, WORD};
use crate::Address;
use crate::json::{JsonPlace, write_string};

/// Values as a JSON array of objects with `name`, `type` and `value`.
pub(super) fn decode(parameters: &[Parameter], bytes: &[u8]) -> Result<String, ValueError> {
    let mut decoder = Decoder { out: String::new() };
    let outermost = JsonPlace::OUTERMOST;
    let used = decoder.items(Items::Each(parameters), Style::Entries, bytes, &outermost)?;
    if used < bytes.len() {
        let found = format!("{} bytes", bytes.len());
        return Err(ValueError::new(&outermost, format!("{used} bytes"), &found));
    }
    Ok(decoder.out)
}

struct Decoder {
    out: String,
}

/// How a group of values is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `[{"name":…,"type":…,"value":…}]`
    Entries,
    /// `{"name":…}`
    Members,
    /// `[…]`
    Array,
}

impl Style {
    /// Of a tuple: by name if all components have one.
    fn of(components: &[Parameter]) -> Self {
        let has_names = components.iter().all(|component| !component.name.is_empty());
        if has_names { Self::Members } else { Self::Array }
    }

    const fn brackets(self) -> [char; 2] {
        match self {
            Self::Members => ['{', '}'],
            Self::Entries | Self::Array => ['[', ']'],
        }
    }
}

impl Decoder {
    /// Reads a head and the parts that its offsets point to; returns the number of bytes they take
    /// together.
    fn items(
        &mut self,
        items: Items<'_>,
        style: Style,
        bytes: &[u8],
        place: &JsonPlace<'_>,
    ) -> Result<usize, ValueError> {
        let mut tail = items.head_words().saturating_mul(WORD);
        if tail > bytes.len() {
            return Err(cut_off(place, tail, bytes));
        }
        let [open, close] = style.brackets();
        let mut head = 0;
        self.out.push(open);
        for (index, shape) in items.shapes().enumerate() {
            let place = place.index(index);
            self.before(items, style, index);
            if shape.is_dynamic() {
                let given = word(from(bytes, head), &place)?;
                if given != length(tail) {
                    let found = integer::unsigned_text(&given);
                    return Err(ValueError::new(&place, format!("the place {tail}"), &found));
                }
                tail = tail.saturating_add(self.value(shape, from(bytes, tail), &place)?);
                head = head.saturating_add(WORD);
            } else {
                head = head.saturating_add(self.value(shape, from(bytes, head), &place)?);
            }
            if style == Style::Entries {
                self.out.push('}');
            }
            if self.out.len() > VALUES_BYTES_MAX {
                let expected = format!("at most {VALUES_BYTES_MAX} bytes of JSON");
                return Err(ValueError::new(&place, expected, "more"));
            }
        }
        self.out.push(close);
        Ok(tail)
    }

    /// Writes what comes before a value.
    fn before(&mut self, items: Items<'_>, style: Style, index: usize) {
        if index > 0 {
            self.out.push(',');
        }
        let Items::Each(parameters) = items else { return };
        let Some(Parameter { name, of_type }) = parameters.get(index) else { return };
        match style {
            Style::Entries => {
                self.out.push_str("{\"name\":");
                write_string(name, &mut self.out);
                self.out.push_str(",\"type\":");
                write_string(&of_type.to_string(), &mut self.out);
                self.out.push_str(",\"value\":");
            }
            Style::Members => {
                write_string(name, &mut self.out);
                self.out.push(':');
            }
            Style::Array => {}
        }
    }

    /// Reads a value at the front of `bytes`; returns the number of bytes it takes.
    fn value(
        &mut self,
        shape: Shape<'_>,
        bytes: &[u8],
        place: &JsonPlace<'_>,
    ) -> Result<usize, ValueError> {
        let first = |expected: &str, is_right: fn(&Word, u16) -> bool, bits| {
            let given = word(bytes, place)?;
            if is_right(&given, bits) { Ok(given) } else { Err(wrong(place, expected, &given)) }
        };
        match shape.form() {
            Form::Text => return self.text(bytes, place),
            Form::Bytes => {
                let (content, used) = content(bytes, place)?;
                self.quoted(&const_hex::encode_prefixed(content));
                return Ok(used);
            }
            Form::Tuple(components) => {
                return self.items(Items::Each(components), Style::of(components), bytes, place);
            }
            Form::Array(element, dimension) => return self.array(element, dimension, bytes, place),
            Form::Bool => {
                let given = first("0 or 1", integer::is_unsigned, 8)?;
                match given.last() {
                    Some(0) => self.out.push_str("false"),
                    Some(1) => self.out.push_str("true"),
                    Some(_) | None => return Err(wrong(place, "0 or 1", &given)),
                }
            }
            Form::Address => {
                let given = first("an address of 20 bytes", integer::is_unsigned, 160)?;
                let bytes = given.last_chunk().copied().unwrap_or_default();
                self.quoted(&Address::new(bytes).to_string());
            }
            Form::Uint(bits) => {
                let expected = format!("an integer without a sign of {bits} bits");
                let given = first(&expected, integer::is_unsigned, bits)?;
                self.quoted(&integer::unsigned_text(&given));
            }
            Form::Int(bits) => {
                let given = first(&format!("an integer of {bits} bits"), integer::is_signed, bits)?;
                self.quoted(&integer::signed_text(&given));
            }
            Form::FixedBytes(count) => {
                let given = word(bytes, place)?;
                let (content, filling) = given.split_at(usize::from(count).min(WORD));
                if filling.iter().any(|byte| *byte != 0) {
                    return Err(wrong(place, &format!("{count} bytes and zeros"), &given));
                }
                self.quoted(&const_hex::encode_prefixed(content));
            }
        }
        Ok(WORD)
    }

    fn text(&mut self, bytes: &[u8], place: &JsonPlace<'_>) -> Result<usize, ValueError> {
        let (content, used) = content(bytes, place)?;
        let text = std::str::from_utf8(content)
            .map_err(|error| ValueError::new(place, "UTF-8", &error.to_string()))?;
        write_string(text, &mut self.out);
        Ok(used)
    }

    fn array(
        &mut self,
        element: Shape<'_>,
        dimension: Dimension,
        bytes: &[u8],
        place: &JsonPlace<'_>,
    ) -> Result<usize, ValueError> {
        let (count, before) = match dimension {
            Dimension::Fixed(count) => (usize::from(count), 0),
            Dimension::Any => (number(bytes, place)?, WORD),
        };
        let items = Items::Same(element, count);
        let used = self.items(items, Style::Array, from(bytes, before), place)?;
        Ok(before.saturating_add(used))
    }

    /// A text that needs no escapes.
    fn quoted(&mut self, text: &str) {
        self.out.push('"');
        self.out.push_str(text);
        self.out.push('"');
    }
}

fn from(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

/// The word at the front.
fn word(bytes: &[u8], place: &JsonPlace<'_>) -> Result<Word, ValueError> {
    bytes.first_chunk().copied().ok_or_else(|| cut_off(place, WORD, bytes))
}

/// A number of what follows: no more than there are bytes.
fn number(bytes: &[u8], place: &JsonPlace<'_>) -> Result<usize, ValueError> {
    let given = word(bytes, place)?;
    let (high, low) = given.split_at(WORD.saturating_sub(8));
    let low = low.first_chunk().copied().map(u64::from_be_bytes);
    let number = low.and_then(|low| usize::try_from(low).ok());
    number.filter(|it| high.iter().all(|byte| *byte == 0) && *it <= bytes.len()).ok_or_else(|| {
        let expected = format!("a number of at most {}", bytes.len());
        ValueError::new(place, expected, &integer::unsigned_text(&given))
    })
}

/// A number of bytes, the bytes, and zeros that fill the last word: the bytes, and how many all of it is.
fn content<'b>(bytes: &'b [u8], place: &JsonPlace<'_>) -> Result<(&'b [u8], usize), ValueError> {
    let count = number(bytes, place)?;
    let padded = count.next_multiple_of(WORD);
    let used = WORD.saturating_add(padded);
    let whole = bytes.get(WORD..used).ok_or_else(|| cut_off(place, used, bytes))?;
    let (content, filling) = whole.split_at_checked(count).unwrap_or((whole, &[]));
    if filling.iter().any(|byte| *byte != 0) {
        let found = const_hex::encode_prefixed(filling);
        return Err(ValueError::new(place, "zeros after the last byte", &found));
    }
    Ok((content, used))
}

fn cut_off(place: &JsonPlace<'_>, wanted: usize, bytes: &[u8]) -> ValueError {
    let found = format!("{} bytes", bytes.len());
    ValueError::new(place, format!("at least {wanted} bytes"), &found)
}

fn wrong(place: &JsonPlace<'_>, expected: &str, given: &Word) -> ValueError {
    ValueError::new(place, expected, &const_hex::encode_prefixed(given))
}
