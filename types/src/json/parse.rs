//! A strict JSON reader: UTF-8, bounded depth, no duplicate keys, no unpaired surrogates, no
//! trailing bytes.

use std::borrow::Cow;

use super::value::Json;
use super::write::write_character;
use crate::text::{Quoted, shorten};

/// Why a text is not acceptable JSON.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JsonError {
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8 at byte {at}")]
    Utf8 {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// The text does not continue as JSON requires.
    #[error("expected {expected} at byte {at}")]
    Unexpected {
        /// What was expected.
        expected: &'static str,
        /// Offset in bytes.
        at: usize,
    },
    /// A string holds half of a surrogate pair.
    #[error("unpaired surrogate escape at byte {at}")]
    Surrogate {
        /// Offset in bytes.
        at: usize,
    },
    /// Arrays and objects are nested too deep.
    #[error("nesting deeper than {max} at byte {at}")]
    Depth {
        /// The limit.
        max: usize,
        /// Offset in bytes.
        at: usize,
    },
    /// The text has more values than any acceptable text can have.
    #[error("more than {max} values at byte {at}")]
    TooMany {
        /// The limit.
        max: usize,
        /// Offset in bytes.
        at: usize,
    },
    /// An object has the same key twice.
    #[error("duplicate key {}", Quoted(key))]
    DuplicateKey {
        /// The key, shortened.
        key: String,
    },
}

/// Room for the members of an ordinary transaction.
const OUTERMOST_MEMBERS: usize = 16;

/// Objects with more members than this are checked for duplicates by sorting.
const LINEAR_DUPLICATE_CHECK_MAX: usize = 24;

/// A string of fewer bytes is read byte by byte.
const SHORT: usize = 12;

/// What a string is, for messages.
const STRING: &str = "a string without raw control characters, ended by '\"'";

/// How much nesting and how many values a text may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Nested arrays and objects; the outermost is 1.
    pub(crate) depth_max: usize,
    /// Values of every kind, at any depth. A value takes at least two bytes of text and about
    /// thirty of memory, so this bounds memory for texts that may be large.
    pub(crate) values_max: usize,
}

/// Reads one JSON value and nothing after it except white space.
///
/// `depth_max` limits nested arrays and objects, where the outermost is 1; it also bounds the
/// recursion. Memory is bounded by a small multiple of the text's length.
///
/// # Errors
/// [`JsonError`] says what is wrong and where.
pub fn parse(bytes: &[u8], depth_max: usize) -> Result<Json<'_>, JsonError> {
    let bounds = Bounds { depth_max, values_max: usize::MAX };
    Parser::new(utf8(bytes)?, bounds, None).read_all().map(|(value, _)| value)
}

/// Reads one JSON value as [`parse`] does, and also returns its canonical form, without the members
/// of the outermost object that `left_out` names.
///
/// The canonical form is made while reading. Spans of the text that already are canonical, which is
/// the whole text for most wallets, are copied.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_canonical<'a>(
    bytes: &'a [u8],
    bounds: Bounds,
    left_out: &'static [&'static str],
) -> Result<(Json<'a>, String), JsonError> {
    let text = utf8(bytes)?;
    let copied = String::with_capacity(text.len());
    let canonical = Canonical { copied, from: 0, left_out };
    Parser::new(text, bounds, Some(canonical)).read_all()
}

fn utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    std::str::from_utf8(bytes).map_err(|e| JsonError::Utf8 { at: e.valid_up_to() })
}

pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    values: usize,
    bounds: Bounds,
    canonical: Option<Canonical>,
}

/// The canonical form of what has been read: `copied`, and then the text from `from` on.
pub(super) struct Canonical {
    copied: String,
    from: usize,
    left_out: &'static [&'static str],
}

/// A string that [`Parser::string_to`] has read.
pub(super) struct Text<'a> {
    /// The string exactly as in the text, if it has no escapes.
    pub(super) plain: Option<&'a str>,
    /// The first half of a surrogate pair.
    pub(super) half: Option<JsonError>,
}

/// A state of [`Canonical`] to go back to.
#[derive(Clone, Copy)]
struct Mark {
    copied: usize,
    from: usize,
    at: usize,
}

impl<'a> Parser<'a> {
    pub(super) const fn new(text: &'a str, bounds: Bounds, canonical: Option<Canonical>) -> Self {
        Self { text, at: 0, depth: 0, values: 0, bounds, canonical }
    }

    fn read_all(mut self) -> Result<(Json<'a>, String), JsonError> {
        self.skip_space();
        let value = self.value()?;
        self.skip_space();
        if self.peek().is_some() {
            return Err(self.unexpected("the end of the text"));
        }
        let canonical = self.canonical.map_or_else(String::new, |mut canonical| {
            canonical.copied.push_str(self.text.get(canonical.from..).unwrap_or_default());
            canonical.copied
        });
        Ok((value, canonical))
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    const fn advance(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    /// The offset of the cursor.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Steps over one character of the grammar, and the white space after it.
    pub(super) fn step(&mut self) {
        self.advance(1);
        self.skip_space();
    }

    pub(super) const fn unexpected(&self, expected: &'static str) -> JsonError {
        JsonError::Unexpected { expected, at: self.at }
    }

    pub(super) fn skip_space(&mut self) {
        let start = self.at;
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.advance(1);
        }
        if self.at > start {
            self.rewrite(start, None);
        }
    }

    /// The text from `start` to the cursor stands for `character`, or for nothing.
    fn rewrite(&mut self, start: usize, character: Option<char>) {
        let Some(canonical) = &mut self.canonical else { return };
        canonical.copied.push_str(self.text.get(canonical.from..start).unwrap_or_default());
        if let Some(character) = character {
            write_character(character, &mut canonical.copied);
        }
        canonical.from = self.at;
    }

    fn slice(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or_default()
    }

    pub(super) fn value(&mut self) -> Result<Json<'a>, JsonError> {
        if self.values >= self.bounds.values_max {
            return Err(JsonError::TooMany { max: self.bounds.values_max, at: self.at });
        }
        self.values = self.values.saturating_add(1);
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Json::Number),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.unexpected("a JSON value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(self.unexpected("true, false or null"));
        }
        self.advance(word.len());
        Ok(value)
    }

    fn enter(&mut self) -> Result<(), JsonError> {
        let max = self.bounds.depth_max;
        if self.depth >= max {
            return Err(JsonError::Depth { max, at: self.at });
        }
        self.depth = self.depth.saturating_add(1);
        self.step();
        Ok(())
    }

    const fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.advance(1);
    }

    fn array(&mut self) -> Result<Json<'a>, JsonError> {
        self.enter()?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.leave();
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            match self.peek() {
                Some(b',') => {
                    self.advance(1);
                    self.skip_space();
                }
                Some(b']') => {
                    self.leave();
                    return Ok(Json::Array(items));
                }
                _ => return Err(self.unexpected("',' or ']'")),
            }
        }
    }

    fn object(&mut self) -> Result<Json<'a>, JsonError> {
        self.enter()?;
        let is_outermost = self.depth == 1;
        let mut members = Vec::with_capacity(if is_outermost { OUTERMOST_MEMBERS } else { 0 });
        if self.peek() == Some(b'}') {
            self.leave();
            return Ok(Json::Object(members));
        }
        let mut kept = 0_usize;
        loop {
            let before = self.mark();
            if !members.is_empty() {
                self.separator(is_outermost && kept == 0);
            }
            let (key, value) = self.member()?;
            if is_outermost && self.leaves_out(&key) {
                self.forget_since(before);
            } else {
                kept = kept.saturating_add(1);
            }
            members.push((key, value));
            match self.peek() {
                Some(b',') => {}
                Some(b'}') => {
                    self.leave();
                    refuse_duplicates(&members)?;
                    return Ok(Json::Object(members));
                }
                _ => return Err(self.unexpected("',' or '}'")),
            }
        }
    }

    /// Steps over the comma before a member; leaves it out if no member before it was kept.
    fn separator(&mut self, is_left_out: bool) {
        let comma = self.at;
        self.advance(1);
        if is_left_out {
            self.rewrite(comma, None);
        }
        self.skip_space();
    }

    /// A key, its value, and the white space after it.
    fn member(&mut self) -> Result<(Cow<'a, str>, Json<'a>), JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a key in double quotes"));
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("':'"));
        }
        self.advance(1);
        self.skip_space();
        let value = self.value()?;
        self.skip_space();
        Ok((key, value))
    }

    fn leaves_out(&self, key: &str) -> bool {
        self.canonical.as_ref().is_some_and(|canonical| canonical.left_out.contains(&key))
    }

    fn mark(&self) -> Mark {
        let (copied, from) = self
            .canonical
            .as_ref()
            .map_or((0, 0), |canonical| (canonical.copied.len(), canonical.from));
        Mark { copied, from, at: self.at }
    }

    /// Takes what was read since `mark` out of the canonical form.
    fn forget_since(&mut self, mark: Mark) {
        let Some(canonical) = &mut self.canonical else { return };
        canonical.copied.truncate(mark.copied);
        canonical.copied.push_str(self.text.get(mark.from..mark.at).unwrap_or_default());
        canonical.from = self.at;
    }

    fn number(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.advance(1);
        }
        if self.peek() == Some(b'0') {
            self.advance(1);
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.advance(1);
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.advance(1);
            if let Some(b'+' | b'-') = self.peek() {
                self.advance(1);
            }
            self.digits()?;
        }
        Ok(self.slice(start))
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.advance(1);
        }
        if self.at == start { Err(self.unexpected("a digit")) } else { Ok(()) }
    }

    /// A string; borrowed from the text when it has no escapes.
    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.advance(1);
        let mut start = self.at;
        let mut unescaped: Option<String> = None;
        loop {
            self.skip_plain();
            let plain = self.slice(start);
            match self.peek() {
                Some(b'"') => {
                    self.advance(1);
                    return Ok(match unescaped {
                        None => Cow::Borrowed(plain),
                        Some(mut text) => {
                            text.push_str(plain);
                            Cow::Owned(text)
                        }
                    });
                }
                Some(b'\\') => {
                    let escape = self.at;
                    let text = unescaped.get_or_insert_default();
                    text.push_str(plain);
                    let character = self.escape()?;
                    text.push(character);
                    self.rewrite(escape, Some(character));
                    start = self.at;
                }
                _ => return Err(self.unexpected(STRING)),
            }
        }
    }

    /// Reads a string. Without escapes, it is borrowed from the text; otherwise it is appended to
    /// `out`, with U+FFFD for each half of a surrogate pair, and the first of these halves is
    /// reported.
    pub(super) fn string_to(&mut self, out: &mut String) -> Result<Text<'a>, JsonError> {
        self.advance(1);
        let mut start = self.at;
        let (mut has_escapes, mut half) = (false, None);
        loop {
            self.skip_plain();
            let plain = self.slice(start);
            match self.peek() {
                Some(b'"') => {
                    self.advance(1);
                    if has_escapes {
                        out.push_str(plain);
                    }
                    return Ok(Text { plain: (!has_escapes).then_some(plain), half });
                }
                Some(b'\\') => {
                    has_escapes = true;
                    out.push_str(plain);
                    match self.escape() {
                        Ok(character) => out.push(character),
                        Err(error @ JsonError::Surrogate { .. }) => {
                            out.push(char::REPLACEMENT_CHARACTER);
                            half = half.or(Some(error));
                        }
                        Err(error) => return Err(error),
                    }
                    start = self.at;
                }
                _ => return Err(self.unexpected(STRING)),
            }
        }
    }

    /// Moves over the bytes of a string that mean themselves: the first ones one by one, then sixteen at a
    /// time, then one by one again.
    fn skip_plain(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        // Most strings of most texts are short.
        let short = rest.iter().take(SHORT).take_while(|byte| is_plain(**byte)).count();
        self.advance(short);
        if short < SHORT {
            return;
        }
        let rest = rest.get(SHORT..).unwrap_or_default();
        let whole = rest
            .as_chunks::<16>()
            .0
            .iter()
            .take_while(|chunk| chunk.iter().fold(true, |plain, byte| plain & is_plain(*byte)))
            .count()
            .saturating_mul(16);
        let tail = rest.get(whole..).unwrap_or_default();
        self.advance(whole);
        self.advance(tail.iter().take_while(|byte| is_plain(**byte)).count());
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        self.advance(1);
        let character = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.unexpected("an escape of JSON")),
        };
        self.advance(1);
        Ok(character)
    }

    /// `\uXXXX`, or a pair of them for a character outside the basic plane.
    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let at = self.at.saturating_sub(1);
        let unpaired = JsonError::Surrogate { at };
        let first = self.four_hex()?;
        if !(0xd800..=0xdfff).contains(&first) {
            return char::from_u32(u32::from(first)).ok_or(unpaired);
        }
        if !self.text.get(self.at..).unwrap_or_default().starts_with("\\u") {
            return Err(unpaired);
        }
        self.advance(1);
        let second = self.four_hex()?;
        match char::decode_utf16([first, second]).next() {
            Some(Ok(character)) => Ok(character),
            _ => Err(unpaired),
        }
    }

    /// Four hex digits after the `u` under the cursor.
    fn four_hex(&mut self) -> Result<u16, JsonError> {
        self.advance(1);
        let end = self.at.saturating_add(4);
        let digits = self.text.get(self.at..end).unwrap_or_default();
        let valid = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u16::from_str_radix(digits, 16) {
            Ok(unit) if valid => {
                self.at = end;
                Ok(unit)
            }
            _ => Err(self.unexpected("four hex digits")),
        }
    }
}

/// Whether a byte within a string stands for itself.
const fn is_plain(byte: u8) -> bool {
    byte >= 0x20 && byte != b'"' && byte != b'\\'
}

fn refuse_duplicates(members: &[(Cow<'_, str>, Json<'_>)]) -> Result<(), JsonError> {
    let duplicate = if members.len() <= LINEAR_DUPLICATE_CHECK_MAX {
        members.iter().enumerate().find_map(|(index, (key, _))| {
            members.iter().take(index).any(|(earlier, _)| earlier == key).then_some(key)
        })
    } else {
        let mut keys: Vec<_> = members.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.windows(2).find_map(|pair| match pair {
            [left, right] if left == right => Some(*left),
            _ => None,
        })
    };
    match duplicate {
        None => Ok(()),
        Some(key) => Err(JsonError::DuplicateKey { key: shorten(key) }),
    }
}
