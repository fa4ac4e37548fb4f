//! What is asked of calls, and the randomness that their members are drawn with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::vrf::Proof;
use types::{Address, Hash, PublicKey};

use crate::wire::{AddressText, HashText, PublicKeyText, VrfProofText};

/// Which calls to list; conditions that are given must all hold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallQuery {
    /// Of this agent.
    #[serde(default)]
    pub agent_id: Option<HashText>,
    /// Who asked.
    #[serde(default)]
    pub requester: Option<AddressText>,
    /// Who was drawn, for either round.
    #[serde(default)]
    pub member: Option<AddressText>,
    /// The status now.
    #[serde(default)]
    pub status: Option<String>,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WaitUntil {
    /// The answer is fixed, if nobody appeals, or there will be none.
    #[default]
    Decided,
    /// All of its money has moved.
    Settled,
}

/// What to wait for, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallWaitOptions {
    /// `decided` if not given.
    #[serde(default)]
    pub until: Option<WaitUntil>,
    /// Milliseconds, at most 60,000; 30,000 if not given.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// A member's answer, to be hidden.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommitmentQuery {
    /// The call.
    pub call_id: HashText,
    /// The round that the member was drawn for, 0 or 1.
    pub round: u64,
    /// The member.
    pub member: AddressText,
    /// What makes the commitment unguessable.
    pub salt: HashText,
    /// `success`, `failure` or `unable`.
    pub outcome: String,
    /// SHA-256 of the result's bytes; of no bytes where there are none.
    pub result_hash: HashText,
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Units of fuel that were used.
    pub fuel: u64,
    /// SHA-256 of what has to be kept to do the work again.
    pub receipt_hash: HashText,
}

/// The randomness of a block, with what is needed to check it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RandomnessView {
    /// The block's index.
    pub height: u64,
    /// The block.
    #[schemars(with = "HashText")]
    pub block_hash: Hash,
    /// The randomness: SHA-256 of what the function gives.
    #[schemars(with = "HashText")]
    pub value: Hash,
    /// The proof of the verifiable random function.
    #[schemars(with = "VrfProofText")]
    pub proof: Proof,
    /// The block's proposer.
    #[schemars(with = "AddressText")]
    pub proposer: Address,
    /// The proposer's key, which made the proof.
    #[schemars(with = "PublicKeyText")]
    pub public_key: PublicKey,
    /// The text that was proved.
    pub input: String,
}
