//! Arguments of a call, checked against the tool's JSON schema.
//!
//! The schemas of built-in tools are our own, those of MCP servers are foreign, and both go through
//! the same crate: a foreign schema may use any keyword of the standard, and a check that skips what
//! it does not know would let through what the server then refuses.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::schema_cost::{DEPTH_MAX, PARTS_MAX, PATTERNS_MAX, REFERENCES_MAX, SchemaCost};
use super::tool::{Code, Failure, shortened};

/// The most bytes of a schema as JSON.
pub(super) const SCHEMA_BYTES_MAX: usize = 32 * 1024;
/// Memory of one compiled pattern of a schema, in bytes.
const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// The most parts that are looked at to say what is wrong; beyond, it is only said that it is wrong.
const EXPLAINED_WORK_MAX: usize = 250_000;
/// The most parts that may have to be looked at: minutes at the worst. Most arguments of so much work
/// take a moment; which of them do not is not known before.
const WORK_MAX: usize = 10_000_000_000;
/// The draft in which `id` is an address.
const OLD_DRAFT: &str = "draft-04";

/// A JSON schema of a tool's arguments, ready to check them.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    cost: SchemaCost,
    bytes: usize,
    /// The names of the arguments, for messages.
    names: Vec<String>,
}

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaFault {
    /// It is not a schema of an object.
    #[error("the schema is not of an object: expected \"type\": \"object\"")]
    NotAnObject,
    /// It is too long.
    #[error("the schema has {bytes} bytes: expected at most {SCHEMA_BYTES_MAX}")]
    TooLong {
        /// Its length as JSON.
        bytes: usize,
    },
    /// With what it refers to it is too much to check.
    #[error(
        "the schema has more than {PARTS_MAX} parts with all that it refers to, has more than {REFERENCES_MAX} different references, or is nested deeper than {DEPTH_MAX}"
    )]
    TooIntricate,
    /// It has too many patterns.
    #[error("the schema has more than {PATTERNS_MAX} patterns")]
    TooManyPatterns,
    /// It refers to something that is not in it, or does so by a name.
    #[error(
        "the schema cannot be used: it refers to {reference:?}: expected a place in itself, as #/$defs/name"
    )]
    Reference {
        /// The reference.
        reference: String,
    },
    /// A part of it is a document of its own.
    #[error("the schema cannot be used: a part of it has an address of its own")]
    Address,
    /// It is not a valid schema, or it refers to another document.
    #[error("the schema cannot be used: {0}")]
    Unusable(Box<ValidationError<'static>>),
}

impl Schema {
    /// Compiles a schema. Nothing is fetched: a reference to another document is a fault.
    ///
    /// # Errors
    /// When it is not a schema of an object, is too long or too intricate, or cannot be compiled.
    pub fn compile(schema: &Value) -> Result<Self, SchemaFault> {
        let text = schema.to_string();
        let bytes = text.len();
        if bytes > SCHEMA_BYTES_MAX {
            return Err(SchemaFault::TooLong { bytes });
        }
        if schema["type"] != "object" {
            return Err(SchemaFault::NotAnObject);
        }
        let cost = SchemaCost::of(schema, text.contains(OLD_DRAFT))?;
        let patterns =
            PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .build(schema)
            .map_err(|fault| SchemaFault::Unusable(Box::new(fault)))?;
        let properties = schema["properties"].as_object();
        let mut names: Vec<String> =
            properties.map(|it| it.keys().cloned().collect()).unwrap_or_default();
        // What a model is told is hashed, so it must not depend on how a map keeps its order.
        names.sort_unstable();
        Ok(Self { validator, cost, bytes, names })
    }

    /// Its length as JSON.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many patterns were compiled for it.
    pub(super) const fn patterns(&self) -> usize {
        self.cost.patterns
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// The first fault: which argument, its value, and what was expected; only that there is one,
    /// where finding out would take long.
    pub fn check(&self, arguments: &Map<String, Value>) -> Result<(), Failure> {
        let instance = Value::Object(arguments.clone());
        let work = self.cost.work(&instance);
        if work > WORK_MAX {
            let message = "the arguments are nested too deeply for the tool's schema";
            return Err(Failure::new(Code::BadArguments, message));
        }
        if work > EXPLAINED_WORK_MAX {
            // What is right is found without looking at everything that is wrong.
            let is_valid = self.validator.is_valid(&instance);
            let message = "the arguments do not fit the tool's schema";
            let failure = || Failure::new(Code::BadArguments, message);
            return if is_valid { Ok(()) } else { Err(failure()) };
        }
        let checked = self.validator.validate(&instance);
        checked.map_err(|fault| Failure::new(Code::BadArguments, self.sentence(&fault)))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a library's enum, which says it will grow")]
    fn sentence(&self, fault: &ValidationError<'_>) -> String {
        let path = fault.instance_path().as_str();
        let place = path.strip_prefix('/').unwrap_or(path).replace('/', ".");
        let within = if place.is_empty() { String::new() } else { format!(" in {place}") };
        match fault.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                format!("argument {name}{within} is missing")
            }
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let mut unexpected = unexpected.clone();
                unexpected.sort_unstable();
                let unexpected = shortened(&unexpected.join(", "));
                let known =
                    if self.names.is_empty() { "none".into() } else { self.names.join(", ") };
                format!("argument {unexpected}{within} is unknown: expected {known}")
            }
            _ => {
                let value = shortened(&fault.instance().to_string());
                let subject = if place.is_empty() { "the arguments are" } else { "is" };
                let expected = fault.masked_with("the value");
                let named =
                    if place.is_empty() { String::new() } else { format!("argument {place} ") };
                format!("{named}{subject} {value}: {expected}")
            }
        }
    }
}
