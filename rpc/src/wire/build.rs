//! What a builder accepts in addition to the fields of a kind, and what it returns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::Hash;

use super::{AmountText, HashText, PublicKeyText, SignatureText, UnsignedTx};

/// The sender, and the members that every transaction has.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildEnvelope {
    /// The sender's address. The builder writes it into the transaction in the form that you give.
    pub from: String,
    /// The sender's public key.
    pub public_key: PublicKeyText,
    /// The nonce. If absent, the account's `pendingNonce`.
    #[serde(default)]
    pub nonce: Option<u64>,
    /// The timestamp in milliseconds since 1970. If absent, the current time.
    #[serde(default)]
    pub timestamp: Option<u64>,
    /// The id of the chain. A transaction with this member is valid only on that chain.
    #[serde(default)]
    pub chain_id: Option<String>,
    /// The highest base fee at which a block may include the transaction, in micro-OMBRA per KiB.
    /// Has an effect from v7 on.
    #[serde(default)]
    pub max_base_fee: Option<AmountText>,
    /// The tip for the block's proposer. Has an effect from v7 on. A TRANSFER states its tip in
    /// `fee` instead.
    #[serde(default)]
    pub tip: Option<AmountText>,
}

/// A built transaction that is not signed yet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Built {
    /// The unsigned transaction object. Pass it to `ombra_sendSigned` together with the signature.
    #[schemars(with = "UnsignedTx")]
    pub tx: Box<RawValue>,
    /// The exact text that is hashed.
    pub payload: String,
    /// The SHA-256 of `payload`.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The 64 characters to sign.
    pub signing_message: String,
}

/// A built transaction and its signature, made outside the node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignedParts {
    /// The `tx` that the builder returned.
    #[schemars(with = "UnsignedTx")]
    pub tx: Box<RawValue>,
    /// The signature over the 64 characters of `signingMessage`.
    pub signature: SignatureText,
}
