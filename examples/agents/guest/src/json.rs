//! As much JSON as the host's functions need: writing objects, reading texts from what the host says.

use alloc::string::{String, ToString};

/// Writes an object.
#[derive(Clone, Debug)]
pub struct Object(String);

impl Default for Object {
    fn default() -> Self {
        Self::new()
    }
}

impl Object {
    /// Nothing is in it yet.
    #[must_use]
    pub fn new() -> Self {
        Self(String::from("{"))
    }

    /// Adds a text.
    #[must_use]
    pub fn text(mut self, name: &str, text: &str) -> Self {
        self.begin(name);
        quote(text, &mut self.0);
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn number(self, name: &str, number: u64) -> Self {
        self.raw(name, &number.to_string())
    }

    /// Adds an array of texts.
    #[must_use]
    pub fn texts(mut self, name: &str, texts: &[&str]) -> Self {
        self.begin(name);
        self.0.push('[');
        for (index, text) in texts.iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            quote(text, &mut self.0);
        }
        self.0.push(']');
        self
    }

    /// Adds what is JSON already.
    #[must_use]
    pub fn raw(mut self, name: &str, json: &str) -> Self {
        self.begin(name);
        self.0.push_str(json);
        self
    }

    /// The object.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn begin(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(name, &mut self.0);
        self.0.push(':');
    }
}

fn quote(text: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0'..='\x1f' => {
                out.push_str("\\u00");
                out.push(DIGITS[(character as usize) >> 4].into());
                out.push(DIGITS[(character as usize) & 15].into());
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// A member of an object that is a text, the host's canonical JSON: no spaces, no objects within.
#[must_use]
pub fn member(object: &str, name: &str) -> Option<String> {
    let mut rest = object.strip_prefix('{')?;
    loop {
        let key;
        (key, rest) = text(rest)?;
        rest = rest.strip_prefix(':')?;
        if rest.starts_with('"') {
            let value;
            (value, rest) = text(rest)?;
            if key == name {
                return Some(value);
            }
        } else {
            rest = rest.trim_start_matches(|next| next != ',' && next != '}');
        }
        rest = rest.strip_prefix(',')?;
    }
}

/// A text with which this begins, and what stands behind it.
fn text(json: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut rest = json.strip_prefix('"')?.chars();
    loop {
        match rest.next()? {
            '"' => return Some((out, rest.as_str())),
            '\\' => match rest.next()? {
                'b' => out.push('\x08'),
                'f' => out.push('\x0c'),
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'u' => {
                    let digits = rest.as_str().get(..4)?;
                    out.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                    rest = rest.as_str().get(4..)?.chars();
                }
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
}
