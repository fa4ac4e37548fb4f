//! What builders take beside the fields of a kind, and what they answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::Hash;

use super::{AmountText, HashText, PublicKeyText, SignatureText, UnsignedTx};

/// Who sends, and when.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildEnvelope {
    /// The sender's address, in the written form that shall stand in the transaction.
    pub from: String,
    /// The sender's key.
    pub public_key: PublicKeyText,
    /// The nonce; the pending one if not given.
    #[serde(default)]
    pub nonce: Option<u64>,
    /// Milliseconds since 1970; now if not given.
    #[serde(default)]
    pub timestamp: Option<u64>,
    /// Binds the transaction to this chain.
    #[serde(default)]
    pub chain_id: Option<String>,
    /// The highest base fee at which it may be included, in micro-OMBRA per KiB; from v7 on.
    #[serde(default)]
    pub max_base_fee: Option<AmountText>,
    /// What the block's proposer gets; from v7 on. A TRANSFER says it in `fee`.
    #[serde(default)]
    pub tip: Option<AmountText>,
}

/// A transaction that waits for its signature.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Built {
    /// The unsigned object: give it to `ombra_sendSigned` with the signature.
    #[schemars(with = "UnsignedTx")]
    pub tx: Box<RawValue>,
    /// The exact text that is hashed.
    pub payload: String,
    /// SHA-256 of the payload.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The 64 characters to sign.
    pub signing_message: String,
}

/// A built transaction with a signature that was made elsewhere.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignedParts {
    /// The `tx` of a builder's answer.
    #[schemars(with = "UnsignedTx")]
    pub tx: Box<RawValue>,
    /// Over the 64 characters of `signingMessage`.
    pub signature: SignatureText,
}
