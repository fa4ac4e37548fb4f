//! One parameter of a method.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::builder::Builder;
use crate::error::RpcError;
use crate::transport::fault::{ParamFault, describe};

/// A parameter: its name, its type, and how it may be given by name.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name in a call by name.
    pub name: &'static str,
    /// What it is, as a phrase.
    pub summary: &'static str,
    /// Whether it must be given.
    pub is_required: bool,
    /// Further names, for parameters that are known under several.
    pub aliases: &'static [&'static str],
    /// For an object: its members, which a call by name may give directly.
    pub members: Vec<String>,
    shape: Shape,
}

/// What a parameter is made of.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// A type.
    Type { schema: fn(&mut SchemaGenerator) -> Schema, fault: fn(&str) -> Option<ParamFault> },
    /// The fields of a kind, as its builder takes them.
    Fields(&'static Builder),
}

impl Shape {
    fn schema(self, generator: &mut SchemaGenerator) -> Schema {
        match self {
            Self::Type { schema, .. } => schema(generator),
            Self::Fields(builder) => builder.schema(generator),
        }
    }

    /// What is wrong with a given value.
    fn fault(self, value: &str) -> Option<ParamFault> {
        match self {
            Self::Type { fault, .. } => fault(value),
            Self::Fields(builder) => builder.fault(value),
        }
    }
}

impl Param {
    /// A parameter that must be given.
    #[must_use]
    pub fn required<T: JsonSchema + DeserializeOwned>(
        name: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            summary,
            is_required: true,
            aliases: &[],
            members: Vec::new(),
            shape: Shape::Type { schema: SchemaGenerator::subschema_for::<T>, fault: fault::<T> },
        }
    }

    /// A parameter that may be left out or null.
    #[must_use]
    pub fn optional<T: JsonSchema + DeserializeOwned>(
        name: &'static str,
        summary: &'static str,
    ) -> Self {
        Self { is_required: false, ..Self::required::<T>(name, summary) }
    }

    /// The fields of a kind, as its builder takes them; a call by name may give them directly.
    pub(super) fn fields(builder: &'static Builder) -> Self {
        Self {
            name: "fields",
            summary: "the fields of the transaction's kind",
            is_required: true,
            aliases: &[],
            members: builder.members().into_iter().map(str::to_owned).collect(),
            shape: Shape::Fields(builder),
        }
    }

    /// The same parameter, whose members a call by name may give directly.
    #[must_use]
    pub(super) fn spread(self) -> Self {
        let mut generator = SchemaGenerator::default();
        let schema = self.shape.schema(&mut generator);
        let place = schema.get("$ref").and_then(Value::as_str).unwrap_or_default();
        let own = place.rsplit('/').next().and_then(|name| generator.definitions().get(name));
        let members = own.map(members).unwrap_or_default();
        Self { members, ..self }
    }

    /// Known under further names.
    #[must_use]
    pub(super) fn or_named(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(super) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        self.shape.schema(generator)
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    pub(super) fn has_member(&self, name: &str) -> bool {
        self.members.iter().any(|member| member == name)
    }

    /// Checks a given value.
    pub(super) fn check(&self, value: &str) -> Result<(), RpcError> {
        if value == "null" && !self.is_required {
            return Ok(());
        }
        let Some(ParamFault { path, got, expected }) = self.shape.fault(value) else {
            return Ok(());
        };
        let field = match (path.as_str(), self.members.is_empty()) {
            ("", _) => self.name.to_owned(),
            (_, true) => format!("{}.{path}", self.name),
            (_, false) => path.clone(),
        };
        let got = got.map_or_else(|| found(value, &path), str::to_owned);
        Err(RpcError::invalid(field, got, expected))
    }
}

/// The names of an object's members, by its schema.
fn members(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

/// Where `text` is not a `T`, and what was expected.
fn fault<T: DeserializeOwned>(text: &str) -> Option<ParamFault> {
    if serde_json::from_str::<T>(text).is_ok() {
        return None;
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let error = serde_path_to_error::deserialize::<_, T>(&mut reader).err()?;
    Some(describe(error.path(), &error.inner().to_string()))
}

/// The part of the value at `path`, as far as it can be followed.
fn found(value: &str, path: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(value) else {
        return value.to_owned();
    };
    for key in path.split('.').filter(|key| !key.is_empty()) {
        match value.get_mut(key) {
            Some(inner) => value = inner.take(),
            None => break,
        }
    }
    value.to_string()
}
