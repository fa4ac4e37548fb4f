//! Fixed-size byte values that are text in JSON and plain bytes in binary, and safe handling of
//! texts from strangers.

use std::fmt::{self, Write as _};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserializer, Serializer};

/// A text does not have the expected form.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected {expected}, got {got}")]
pub struct ParseTextError {
    /// What was expected.
    pub expected: &'static str,
    /// The text found, shortened to 80 characters.
    pub got: String,
}

impl ParseTextError {
    /// The error for `got` where `expected` was expected.
    #[must_use]
    pub fn new(expected: &'static str, got: &str) -> Self {
        Self { expected, got: shorten(got) }
    }
}

/// How many characters of a value a message shows.
const SHOWN_MAX: usize = 80;

/// At most 80 characters of `text`, for messages. Characters for which [`is_unsafe`] is true,
/// including line ends and tabs, become U+FFFD.
#[must_use]
pub fn shorten(text: &str) -> String {
    let shown =
        |character| if is_unsafe(character) { char::REPLACEMENT_CHARACTER } else { character };
    let mut short: String = text.chars().take(SHOWN_MAX).map(shown).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        short.push('…');
    }
    short
}

/// Whether a character is not just a visible sign: it controls a terminal, ends a line, changes the
/// direction of writing, or is invisible. Line ends and tabs count.
///
/// These are C0, DEL and C1; the marks, embeddings, overrides and isolates of direction; line and
/// paragraph separators; characters without width, including joiners and byte order marks; blank
/// letters and symbols; variation selectors; and the tags of plane 14. The two selectors that many
/// emoji have, U+FE0E and U+FE0F, do not count.
#[must_use]
pub const fn is_unsafe(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

/// A text from a stranger, for people. Characters for which [`is_unsafe`] is true, except line ends
/// and tabs, become U+FFFD.
#[must_use]
pub fn printable(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => character,
        other if is_unsafe(other) => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.chars().map(shown).collect()
}

/// A text or JSON from a stranger, for a terminal. Characters for which [`is_unsafe`] is true,
/// except line ends and tabs, become `\uXXXX`, as JSON writes them. Valid JSON contains such
/// characters only in strings, so its meaning does not change; the one exception, a carriage return
/// between tokens, becomes a space.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            '\r' => shown.push(' '),
            other if is_unsafe(other) => {
                write!(shown, "{}", UnicodeEscape(other)).expect("a string takes every write");
            }
            other => shown.push(other),
        }
    }
    shown
}

/// A text in quotes, for messages that others must come to as well.
///
/// `Debug` writes it so, too, but what it escapes changes with the compiler's version of Unicode; here it is
/// what [`is_unsafe`] says.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        self.0.chars().try_for_each(|character| write_quoted(f, character, '"'))?;
        f.write_char('"')
    }
}

/// A character in quotes, as [`Quoted`] writes texts.
#[derive(Clone, Copy, Debug)]
pub struct QuotedChar(pub char);

impl fmt::Display for QuotedChar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('\'')?;
        write_quoted(f, self.0, '\'')?;
        f.write_char('\'')
    }
}

fn write_quoted(f: &mut fmt::Formatter<'_>, character: char, quote: char) -> fmt::Result {
    match character {
        '\0' => f.write_str("\\0"),
        '\t' => f.write_str("\\t"),
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        other if other == quote || other == '\\' => write!(f, "\\{other}"),
        other if is_unsafe(other) => write!(f, "\\u{{{:x}}}", u32::from(other)),
        other => f.write_char(other),
    }
}

/// A character in JSON's escaped form: `\u202e`, or `\udb40\udc41` for a character beyond the first
/// plane.
#[derive(Clone, Copy, Debug)]
pub struct UnicodeEscape(pub char);

impl fmt::Display for UnicodeEscape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}"))
    }
}

/// Reads exactly `N` bytes of lowercase hex.
pub(crate) fn decode_lower_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    // Without an early exit the compiler looks at many bytes at once.
    let is_lower = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let lower = text.bytes().fold(true, |lower, byte| lower & is_lower(byte));
    if text.len() != N.saturating_mul(2) || !lower {
        return None;
    }
    let mut bytes = [0_u8; N];
    const_hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// `N` bytes with a written form.
pub(crate) trait FixedText<const N: usize>:
    fmt::Display + FromStr<Err = ParseTextError>
{
    fn bytes(&self) -> &[u8; N];
    fn from_bytes(bytes: [u8; N]) -> Self;
}

/// Text for people, `N` bytes (no length) for machines.
///
/// Serde has no word for bytes without a length, and going through it byte by byte took a third of
/// the time of execution. [`crate::codec`] writes integers with their fixed width, little-endian, so
/// eight bytes and the integer that they make are the same to it.
pub(crate) fn serialize<const N: usize, T: FixedText<N>, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        return serializer.collect_str(value);
    }
    let mut tuple = serializer.serialize_tuple(elements(N))?;
    let (words, rest) = value.bytes().as_chunks::<8>();
    for word in words {
        tuple.serialize_element(&u64::from_le_bytes(*word))?;
    }
    for byte in rest {
        tuple.serialize_element(byte)?;
    }
    tuple.end()
}

/// How many integers `bytes` bytes are: words of eight, and what is left as single ones.
const fn elements(bytes: usize) -> usize {
    (bytes / 8).saturating_add(bytes % 8)
}

/// The inverse of [`serialize`].
pub(crate) fn deserialize<'de, const N: usize, T: FixedText<N>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    if deserializer.is_human_readable() {
        return deserializer.deserialize_str(TextVisitor(PhantomData::<T>));
    }
    deserializer.deserialize_tuple(elements(N), BytesVisitor::<N>).map(T::from_bytes)
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err = ParseTextError>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

struct BytesVisitor<const N: usize>;

impl<'de, const N: usize> Visitor<'de> for BytesVisitor<N> {
    type Value = [u8; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{N} bytes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<[u8; N], A::Error> {
        let mut bytes = [0_u8; N];
        let missing = || A::Error::invalid_length(0, &self);
        let (words, rest) = bytes.as_chunks_mut::<8>();
        for word in words {
            *word = seq.next_element::<u64>()?.ok_or_else(missing)?.to_le_bytes();
        }
        for byte in rest {
            *byte = seq.next_element()?.ok_or_else(missing)?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
