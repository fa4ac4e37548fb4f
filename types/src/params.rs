//! The numbers of the protocol: the published constants and the parameters that genesis sets.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::ParseTextError;
use crate::{Amount, Hash};

/// The reward of a miner for each output token, in micro-OMBRA.
pub const AGENT_REWARD_PER_TOKEN: u64 = 1;
/// The amount that each AGENT_STEP burns, in micro-OMBRA.
pub const AGENT_NETWORK_FEE_PER_STEP: u64 = 100;
/// The amount that each CHAT_TURN burns.
pub const CHAT_TURN_FEE: Amount = Amount::new(100);
/// The most bytes of UTF-8 in a prompt, a turn or an inline answer.
pub const INLINE_TEXT_BYTES_MAX: usize = 16_384;
/// The largest `maxSteps` of a run.
pub const MAX_STEPS_MAX: u64 = 200;
/// The bytes in every chunk of a blob except the last.
pub const BLOB_CHUNK_BYTES: u64 = 400_000;
/// How deep arrays and objects may nest in a transaction.
pub const JSON_DEPTH_MAX: usize = 8;
/// The most validators in a set. Every validator sends its votes to all others, so this bounds the
/// messages of a round (about `2 n^2`).
pub const VALIDATORS_MAX: usize = 64;
/// The most voting power of one validator. It keeps sums and thirds of a set from overflowing.
pub const POWER_MAX: u64 = 1 << 48;
/// The most open votes of one validator: enough to replace a whole set at once.
pub const VALIDATOR_VOTES_MAX: usize = 64;
/// The longest time for which a vote for a change to the validator set counts: 30 days, in
/// milliseconds.
pub const VALIDATOR_VOTE_TTL_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;
/// The number of blocks for which a vote for a fork counts, and the most blocks by which the fork's
/// height may be ahead of the vote. Votes before the last million blocks therefore decide nothing.
pub const FORK_VOTE_BLOCKS: u64 = 1_000_000;
/// The largest `forkDelayBlocks`. The rest of [`FORK_VOTE_BLOCKS`] is the time in which validators
/// can agree on a height.
pub const FORK_DELAY_BLOCKS_MAX: u64 = 500_000;
/// The most bytes that members may take, from v7 on, that neither the kind nor the envelope
/// defines.
pub const UNKNOWN_BYTES_MAX: usize = 256;
/// The highest base fee, in micro-OMBRA per KiB.
pub const BASE_FEE_MAX: u64 = 1_000_000_000;
/// The number of bytes for which a step, a claim and the end of a run pay no inclusion fee, and for
/// which a request pays in addition to its own size.
pub const RUN_BYTES: u64 = 2_048;
/// The most offers of one miner.
pub const OFFERS_PER_MINER_MAX: u32 = 64;
/// The most calls that a miner can offer to work on at once for an executor.
pub const OFFER_CAPACITY_MAX: u64 = 64;
/// The largest integer in a transaction: 2^53−1.
pub const INTEGER_MAX: u64 = 9_007_199_254_740_991;

/// The consensus parameters of a chain, which genesis fixes (docs/protocol.md, the rules marked
/// `[node]`). Every duration is in milliseconds, and every size in bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// The minimum `maxFee` of an AGENT_REQUEST.
    pub min_max_fee: Amount,
    /// How long a run waits for a claim.
    pub pending_ttl_ms: u64,
    /// How long a claimed run waits for its first step.
    pub claim_ttl_ms: u64,
    /// How long a running run waits for its next step.
    pub step_ttl_ms: u64,
    /// How many times a run can be reopened after a claim has lapsed or the miner has given it up.
    pub max_reopens: u32,
    /// The most deadlines on which one block acts.
    pub max_expiries_per_block: u32,
    /// The largest `outputTokens` of an AGENT_STEP.
    pub max_output_tokens_per_step: u64,
    /// The size of the largest transaction, as canonical signed JSON.
    pub max_tx_bytes: u32,
    /// The size of the largest SOCIAL_BLOB_CHUNK, as canonical signed JSON.
    pub max_chunk_tx_bytes: u32,
    /// The size of the largest blob.
    pub max_blob_bytes: u64,
    /// The amount that each SOCIAL_BLOB_CHUNK burns.
    pub blob_fee_per_chunk: Amount,
    /// How long a blob may stay unfinished.
    pub blob_ttl_ms: u64,
    /// The reward that is credited to the proposer of each block.
    pub block_reward: Amount,
    /// The longest time without a block.
    pub heartbeat_ms: u64,
    /// The shortest time between blocks.
    pub min_block_interval_ms: u64,
    /// The most bytes of payloads and signatures in one block.
    pub max_block_bytes: u32,
    /// How far a timestamp may be ahead of a node's clock.
    pub max_clock_skew_ms: u64,
    /// Whether every transaction must have `chainId`.
    pub require_chain_id: bool,
    /// The minimum number of blocks between the last vote for a fork and the fork's height.
    pub fork_delay_blocks: u64,
    /// From v7 on: the lowest base fee, in micro-OMBRA per KiB.
    pub base_fee_floor: u64,
    /// From v7 on: the most units of work in one block.
    pub max_block_work: u64,
    /// From v7 on: the amount that the first MINER_REGISTER of an account burns.
    pub register_fee: Amount,
    /// From v7 on: the amount that a SOCIAL_BLOB_INIT burns.
    pub blob_init_fee: Amount,
    /// From v7 on: the amount of the submitter's balance that an AGENT_REFUSE burns.
    pub refuse_stake: Amount,
    /// From v7 on: how long the chain waits before it pays out money that was withdrawn from a
    /// bond.
    pub unbond_ms: u64,
    /// From v7 on: how many blocks may have passed since a validator's offense that EVIDENCE
    /// proves.
    pub evidence_age_blocks: u64,
    /// From v7 on: how far the clocks of two honest validators may differ.
    pub precision_ms: u64,
    /// From v7 on: how long a proposal may take to reach the other validators in the first round of
    /// a height.
    pub message_delay_ms: u64,
    /// From v8 on: the minimum bond of a miner in the market, to make offers and to be drawn.
    pub min_bond: Amount,
    /// From v8 on: the penalty for not committing.
    pub absence_penalty: Amount,
    /// From v8 on: the penalty for committing without revealing.
    pub unrevealed_penalty: Amount,
    /// From v8 on: the minimum penalty for a wrong answer to an appealable call.
    pub dissent_penalty: Amount,
    /// From v8 on: the penalty for an answer outside the deciding group.
    pub outside_penalty: Amount,
    /// From v8 on: the amount of a call's escrow that each reveal burns.
    pub reveal_fee: Amount,
    /// From v8 on: how long members have to reveal.
    pub reveal_ms: u64,
    /// From v8 on: how long a decided call can be appealed.
    pub appeal_ms: u64,
    /// From v8 on: how many offers for one executor count, those with the largest bonds.
    pub offers_per_executor_max: u32,
    /// From v8 on: the amount that an AGENT_REGISTER burns.
    pub agent_register_fee: Amount,
    /// From v8 on: the amount that an AGENT_REGISTER burns for each byte of metadata.
    pub agent_register_fee_per_byte: Amount,
    /// From v8 on: the highest royalty of an agent.
    pub royalty_max: Amount,
    /// From v8 on: the highest limit on input tokens that a call can have.
    pub limit_input_tokens: u64,
    /// From v8 on: the highest limit on output tokens that a call can have.
    pub limit_output_tokens: u64,
    /// From v8 on: the highest limit on fuel that a call can have.
    pub limit_fuel: u64,
    /// From v8 on: the models whose answers were shown to be the same on every processor. Only
    /// calls of agents that use no other models can be appealed.
    pub slashable_models: Models,
}

/// A set of models, by the hashes of their manifests.
///
/// As text: `all`, `none`, or the hashes in order, separated by commas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Models {
    /// Every model, as on development chains.
    All,
    /// These models.
    Listed(BTreeSet<Hash>),
}

/// The manifest of the embedded model, whose answers and scores were the same on every kind of
/// processor that was tried (docs/model.md section 5.1).
pub const EMBEDDED_MODEL: Hash = Hash::new([
    0x27, 0xec, 0x61, 0x4e, 0x49, 0x42, 0xca, 0x4e, 0xe3, 0x43, 0x68, 0x34, 0xa6, 0xdc, 0x73, 0x95,
    0x98, 0x4b, 0x7b, 0xa7, 0x97, 0x08, 0x51, 0xd9, 0x50, 0x0e, 0xea, 0x57, 0x6f, 0xac, 0xb5, 0x3c,
]);

impl Models {
    /// The most models that genesis may list.
    pub const LISTED_MAX: usize = 64;

    /// No model.
    pub const NONE: Self = Self::Listed(BTreeSet::new());

    /// Whether the set contains a model.
    #[must_use]
    pub fn contains(&self, manifest: &Hash) -> bool {
        match self {
            Self::All => true,
            Self::Listed(listed) => listed.contains(manifest),
        }
    }
}

impl fmt::Display for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str(ALL_MODELS),
            Self::Listed(listed) if listed.is_empty() => f.write_str(NO_MODELS),
            Self::Listed(listed) => {
                let texts: Vec<String> = listed.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(","))
            }
        }
    }
}

impl FromStr for Models {
    type Err = ParseTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            ALL_MODELS => return Ok(Self::All),
            NO_MODELS => return Ok(Self::NONE),
            _ => {}
        }
        let wrong = || {
            let expected = "all, none, or at most 64 hashes with commas between them";
            ParseTextError::new(expected, text)
        };
        let texts: Vec<&str> = text.split(',').collect();
        let listed: BTreeSet<Hash> = texts
            .iter()
            .map(|text| Hash::parse(text))
            .collect::<Result<_, _>>()
            .map_err(|_not_a_hash| wrong())?;
        let is_in_bounds = texts.len() <= Self::LISTED_MAX && listed.len() == texts.len();
        is_in_bounds.then_some(Self::Listed(listed)).ok_or_else(wrong)
    }
}

impl Serialize for Models {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Models {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

const ALL_MODELS: &str = "all";
const NO_MODELS: &str = "none";

impl Default for Params {
    fn default() -> Self {
        Self {
            min_max_fee: Amount::new(100),
            pending_ttl_ms: 900_000,
            claim_ttl_ms: 120_000,
            step_ttl_ms: 600_000,
            max_reopens: 3,
            max_expiries_per_block: 1_000,
            max_output_tokens_per_step: 131_072,
            max_tx_bytes: 131_072,
            max_chunk_tx_bytes: 786_432,
            max_blob_bytes: 16 * 1024 * 1024,
            blob_fee_per_chunk: Amount::new(100),
            blob_ttl_ms: 3_600_000,
            block_reward: Amount::ZERO,
            heartbeat_ms: 10_000,
            min_block_interval_ms: 200,
            max_block_bytes: 4 * 1024 * 1024,
            max_clock_skew_ms: 120_000,
            require_chain_id: false,
            fork_delay_blocks: 100_000,
            base_fee_floor: 10,
            max_block_work: 200_000,
            register_fee: Amount::new(10_000),
            blob_init_fee: Amount::new(1_000),
            refuse_stake: Amount::new(10_000),
            unbond_ms: 259_200_000,
            evidence_age_blocks: 6_048_000,
            precision_ms: 500,
            message_delay_ms: 2_000,
            min_bond: Amount::new(10_000_000),
            absence_penalty: Amount::new(10_000),
            unrevealed_penalty: Amount::new(100_000),
            dissent_penalty: Amount::new(1_000_000),
            outside_penalty: Amount::new(2_000),
            reveal_fee: Amount::new(200),
            reveal_ms: 20_000,
            appeal_ms: 120_000,
            offers_per_executor_max: 256,
            agent_register_fee: Amount::new(10_000),
            agent_register_fee_per_byte: Amount::new(10),
            royalty_max: Amount::new(1_000_000),
            limit_input_tokens: 262_144,
            limit_output_tokens: 65_536,
            limit_fuel: 100_000_000_000,
            slashable_models: Models::Listed([EMBEDDED_MODEL].into()),
        }
    }
}
