//! The canonical written form of JSON, and a writer of flat objects for builders.

use std::fmt::{Display, Write};

use crate::text::UnicodeEscape;

/// Appends `text` as a JSON string, with the escapes of ECMAScript's `JSON.stringify`.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            out.push_str(text.get(plain..at).unwrap_or_default());
            write_character(char::from(byte), out);
            plain = at.saturating_add(1);
        }
    }
    out.push_str(text.get(plain..).unwrap_or_default());
    out.push('"');
}

/// Appends one character as it stands within a JSON string.
pub(super) fn write_character(character: char, out: &mut String) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\u{c}' => out.push_str("\\f"),
        '\r' => out.push_str("\\r"),
        '\0'..='\u{1f}' => {
            write!(out, "{}", UnicodeEscape(character)).expect("a string takes every write");
        }
        _ => out.push(character),
    }
}

/// Writes one flat JSON object in canonical form, member by member.
#[derive(Debug)]
pub struct ObjectWriter<'a> {
    out: &'a mut String,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Opens an object at the end of `out`.
    #[must_use]
    pub fn new(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    /// A member whose value is a string.
    pub fn string(&mut self, key: &str, value: &str) {
        self.key(key);
        write_string(value, self.out);
    }

    /// A member whose value is the displayed text of `value`, as a string that needs no escapes:
    /// hashes, addresses, amounts.
    pub fn display(&mut self, key: &str, value: &impl Display) {
        self.key(key);
        write!(self.out, "\"{value}\"").expect("a string takes every write");
    }

    /// A member whose value is an integer.
    pub fn integer(&mut self, key: &str, value: u64) {
        self.key(key);
        write!(self.out, "{value}").expect("a string takes every write");
    }

    /// A member whose value is a boolean.
    pub fn boolean(&mut self, key: &str, value: bool) {
        self.key(key);
        self.out.push_str(if value { "true" } else { "false" });
    }

    /// A member whose value is an array of strings.
    pub fn strings(&mut self, key: &str, values: &[String]) {
        self.key(key);
        self.out.push('[');
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            write_string(value, self.out);
        }
        self.out.push(']');
    }

    /// A member whose value is an array of objects, each written by `member`.
    pub fn objects<T>(
        &mut self,
        key: &str,
        values: &[T],
        member: impl Fn(&T, &mut ObjectWriter<'_>),
    ) {
        self.key(key);
        self.out.push('[');
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            let mut object = ObjectWriter::new(self.out);
            member(value, &mut object);
            object.end();
        }
        self.out.push(']');
    }

    /// A member whose value is an object, written by `members`.
    pub fn object(&mut self, key: &str, members: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.key(key);
        let mut object = ObjectWriter::new(self.out);
        members(&mut object);
        object.end();
    }

    /// Closes the object.
    pub fn end(self) {
        self.out.push('}');
    }

    fn key(&mut self, key: &str) {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        write_string(key, self.out);
        self.out.push(':');
    }
}
