//! Reads a text into a [`Tape`] in one pass and without recursion, however deep it nests, and finds
//! the first fault.

use super::parse::{Bounds, JsonError, Parser};
use super::place::push_key;
use super::repeats::Repeats;
use super::tape::{Kind, Node, Tape};
use super::value::Json;

/// A fault in a text, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// A JSON pointer to the first value or member at fault; `""` for a text that is not JSON. Half
    /// of a surrogate pair in a key becomes U+FFFD.
    pub path: String,
    /// What is wrong.
    pub error: JsonError,
}

/// The limits and the known keys for a text.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The most nested arrays and objects; the outermost is 1.
    pub depth_max: usize,
    /// The keys that have a meaning, indexed by their length in bytes.
    pub known: &'static [&'static [&'static str]],
}

/// The most bytes of a text: offsets have 32 bits.
const BYTES_MAX: usize = 0x7fff_ffff;

/// Reads one JSON value as [`super::parse`] does, and says where a fault is. A text that is not
/// JSON is reported before a text that breaks the limits of this reader (a duplicate key, half of a
/// surrogate pair, too much nesting); of several broken limits, the first in the text is reported.
///
/// # Errors
/// [`Located`] says what is wrong, and where.
pub fn parse_tape(bytes: &[u8], manner: Manner) -> Result<Tape<'_>, Located> {
    let outermost = |error| Located { path: String::new(), error };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| outermost(JsonError::Utf8 { at: error.valid_up_to() }))?;
    if text.len() > BYTES_MAX {
        return Err(outermost(JsonError::TooMany { max: BYTES_MAX, at: BYTES_MAX }));
    }
    Reader::new(text, manner).read().map_err(outermost)?
}

struct Reader<'a> {
    parser: Parser<'a>,
    manner: Manner,
    tape: Tape<'a>,
    open: Vec<Open>,
    /// Room for finding duplicates.
    keys: Repeats,
    found: Option<Located>,
}

/// An array or object that is not closed yet, by its nodes.
#[derive(Clone, Copy)]
struct Open {
    node: u32,
    is_object: bool,
    /// The items of an array before the one that is being read.
    index: u32,
    /// The key whose value is being read.
    key: u32,
    /// The last key that is known, or the object itself.
    known: u32,
}

/// What comes next.
enum Next {
    Value,
    End,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, manner: Manner) -> Self {
        let bounds = Bounds { depth_max: usize::MAX, values_max: usize::MAX };
        let parser = Parser::new(text, bounds, None);
        let (open, keys) = (Vec::with_capacity(manner.depth_max.min(64)), Repeats::default());
        Self { parser, manner, tape: Tape::new(text), open, keys, found: None }
    }

    /// The tape or the first fault of the limits, if the text is JSON.
    fn read(mut self) -> Result<Result<Tape<'a>, Located>, JsonError> {
        self.parser.skip_space();
        loop {
            if self.value()? {
                continue;
            }
            if let Next::End = self.after_value()? {
                return Ok(self.found.map_or(Ok(self.tape), Err));
            }
        }
    }

    /// Steps over a scalar, or into an array or object; true if a value within it comes next.
    fn value(&mut self) -> Result<bool, JsonError> {
        let is_object = match self.parser.peek() {
            Some(b'{') => true,
            Some(b'[') => false,
            Some(b'"') => return self.text().map(|()| false),
            _ => return self.scalar().map(|()| false),
        };
        if self.open.len() >= self.manner.depth_max {
            self.keep(JsonError::Depth { max: self.manner.depth_max, at: self.parser.at() });
        }
        self.parser.step();
        let node = self.tape.end();
        let kind = if is_object { Kind::Object } else { Kind::Array };
        self.push(Node { kind, from: 0, length: 0, next: 0 });
        self.open.push(Open { node, is_object, index: 0, key: 0, known: node });
        let end = if is_object { b'}' } else { b']' };
        if self.parser.peek() == Some(end) {
            return Ok(false);
        }
        if is_object {
            self.key()?;
        }
        if let Some(node) = self.tape.node_mut(node).filter(|_| !is_object) {
            node.length = 1;
        }
        Ok(true)
    }

    /// A number or a word.
    fn scalar(&mut self) -> Result<(), JsonError> {
        let from = offset(self.parser.at());
        let kind = match self.parser.value()? {
            Json::Null => Kind::Null,
            Json::Bool(_) => Kind::Bool,
            Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => Kind::Number,
        };
        let length = offset(self.parser.at()).saturating_sub(from);
        self.push_value(Node { kind, from, length, next: 0 });
        Ok(())
    }

    /// A string that is a value.
    fn text(&mut self) -> Result<(), JsonError> {
        let (node, half) = self.string()?;
        if let Some(error) = half {
            self.keep(error);
        }
        self.push_value(node);
        Ok(())
    }

    /// A string, which is no node yet, and what is wrong with it.
    fn string(&mut self) -> Result<(Node, Option<JsonError>), JsonError> {
        if self.found.is_some() {
            // Nobody asks for strings any more.
            self.tape.unescaped.clear();
        }
        let at = self.parser.at().saturating_add(1);
        let before = self.tape.unescaped.len();
        let text = self.parser.string_to(&mut self.tape.unescaped)?;
        let (kind, from, length) = match text.plain {
            Some(plain) => (Kind::Plain, at, plain.len()),
            None => (Kind::Unescaped, before, self.tape.unescaped.len().saturating_sub(before)),
        };
        Ok((Node { kind, from: offset(from), length: offset(length), next: 0 }, text.half))
    }

    /// Closes what ends here and steps over a comma and the key behind it.
    fn after_value(&mut self) -> Result<Next, JsonError> {
        loop {
            self.parser.skip_space();
            let next = self.parser.peek();
            match (self.open.last_mut(), next) {
                (None, None) => return Ok(Next::End),
                (None, Some(_)) => return Err(self.parser.unexpected("the end of the text")),
                (Some(open), Some(b',')) => {
                    self.parser.step();
                    if open.is_object {
                        self.key()?;
                    } else {
                        open.index = open.index.saturating_add(1);
                        let (node, items) = (open.node, open.index.saturating_add(1));
                        if let Some(node) = self.tape.node_mut(node) {
                            node.length = items;
                        }
                    }
                    return Ok(Next::Value);
                }
                (Some(Open { is_object: false, .. }), Some(b']'))
                | (Some(Open { is_object: true, .. }), Some(b'}')) => {
                    self.parser.step();
                    self.close();
                }
                (Some(Open { is_object: false, .. }), _) => {
                    return Err(self.parser.unexpected("',' or ']'"));
                }
                (Some(Open { is_object: true, .. }), _) => {
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
        let (node, half) = self.string()?;
        if self.found.is_none() {
            self.push_key(node, half);
        }
        self.parser.skip_space();
        if self.parser.peek() != Some(b':') {
            return Err(self.parser.unexpected("':'"));
        }
        self.parser.step();
        Ok(())
    }

    fn push_key(&mut self, node: Node, half: Option<JsonError>) {
        let at = self.tape.end();
        self.tape.nodes.push(node);
        let name = self.tape.string(node);
        let is_known = self.manner.known.get(name.len()).is_some_and(|names| names.contains(&name));
        if let Some(open) = self.open.last_mut() {
            open.key = at;
            if is_known {
                // Of the object it is the first member, of a key before it the next one.
                let link = self.tape.nodes.get_mut(super::tape::index(open.known));
                if let Some(link) = link {
                    if link.kind == Kind::Object { link.from = at } else { link.next = at }
                }
                open.known = at;
            }
        }
        if let Some(error) = half {
            self.keep_of_key(error, at);
        }
    }

    /// A node for what has no end yet.
    fn push(&mut self, node: Node) {
        if self.found.is_none() {
            self.tape.nodes.push(node);
        }
    }

    /// A node for a value that is read.
    fn push_value(&mut self, node: Node) {
        let next = self.tape.end().saturating_add(1);
        self.push(Node { next, ..node });
    }

    /// Closes the innermost array or object.
    fn close(&mut self) {
        let Some(open) = self.open.last().copied() else { return };
        if self.found.is_none() {
            let next = self.tape.end();
            if let Some(node) = self.tape.node_mut(open.node) {
                node.next = next;
            }
            if open.is_object && self.duplicate(open).is_some() {
                self.keep_duplicate(u32::MAX);
            }
        }
        self.open.pop();
    }

    /// Keeps a fault of the value that is being read, unless there is an earlier one.
    fn keep(&mut self, error: JsonError) {
        self.keep_of_key(error, u32::MAX);
    }

    /// Keeps a fault of the member that is being read, unless there is one before this key.
    fn keep_of_key(&mut self, error: JsonError, key: u32) {
        if self.found.is_some() {
            return;
        }
        if !self.keep_duplicate(key) {
            let path = self.path(self.open.len());
            self.found = Some(Located { path, error });
        }
    }

    /// Keeps the first key before this one that occurs twice in an object that is open.
    fn keep_duplicate(&mut self, before: u32) -> bool {
        let mut first: Option<(u32, usize)> = None;
        for level in 0..self.open.len() {
            let Some(open) = self.open.get(level).copied().filter(|open| open.is_object) else {
                continue;
            };
            let key = self.duplicate(open).filter(|key| *key < before);
            first = first.into_iter().chain(key.map(|key| (key, level))).min();
        }
        let Some((key, level)) = first else { return false };
        let mut path = self.path(level);
        let name = self.tape.string(self.tape.node(key));
        push_key(name, &mut path);
        let error = JsonError::DuplicateKey { key: crate::text::shorten(name) };
        self.found = Some(Located { path, error });
        true
    }

    /// The path to what is being read in the outermost of so many arrays and objects.
    fn path(&self, levels: usize) -> String {
        let mut path = String::new();
        for open in self.open.iter().take(levels) {
            if open.is_object {
                push_key(self.tape.string(self.tape.node(open.key)), &mut path);
            } else {
                push_key(&open.index.to_string(), &mut path);
            }
        }
        path
    }

    /// The first key of an object that occurs before it.
    fn duplicate(&mut self, open: Open) -> Option<u32> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        let name_at = |key| self.tape.string(self.tape.node(key));
        self.keys_of(open).for_each(|key| keys.push(name_at(key), key));
        let first = keys.first(name_at);
        self.keys = keys;
        first
    }

    /// The keys of an object that is open, as far as they have been read.
    fn keys_of(&self, open: Open) -> impl Iterator<Item = u32> {
        let (end, mut key) = (self.tape.end(), open.node.saturating_add(1));
        std::iter::from_fn(move || {
            let this = key;
            if this >= end {
                return None;
            }
            // The one that is being read has no end yet.
            let next = self.tape.node(this.saturating_add(1)).next;
            key = if this == open.key { end } else { next };
            Some(this)
        })
    }
}

/// An offset in a text of at most [`BYTES_MAX`] bytes.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
