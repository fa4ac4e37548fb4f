//! The chain as a whole, its money, its validators and peers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use types::params::{
    AGENT_NETWORK_FEE_PER_STEP, AGENT_REWARD_PER_TOKEN, BLOB_CHUNK_BYTES, CHAT_TURN_FEE,
    INLINE_TEXT_BYTES_MAX, MAX_STEPS_MAX,
};
use types::{Address, Amount, Hash, Params, PublicKey, Signature, Supply};

use super::{AddressText, AmountText, HashText, PublicKeyText, SignatureText};
use crate::ports::{
    Equivocation, ForkState, ForkVoter, ForkVotes, Identity, NextRules, Peer, PunishedKey,
    Validator, ValidatorVote,
};

/// What `ombra_chainInfo` answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChainInfo {
    /// The chain's name.
    pub chain_id: String,
    /// The rules that the node follows.
    pub protocol: String,
    /// The hash of genesis.
    #[schemars(with = "HashText")]
    pub genesis_hash: Hash,
    /// The index of the latest block; 0 before the first one.
    pub height: u64,
    /// The hash of the latest block; the genesis hash before the first one.
    #[schemars(with = "HashText")]
    pub latest_block_hash: Hash,
    /// The time of the latest block.
    pub latest_block_time: u64,
    /// The first block that the node has: 1, unless it began with a snapshot.
    pub earliest_block: u64,
    /// The first block whose events the node has, so that subscriptions can begin there: `earliestBlock`,
    /// unless an older version of the program committed later blocks.
    pub events_from: u64,
    /// Whether the node is behind the chain.
    pub syncing: bool,
    /// How many peers are connected.
    pub peers: usize,
    /// How many validators there are.
    pub validators: usize,
    /// From which heights forks are active.
    pub forks: Forks,
    /// The parameters that genesis set.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub params: Params,
    /// The program's version.
    pub version: String,
}

/// From which heights forks are active.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forks {
    /// CHAT_TURN and AGENT transactions.
    pub v6: u64,
    /// VALIDATOR_VOTE; absent on a chain whose validators never change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validator_vote: Option<u64>,
    /// Fees, bonds and votes on rules; absent while neither genesis nor the validators' votes
    /// (`ombra_forks`) have fixed the height.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v7: Option<u64>,
    /// The agent market; absent while neither genesis nor the validators' votes have fixed the height.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v8: Option<u64>,
}

impl From<types::Forks> for Forks {
    fn from(forks: types::Forks) -> Self {
        let types::Forks { v6, validator_vote, v7, v8 } = forks;
        Self { v6, validator_vote, v7, v8 }
    }
}

/// What `ombra_forks` answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForksView {
    /// How many blocks ahead of the vote that fixes it a fork's height must be at least.
    pub delay_blocks: u64,
    /// The power of all validators of the next block.
    pub total_power: String,
    /// The blocks whose votes the node has not counted yet, because it began with a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<BlockRange>,
    /// The forks.
    pub forks: Vec<ForkView>,
}

/// Blocks from one to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockRange {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}

/// A fork that can be voted for, or was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkView {
    /// Its name.
    pub fork: String,
    /// Whether this program has its rules; one that does not know a fixed fork stops before its height.
    pub known: bool,
    /// Its height; absent while none is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<FixedForkView>,
    /// The votes by the height that they are for, in order of heights.
    pub votes: Vec<ForkVotesView>,
}

/// A height that is fixed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedForkView {
    /// The first block in which the fork's rules hold.
    pub height: u64,
    /// The block with which that was fixed.
    pub block_index: u64,
}

/// The votes for one height.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkVotesView {
    /// The height.
    pub height: u64,
    /// The power of those who vote for it.
    pub power: String,
    /// Who votes for it, in order of addresses.
    pub voters: Vec<ForkVoterView>,
}

/// A validator that votes for a fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkVoterView {
    /// The validator.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// Its power in the set of the next block.
    pub power: u64,
    /// The block with the vote.
    pub block_index: u64,
}

impl ForksView {
    /// The view of what was counted.
    #[must_use]
    pub fn new(votes: ForkVotes, delay_blocks: u64) -> Self {
        let ForkVotes { forks, total_power, missing } = votes;
        let missing = missing.map(|(from, to)| BlockRange { from, to });
        let forks = forks.into_iter().map(ForkView::from).collect();
        Self { delay_blocks, total_power: total_power.to_string(), missing, forks }
    }
}

impl From<ForkState> for ForkView {
    fn from(state: ForkState) -> Self {
        let ForkState { fork, is_known, fixed, votes } = state;
        let fixed = fixed.map(|(height, block_index)| FixedForkView { height, block_index });
        let mut by_height: BTreeMap<u64, Vec<ForkVoterView>> = BTreeMap::new();
        for ForkVoter { address, power, height, block_index } in votes {
            let voters = by_height.entry(height).or_default();
            voters.push(ForkVoterView { address, power, block_index });
        }
        let votes = by_height.into_iter().map(|(height, voters)| {
            let powers = voters.iter().map(|voter| u128::from(voter.power));
            let power = powers.fold(0, u128::saturating_add).to_string();
            ForkVotesView { height, power, voters }
        });
        Self { fork, known: is_known, fixed, votes: votes.collect() }
    }
}

/// Constants and parameters that set prices and limits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeeSchedule {
    /// Earned per output token.
    #[schemars(with = "AmountText")]
    pub agent_reward_per_token: Amount,
    /// Burned per AGENT_STEP.
    #[schemars(with = "AmountText")]
    pub agent_network_fee_per_step: Amount,
    /// Burned per CHAT_TURN.
    #[schemars(with = "AmountText")]
    pub chat_turn_fee: Amount,
    /// Burned per SOCIAL_BLOB_CHUNK.
    #[schemars(with = "AmountText")]
    pub blob_fee_per_chunk: Amount,
    /// The least escrow of an AGENT_REQUEST.
    #[schemars(with = "AmountText")]
    pub min_max_fee: Amount,
    /// The least fee of a TRANSFER.
    #[schemars(with = "AmountText")]
    pub min_transfer_fee: Amount,
    /// The most steps of a run.
    pub max_steps: u64,
    /// The most output tokens of a step.
    pub max_output_tokens_per_step: u64,
    /// Bytes of a prompt, a turn or an inline answer.
    pub max_inline_text_bytes: usize,
    /// Bytes of every chunk of a blob but the last.
    pub blob_chunk_bytes: u64,
    /// The largest blob.
    pub max_blob_bytes: u64,
    /// The largest transaction as canonical signed JSON.
    pub max_tx_bytes: u32,
    /// The same for SOCIAL_BLOB_CHUNK.
    pub max_chunk_tx_bytes: u32,
    /// How long a run waits for a claim, in milliseconds.
    pub pending_ttl_ms: u64,
    /// How long a claimed run waits for its first step, in milliseconds.
    pub claim_ttl_ms: u64,
    /// How long a running run waits for its next step, in milliseconds.
    pub step_ttl_ms: u64,
    /// From v7 on: the base fee of the next block, in micro-OMBRA per KiB. Absent while v7 is not
    /// active, as the members below.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub base_fee: Option<Amount>,
    /// From v7 on: the lowest base fee.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub base_fee_floor: Option<Amount>,
    /// From v7 on: burned by the first MINER_REGISTER of an account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub register_fee: Option<Amount>,
    /// From v7 on: burned by a SOCIAL_BLOB_INIT.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub blob_init_fee: Option<Amount>,
    /// From v7 on: the units of work that a block may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_block_work: Option<u64>,
}

impl From<&NextRules> for FeeSchedule {
    fn from(rules: &NextRules) -> Self {
        let NextRules { height: _, v7_from: _, v8_from: _, params, base_fee } = rules;
        let is_v7 = base_fee.is_some();
        let from_v7 = |amount| Some(amount).filter(|_| is_v7);
        Self {
            agent_reward_per_token: Amount::new(AGENT_REWARD_PER_TOKEN),
            agent_network_fee_per_step: Amount::new(AGENT_NETWORK_FEE_PER_STEP),
            chat_turn_fee: CHAT_TURN_FEE,
            blob_fee_per_chunk: params.blob_fee_per_chunk,
            min_max_fee: params.min_max_fee,
            min_transfer_fee: Amount::ZERO,
            max_steps: MAX_STEPS_MAX,
            max_output_tokens_per_step: params.max_output_tokens_per_step,
            max_inline_text_bytes: INLINE_TEXT_BYTES_MAX,
            blob_chunk_bytes: BLOB_CHUNK_BYTES,
            max_blob_bytes: params.max_blob_bytes,
            max_tx_bytes: params.max_tx_bytes,
            max_chunk_tx_bytes: params.max_chunk_tx_bytes,
            pending_ttl_ms: params.pending_ttl_ms,
            claim_ttl_ms: params.claim_ttl_ms,
            step_ttl_ms: params.step_ttl_ms,
            base_fee: base_fee.map(Amount::new),
            base_fee_floor: from_v7(Amount::new(params.base_fee_floor)),
            register_fee: from_v7(params.register_fee),
            blob_init_fee: from_v7(params.blob_init_fee),
            max_block_work: Some(params.max_block_work).filter(|_| is_v7),
        }
    }
}

/// The money of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupplyView {
    /// Σ balances in genesis.
    #[schemars(with = "AmountText")]
    pub genesis: Amount,
    /// Σ block rewards.
    #[schemars(with = "AmountText")]
    pub minted: Amount,
    /// Σ burned fees.
    #[schemars(with = "AmountText")]
    pub burned: Amount,
    /// Σ escrows of runs that have not ended, and of rewards that are held.
    #[schemars(with = "AmountText")]
    pub escrowed: Amount,
    /// Σ bonds of miners; absent if there are none.
    #[serde(skip_serializing_if = "is_nothing")]
    #[schemars(with = "Option<AmountText>")]
    pub bonded: Amount,
    /// Σ of what was taken out of bonds and is not paid out yet; absent if there is nothing.
    #[serde(skip_serializing_if = "is_nothing")]
    #[schemars(with = "Option<AmountText>")]
    pub unbonding: Amount,
    /// What accounts hold.
    #[schemars(with = "AmountText")]
    pub circulating: Amount,
}

/// Whether there is nothing to tell.
const fn is_nothing(amount: &Amount) -> bool {
    amount.is_zero()
}

impl SupplyView {
    /// The view; none if the counters contradict each other.
    #[must_use]
    pub fn new(supply: &Supply) -> Option<Self> {
        let circulating = supply.circulating()?;
        let Supply { genesis, minted, burned, escrowed, bonded, unbonding } = *supply;
        Some(Self { genesis, minted, burned, escrowed, bonded, unbonding, circulating })
    }
}

/// A validator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidatorView {
    /// Its account.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// Its key.
    #[schemars(with = "PublicKeyText")]
    pub public_key: PublicKey,
    /// Its voting power.
    pub power: u64,
    /// Blocks that it proposed.
    pub proposed: u64,
    /// Rounds in which it was to propose and nothing was decided.
    pub missed: u64,
    /// Its votes for changes of the set that count now, in order of candidates.
    pub votes: Vec<ValidatorVoteView>,
    /// Pairs of messages in which this node saw it contradict itself.
    pub equivocations: u64,
    /// The last of these pairs, oldest first; at most 16.
    pub evidence: Vec<EquivocationView>,
}

/// The key of a validator that was punished: it never has power again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PunishedKeyView {
    /// The key.
    #[schemars(with = "PublicKeyText")]
    pub public_key: PublicKey,
    /// The account that has it.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The block with the evidence against it.
    pub punished_at: u64,
}

impl From<PunishedKey> for PunishedKeyView {
    fn from(punished: PunishedKey) -> Self {
        let PunishedKey { key, punished_at } = punished;
        Self { public_key: key, address: key.address(), punished_at }
    }
}

/// An open vote for a change of the validator set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidatorVoteView {
    /// The key of the validator that shall be added, changed or removed.
    #[schemars(with = "PublicKeyText")]
    pub candidate_key: PublicKey,
    /// The power that it shall have; 0 removes it.
    pub power: u64,
    /// The last block time at which the vote counts.
    pub expires_at: u64,
}

/// Two signed messages of one validator of which an honest one sends at most one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EquivocationView {
    /// The height that was being decided.
    pub height: u64,
    /// The round.
    pub round: u32,
    /// `proposal`, `prevote` or `precommit`.
    pub kind: &'static str,
    /// The two messages.
    pub messages: Vec<SignedChoiceView>,
}

/// What one signed message chose.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedChoiceView {
    /// The block; absent for nil.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub block_hash: Option<Hash>,
    /// A proposal's valid round; −1 for none, and for votes.
    pub valid_round: i64,
    /// The signature over the message.
    #[schemars(with = "SignatureText")]
    pub signature: Signature,
}

impl From<Equivocation> for EquivocationView {
    fn from(pair: Equivocation) -> Self {
        let Equivocation { height, round, kind, messages } = pair;
        let messages = messages.into_iter().map(|(block_hash, valid_round, signature)| {
            SignedChoiceView { block_hash, valid_round, signature }
        });
        Self { height, round, kind, messages: messages.collect() }
    }
}

impl From<ValidatorVote> for ValidatorVoteView {
    fn from(vote: ValidatorVote) -> Self {
        let ValidatorVote { candidate_key, power, expires_at } = vote;
        Self { candidate_key, power, expires_at }
    }
}

impl From<Validator> for ValidatorView {
    fn from(validator: Validator) -> Self {
        let Validator {
            address,
            public_key,
            power,
            proposed,
            missed,
            votes,
            equivocations,
            evidence,
        } = validator;
        let votes = votes.into_iter().map(ValidatorVoteView::from).collect();
        let evidence = evidence.into_iter().map(EquivocationView::from).collect();
        Self { address, public_key, power, proposed, missed, votes, equivocations, evidence }
    }
}

/// This node in the network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetInfo {
    /// Its peer id.
    pub peer_id: String,
    /// Addresses that it listens on.
    pub listen_addresses: Vec<String>,
    /// How many peers are connected.
    pub peers: usize,
}

impl NetInfo {
    /// The view of this node with `peers` peers.
    #[must_use]
    pub fn new(identity: Identity, peers: usize) -> Self {
        let Identity { peer_id, listen_addresses } = identity;
        Self { peer_id, listen_addresses, peers }
    }
}

/// A connected peer.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeerView {
    /// Its peer id.
    pub peer_id: String,
    /// The address that it is reached at.
    pub address: String,
    /// The height that it told last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u64>,
    /// The last round trip, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// How it behaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// `inbound` or `outbound`.
    pub direction: &'static str,
}

impl From<Peer> for PeerView {
    fn from(peer: Peer) -> Self {
        let Peer { peer_id, address, height, latency_ms, score, is_inbound } = peer;
        let direction = if is_inbound { "inbound" } else { "outbound" };
        Self { peer_id, address, height, latency_ms, score, direction }
    }
}
