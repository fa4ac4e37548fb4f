//! The keywords of a schema: which may stand together, and what plain ones may hold.

use serde_json::{Map, Number, Value, json};
use types::json::Json;

use super::super::members::{self, Members};
use super::super::path::Path;
use super::super::refused::{Refused, bytes_at_most};
use super::{DEFINITIONS, SCHEMA_COUNT_MAX, SCHEMA_TEXT_BYTES_MAX};

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    const ALL: [Self; 7] = [
        Self::Null,
        Self::Boolean,
        Self::Integer,
        Self::Number,
        Self::String,
        Self::Array,
        Self::Object,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// The keywords that only mean something for this type.
    const fn keywords(self) -> &'static [&'static str] {
        match self {
            Self::Null | Self::Boolean => &[],
            Self::Integer | Self::Number => &NUMBERS,
            Self::String => &["minLength", "maxLength"],
            Self::Array => &["items", "prefixItems", "minItems", "maxItems"],
            Self::Object => &["properties", "required", "additionalProperties"],
        }
    }

    fn has(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// The largest whole number of `enum` and `const`.
const WHOLE_MAX: u64 = 1 << 53;
const NUMBERS: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
/// What says nothing about which values fit. `format` and `description` are told to the model.
const ANNOTATIONS: [&str; 12] = [
    "title",
    "description",
    "default",
    "examples",
    "example",
    "format",
    "deprecated",
    "readOnly",
    "writeOnly",
    "discriminator",
    "$comment",
    "$schema",
];
const CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// What a schema is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `$ref` and nothing else.
    Reference,
    /// One of some schemas, by this keyword.
    Choice(&'static str),
    /// One of some values.
    Values,
    /// Any value of these types; of any type if there are none.
    Typed(Vec<Type>),
}

impl Kind {
    /// What a schema is; every keyword of it may stand there. An object is meant where nothing is said
    /// at the outermost level.
    pub(super) fn of(node: &Members<'_, '_, '_>, is_root: bool) -> Result<Self, Refused> {
        let choice = CHOICES.into_iter().find(|key| node.has(key));
        let kind = if node.has("$ref") {
            Self::Reference
        } else if let Some(key) = choice {
            Self::Choice(key)
        } else if node.has("enum") || node.has("const") {
            Self::Values
        } else {
            let mut types = types(node)?.unwrap_or_else(|| implied(node, is_root));
            if is_nullable(node)? && !types.is_empty() && !types.contains(&Type::Null) {
                types.push(Type::Null);
            }
            Self::Typed(types)
        };
        let mut known = kind.keywords();
        if is_root {
            known.extend(DEFINITIONS);
        }
        let is_known =
            |key: &str| known.contains(&key) || ANNOTATIONS.contains(&key) || key.starts_with("x-");
        let unknown = node.keys().find(|key| !is_known(key) && !is_idle(node, key));
        match unknown {
            None => Ok(kind),
            Some(key) => {
                let field = node.field(key);
                let expected = format!("beside what says nothing only {}", known.join(", "));
                Err(Refused::new(field, "a keyword that cannot be honoured here", expected))
            }
        }
    }

    fn keywords(&self) -> Vec<&'static str> {
        match self {
            Self::Reference => vec!["$ref"],
            Self::Choice(key) => vec![key],
            Self::Values => vec!["enum", "const", "type", "nullable"],
            Self::Typed(types) => {
                let mut known = vec!["type", "nullable"];
                known.extend(types.iter().flat_map(|of| of.keywords()));
                known
            }
        }
    }
}

/// A keyword that changes nothing with this value.
fn is_idle(node: &Members<'_, '_, '_>, key: &str) -> bool {
    key == "uniqueItems" && node.boolean(key) == Ok(false)
}

/// The type that other keywords speak of.
fn implied(node: &Members<'_, '_, '_>, is_root: bool) -> Vec<Type> {
    let speaks = |of: &Type| of.keywords().iter().any(|key| node.has(key));
    let found = [Type::Object, Type::Array, Type::String, Type::Number].into_iter().find(speaks);
    found.or_else(|| is_root.then_some(Type::Object)).into_iter().collect()
}

/// What `type` says; none if it is not there.
pub(super) fn types(node: &Members<'_, '_, '_>) -> Result<Option<Vec<Type>>, Refused> {
    if !node.has("type") {
        return Ok(None);
    }
    let field = node.field("type");
    let value = node.value("type", "a type")?;
    let given = value.as_array().unwrap_or_else(|| std::slice::from_ref(value));
    let names: Vec<&str> = given.iter().map(|name| name.as_str().unwrap_or_default()).collect();
    let mut found = Vec::new();
    for name in &names {
        let of = Type::ALL.into_iter().find(|of| of.name() == *name);
        match of.filter(|of| !found.contains(of)) {
            Some(of) => found.push(of),
            None => {
                let known = Type::ALL.map(Type::name).join(", ");
                return Err(Refused::new(field, name, format!("of {known}, each once")));
            }
        }
    }
    if found.is_empty() {
        return Err(Refused::new(field, "no types", "at least one"));
    }
    Ok(Some(found))
}

/// What `nullable` says, which other dialects have.
pub(super) fn is_nullable(node: &Members<'_, '_, '_>) -> Result<bool, Refused> {
    if node.has("nullable") { node.boolean("nullable") } else { Ok(false) }
}

/// A value of `enum` or `const`, of one of the types if there are any.
pub(super) fn value(
    field: Path<'_>,
    json: &Json<'_>,
    types: Option<&[Type]>,
) -> Result<Value, Refused> {
    if matches!(json, Json::Array(_) | Json::Object(_)) {
        return Err(Refused::new(field, json.kind(), "a string, a number, true, false or null"));
    }
    let value = members::to_value(json)
        .map_err(|literal| Refused::new(field, literal, "a number of ordinary size"))?;
    if let Some(text) = value.as_str() {
        bytes_at_most(field, text, SCHEMA_TEXT_BYTES_MAX)?;
    }
    // What holds a model to a number reckons with floats, and with 64 bits with a sign.
    let is_large = |number: &Number| {
        let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
        magnitude.is_some_and(|it| it > WHOLE_MAX)
    };
    if value.as_number().is_some_and(is_large) {
        return Err(Refused::new(field, value, "a whole number from -2^53 to 2^53"));
    }
    let fits = |types: &[Type]| types.iter().any(|of| of.has(&value));
    if types.is_none_or(fits) { Ok(value) } else { Err(Refused::new(field, value, "the type")) }
}

pub(super) fn write_types(types: &[Type], form: &mut Map<String, Value>) {
    let names: Vec<_> = types.iter().map(|of| of.name()).collect();
    match names[..] {
        [] => {}
        [name] => drop(form.insert("type".to_owned(), json!(name))),
        _ => drop(form.insert("type".to_owned(), json!(names))),
    }
}

/// `minItems`, `maxItems`, `minLength` and `maxLength`.
pub(super) fn write_counts(
    node: &Members<'_, '_, '_>,
    form: &mut Map<String, Value>,
) -> Result<(), Refused> {
    const EXPECTED: &str = "a whole number from 0 to 4096";
    let mut read = |key: &str| {
        if !node.has(key) {
            return Ok(None);
        }
        let count = node.integer(key, EXPECTED)?;
        if count > SCHEMA_COUNT_MAX {
            return Err(Refused::new(node.field(key), count, EXPECTED));
        }
        form.insert(key.to_owned(), json!(count));
        Ok(Some(count))
    };
    for (low, high) in [("minItems", "maxItems"), ("minLength", "maxLength")] {
        if let (Some(min), Some(max)) = (read(low)?, read(high)?)
            && min > max
        {
            return Err(Refused::new(node.field(low), min, format!("at most {high}, {max}")));
        }
    }
    Ok(())
}

/// The bounds of numbers. Some number must lie within them.
pub(super) fn write_numbers(
    node: &Members<'_, '_, '_>,
    types: &[Type],
    form: &mut Map<String, Value>,
) -> Result<(), Refused> {
    let mut bounds = [None; 4];
    for (key, bound) in NUMBERS.into_iter().zip(&mut bounds) {
        if !node.has(key) {
            continue;
        }
        let literal = node.number(key, BOUND)?;
        let scaled =
            scaled(literal).ok_or_else(|| Refused::new(node.field(key), literal, BOUND))?;
        let number: Value = serde_json::from_str(literal).unwrap_or_default();
        form.insert(key.to_owned(), number);
        *bound = Some(scaled);
    }
    let [min, max, above, below] = bounds;
    // In steps: of the written digits, or of whole numbers.
    let is_whole = types.contains(&Type::Integer) && !types.contains(&Type::Number);
    let step = if is_whole { UNIT } else { 1 };
    let up =
        |bound: i128| bound.div_euclid(step).saturating_add(i128::from(bound.rem_euclid(step) > 0));
    let down = |bound: i128| bound.div_euclid(step);
    let least =
        [min.map(up), above.map(|it| down(it).saturating_add(1))].into_iter().flatten().max();
    let most =
        [max.map(down), below.map(|it| up(it).saturating_sub(1))].into_iter().flatten().min();
    match least.zip(most) {
        Some((least, most)) if least > most => {
            let key = if min.is_some() { "minimum" } else { "exclusiveMinimum" };
            let got = form.get(key).map(Value::to_string).unwrap_or_default();
            Err(Refused::new(node.field(key), got, "bounds with a number between them"))
        }
        Some(_) | None => Ok(()),
    }
}

const BOUND: &str = "a number of at most 16 digits before and 8 behind the point";
const FRACTION_DIGITS: usize = 8;
const UNIT: i128 = 100_000_000;

/// A number in units of its last possible digit.
fn scaled(literal: &str) -> Option<i128> {
    let (sign, digits) = literal.strip_prefix('-').map_or((1, literal), |rest| (-1, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let fits = whole.len() <= 16 && fraction.len() <= FRACTION_DIGITS;
    if !fits || !is_plain(whole) || !is_plain(fraction) {
        return None;
    }
    let all: i128 = format!("{whole}{fraction:0<FRACTION_DIGITS$}").parse().ok()?;
    all.checked_mul(sign)
}
