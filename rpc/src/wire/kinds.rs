//! Schemas of transactions, one for each type, by the table of docs/protocol.md section 5.
//!
//! They are open: a signer may add members of its own, which are hashed and kept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use types::params::INTEGER_MAX;
use types::tx::{
    ATTACHMENT_TYPES, ATTACHMENTS_MAX, FINISH_STATUSES, HARDWARE_TIERS, ROLES, TOOL_CALLS_MAX,
};

use super::{AddressText, AmountText, HashText, PublicKeyText, SignatureText};

/// A signed transaction as a flat JSON object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxObject;

/// A transaction object that need not be signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnsignedTx;

impl<'de> Deserialize<'de> for TxObject {
    /// Takes anything: what a transaction is, is told by [`types::Transaction::parse`].
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(reader).map(|_| Self)
    }
}

impl<'de> Deserialize<'de> for UnsignedTx {
    /// Takes anything: what a transaction is, is told by [`types::Transaction::parse_unsigned`].
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
        schema.insert("description".to_owned(), "a signed transaction".into());
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
        schema.insert("description".to_owned(), "a transaction, signed or not".into());
        schema
    }
}

/// A form that members have.
#[derive(Clone, Copy)]
enum Form {
    Address,
    Amount,
    BlobId,
    Boolean,
    Hash,
    Integer,
    Key,
    Signature,
    Text,
    Texts,
    OneOf(&'static [&'static str]),
    /// At most so many objects with these members.
    Objects(&'static [Member], usize),
}

/// The name of a member, and its form.
type Member = (&'static str, Form);

/// A type, and the members that only it has.
struct Kind {
    name: &'static str,
    required: &'static [Member],
    optional: &'static [Member],
}

const fn kind(
    name: &'static str,
    required: &'static [Member],
    optional: &'static [Member],
) -> Kind {
    Kind { name, required, optional }
}

/// In the order of the protocol's table.
const KINDS: [Kind; 12] = [
    kind(
        "CHAT_TURN",
        &[("conversationId", Form::Hash), ("role", Form::OneOf(ROLES)), ("content", Form::Text)],
        &[
            ("contentBlobId", Form::BlobId),
            ("parentTurnHash", Form::Hash),
            ("agentRunId", Form::Hash),
            ("attachments", Form::Objects(ATTACHMENT, ATTACHMENTS_MAX)),
        ],
    ),
    kind(
        "AGENT_REQUEST",
        &[
            ("agentRunId", Form::Hash),
            ("conversationId", Form::Hash),
            ("prompt", Form::Text),
            ("toolsWhitelist", Form::Texts),
            ("maxFee", Form::Amount),
            ("maxSteps", Form::Integer),
        ],
        &[("promptBlobId", Form::BlobId), ("modelHint", Form::Text)],
    ),
    kind(
        "AGENT_CLAIM",
        &[
            ("agentRunId", Form::Hash),
            ("minerAddress", Form::Address),
            ("modelInfo", Form::Text),
            ("hardwareTier", Form::OneOf(HARDWARE_TIERS)),
        ],
        &[],
    ),
    kind(
        "AGENT_STEP",
        &[
            ("agentRunId", Form::Hash),
            ("stepIndex", Form::Integer),
            ("outputTokens", Form::Integer),
            ("outputHash", Form::Hash),
        ],
        &[
            ("thoughtBlobId", Form::BlobId),
            ("toolCalls", Form::Objects(TOOL_CALL, TOOL_CALLS_MAX)),
            ("outputBlobId", Form::BlobId),
        ],
    ),
    kind(
        "AGENT_FINISH",
        &[
            ("agentRunId", Form::Hash),
            ("totalTokensOut", Form::Integer),
            ("status", Form::OneOf(FINISH_STATUSES)),
            ("minerReward", Form::Amount),
            ("userRefund", Form::Amount),
            ("networkFee", Form::Amount),
        ],
        &[("finalAnswerInline", Form::Text), ("finalAnswerBlobId", Form::BlobId)],
    ),
    kind("AGENT_CANCEL", &[("agentRunId", Form::Hash)], &[]),
    kind(
        "TRANSFER",
        &[("to", Form::Address), ("amount", Form::Amount), ("fee", Form::Amount)],
        &[],
    ),
    kind(
        "MINER_REGISTER",
        &[("name", Form::Text), ("capabilities", Form::Texts), ("modelInfo", Form::Text)],
        &[],
    ),
    kind(
        "SOCIAL_BLOB_INIT",
        &[
            ("blobId", Form::BlobId),
            ("contentType", Form::Text),
            ("totalBytes", Form::Integer),
            ("totalChunks", Form::Integer),
            ("contentHash", Form::Hash),
        ],
        &[],
    ),
    kind(
        "SOCIAL_BLOB_CHUNK",
        &[("blobId", Form::BlobId), ("chunkIndex", Form::Integer), ("chunkDataBase64", Form::Text)],
        &[],
    ),
    kind("SOCIAL_BLOB_FINALIZE", &[("blobId", Form::BlobId)], &[]),
    kind(
        "VALIDATOR_VOTE",
        &[("candidateKey", Form::Key), ("power", Form::Integer), ("expiresAt", Form::Integer)],
        &[],
    ),
];

const ATTACHMENT: &[Member] = &[("type", Form::OneOf(ATTACHMENT_TYPES)), ("blobId", Form::BlobId)];

const TOOL_CALL: &[Member] = &[
    ("name", Form::Text),
    ("argsHash", Form::Hash),
    ("resultHash", Form::Hash),
    ("durationMs", Form::Integer),
    ("ok", Form::Boolean),
];

/// What every transaction has beside `type`.
const COMMON: &[Member] = &[
    ("from", Form::Address),
    ("nonce", Form::Integer),
    ("timestamp", Form::Integer),
    ("publicKey", Form::Key),
];

/// What every transaction may have.
const MAYBE: &[Member] =
    &[("chainId", Form::Text), ("hash", Form::Hash), ("signature", Form::Signature)];

impl Form {
    fn schema(self, generator: &mut SchemaGenerator) -> Value {
        match self {
            Self::Address => generator.subschema_for::<AddressText>().to_value(),
            Self::Amount => generator.subschema_for::<AmountText>().to_value(),
            Self::BlobId => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$" }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Hash => generator.subschema_for::<HashText>().to_value(),
            Self::Integer => json!({ "type": "integer", "minimum": 0, "maximum": INTEGER_MAX }),
            Self::Key => generator.subschema_for::<PublicKeyText>().to_value(),
            Self::Signature => generator.subschema_for::<SignatureText>().to_value(),
            Self::Text => json!({ "type": "string" }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::OneOf(words) => json!({ "type": "string", "enum": words }),
            Self::Objects(members, most) => {
                let properties = properties(members, generator);
                let required = names(members);
                let item = json!({
                    "type": "object", "required": required, "properties": properties,
                });
                json!({ "type": "array", "maxItems": most, "items": item })
            }
        }
    }
}

fn properties(members: &[Member], generator: &mut SchemaGenerator) -> Map<String, Value> {
    members.iter().map(|(name, form)| ((*name).to_owned(), form.schema(generator))).collect()
}

fn names(members: &[Member]) -> Vec<&'static str> {
    members.iter().map(|(name, _)| *name).collect()
}

impl Kind {
    fn schema(&self, generator: &mut SchemaGenerator) -> Value {
        let Self { name, required, optional } = *self;
        let mut all = Map::from_iter([("type".to_owned(), json!({ "const": name }))]);
        for members in [COMMON, required, optional, MAYBE] {
            all.extend(properties(members, generator));
        }
        let needed = [COMMON, required].concat();
        let needed: Vec<_> = std::iter::once("type").chain(names(&needed)).collect();
        json!({ "type": "object", "required": needed, "properties": all })
    }
}

/// A schema that says by the member `type` which one of the kinds' holds. Theirs are defined on
/// the way.
fn one_of_the_kinds(generator: &mut SchemaGenerator) -> Schema {
    // In order of names, whatever order a map keeps.
    let mut mapping = BTreeMap::new();
    for kind in &KINDS {
        let schema = kind.schema(generator);
        generator.definitions_mut().insert(kind.name.to_owned(), schema);
        let path = generator.settings().definitions_path.trim_end_matches('/');
        mapping.insert(kind.name, format!("#{path}/{}", kind.name));
    }
    let any: Vec<Value> = mapping.values().map(|place| json!({ "$ref": place })).collect();
    json_schema!({
        "type": "object",
        "oneOf": any,
        "discriminator": { "propertyName": "type", "mapping": mapping },
    })
}

#[cfg(test)]
mod tests;
