//! The numbers of the protocol: the published constants and the parameters that genesis sets.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::ParseTextError;
use crate::{Amount, Hash};

/// Micro-OMBRA earned per output token.
pub const AGENT_REWARD_PER_TOKEN: u64 = 1;
/// Micro-OMBRA burned per AGENT_STEP.
pub const AGENT_NETWORK_FEE_PER_STEP: u64 = 100;
/// Micro-OMBRA burned per CHAT_TURN.
pub const CHAT_TURN_FEE: Amount = Amount::new(100);
/// Bytes of UTF-8 in a prompt, a turn or an inline answer.
pub const INLINE_TEXT_BYTES_MAX: usize = 16_384;
/// The most steps that a run may allow.
pub const MAX_STEPS_MAX: u64 = 200;
/// Bytes in every chunk of a blob but the last.
pub const BLOB_CHUNK_BYTES: u64 = 400_000;
/// How deep arrays and objects may be nested in a transaction.
pub const JSON_DEPTH_MAX: usize = 8;
/// The most validators that a set may have. Votes of all go to all, so this bounds the messages of a
/// round (about `2 n^2`).
pub const VALIDATORS_MAX: usize = 64;
/// The most voting power of one validator, so that sums and thirds of a set cannot overflow.
pub const POWER_MAX: u64 = 1 << 48;
/// The most open votes of one validator: enough to replace a whole set at once.
pub const VALIDATOR_VOTES_MAX: usize = 64;
/// How long a vote for a change of the validator set may count: 30 days, in milliseconds.
pub const VALIDATOR_VOTE_TTL_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;
/// How many blocks a vote for a fork counts, and how far ahead of it the fork's height may be: so
/// what was voted before the last million blocks decides nothing.
pub const FORK_VOTE_BLOCKS: u64 = 1_000_000;
/// The most blocks that `forkDelayBlocks` may ask for: the rest of [`FORK_VOTE_BLOCKS`] is the time
/// in which validators can agree on a height.
pub const FORK_DELAY_BLOCKS_MAX: u64 = 500_000;
/// The most bytes that members may take in a transaction from v7 on that neither its kind nor the
/// envelope knows.
pub const UNKNOWN_BYTES_MAX: usize = 256;
/// The highest base fee, in micro-OMBRA per KiB.
pub const BASE_FEE_MAX: u64 = 1_000_000_000;
/// What a step, a claim and the end of a run may have without an inclusion fee, in bytes; and what a
/// request pays for its run's claim and settlement.
pub const RUN_BYTES: u64 = 2_048;
/// The most offers of one miner.
pub const OFFERS_PER_MINER_MAX: u32 = 64;
/// The most calls at which a miner can offer to work at once for an executor.
pub const OFFER_CAPACITY_MAX: u64 = 64;
/// The largest integer in a transaction: 2^53−1.
pub const INTEGER_MAX: u64 = 9_007_199_254_740_991;

/// Consensus parameters of a chain, fixed by genesis (docs/protocol.md, the rules marked `[node]`).
/// Every duration is in milliseconds, every size in bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Params {
    /// The least escrow of an AGENT_REQUEST.
    pub min_max_fee: Amount,
    /// How long a run may wait for a claim.
    pub pending_ttl_ms: u64,
    /// How long a claimed run may wait for its first step.
    pub claim_ttl_ms: u64,
    /// How long a running run may wait for its next step.
    pub step_ttl_ms: u64,
    /// How often a run is opened again after a miner let its claim lapse.
    pub max_reopens: u32,
    /// The most deadlines that one block sweeps.
    pub max_expiries_per_block: u32,
    /// The most `outputTokens` of one AGENT_STEP.
    pub max_output_tokens_per_step: u64,
    /// The largest transaction, as canonical signed JSON.
    pub max_tx_bytes: u32,
    /// The same for SOCIAL_BLOB_CHUNK.
    pub max_chunk_tx_bytes: u32,
    /// The largest blob.
    pub max_blob_bytes: u64,
    /// What each SOCIAL_BLOB_CHUNK burns.
    pub blob_fee_per_chunk: Amount,
    /// How long a blob may stay unfinished.
    pub blob_ttl_ms: u64,
    /// Credited to the proposer of each block.
    pub block_reward: Amount,
    /// The longest time without a block.
    pub heartbeat_ms: u64,
    /// The shortest time between blocks.
    pub min_block_interval_ms: u64,
    /// Payloads and signatures in one block.
    pub max_block_bytes: u32,
    /// How far a timestamp may be ahead of a node's clock.
    pub max_clock_skew_ms: u64,
    /// Whether every transaction must name the chain.
    pub require_chain_id: bool,
    /// How many blocks ahead of its last vote the height of a fork must be at least.
    pub fork_delay_blocks: u64,
    /// From v7 on: the lowest base fee, in micro-OMBRA per KiB.
    pub base_fee_floor: u64,
    /// From v7 on: the units of work that one block may take.
    pub max_block_work: u64,
    /// From v7 on: what the first MINER_REGISTER of an account burns.
    pub register_fee: Amount,
    /// From v7 on: what a SOCIAL_BLOB_INIT burns.
    pub blob_init_fee: Amount,
    /// From v7 on: what refusing a reward burns of the submitter's balance.
    pub refuse_stake: Amount,
    /// From v7 on: how long what was taken out of a bond waits before it is paid out.
    pub unbond_ms: u64,
    /// From v7 on: how many blocks old a fault of a validator may be that EVIDENCE proves.
    pub evidence_age_blocks: u64,
    /// From v7 on: how far the clocks of two honest validators may be apart.
    pub precision_ms: u64,
    /// From v7 on: how long a proposal may take to the other validators in the first round of a height.
    pub message_delay_ms: u64,
    /// From v8 on: the least bond with which a miner may offer, be drawn and judge.
    pub min_bond: Amount,
    /// From v8 on: burned of the bond of a member that committed to nothing.
    pub absence_penalty: Amount,
    /// From v8 on: burned of the bond of a member that did not reveal what it had committed to.
    pub unrevealed_penalty: Amount,
    /// From v8 on: the least that a member's wrong answer to an appealable call burns of its bond.
    pub dissent_penalty: Amount,
    /// From v8 on: burned of the bond of a member whose answer is not that of the deciding group.
    pub outside_penalty: Amount,
    /// From v8 on: burned of a call's escrow for each reveal.
    pub reveal_fee: Amount,
    /// From v8 on: how long members may reveal.
    pub reveal_ms: u64,
    /// From v8 on: how long a decided call may be appealed.
    pub appeal_ms: u64,
    /// From v8 on: how many offers for one executor count, those of the largest bonds.
    pub offers_per_executor_max: u32,
    /// From v8 on: what an AGENT_REGISTER burns.
    pub agent_register_fee: Amount,
    /// From v8 on: what it burns for each byte of metadata.
    pub agent_register_fee_per_byte: Amount,
    /// From v8 on: the highest royalty of an agent.
    pub royalty_max: Amount,
    /// From v8 on: the most tokens that a call may let a member read.
    pub limit_input_tokens: u64,
    /// From v8 on: the most tokens that a call may let a member write.
    pub limit_output_tokens: u64,
    /// From v8 on: the most fuel that a call may let a member's program use.
    pub limit_fuel: u64,
    /// From v8 on: the models whose answers were shown to be the same on every processor.
    pub slashable_models: Models,
}

/// Some models, by the hashes of their manifests.
///
/// As text: `all`, `none`, or hashes in order with commas between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Models {
    /// Every model: what development chains say.
    All,
    /// These.
    Listed(BTreeSet<Hash>),
}

/// The manifest of the model inside the process, whose answers and scores were seen to be the same on
/// every kind of processor that it was tried on (docs/model.md section 5.1).
pub const EMBEDDED_MODEL: Hash = Hash::new([
    0x27, 0xec, 0x61, 0x4e, 0x49, 0x42, 0xca, 0x4e, 0xe3, 0x43, 0x68, 0x34, 0xa6, 0xdc, 0x73, 0x95,
    0x98, 0x4b, 0x7b, 0xa7, 0x97, 0x08, 0x51, 0xd9, 0x50, 0x0e, 0xea, 0x57, 0x6f, 0xac, 0xb5, 0x3c,
]);

impl Models {
    /// The most models that genesis may list.
    pub const LISTED_MAX: usize = 64;

    /// None.
    pub const NONE: Self = Self::Listed(BTreeSet::new());

    /// Whether a model is among them.
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
