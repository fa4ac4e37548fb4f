//! Queries about calls, and the randomness that draws their members.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::call::CallStatus;
use types::vrf::Proof;
use types::{Address, Hash, PublicKey};

use crate::error::RpcError;
use crate::ports::CallFilter;
use crate::wire::{AddressText, HashText, PublicKeyText, VrfProofText};

/// A filter for calls. A call must meet all conditions that you give.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallQuery {
    /// The agent that was called.
    #[serde(default)]
    pub agent_id: Option<HashText>,
    /// The account that requested the call.
    #[serde(default)]
    pub requester: Option<AddressText>,
    /// A miner that was drawn as a member in either round.
    #[serde(default)]
    pub member: Option<AddressText>,
    /// The current status of the call.
    #[serde(default)]
    pub status: Option<String>,
}

impl CallQuery {
    /// What is asked for, checked.
    ///
    /// # Errors
    /// That there is no such status.
    pub(crate) fn filter(&self) -> Result<CallFilter, RpcError> {
        let Self { agent_id, requester, member, status } = self;
        Ok(CallFilter {
            agent_id: agent_id.map(|id| id.0),
            requester: requester.map(|address| address.0),
            member: member.map(|address| address.0),
            status: status.as_deref().map(parse_status).transpose()?,
        })
    }
}

fn parse_status(word: &str) -> Result<CallStatus, RpcError> {
    CallStatus::parse(word).ok_or_else(|| {
        let words = CallStatus::ALL.map(CallStatus::as_str).join(", ");
        RpcError::invalid("status", word, format!("one of {words}"))
    })
}

/// What to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WaitUntil {
    /// The call is decided, or ended without an answer. An appeal can still change a decision.
    #[default]
    Decided,
    /// The call is settled: all of its money has been paid out, returned or burned.
    Settled,
}

/// What to wait for, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallWaitOptions {
    /// What to wait for. `decided` if absent.
    #[serde(default)]
    pub until: Option<WaitUntil>,
    /// How long to wait, in milliseconds: at most 60,000. 30,000 if absent.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// A member's answer, for which to compute the commitment.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommitmentQuery {
    /// The id of the call.
    pub call_id: HashText,
    /// The round for which the member was drawn: 0, or 1 after an appeal.
    pub round: u64,
    /// The address of the member.
    pub member: AddressText,
    /// The salt: a secret, random value.
    pub salt: HashText,
    /// The outcome: `success`, `failure` or `unable`.
    pub outcome: String,
    /// The SHA-256 of the result's bytes; of no bytes if there is no result.
    pub result_hash: HashText,
    /// The number of input tokens.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The units of fuel used.
    pub fuel: u64,
    /// The SHA-256 of `work` in the member's receipt, with which the work can be repeated.
    pub receipt_hash: HashText,
}

/// The randomness of a block, with the data to verify it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RandomnessView {
    /// The height of the block.
    pub height: u64,
    /// The hash of the block.
    #[schemars(with = "HashText")]
    pub block_hash: Hash,
    /// The randomness: the SHA-256 of the output of the verifiable random function.
    #[schemars(with = "HashText")]
    pub value: Hash,
    /// The proof of the verifiable random function.
    #[schemars(with = "VrfProofText")]
    pub proof: Proof,
    /// The address of the block's proposer.
    #[schemars(with = "AddressText")]
    pub proposer: Address,
    /// The proposer's public key, which made the proof.
    #[schemars(with = "PublicKeyText")]
    pub public_key: PublicKey,
    /// The text that was proved.
    pub input: String,
}
