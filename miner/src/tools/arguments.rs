//! Arguments of a call, checked against the tool's JSON schema.
//!
//! The schemas of built-in tools are our own, those of MCP servers are foreign, and both go through
//! the same crate: a foreign schema may use any keyword of the standard, and a check that skips what
//! it does not know would let through what the server then refuses.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::tool::{Code, Failure, shortened};

/// The most bytes of a schema as JSON.
pub(super) const SCHEMA_BYTES_MAX: usize = 32 * 1024;
/// Memory of one compiled pattern of a schema, in bytes.
const PATTERN_BYTES_MAX: usize = 256 * 1024;

/// A JSON schema of a tool's arguments, ready to check them.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
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
    /// It is not a valid schema, or it refers to another document.
    #[error("the schema cannot be used: {0}")]
    Unusable(Box<ValidationError<'static>>),
}

impl Schema {
    /// Compiles a schema. Nothing is fetched: a reference to another document is a fault.
    ///
    /// # Errors
    /// When it is not a schema of an object, is too long, or cannot be compiled.
    pub fn compile(schema: &Value) -> Result<Self, SchemaFault> {
        let bytes = schema.to_string().len();
        if bytes > SCHEMA_BYTES_MAX {
            return Err(SchemaFault::TooLong { bytes });
        }
        if schema["type"] != "object" {
            return Err(SchemaFault::NotAnObject);
        }
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
        Ok(Self { validator, names })
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// The first fault: which argument, its value, and what was expected.
    pub fn check(&self, arguments: &Map<String, Value>) -> Result<(), Failure> {
        let instance = Value::Object(arguments.clone());
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
