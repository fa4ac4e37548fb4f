//! JSON schemas of arguments and of answers: a part of the standard that a model can be held to
//! (docs/agent-methods.md section 13).
//!
//! A schema is brought into one form, in which references are put in place, and the same form is what
//! a model reads, what it is held to, and what its output is checked against. Everything that costs
//! more than reading is left for later: [`Schema::check`] compiles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use types::json::Json;

use super::members::{self, Members};
use super::path::Path;
use super::refused::{Refused, bytes_at_most, entries_at_most};
use crate::tools;

mod keywords;
mod min_length;

pub use min_length::bytes_min;

/// The most bytes of a schema in its one form, its references put in place.
pub const SCHEMA_BYTES_MAX: usize = 32_768;
/// The most bytes of all schemas of a request.
pub const SCHEMAS_BYTES_MAX: usize = 131_072;
/// The most schemas within the schemas of a request, as often as they are referred to.
pub const SCHEMA_PARTS_MAX: usize = 512;
/// The most members in one schema that may be left out, as often as they are referred to: what holds a
/// model to a form looks at all of them at once.
pub const SCHEMA_OPTIONAL_MAX: usize = 256;
/// How deep schemas may be nested; a reference is a level.
pub const SCHEMA_DEPTH_MAX: usize = 32;
/// The most values in the lists `enum` of a request.
pub const SCHEMA_VALUES_MAX: usize = 1_024;
/// The most branches of `anyOf`, and the most schemas of `prefixItems`.
pub const SCHEMA_BRANCHES_MAX: usize = 32;
/// The most that `minItems`, `maxItems`, `minLength` and `maxLength` may be.
pub const SCHEMA_COUNT_MAX: u32 = 4_096;
/// The most bytes of a member's name, and of a value of `enum`.
pub const SCHEMA_TEXT_BYTES_MAX: usize = 256;

/// What the text of an answer may be nested.
const ANSWER_DEPTH_MAX: usize = 128;
/// Bytes that are reckoned for the words of one schema.
const WORDS_BYTES: usize = 32;

/// A schema that keeps every rule; holding one is the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    text: Arc<str>,
    form: Arc<Value>,
    cost: Budget,
}

/// What is left of the limits that hold for all schemas of a request together, or what one takes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    parts: usize,
    values: usize,
    bytes: usize,
}

impl Budget {
    /// Nothing is spent.
    pub(super) const fn whole() -> Self {
        Self { parts: SCHEMA_PARTS_MAX, values: SCHEMA_VALUES_MAX, bytes: SCHEMAS_BYTES_MAX }
    }

    /// What is left after so much; none if that is too much.
    pub(super) fn less(self, cost: Self) -> Option<Self> {
        Some(Self {
            parts: self.parts.checked_sub(cost.parts)?,
            values: self.values.checked_sub(cost.values)?,
            bytes: self.bytes.checked_sub(cost.bytes)?,
        })
    }
}

impl Schema {
    /// Reads a schema, which messages call `field`.
    pub(super) fn read<'p>(
        field: impl Into<Path<'p>>,
        json: &Json<'_>,
        budget: &mut Budget,
    ) -> Result<Self, Refused> {
        let field = field.into();
        let before = *budget;
        let form = form_of(field, json, budget)?;
        if form.get("type") != Some(&json!("object")) {
            let got = form.get("type").map_or_else(|| "no type".to_owned(), Value::to_string);
            return Err(Refused::new(Path::Member(&field, "type"), got, "\"object\""));
        }
        let mut text = String::new();
        json.write_to(&mut text);
        let cost = before.less(*budget).unwrap_or(before);
        Ok(Self { text: text.into(), form: Arc::new(form), cost })
    }

    /// The same of the arguments of a function: one that names none has none.
    pub(super) fn read_parameters<'p>(
        field: impl Into<Path<'p>>,
        json: &Json<'_>,
        budget: &mut Budget,
    ) -> Result<Self, Refused> {
        let mut schema = Self::read(field, json, budget)?;
        if schema.is_open()
            && let Value::Object(form) = Arc::make_mut(&mut schema.form)
        {
            form.insert("properties".to_owned(), json!({}));
            form.insert("required".to_owned(), json!([]));
            form.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        Ok(schema)
    }

    /// Whether any object fits.
    pub(super) fn is_open(&self) -> bool {
        let says = |key| self.form.get(key).is_some();
        !says("properties") && !says("additionalProperties")
    }

    /// A schema of an answer that a program of this process made.
    ///
    /// # Errors
    /// What breaks a rule; `field` is what messages call the schema.
    pub fn of(field: &str, text: &str) -> Result<Self, Refused> {
        let json = members::read(field, text, ANSWER_DEPTH_MAX)?;
        Self::read(field, &json, &mut Budget::whole())
    }

    /// The same of the arguments of a function.
    ///
    /// # Errors
    /// As for [`Self::of`].
    pub fn of_parameters(field: &str, text: &str) -> Result<Self, Refused> {
        let json = members::read(field, text, ANSWER_DEPTH_MAX)?;
        Self::read_parameters(field, &json, &mut Budget::whole())
    }

    /// The one form of a schema of any value, not only of an object: what a program of an agent holds a
    /// model to (docs/market.md section 9.4).
    ///
    /// # Errors
    /// As for [`Self::of`].
    pub fn form_of_any(field: &str, text: &str) -> Result<Value, Refused> {
        let json = members::read(field, text, ANSWER_DEPTH_MAX)?;
        form_of(field.into(), &json, &mut Budget::whole())
    }

    /// What it takes of the limits for all schemas of a request.
    pub(super) const fn cost(&self) -> Budget {
        self.cost
    }

    /// The schema as it was written, without white space.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The schema in its one form: of an object, without references, closed where it does not say
    /// otherwise.
    #[must_use]
    pub fn form(&self) -> &Value {
        &self.form
    }

    /// Checks that an object fits. This compiles the schema, which takes milliseconds.
    ///
    /// # Errors
    /// A sentence for the model: the member, its value, and what was expected.
    pub fn check(&self, object: &Map<String, Value>) -> Result<(), String> {
        let compiled = tools::Schema::compile(&self.form).map_err(|fault| fault.to_string())?;
        compiled.check(object).map_err(|failure| failure.message)
    }

    /// The object that a text is, if it fits.
    ///
    /// # Errors
    /// As for [`Self::check`].
    pub fn check_text(&self, text: &str) -> Result<(), String> {
        let json = members::read("the answer", text, ANSWER_DEPTH_MAX);
        let json = json.map_err(|refused| refused.to_string())?;
        match members::to_value(&json) {
            Ok(Value::Object(object)) => self.check(&object),
            Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_))
            | Ok(Value::Array(_)) => {
                Err(format!("the answer is {}; expected an object", json.kind()))
            }
            Err(literal) => Err(format!("the answer has the number {literal}, which is too large")),
        }
    }
}

/// The one form of a schema, which keeps every rule but that it is of an object.
fn form_of(field: Path<'_>, json: &Json<'_>, budget: &mut Budget) -> Result<Value, Refused> {
    let members = json.as_object().unwrap_or_default();
    let mut definitions = BTreeMap::new();
    for place in DEFINITIONS {
        let Some((_, list)) = members.iter().find(|(key, _)| key == place) else { continue };
        let expected = || Refused::new(Path::Member(&field, place), list.kind(), "an object");
        for (name, schema) in list.as_object().ok_or_else(expected)? {
            definitions.insert(format!("#/{place}/{name}"), schema);
        }
    }
    let mut reader =
        Reader { definitions, budget, open: Vec::new(), optional: SCHEMA_OPTIONAL_MAX };
    let form = reader.node(field, json, Place::Root)?;
    bytes_at_most(field, &form.to_string(), SCHEMA_BYTES_MAX)?;
    Ok(form)
}

/// Where definitions stand, at the outermost level only.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Where a schema stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the outermost level, where definitions may stand, and an object is meant.
    Root,
    /// So many levels deeper.
    Within(usize),
}

impl Place {
    const fn depth(self) -> usize {
        match self {
            Self::Root => 1,
            Self::Within(depth) => depth,
        }
    }

    const fn below(self) -> Self {
        Self::Within(self.depth().saturating_add(1))
    }
}

/// Reads one schema with all that it refers to.
struct Reader<'a, 'b> {
    /// By reference.
    definitions: BTreeMap<String, &'a Json<'b>>,
    budget: &'a mut Budget,
    /// References that are being followed.
    open: Vec<String>,
    /// Members that may still be left out.
    optional: usize,
}

impl<'a, 'b> Reader<'a, 'b> {
    fn node(
        &mut self,
        field: Path<'_>,
        json: &'a Json<'b>,
        place: Place,
    ) -> Result<Value, Refused> {
        if place.depth() > SCHEMA_DEPTH_MAX {
            let expected = format!("at most {SCHEMA_DEPTH_MAX} levels of schemas");
            return Err(Refused::new(field, "one more", expected));
        }
        let node = Members::of(json, field)?;
        self.budget.parts = self.budget.parts.checked_sub(1).ok_or_else(|| {
            let expected = format!("at most {SCHEMA_PARTS_MAX}, as often as they are referred to");
            Refused::new(field, "one more schema within the schemas", expected)
        })?;
        let description = described(&node)?;
        self.spend(field, WORDS_BYTES.saturating_add(description.as_ref().map_or(0, String::len)))?;
        let kind = keywords::Kind::of(&node, place == Place::Root)?;
        let mut form = match kind {
            keywords::Kind::Reference => self.reference(&node, place)?,
            keywords::Kind::Choice(key) => self.choice(&node, key, place)?,
            keywords::Kind::Values => self.values(&node)?,
            keywords::Kind::Typed(types) => self.typed(&node, &types, place)?,
        };
        if let (Some(text), Value::Object(members)) = (description, &mut form) {
            members.insert("description".to_owned(), Value::String(text));
        }
        Ok(form)
    }

    fn spend(&mut self, field: Path<'_>, bytes: usize) -> Result<(), Refused> {
        self.budget.bytes = self.budget.bytes.checked_sub(bytes).ok_or_else(|| {
            let expected = format!("schemas of at most {SCHEMAS_BYTES_MAX} bytes together");
            Refused::new(field, "more", expected)
        })?;
        Ok(())
    }

    /// What is referred to, put in place.
    fn reference(&mut self, node: &Members<'a, 'b, '_>, place: Place) -> Result<Value, Refused> {
        let (field, name) = (node.field("$ref"), node.text("$ref")?);
        let Some(schema) = self.definitions.get(name).copied() else {
            let expected = "a definition of this schema, as #/$defs/name";
            return Err(Refused::new(field, name, expected));
        };
        if self.open.iter().any(|open| open == name) {
            return Err(Refused::new(field, name, "no schema that contains itself"));
        }
        self.open.push(name.to_owned());
        let form = self.node(Path::Definition(&field, name), schema, place.below())?;
        self.open.pop();
        Ok(form)
    }

    fn choice(
        &mut self,
        node: &Members<'a, 'b, '_>,
        key: &str,
        place: Place,
    ) -> Result<Value, Refused> {
        let (field, branches) = (node.field(key), node.array(key)?);
        let most = if key == "allOf" { 1 } else { SCHEMA_BRANCHES_MAX };
        entries_at_most(field, branches.len(), most)?;
        if branches.is_empty() {
            return Err(Refused::new(field, "no schemas", "at least one"));
        }
        let mut forms = Vec::with_capacity(branches.len());
        for (index, branch) in branches.iter().enumerate() {
            forms.push(self.node(Path::Entry(&field, index), branch, place.below())?);
        }
        Ok(match <[Value; 1]>::try_from(forms) {
            Ok([alone]) => alone,
            Err(forms) => json!({ "anyOf": forms }),
        })
    }

    /// One of some plain values.
    fn values(&mut self, node: &Members<'a, 'b, '_>) -> Result<Value, Refused> {
        let types = keywords::types(node)?;
        let (key, given) = if node.has("const") {
            ("const", std::slice::from_ref(node.value("const", "a value")?))
        } else {
            ("enum", node.array("enum")?)
        };
        let field = node.field(key);
        if given.is_empty() {
            return Err(Refused::new(field, "no values", "at least one"));
        }
        self.budget.values = self.budget.values.checked_sub(given.len()).ok_or_else(|| {
            let expected = format!("at most {SCHEMA_VALUES_MAX} values in all lists together");
            Refused::new(field, format_args!("{} values", given.len()), expected)
        })?;
        let mut values: Vec<Value> = Vec::with_capacity(given.len());
        let mut seen = BTreeSet::new();
        for (index, json) in given.iter().enumerate() {
            let path = if key == "enum" { Path::Entry(&field, index) } else { field };
            let value = keywords::value(path, json, types.as_deref())?;
            self.spend(path, value.as_str().map_or(WORDS_BYTES, str::len))?;
            if !seen.insert(value.to_string()) {
                return Err(Refused::new(path, value, "every value once"));
            }
            values.push(value);
        }
        if keywords::is_nullable(node)? && seen.insert(Value::Null.to_string()) {
            values.push(Value::Null);
        }
        Ok(json!({ "enum": values }))
    }

    fn typed(
        &mut self,
        node: &Members<'a, 'b, '_>,
        types: &[keywords::Type],
        place: Place,
    ) -> Result<Value, Refused> {
        let mut form = Map::new();
        keywords::write_types(types, &mut form);
        keywords::write_numbers(node, types, &mut form)?;
        keywords::write_counts(node, &mut form)?;
        if types.contains(&keywords::Type::Object) {
            self.members(node, place, &mut form)?;
        }
        if node.has("items") {
            let items = node.value("items", "a schema")?;
            form.insert("items".to_owned(), self.node(node.field("items"), items, place.below())?);
        }
        if node.has("prefixItems") {
            let (field, items) = (node.field("prefixItems"), node.array("prefixItems")?);
            entries_at_most(field, items.len(), SCHEMA_BRANCHES_MAX)?;
            let mut forms = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                forms.push(self.node(Path::Entry(&field, index), item, place.below())?);
            }
            form.insert("prefixItems".to_owned(), Value::Array(forms));
        }
        Ok(Value::Object(form))
    }

    /// The members of an object: none but those that are named, unless the schema says otherwise.
    fn members(
        &mut self,
        node: &Members<'a, 'b, '_>,
        place: Place,
        form: &mut Map<String, Value>,
    ) -> Result<(), Refused> {
        let mut properties = Map::new();
        if node.has("properties") {
            let (field, given) = (node.field("properties"), node.value("properties", "an object")?);
            let expected = || Refused::new(field, given.kind(), "an object");
            for (name, schema) in given.as_object().ok_or_else(expected)? {
                let path = Path::Member(&field, name);
                bytes_at_most(path, name, SCHEMA_TEXT_BYTES_MAX)?;
                self.spend(path, name.len().saturating_mul(2))?;
                properties
                    .insert(name.clone().into_owned(), self.node(path, schema, place.below())?);
            }
        }
        let required = if node.has("required") { node.texts("required")? } else { Vec::new() };
        let mut seen = BTreeSet::new();
        for (index, name) in required.iter().enumerate() {
            if !properties.contains_key(name) || !seen.insert(name) {
                let field = node.field("required");
                let path = Path::Entry(&field, index);
                return Err(Refused::new(path, name, "a name of properties, each once"));
            }
        }
        let optional = properties.len().saturating_sub(required.len());
        self.optional = self.optional.checked_sub(optional).ok_or_else(|| {
            let expected =
                format!("at most {SCHEMA_OPTIONAL_MAX} in a schema that are not in required");
            Refused::new(node.field("properties"), "more members that may be left out", expected)
        })?;
        let others = match node.has("additionalProperties") {
            false if node.has("properties") => Some(Value::Bool(false)),
            false => None,
            true => {
                let others = node.value("additionalProperties", "a schema")?;
                let field = node.field("additionalProperties");
                Some(match others.as_bool() {
                    Some(others) => Value::Bool(others),
                    None => self.node(field, others, place.below())?,
                })
            }
        };
        if node.has("properties") {
            form.insert("properties".to_owned(), Value::Object(properties));
            form.insert("required".to_owned(), json!(required));
        }
        if let Some(others) = others {
            form.insert("additionalProperties".to_owned(), others);
        }
        Ok(())
    }
}

/// What a schema says to the model, its `format` included, which is held by nothing else.
fn described(node: &Members<'_, '_, '_>) -> Result<Option<String>, Refused> {
    let text = |key| if node.has(key) { node.text(key).map(Some) } else { Ok(None) };
    let (description, format) = (text("description")?, text("format")?);
    Ok(match (description, format) {
        (Some(text), Some(format)) => Some(format!("{text} (format: {format})")),
        (None, Some(format)) => Some(format!("format: {format}")),
        (text, None) => text.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests;
