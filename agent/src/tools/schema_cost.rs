//! How much work a schema can make of arguments, found before it is compiled.
//!
//! A check of arguments cannot be interrupted, and a reference is work as often as it is followed:
//! a short schema can stand for one without end. So what is too much is refused here.

use std::collections::BTreeSet;

use serde_json::Value;

use super::arguments::SchemaFault;
use super::tool::shortened;

/// Parts of a schema with everything that it refers to.
pub(super) const PARTS_MAX: usize = 20_000;
/// How deep they may be nested.
pub(super) const DEPTH_MAX: usize = 256;
/// Different references.
pub(super) const REFERENCES_MAX: usize = 200;
/// Patterns, those that are referred to once more.
pub(super) const PATTERNS_MAX: usize = 32;

/// The reference to the whole schema.
const WHOLE: &str = "#";

/// What a schema is with everything that it refers to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SchemaCost {
    /// Parts of the longest of the whole and of what is referred to.
    parts: usize,
    /// The most references in one of them that lead back to where they stand in.
    returns: usize,
    /// Patterns that are compiled.
    pub(super) patterns: usize,
}

impl SchemaCost {
    /// Of a schema; `has_old_ids` if `id` may be an address in it.
    pub(super) fn of(schema: &Value, has_old_ids: bool) -> Result<Self, SchemaFault> {
        let mut walk = Walk {
            schema,
            has_old_ids,
            cost: Self::default(),
            parts: 0,
            returns: 0,
            path: Vec::new(),
            is_listing: false,
            references: BTreeSet::new(),
        };
        walk.begin(WHOLE)?;
        // The walk through the whole has met every reference.
        for reference in walk.references.clone() {
            if reference != WHOLE {
                walk.begin(reference)?;
            }
        }
        Ok(walk.cost)
    }

    /// About how many parts are looked at if everything that is wrong with arguments is found.
    pub(super) fn work(&self, arguments: &Value) -> usize {
        let (values, depth) = size(arguments);
        let again = self.returns.max(1).saturating_pow(depth);
        self.parts.saturating_mul(values).saturating_mul(again)
    }
}

/// How many values there are in one, and how deep the deepest stands in it.
fn size(value: &Value) -> (usize, u32) {
    match value {
        Value::Array(items) => sizes(items.iter()),
        Value::Object(members) => sizes(members.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (1, 0),
    }
}

fn sizes<'a>(values: impl Iterator<Item = &'a Value>) -> (usize, u32) {
    values.map(size).fold((1, 0), |(sum, deepest), (values, depth)| {
        (sum.saturating_add(values), deepest.max(depth.saturating_add(1)))
    })
}

/// A way through a schema and, from each reference, on to what it refers to.
struct Walk<'a> {
    schema: &'a Value,
    has_old_ids: bool,
    cost: SchemaCost,
    /// Of the place where this walk began.
    parts: usize,
    returns: usize,
    /// The references that led here, the first one first.
    path: Vec<&'a str>,
    /// In definitions, which are no work before something refers to them.
    is_listing: bool,
    references: BTreeSet<&'a str>,
}

impl<'a> Walk<'a> {
    /// Walks through what a reference names.
    fn begin(&mut self, reference: &'a str) -> Result<(), SchemaFault> {
        (self.parts, self.returns) = (0, 0);
        self.path = vec![reference];
        let target = self.target(reference)?;
        self.value(target, 0)?;
        self.cost.parts = self.cost.parts.max(self.parts);
        self.cost.returns = self.cost.returns.max(self.returns);
        Ok(())
    }

    fn value(&mut self, value: &'a Value, depth: usize) -> Result<(), SchemaFault> {
        self.parts = self.parts.saturating_add(1);
        if self.parts > PARTS_MAX || depth > DEPTH_MAX {
            return Err(SchemaFault::TooIntricate);
        }
        let depth = depth.saturating_add(1);
        match value {
            Value::Object(members) => {
                let is_whole = std::ptr::eq(value, self.schema);
                members.iter().try_for_each(|(key, it)| self.member(key, it, depth, is_whole))
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item, depth)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    /// A member of an object, which is taken for a keyword whatever it stands in.
    fn member(
        &mut self,
        key: &str,
        value: &'a Value,
        depth: usize,
        is_whole: bool,
    ) -> Result<(), SchemaFault> {
        let is_first = self.path == [WHOLE];
        match (key, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                self.follow(reference, depth)
            }
            ("$id", Value::String(_)) if is_first && !is_whole => Err(SchemaFault::Address),
            ("id", Value::String(_)) if is_first && !is_whole && self.has_old_ids => {
                Err(SchemaFault::Address)
            }
            ("$defs" | "definitions", Value::Object(_)) if is_whole => {
                if !is_first {
                    return Ok(());
                }
                self.is_listing = true;
                let listed = self.value(value, depth);
                self.is_listing = false;
                listed
            }
            ("pattern", Value::String(_)) => self.patterns(1),
            ("patternProperties", Value::Object(patterns)) => {
                self.patterns(patterns.len())?;
                self.value(value, depth)
            }
            _ => self.value(value, depth),
        }
    }

    /// Notes patterns, unless they were noted where the reference to them begins.
    fn patterns(&mut self, count: usize) -> Result<(), SchemaFault> {
        if self.path.len() > 1 {
            return Ok(());
        }
        self.cost.patterns = self.cost.patterns.saturating_add(count);
        if self.cost.patterns > PATTERNS_MAX { Err(SchemaFault::TooManyPatterns) } else { Ok(()) }
    }

    fn follow(&mut self, reference: &'a str, depth: usize) -> Result<(), SchemaFault> {
        let target = self.target(reference)?;
        self.references.insert(reference);
        if self.references.len() > REFERENCES_MAX {
            return Err(SchemaFault::TooIntricate);
        }
        if self.is_listing {
            return Ok(());
        }
        if self.path.contains(&reference) {
            self.returns = self.returns.saturating_add(1);
            return Ok(());
        }
        self.path.push(reference);
        self.value(target, depth)?;
        self.path.pop();
        Ok(())
    }

    /// What a reference names: a place in the schema, and nothing that stands elsewhere or is found
    /// by a name, because then what it names could be another thing than is looked at here.
    fn target(&self, reference: &str) -> Result<&'a Value, SchemaFault> {
        let pointer = reference.strip_prefix('#').and_then(decoded);
        let schema = self.schema;
        let target = pointer.and_then(|pointer| schema.pointer(&pointer));
        target.ok_or_else(|| SchemaFault::Reference { reference: shortened(reference) })
    }
}

/// A part of a URL without its percent signs; none if they are wrong.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}
