//! A strict JSON reader: UTF-8, bounded depth, no duplicate keys, no unpaired surrogates, no
//! trailing bytes.

use std::borrow::Cow;

use super::Json;

/// Why a text is not acceptable JSON.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JsonError {
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8 at byte {at}")]
    Utf8 {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// Something else was expected here.
    #[error("expected {expected} at byte {at}")]
    Unexpected {
        /// What would have been right.
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
    /// An object has the same key twice.
    #[error("duplicate key {key:?}")]
    DuplicateKey {
        /// The key, shortened.
        key: String,
    },
}

/// Objects with more members than this are checked for duplicates by sorting.
const LINEAR_DUPLICATE_CHECK_MAX: usize = 24;

/// Reads one JSON value and nothing after it but white space.
///
/// `depth_max` counts nested arrays and objects; the outermost is 1. The recursion is bounded by
/// it. Memory is bounded by a small multiple of the text's length.
///
/// # Errors
/// [`JsonError`] names what is wrong and where.
pub fn parse(bytes: &[u8], depth_max: usize) -> Result<Json<'_>, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|e| JsonError::Utf8 { at: e.valid_up_to() })?;
    let mut parser = Parser { text, at: 0, depth: 0, depth_max };
    parser.skip_space();
    let value = parser.value()?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.unexpected("the end of the text")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    depth_max: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn advance(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    fn unexpected(&self, expected: &'static str) -> JsonError {
        JsonError::Unexpected { expected, at: self.at }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.advance(1);
        }
    }

    fn slice(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or_default()
    }

    fn value(&mut self) -> Result<Json<'a>, JsonError> {
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
        if self.depth >= self.depth_max {
            return Err(JsonError::Depth { max: self.depth_max, at: self.at });
        }
        self.depth = self.depth.saturating_add(1);
        self.advance(1);
        self.skip_space();
        Ok(())
    }

    fn leave(&mut self) {
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
        let mut members = Vec::new();
        if self.peek() == Some(b'}') {
            self.leave();
            return Ok(Json::Object(members));
        }
        loop {
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
            members.push((key, self.value()?));
            self.skip_space();
            match self.peek() {
                Some(b',') => {
                    self.advance(1);
                    self.skip_space();
                }
                Some(b'}') => {
                    self.leave();
                    refuse_duplicates(&members)?;
                    return Ok(Json::Object(members));
                }
                _ => return Err(self.unexpected("',' or '}'")),
            }
        }
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
            match self.peek() {
                Some(b'"') => {
                    let tail = self.slice(start);
                    self.advance(1);
                    return Ok(match unescaped {
                        None => Cow::Borrowed(tail),
                        Some(mut text) => {
                            text.push_str(tail);
                            Cow::Owned(text)
                        }
                    });
                }
                Some(b'\\') => {
                    let plain = self.slice(start);
                    let text = unescaped.get_or_insert_default();
                    text.push_str(plain);
                    let character = self.escape()?;
                    text.push(character);
                    start = self.at;
                }
                None | Some(0..=0x1f) => {
                    return Err(
                        self.unexpected("a string without raw control characters, ended by '\"'")
                    );
                }
                Some(_) => self.advance(1),
            }
        }
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
        Some(key) => Err(JsonError::DuplicateKey { key: crate::text::shorten(key) }),
    }
}
