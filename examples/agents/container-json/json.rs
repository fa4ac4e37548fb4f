//! JSON, as much of it as a selector needs.

use std::fmt;

/// How deep values may be within one another.
const DEPTH_MAX: usize = 64;

/// A value; numbers stay as they are written.
pub enum Value {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

/// Reads a text.
pub fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.wrong("the end"));
    }
    Ok(value)
}

/// The value at a selector such as `items[0].price`; an empty one is the whole.
pub fn select<'a>(value: &'a Value, selector: &str) -> Result<&'a Value, String> {
    let mut found = value;
    for step in selector.split(['.', '[']).filter(|step| !step.is_empty()) {
        let index = step.strip_suffix(']').map(str::parse::<usize>);
        let next = match (found, index) {
            (Value::List(values), Some(Ok(index))) => values.get(index),
            (Value::Object(members), None) => {
                members.iter().find(|(key, _)| key == step).map(|(_, value)| value)
            }
            _ => None,
        };
        found = next.ok_or_else(|| format!("there is nothing at {step:?} of {selector:?}"))?;
    }
    Ok(found)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, wanted: &str) -> String {
        format!("the JSON is wrong at byte {}: expected {wanted}", self.at)
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.next().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_there = self.text[self.at..].starts_with(wanted);
        self.at += if is_there { wanted.len() } else { 0 };
        is_there
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err(self.wrong("less depth"));
        }
        self.space();
        match self.next() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => Ok(self.number()),
            _ if self.take("true") => Ok(Value::Bool(true)),
            _ if self.take("false") => Ok(Value::Bool(false)),
            _ if self.take("null") => Ok(Value::Null),
            _ => Err(self.wrong("a value")),
        }
    }

    fn number(&mut self) -> Value {
        let begin = self.at;
        while self.next().is_some_and(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) {
            self.at += 1;
        }
        Value::Number(self.text[begin..self.at].to_owned())
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut values = Vec::new();
        self.space();
        while !self.take("]") {
            if !values.is_empty() && !self.take(",") {
                return Err(self.wrong("a comma"));
            }
            values.push(self.value(depth + 1)?);
            self.space();
        }
        Ok(Value::List(values))
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut members = Vec::new();
        self.space();
        while !self.take("}") {
            if !members.is_empty() && !self.take(",") {
                return Err(self.wrong("a comma"));
            }
            self.space();
            let key = self.string()?;
            self.space();
            if !self.take(":") {
                return Err(self.wrong("a colon"));
            }
            members.push((key, self.value(depth + 1)?));
            self.space();
        }
        Ok(Value::Object(members))
    }

    fn string(&mut self) -> Result<String, String> {
        if !self.take("\"") {
            return Err(self.wrong("a string"));
        }
        let mut string = String::new();
        loop {
            let Some(character) = self.text[self.at..].chars().next() else {
                return Err(self.wrong("the end of a string"));
            };
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(string),
                '\\' => string.push(self.escaped()?),
                other => string.push(other),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, String> {
        let escape = self.next().ok_or_else(|| self.wrong("an escape"))?;
        self.at += 1;
        Ok(match escape {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'"' | b'\\' | b'/' => char::from(escape),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4);
                let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                self.at += 4;
                // Halves of pairs are not put together.
                code.and_then(char::from_u32).ok_or_else(|| self.wrong("a character"))?
            }
            _ => return Err(self.wrong("an escape")),
        })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(is_true) => write!(f, "{is_true}"),
            Self::Number(number) => f.write_str(number),
            Self::Text(text) => quoted(text, f),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (key, value)) in members.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    quoted(key, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(f, "\\{character}")?,
            control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}
