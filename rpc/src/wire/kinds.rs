//! The JSON schemas of transactions, one for each type, generated from the declarations of the
//! kinds.
//!
//! The schemas are open: a signer may add members of its own, which the chain hashes and keeps.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use types::forks::Fork;
use types::params::INTEGER_MAX;
use types::tx::spec::{
    AmountLimit, FieldSpec, Filled, Form, IntegerLimit, IntegerMax, KindSpec, ListLimit, Presence,
    TextLimit,
};
use types::{Bid, Body};

use super::{AddressText, AmountText, HashText, PublicKeyText, SignatureText};

/// A signed transaction as a flat JSON object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxObject;

/// A transaction object that need not be signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnsignedTx;

impl<'de> Deserialize<'de> for TxObject {
    /// Accepts anything: [`types::Transaction::parse`] decides what a transaction is.
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(reader).map(|_| Self)
    }
}

impl<'de> Deserialize<'de> for UnsignedTx {
    /// Accepts anything: [`types::Transaction::parse_unsigned`] decides what a transaction is.
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(reader).map(|_| Self)
    }
}

impl JsonSchema for TxObject {
    fn schema_name() -> Cow<'static, str> {
        "Transaction".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = one_of_the_kinds(generator);
        schema.insert("description".to_owned(), "A signed transaction.".into());
        schema.insert("required".to_owned(), json!(["type", "hash", "signature"]));
        schema
    }
}

impl JsonSchema for UnsignedTx {
    fn schema_name() -> Cow<'static, str> {
        "UnsignedTransaction".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = one_of_the_kinds(generator);
        schema.insert("description".to_owned(), "A transaction, signed or not.".into());
        schema
    }
}

/// The members other than `type` that every transaction has.
fn common(generator: &mut SchemaGenerator) -> [(&'static str, Value); 4] {
    [
        ("from", Form::Address.schema(generator)),
        ("nonce", INTEGER.schema(generator)),
        ("timestamp", INTEGER.schema(generator)),
        ("publicKey", Form::Key.schema(generator)),
    ]
}

/// The optional members that any transaction of a kind may have. The tip of a TRANSFER is its
/// `fee`.
fn maybe(kind: &KindSpec, generator: &mut SchemaGenerator) -> Vec<(&'static str, Value)> {
    let is_taken = |field: &&FieldSpec| kind.type_name != "TRANSFER" || field.name != "tip";
    let bid = Bid::FIELDS
        .iter()
        .filter(is_taken)
        .map(|field| (field.name, field_schema(field, generator)));
    let bid: Vec<_> = bid.collect();
    let rest = [
        ("chainId", json!({ "type": "string" })),
        ("hash", Form::Hash.schema(generator)),
        ("signature", generator.subschema_for::<SignatureText>().to_value()),
    ];
    bid.into_iter().chain(rest).collect()
}

/// Nonces and times.
const INTEGER: Form =
    Form::Integer(IntegerLimit { min: 0, max: IntegerMax::Fixed(INTEGER_MAX), unit: "" });

/// The schema of a declared field, with its description.
pub(crate) fn field_schema(field: &FieldSpec, generator: &mut SchemaGenerator) -> Value {
    let mut schema = field.form.schema(generator);
    if let Some(members) = schema.as_object_mut() {
        members.insert("description".to_owned(), field.doc().into());
    }
    schema
}

/// A form as a JSON schema.
trait Schematic {
    fn schema(&self, generator: &mut SchemaGenerator) -> Value;
}

impl Schematic for Form {
    fn schema(&self, generator: &mut SchemaGenerator) -> Value {
        match self {
            Self::Address => generator.subschema_for::<AddressText>().to_value(),
            Self::Addresses(max) => {
                let item = generator.subschema_for::<AddressText>().to_value();
                json!({
                    "type": "array", "minItems": 1, "maxItems": max, "uniqueItems": true,
                    "items": item,
                })
            }
            Self::Amount(_) => generator.subschema_for::<AmountText>().to_value(),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Hash => generator.subschema_for::<HashText>().to_value(),
            Self::Integer(IntegerLimit { min, max, unit: _ }) => {
                let max = match max {
                    IntegerMax::Fixed(max) => *max,
                    IntegerMax::MaxBlobBytes => INTEGER_MAX,
                };
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Self::Key => generator.subschema_for::<PublicKeyText>().to_value(),
            Self::Signature => generator.subschema_for::<SignatureText>().to_value(),
            Self::Text(TextLimit::Bytes { min: 0, max }) => {
                json!({ "type": "string", "maxLength": max })
            }
            // A text of some bytes has at least one character, and at most as many as bytes.
            Self::Text(TextLimit::Bytes { min: _, max }) => {
                json!({ "type": "string", "minLength": 1, "maxLength": max })
            }
            Self::Text(TextLimit::BlobId) => {
                json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$" })
            }
            Self::Text(TextLimit::OneOf(words)) => json!({ "type": "string", "enum": words }),
            Self::Names(max) => json!({
                "type": "array", "maxItems": 64, "uniqueItems": true,
                "items": { "type": "string", "maxLength": max },
            }),
            Self::Base64 => json!({ "type": "string", "contentEncoding": "base64" }),
            Self::Hex(max) => json!({
                "type": "string", "pattern": "^0x([0-9a-f]{2})*$",
                "maxLength": max.saturating_mul(2).saturating_add(2),
            }),
            Self::Object(members) => object_schema(members, generator),
            Self::Objects(ListLimit { members, max }) => {
                let item = object_schema(members, generator);
                json!({ "type": "array", "maxItems": max, "items": item })
            }
        }
    }
}

/// The schema of an object with these members, all required.
fn object_schema(members: &[FieldSpec], generator: &mut SchemaGenerator) -> Value {
    let properties = properties(members.iter(), generator);
    let required: Vec<&str> = members.iter().map(|member| member.name).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn properties<'a>(
    fields: impl Iterator<Item = &'a FieldSpec>,
    generator: &mut SchemaGenerator,
) -> Map<String, Value> {
    fields.map(|field| (field.name.to_owned(), field_schema(field, generator))).collect()
}

fn kind_schema(kind: &KindSpec, generator: &mut SchemaGenerator) -> Value {
    let mut all = Map::from_iter([("type".to_owned(), json!({ "const": kind.type_name }))]);
    let common = common(generator);
    let needed: Vec<&str> = std::iter::once("type")
        .chain(common.iter().map(|(name, _)| *name))
        .chain(with(kind, Presence::Required).map(|field| field.name))
        .collect();
    let needed = json!(needed);
    let owned = |(name, schema): (&str, Value)| (name.to_owned(), schema);
    all.extend(common.into_iter().map(owned));
    for presence in [Presence::Required, Presence::Optional] {
        all.extend(properties(with(kind, presence), generator));
    }
    all.extend(maybe(kind, generator).into_iter().map(owned));
    let doc = kind.doc();
    json!({ "type": "object", "description": doc, "required": needed, "properties": all })
}

/// The required or the optional fields of a kind.
fn with(kind: &KindSpec, presence: Presence) -> impl Iterator<Item = &'static FieldSpec> {
    kind.all_fields().filter(move |field| field.presence == presence)
}

/// A schema that selects the schema of a kind by the member `type`. Adds the schemas of all kinds
/// to the definitions.
fn one_of_the_kinds(generator: &mut SchemaGenerator) -> Schema {
    // In order of names, whatever order a map keeps.
    let mut mapping = BTreeMap::new();
    for kind in Body::KINDS {
        let schema = kind_schema(kind, generator);
        let name = kind.type_name;
        generator.definitions_mut().insert(name.to_owned(), schema);
        let path = generator.settings().definitions_path.trim_end_matches('/');
        mapping.insert(name, format!("#{path}/{name}"));
    }
    let any: Vec<Value> = mapping.values().map(|place| json!({ "$ref": place })).collect();
    json_schema!({
        "type": "object",
        "oneOf": any,
        "discriminator": { "propertyName": "type", "mapping": mapping },
    })
}

/// The declarations of all kinds for libraries in other languages: docs/kinds.json.
#[must_use]
pub fn kinds_document() -> Value {
    let kinds: Vec<Value> = Body::KINDS.iter().map(declaration).collect();
    let every: Vec<Value> = Bid::FIELDS.iter().map(field_declaration).collect();
    json!({ "kinds": kinds, "everyKind": { "fork": Fork::V7.name(), "optional": every } })
}

fn declaration(kind: &KindSpec) -> Value {
    let KindSpec { type_name, name, section, fork, .. } = *kind;
    let fields = |presence| -> Vec<Value> { with(kind, presence).map(field_declaration).collect() };
    json!({
        "type": type_name,
        "name": name,
        "doc": kind.doc(),
        "section": section,
        "fork": fork.map(Fork::name),
        "required": fields(Presence::Required),
        "optional": fields(Presence::Optional),
    })
}

/// The name, form and limits of a field as flat members. Limits that the field does not have are
/// left out.
fn field_declaration(field: &FieldSpec) -> Value {
    let (form, limits) = match field.form {
        Form::Address => ("address", json!({})),
        Form::Addresses(max) => ("addresses", json!({ "max": max })),
        Form::Amount(AmountLimit::Positive) => ("amount", json!({ "unit": "micro", "min": "1" })),
        Form::Amount(AmountLimit::Any) => ("amount", json!({ "unit": "micro" })),
        Form::Amount(AmountLimit::AtLeast(param)) => {
            ("amount", json!({ "unit": "micro", "minParam": param.name() }))
        }
        Form::Base64 => ("base64", json!({})),
        Form::Boolean => ("boolean", json!({})),
        Form::Hash => ("hash", json!({})),
        Form::Integer(IntegerLimit { min, max, unit }) => match max {
            IntegerMax::Fixed(max) => ("integer", json!({ "min": min, "max": max, "unit": unit })),
            IntegerMax::MaxBlobBytes => {
                let param = "maxBlobBytes";
                let limits = json!({
                    "min": min, "max": INTEGER_MAX, "maxParam": param, "unit": unit,
                });
                ("integer", limits)
            }
        },
        Form::Hex(max) => ("hex", json!({ "maxBytes": max })),
        Form::Key => ("key", json!({})),
        Form::Names(max) => ("names", json!({ "maxBytes": max })),
        Form::Object(members) => {
            let members: Vec<Value> = members.iter().map(field_declaration).collect();
            ("object", json!({ "members": members }))
        }
        Form::Objects(ListLimit { members, max }) => {
            let members: Vec<Value> = members.iter().map(field_declaration).collect();
            ("objects", json!({ "members": members, "max": max }))
        }
        Form::Signature => ("signature", json!({})),
        Form::Text(TextLimit::BlobId) => ("blobId", json!({})),
        Form::Text(TextLimit::Bytes { min, max }) => {
            ("text", json!({ "minBytes": min, "maxBytes": max }))
        }
        Form::Text(TextLimit::OneOf(words)) => ("word", json!({ "words": words })),
    };
    let filled = match field.filled {
        Filled::ByCaller => Value::Null,
        Filled::Empty => "empty".into(),
        Filled::Sender => "sender".into(),
        Filled::Default => "default".into(),
        Filled::Computed => "computed".into(),
    };
    let mut all = json!({ "name": field.name, "form": form, "doc": field.doc() });
    if let (Value::Object(all), Value::Object(limits)) = (&mut all, limits) {
        let filled = Some(filled).filter(|filled| !filled.is_null());
        all.extend(filled.map(|filled| ("filled".to_owned(), filled)));
        all.extend(limits.into_iter().filter(|(_, limit)| *limit != ""));
    }
    all
}

#[cfg(test)]
mod tests;
