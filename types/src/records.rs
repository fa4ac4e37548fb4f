//! What the state stores and queries return. These types are plain data; the crate `rpc` makes the
//! shapes of the public interface from them.
//!
//! Texts that a transaction contains (prompts, answers, turns) are not copied here: a record has
//! the location of the transaction.

use serde::{Deserialize, Serialize};

use crate::{Address, Amount, Hash, PublicKey};

/// An account. It exists as soon as it is credited or sends a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Account {
    /// The amount that the account can spend.
    pub balance: Amount,
    /// The nonce of the account's next transaction.
    pub nonce: u64,
}

/// The location of a transaction in the chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TxLocation {
    /// The block's index.
    pub height: u64,
    /// The position in the block, from 0.
    pub position: u32,
}

/// The status of a run (docs/protocol.md sections 5.2–5.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum RunStatus {
    /// The run waits for a miner.
    Pending,
    /// A miner has claimed the run and not reported a step yet.
    Claimed,
    /// At least one step is recorded.
    Running,
    /// The miner ended the run with an answer.
    Completed,
    /// The miner ended the run without an answer.
    Failed,
    /// The miner ended the run because it took too long, or a deadline passed.
    Timeout,
    /// The miner ended the run because the escrow could not pay for more.
    InsufficientFunds,
    /// The submitter cancelled the run before a claim, or the miner ended it with this status.
    Cancelled,
}

impl RunStatus {
    /// All statuses, in the order of a run's life.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Claimed,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Timeout,
        Self::InsufficientFunds,
        Self::Cancelled,
    ];

    /// The word in JSON: `insufficient_funds`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::InsufficientFunds => "insufficient_funds",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status with this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the run has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Claimed | Self::Running => false,
            Self::Completed
            | Self::Failed
            | Self::Timeout
            | Self::InsufficientFunds
            | Self::Cancelled => true,
        }
    }

    /// Whether a miner works on the run.
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Claimed | Self::Running)
    }
}

/// How the escrow of a run is divided. The three parts add up to `maxFee`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settlement {
    /// The reward for the miner.
    pub miner_reward: Amount,
    /// The refund to the submitter.
    pub user_refund: Amount,
    /// The network fee, which is burned.
    pub network_fee: Amount,
}

impl Settlement {
    /// Nobody gets anything.
    pub const NOTHING: Self =
        Self { miner_reward: Amount::ZERO, user_refund: Amount::ZERO, network_fee: Amount::ZERO };

    /// The escrow that was divided. `None` if the parts overflow, which stored ones never do.
    #[must_use]
    pub const fn total(&self) -> Option<Amount> {
        let Some(sum) = self.miner_reward.checked_add(self.user_refund) else { return None };
        sum.checked_add(self.network_fee)
    }
}

/// The part of an agent run that changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The run's id.
    pub agent_run_id: Hash,
    /// The conversation that the request names.
    pub conversation_id: Hash,
    /// The address of the account that requested and paid for the run.
    pub submitter: Address,
    /// The escrow at the start.
    pub max_fee: Amount,
    /// The maximum number of steps.
    pub max_steps: u64,
    /// The status.
    pub status: RunStatus,
    /// The address of the miner that claimed the run. Kept when the run ends; `None` while it is
    /// pending.
    pub miner: Option<Address>,
    /// The number of recorded steps.
    pub step_count: u64,
    /// The index of the last recorded step.
    pub last_step_index: Option<u64>,
    /// The number of output tokens in the recorded steps.
    pub tokens_out: u64,
    /// Zeros before the first step, and then `sha256(previous digest ‖ hash of the AGENT_STEP)`.
    pub steps_digest: Hash,
    /// How the escrow was divided, once it has been.
    pub settlement: Option<Settlement>,
    /// Block time of the request, in milliseconds.
    pub submitted_at: u64,
    /// The block time of the current claim.
    pub claimed_at: Option<u64>,
    /// The block time at which the run ended.
    pub finished_at: Option<u64>,
    /// The block time after which the sweep acts (docs/protocol.md section 5.7); `None` once the
    /// run has ended and no reward is held.
    pub deadline_at: Option<u64>,
    /// How many times the run was reopened after a claim.
    pub reopens: u32,
    /// The miners that may not claim the run again, in order.
    pub excluded_miners: Vec<Address>,
    /// The location of the AGENT_REQUEST.
    pub request: TxLocation,
    /// The location of the current AGENT_CLAIM.
    pub claim: Option<TxLocation>,
    /// The location of the AGENT_FINISH or AGENT_CANCEL.
    pub finish: Option<TxLocation>,
    /// How the submitter protects the run; `None` if it does not.
    pub protection: Option<RunProtection>,
    /// The part of the miner's bond that is locked for the run; `None` if there is none.
    pub locked_bond: Option<Amount>,
    /// Who ended the run; `None` while it is open, and for runs that ended before v7.
    pub ended_by: Option<Ender>,
    /// Whether the submitter refused the reward.
    pub is_refused: bool,
    /// The agent that the run is for; `None` if the request names none.
    pub agent: Option<RunAgent>,
}

/// The agent that a run is for (docs/protocol.md section 5.2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunAgent {
    /// The id of the agent.
    pub agent_id: Hash,
    /// The version of the agent.
    pub version: String,
}

impl Run {
    /// Whether the run has ended and its reward is held until [`Run::deadline_at`].
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.status.is_terminal() && self.deadline_at.is_some()
    }
}

/// How a run is protected (docs/protocol.md section 5.2).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunProtection {
    /// The only miners that may claim the run. If the list is empty, every miner may.
    pub miners: Vec<Address>,
    /// The amount of the miner's bond that a claim locks.
    pub claim_bond: Amount,
    /// The maximum number of output tokens in one step; `None` if only the chain's limit applies.
    pub max_tokens_per_step: Option<u64>,
    /// How long the reward is held after the run has ended, in milliseconds.
    pub refuse_ms: u64,
}

/// Who ended a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ender {
    /// The submitter, by an AGENT_CANCEL.
    Submitter,
    /// The miner, by an AGENT_FINISH.
    Miner,
    /// A deadline.
    Sweep,
}

impl Ender {
    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitter => "submitter",
            Self::Miner => "miner",
            Self::Sweep => "sweep",
        }
    }
}

/// The bond of a miner (docs/protocol.md section 5.14).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bond {
    /// The whole bond.
    pub bonded: Amount,
    /// The part that is locked for runs and calls.
    pub locked: Amount,
}

impl Bond {
    /// The part that is not locked.
    #[must_use]
    pub const fn free(&self) -> Amount {
        match self.bonded.checked_sub(self.locked) {
            Some(free) => free,
            None => Amount::ZERO,
        }
    }

    /// What the first rounds of calls may still lock: half of the bond less all that is locked, for whatever.
    /// The other half is left for second rounds (docs/protocol.md section 17.2).
    #[must_use]
    pub const fn free_for_first_rounds(&self) -> Amount {
        match Amount::new(self.bonded.get() / 2).checked_sub(self.locked) {
            Some(free) => free,
            None => Amount::ZERO,
        }
    }
}

/// A recorded step: which transaction reported it, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The step's index.
    pub step_index: u64,
    /// The number of tokens that the model generated.
    pub output_tokens: u64,
    /// The location of the AGENT_STEP.
    pub tx: TxLocation,
    /// The block time, in milliseconds.
    pub timestamp: u64,
}

/// An entry of the miner directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Miner {
    /// The SHA-256 of the 64 characters of the first MINER_REGISTER's hash.
    pub miner_id: Hash,
    /// The address of the miner.
    pub address: Address,
    /// The display name, as last registered.
    pub name: String,
    /// What the miner can do, as last registered.
    pub capabilities: Vec<String>,
    /// The model that the miner uses, as last registered.
    pub model_info: String,
    /// The block time of the last registration.
    pub registered_at: u64,
}

/// The statistics of a miner, registered or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MinerFigures {
    /// The number of runs that the miner has claimed.
    pub claimed: u64,
    /// The number of runs that the miner has ended as `completed`.
    pub completed: u64,
    /// The number of runs that the miner has ended with any other status except `timeout`.
    pub failed: u64,
    /// The number of the miner's runs that timed out, and of its claims that lapsed or that it gave
    /// up.
    pub timed_out: u64,
    /// The number of output tokens in the miner's recorded steps.
    pub tokens: u64,
    /// The total rewards that the miner has received.
    pub earnings: Amount,
    /// The number of rewards that submitters refused.
    pub refused: u64,
}

/// The statistics of a submitter of runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SubmitterFigures {
    /// The number of the submitter's runs that ended with a held reward.
    pub held: u64,
    /// The number of rewards that the submitter refused.
    pub refused: u64,
}

/// A blob.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Blob {
    /// The blob's id.
    pub blob_id: String,
    /// The address of the owner, who alone may add chunks.
    pub owner: Address,
    /// The media type that the owner states.
    pub content_type: String,
    /// The size in bytes.
    pub total_bytes: u64,
    /// The number of chunks in the complete blob.
    pub total_chunks: u64,
    /// The number of chunks that have arrived.
    pub received: u64,
    /// The SHA-256 that the bytes must have.
    pub content_hash: Hash,
    /// The SHA-256 that the bytes have, once all chunks have arrived.
    pub received_hash: Option<Hash>,
    /// Whether the blob is finalized, so that it cannot change and transactions can reference it.
    pub is_final: bool,
    /// The block time of the SOCIAL_BLOB_INIT.
    pub created_at: u64,
}

/// The money of the chain (docs/protocol.md section 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Supply {
    /// The sum of all balances in genesis.
    pub genesis: Amount,
    /// The sum of all block rewards.
    pub minted: Amount,
    /// The sum of all burned amounts.
    pub burned: Amount,
    /// The sum in escrow: the escrows of open runs and calls, and held rewards.
    pub escrowed: Amount,
    /// The sum of all bonds of miners.
    pub bonded: Amount,
    /// The sum of the amounts that were withdrawn from bonds and have not been paid out yet.
    pub unbonding: Amount,
}

impl Supply {
    /// The sum of all balances: genesis + minted − burned − escrowed − bonded − unbonding. `None`
    /// if the counters contradict each other.
    #[must_use]
    pub const fn circulating(&self) -> Option<Amount> {
        let Some(total) = self.genesis.checked_add(self.minted) else { return None };
        let Some(kept) = total.checked_sub(self.burned) else { return None };
        let Some(kept) = kept.checked_sub(self.escrowed) else { return None };
        let Some(kept) = kept.checked_sub(self.bonded) else { return None };
        kept.checked_sub(self.unbonding)
    }
}

/// A member of a validator set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetMember {
    /// The key with which it signs votes.
    pub public_key: PublicKey,
    /// Its voting power, 1 to [`crate::params::POWER_MAX`].
    pub power: u64,
}

/// The validator sets that decide the next blocks (docs/protocol.md section 5.11). Each set is
/// sorted by address, contains each address once, and is not empty.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ValidatorSets {
    /// The first height that `current` decides.
    pub since: u64,
    /// The set that decides the next height.
    pub current: Vec<SetMember>,
    /// The set that decides the height after that, if it differs.
    pub next: Option<Vec<SetMember>>,
}

/// An open vote for a change to the validator set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenVote {
    /// The voting power that the candidate should have; 0 removes it.
    pub power: u64,
    /// The last block time at which the vote counts, in milliseconds.
    pub expires_at: u64,
}

/// What the chain remembers of a consensus key. There is no record for a key of which it remembers
/// nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KeyStanding {
    /// The last height that the key decided alone, as the only member of the set, if the set has changed
    /// since. Messages that it signed up to then prove nothing against it.
    pub alone_until: Option<u64>,
    /// The block with the evidence against the key, which never has power again.
    pub punished_at: Option<u64>,
}

/// An agent of the market (docs/protocol.md section 5.18).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Agent {
    /// The agent's id.
    pub agent_id: Hash,
    /// The address of the owner, who alone may add versions and retire the agent.
    pub owner: Address,
    /// The name, 1 to 64 bytes.
    pub name: String,
    /// The version that was registered last. It has precedence over all others.
    pub latest: String,
    /// The number of versions.
    pub versions: u64,
    /// Whether the agent is retired and takes no calls.
    pub is_retired: bool,
    /// The block time of the first AGENT_REGISTER.
    pub registered_at: u64,
    /// The block time of the last AGENT_REGISTER or AGENT_RETIRE.
    pub changed_at: u64,
}

/// A version of an agent, which never changes. The record has at most about 4 KiB.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentVersion {
    /// The agent's id.
    pub agent_id: Hash,
    /// The version, at most 64 bytes.
    pub version: String,
    /// The previous version; `None` for the first version.
    pub previous: Option<String>,
    /// The address of the agent's owner.
    pub owner: Address,
    /// The executors that a miner needs to run this version: its own executor, then those of the
    /// agents among its tools, each once, at most 16.
    pub executors: Vec<String>,
    /// The manifests of the language models that the executors ask, in the order of `executors`.
    /// Answers of different miners can be compared if their models have the same manifest.
    pub manifests: Vec<Hash>,
    /// The selectors of its methods in the order of the text, at most 64.
    pub selectors: Vec<[u8; 4]>,
    /// The tools in their text form, at most 16.
    pub tools: Vec<String>,
    /// The royalty that the owner gets for each successful call.
    pub royalty: Amount,
    /// Whether the answers of different miners can be compared.
    pub is_deterministic: bool,
    /// How deep agents are nested in this version, counting itself: 1 to 3.
    pub nesting: u8,
    /// The SHA-256 of the metadata.
    pub metadata_hash: Hash,
    /// The size of the metadata in bytes.
    pub metadata_bytes: u64,
    /// The block time of the AGENT_REGISTER.
    pub registered_at: u64,
    /// The location of the AGENT_REGISTER.
    pub tx: TxLocation,
}

#[cfg(test)]
mod tests;
