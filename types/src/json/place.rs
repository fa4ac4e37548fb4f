//! Where a value stands in a JSON text, as a JSON pointer (RFC 6901), and where the first fault of a
//! text stands that could not be read.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::parse::{Bounds, JsonError, Parser, parse};
use super::{Json, push_key};

/// The place of a value: the steps that lead to it from the outermost one.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    parent: Option<&'p Self>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Outermost,
    Key(&'p str),
    Index(usize),
}

impl<'p> Place<'p> {
    /// The outermost value.
    pub const OUTERMOST: Place<'static> = Place { parent: None, step: Step::Outermost };

    /// The member `key` of the object at this place.
    #[must_use]
    pub const fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    /// The item `index` of the array at this place.
    #[must_use]
    pub const fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// The JSON pointer: `""` for the outermost value, `/abi/0/name`.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut place = Some(self);
        while let Some(Self { parent, step }) = place {
            steps.push(*step);
            place = *parent;
        }
        let mut pointer = String::new();
        for step in steps.iter().rev() {
            match step {
                Step::Outermost => {}
                Step::Key(key) => push_key(key, &mut pointer),
                Step::Index(index) => push_key(&index.to_string(), &mut pointer),
            }
        }
        pointer
    }
}

/// A fault of a text, and where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// A JSON pointer to the first value or member at fault; `""` for what is no JSON at all. Half of
    /// a surrogate pair in a key is U+FFFD in it.
    pub path: String,
    /// What is wrong.
    pub error: JsonError,
}

/// Reads one JSON value as [`parse`] does, and says where it is at fault: what is no JSON before
/// what breaks the limits of this reader (a key that occurs twice, half of a surrogate pair, too much
/// nesting), and of these the first in the text.
///
/// # Errors
/// [`Located`] names what is wrong, and where.
pub fn parse_located(bytes: &[u8], depth_max: usize) -> Result<Json<'_>, Located> {
    parse(bytes, depth_max).map_err(|error| {
        let walked = std::str::from_utf8(bytes).ok().map(|text| Walk::new(text, depth_max).walk());
        match walked {
            Some(Err(syntax)) => Located { path: String::new(), error: syntax },
            Some(Ok(Some(located))) => located,
            Some(Ok(None)) | None => Located { path: String::new(), error },
        }
    })
}

/// Goes through a text without recursion, whatever its nesting, and keeps the first fault that is
/// none of the grammar.
struct Walk<'a> {
    parser: Parser<'a>,
    depth_max: usize,
    open: Vec<Open<'a>>,
    found: Option<Located>,
}

/// An array or object that is not closed yet.
enum Open<'a> {
    Array(usize),
    Object { keys: BTreeSet<Cow<'a, str>>, key: Cow<'a, str> },
}

/// What comes next.
enum Next {
    Value,
    End,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str, depth_max: usize) -> Self {
        let bounds = Bounds { depth_max: usize::MAX, values_max: usize::MAX };
        let parser = Parser::new(text, bounds, None);
        Self { parser, depth_max, open: Vec::new(), found: None }
    }

    /// The first fault of the limits, if the text is JSON.
    fn walk(mut self) -> Result<Option<Located>, JsonError> {
        self.parser.skip_space();
        loop {
            if self.value()? {
                continue;
            }
            if let Next::End = self.after_value()? {
                return Ok(self.found);
            }
        }
    }

    /// Steps over a scalar, or into an array or object; true if a value within it comes next.
    fn value(&mut self) -> Result<bool, JsonError> {
        let is_object = match self.parser.peek() {
            Some(b'{') => true,
            Some(b'[') => false,
            Some(b'"') => return self.text().map(|_text| false),
            _ => return self.parser.value().map(|_scalar| false),
        };
        if self.open.len() >= self.depth_max {
            self.keep(JsonError::Depth { max: self.depth_max, at: self.parser.at() });
        }
        self.parser.step();
        self.open.push(if is_object {
            Open::Object { keys: BTreeSet::new(), key: Cow::Borrowed("") }
        } else {
            Open::Array(0)
        });
        let end = if is_object { b'}' } else { b']' };
        if self.parser.peek() == Some(end) {
            return Ok(false);
        }
        if is_object {
            self.key()?;
        }
        Ok(true)
    }

    /// Closes what ends here and steps over a comma and the key behind it.
    fn after_value(&mut self) -> Result<Next, JsonError> {
        loop {
            self.parser.skip_space();
            let next = self.parser.peek();
            match (self.open.last_mut(), next) {
                (None, None) => return Ok(Next::End),
                (None, Some(_)) => return Err(self.parser.unexpected("the end of the text")),
                (Some(Open::Array(index)), Some(b',')) => {
                    *index = index.saturating_add(1);
                    self.parser.step();
                    return Ok(Next::Value);
                }
                (Some(Open::Object { .. }), Some(b',')) => {
                    self.parser.step();
                    self.key()?;
                    return Ok(Next::Value);
                }
                (Some(Open::Array(_)), Some(b']')) | (Some(Open::Object { .. }), Some(b'}')) => {
                    self.parser.step();
                    self.open.pop();
                }
                (Some(Open::Array(_)), _) => return Err(self.parser.unexpected("',' or ']'")),
                (Some(Open::Object { .. }), _) => {
                    return Err(self.parser.unexpected("',' or '}'"));
                }
            }
        }
    }

    /// Steps over a key and its colon.
    fn key(&mut self) -> Result<(), JsonError> {
        if self.parser.peek() != Some(b'"') {
            return Err(self.parser.unexpected("a key in double quotes"));
        }
        let start = self.parser.at();
        let (text, surrogate) = self.string(start)?;
        let mut is_duplicate = false;
        if self.found.is_none()
            && let Some(Open::Object { keys, key }) = self.open.last_mut()
        {
            *key = text.clone();
            is_duplicate = !keys.insert(text.clone());
        }
        if let Some(error) = surrogate {
            self.keep(error);
        }
        if is_duplicate {
            self.keep(JsonError::DuplicateKey { key: crate::text::shorten(&text) });
        }
        self.parser.skip_space();
        if self.parser.peek() != Some(b':') {
            return Err(self.parser.unexpected("':'"));
        }
        self.parser.step();
        Ok(())
    }

    /// Steps over a string that is a value.
    fn text(&mut self) -> Result<(), JsonError> {
        let start = self.parser.at();
        if let (_, Some(error)) = self.string(start)? {
            self.keep(error);
        }
        Ok(())
    }

    /// A string, with U+FFFD for halves of surrogate pairs, and the first of these as a fault.
    fn string(&mut self, start: usize) -> Result<(Cow<'a, str>, Option<JsonError>), JsonError> {
        match self.parser.string() {
            Ok(text) => Ok((text, None)),
            Err(error @ JsonError::Surrogate { .. }) => {
                self.parser.go_back(start);
                Ok((Cow::Owned(self.parser.lossy_string()?), Some(error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Keeps a fault of the value or member that is being read, unless there is an earlier one.
    fn keep(&mut self, error: JsonError) {
        if self.found.is_some() {
            return;
        }
        let mut path = String::new();
        for open in &self.open {
            match open {
                Open::Array(index) => push_key(&index.to_string(), &mut path),
                Open::Object { key, .. } => push_key(key, &mut path),
            }
        }
        self.found = Some(Located { path, error });
        // Nobody asks for keys and places any more.
        for open in &mut self.open {
            if let Open::Object { keys, .. } = open {
                keys.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests;
