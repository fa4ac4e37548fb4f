//! The chain as a whole: its forks, fees, money, validators and peers.

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

/// The result of `ombra_chainInfo`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChainInfo {
    /// The id of the chain.
    pub chain_id: String,
    /// The name of the protocol that the node follows.
    pub protocol: String,
    /// The genesis hash, which identifies the chain.
    #[schemars(with = "HashText")]
    pub genesis_hash: Hash,
    /// The height of the latest block; 0 before the first block.
    pub height: u64,
    /// The hash of the latest block; the genesis hash before the first block.
    #[schemars(with = "HashText")]
    pub latest_block_hash: Hash,
    /// The time of the latest block, in milliseconds since 1970.
    pub latest_block_time: u64,
    /// The first block that the node has: 1, unless the node began with a snapshot.
    pub earliest_block: u64,
    /// The first block whose events the node has and from which a subscription can replay events.
    /// Equal to `earliestBlock`, unless an older version of the program committed later blocks.
    pub events_from: u64,
    /// Whether the node is behind the chain.
    pub syncing: bool,
    /// The number of connected peers.
    pub peers: usize,
    /// The number of validators.
    pub validators: usize,
    /// The heights from which forks are active.
    pub forks: Forks,
    /// The parameters that genesis set.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub params: Params,
    /// The version of the node's program.
    pub version: String,
}

/// The heights from which forks are active.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forks {
    /// The first height for CHAT_TURN and the AGENT types.
    pub v6: u64,
    /// The first height for VALIDATOR_VOTE. Absent on a chain whose validators never change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validator_vote: Option<u64>,
    /// The first height for fees, bonds and votes on forks and parameters. Absent as long as
    /// neither genesis nor the validators' votes (`ombra_forks`) have fixed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v7: Option<u64>,
    /// The first height for the agent market. Absent as long as neither genesis nor the validators'
    /// votes have fixed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v8: Option<u64>,
}

impl From<types::Forks> for Forks {
    fn from(forks: types::Forks) -> Self {
        let types::Forks { v6, validator_vote, v7, v8 } = forks;
        Self { v6, validator_vote, v7, v8 }
    }
}

/// The result of `ombra_forks`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForksView {
    /// The minimum number of blocks between the vote that fixes a fork's height and that height.
    pub delay_blocks: u64,
    /// The total voting power of the validators that decide the next block.
    pub total_power: String,
    /// The blocks whose votes the node has not counted yet because it began with a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<BlockRange>,
    /// The forks that validators can vote for, or have voted for.
    pub forks: Vec<ForkView>,
}

/// A range of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockRange {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
}

/// A fork that validators can vote for, or have voted for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkView {
    /// The name of the fork.
    pub fork: String,
    /// Whether this node's program has the rules of the fork. If not, and the fork is `fixed`, the
    /// node stops before the fork's height.
    pub known: bool,
    /// The fixed height of the fork. Absent as long as no height is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<FixedForkView>,
    /// The votes for each height, in ascending order of heights.
    pub votes: Vec<ForkVotesView>,
}

/// The fixed height of a fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedForkView {
    /// The height of the first block in which the fork's rules apply.
    pub height: u64,
    /// The index of the block that fixed the height.
    pub block_index: u64,
}

/// The votes for one height.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkVotesView {
    /// The height that these votes are for.
    pub height: u64,
    /// The total voting power of the voters.
    pub power: String,
    /// The validators that vote for this height, in the order of addresses.
    pub voters: Vec<ForkVoterView>,
}

/// A validator that votes for a height of a fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkVoterView {
    /// The address of the validator.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The validator's power in the set that decides the next block.
    pub power: u64,
    /// The index of the block that contains the vote.
    pub block_index: u64,
}

impl ForksView {
    /// The view of counted votes.
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

/// The constants and parameters that set prices and limits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeeSchedule {
    /// The miner's reward for each output token.
    #[schemars(with = "AmountText")]
    pub agent_reward_per_token: Amount,
    /// The fee that each AGENT_STEP burns.
    #[schemars(with = "AmountText")]
    pub agent_network_fee_per_step: Amount,
    /// The fee that each CHAT_TURN burns.
    #[schemars(with = "AmountText")]
    pub chat_turn_fee: Amount,
    /// The fee that each SOCIAL_BLOB_CHUNK burns.
    #[schemars(with = "AmountText")]
    pub blob_fee_per_chunk: Amount,
    /// The minimum `maxFee` of an AGENT_REQUEST.
    #[schemars(with = "AmountText")]
    pub min_max_fee: Amount,
    /// The minimum `fee` of a TRANSFER.
    #[schemars(with = "AmountText")]
    pub min_transfer_fee: Amount,
    /// The maximum number of steps of a run.
    pub max_steps: u64,
    /// The maximum number of output tokens in a step.
    pub max_output_tokens_per_step: u64,
    /// The maximum size of a prompt, a turn or an inline answer in bytes.
    pub max_inline_text_bytes: usize,
    /// The size in bytes of every chunk of a blob except the last.
    pub blob_chunk_bytes: u64,
    /// The maximum size of a blob in bytes.
    pub max_blob_bytes: u64,
    /// The maximum size of a transaction as canonical signed JSON, in bytes.
    pub max_tx_bytes: u32,
    /// The maximum size of a SOCIAL_BLOB_CHUNK as canonical signed JSON, in bytes.
    pub max_chunk_tx_bytes: u32,
    /// How long a run waits for a claim, in milliseconds.
    pub pending_ttl_ms: u64,
    /// How long a claimed run waits for its first step, in milliseconds.
    pub claim_ttl_ms: u64,
    /// How long a running run waits for its next step, in milliseconds.
    pub step_ttl_ms: u64,
    /// The base fee of the next block, in micro-OMBRA per KiB. This member and those after it are
    /// present only while v7 is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub base_fee: Option<Amount>,
    /// The lowest possible base fee, in micro-OMBRA per KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub base_fee_floor: Option<Amount>,
    /// The fee that the first MINER_REGISTER of an account burns.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub register_fee: Option<Amount>,
    /// The fee that each SOCIAL_BLOB_INIT burns.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AmountText>")]
    pub blob_init_fee: Option<Amount>,
    /// The maximum number of units of work in a block.
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
    /// The sum of all balances in genesis.
    #[schemars(with = "AmountText")]
    pub genesis: Amount,
    /// The sum of all block rewards.
    #[schemars(with = "AmountText")]
    pub minted: Amount,
    /// The sum of all burned amounts.
    #[schemars(with = "AmountText")]
    pub burned: Amount,
    /// The sum in escrow: the escrows of open runs and calls, and held rewards.
    #[schemars(with = "AmountText")]
    pub escrowed: Amount,
    /// The sum of all bonds of miners. Absent if there are none.
    #[serde(skip_serializing_if = "is_nothing")]
    #[schemars(with = "Option<AmountText>")]
    pub bonded: Amount,
    /// The sum of the amounts that miners have withdrawn from their bonds and that the chain has
    /// not paid out yet. Absent if there are none.
    #[serde(skip_serializing_if = "is_nothing")]
    #[schemars(with = "Option<AmountText>")]
    pub unbonding: Amount,
    /// The sum of all balances.
    #[schemars(with = "AmountText")]
    pub circulating: Amount,
}

/// Whether the amount is zero.
const fn is_nothing(amount: &Amount) -> bool {
    amount.is_zero()
}

impl SupplyView {
    /// The view of the counters; `None` if they contradict each other.
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
    /// The address of the validator's account.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The validator's public key.
    #[schemars(with = "PublicKeyText")]
    pub public_key: PublicKey,
    /// The validator's voting power.
    pub power: u64,
    /// The number of blocks that the validator has proposed.
    pub proposed: u64,
    /// The number of rounds in which the validator was the proposer and nothing was decided.
    pub missed: u64,
    /// The validator's votes for changes to the set that count now, in the order of candidates.
    pub votes: Vec<ValidatorVoteView>,
    /// The number of pairs of conflicting messages that this node has seen from the validator.
    pub equivocations: u64,
    /// The last of these pairs, oldest first, at most 16.
    pub evidence: Vec<EquivocationView>,
}

/// The key of a validator that was punished. It never has voting power again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PunishedKeyView {
    /// The public key.
    #[schemars(with = "PublicKeyText")]
    pub public_key: PublicKey,
    /// The address of the key's account.
    #[schemars(with = "AddressText")]
    pub address: Address,
    /// The index of the block that contains the evidence against the key.
    pub punished_at: u64,
}

impl From<PunishedKey> for PunishedKeyView {
    fn from(punished: PunishedKey) -> Self {
        let PunishedKey { key, punished_at } = punished;
        Self { public_key: key, address: key.address(), punished_at }
    }
}

/// An open vote for a change to the validator set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidatorVoteView {
    /// The key of the validator to add, change or remove.
    #[schemars(with = "PublicKeyText")]
    pub candidate_key: PublicKey,
    /// The voting power that the validator should have; 0 removes it.
    pub power: u64,
    /// The last block time at which the vote counts, in milliseconds since 1970.
    pub expires_at: u64,
}

/// Two signed messages of one validator, of which an honest validator signs at most one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EquivocationView {
    /// The height of both messages.
    pub height: u64,
    /// The round of both messages.
    pub round: u32,
    /// The kind of both messages: `proposal`, `prevote` or `precommit`.
    pub kind: &'static str,
    /// The two messages.
    pub messages: Vec<SignedChoiceView>,
}

/// One of two conflicting messages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedChoiceView {
    /// The hash of the block that the message is for. Absent for nil.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub block_hash: Option<Hash>,
    /// The valid round of a proposal; −1 if it has none, and for votes.
    pub valid_round: i64,
    /// The signature of the message.
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

/// This node's identity and addresses in the network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetInfo {
    /// The peer id of this node.
    pub peer_id: String,
    /// The addresses on which the node listens.
    pub listen_addresses: Vec<String>,
    /// The number of connected peers.
    pub peers: usize,
}

impl NetInfo {
    /// The view of this node, with `peers` peers.
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
    /// The peer id of the peer.
    pub peer_id: String,
    /// The address at which the node reaches the peer.
    pub address: String,
    /// The height that the peer reported last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u64>,
    /// The last round-trip time to the peer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The peer's score, which falls when the peer misbehaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Which side opened the connection: `inbound` or `outbound`.
    pub direction: &'static str,
}

impl From<Peer> for PeerView {
    fn from(peer: Peer) -> Self {
        let Peer { peer_id, address, height, latency_ms, score, is_inbound } = peer;
        let direction = if is_inbound { "inbound" } else { "outbound" };
        Self { peer_id, address, height, latency_ms, score, direction }
    }
}
