//! The text forms of the protocol, with their JSON schemas.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use types::agent::ExecutorId;
use types::vrf::Proof;
use types::{Address, Amount, Hash, PublicKey, Signature};

/// A hash, run id or conversation id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HashText(pub Hash);

/// An address in either written form. The node prints 40 hex characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AddressText(pub Address);

/// An amount of micro-OMBRA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AmountText(pub Amount);

/// An Ed25519 public key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PublicKeyText(pub PublicKey);

/// An Ed25519 signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SignatureText(pub Signature);

/// The id of an executor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExecutorText(pub ExecutorId);

/// A proof of the verifiable random function that produces a block's randomness.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
pub struct VrfProofText(pub Proof);

fn hex_schema(characters: u32) -> Schema {
    json_schema!({ "type": "string", "pattern": format!("^[0-9a-f]{{{characters}}}$") })
}

impl JsonSchema for HashText {
    fn schema_name() -> Cow<'static, str> {
        "Hash".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        hex_schema(64)
    }
}

impl JsonSchema for AddressText {
    fn schema_name() -> Cow<'static, str> {
        "Address".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(ox)?[0-9a-f]{40}$" })
    }
}

impl JsonSchema for AmountText {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(0|[1-9][0-9]{0,19})$",
            "description": "An amount in micro-OMBRA, at most 18446744073709551615."
        })
    }
}

impl JsonSchema for PublicKeyText {
    fn schema_name() -> Cow<'static, str> {
        "PublicKey".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        hex_schema(64)
    }
}

impl JsonSchema for SignatureText {
    fn schema_name() -> Cow<'static, str> {
        "Signature".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        hex_schema(128)
    }
}

impl JsonSchema for ExecutorText {
    fn schema_name() -> Cow<'static, str> {
        "Executor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(wasm-1|(wasm-1|model-1|container):[0-9a-f]{64})$"
        })
    }
}

impl JsonSchema for VrfProofText {
    fn schema_name() -> Cow<'static, str> {
        "VrfProof".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        hex_schema(160)
    }
}
