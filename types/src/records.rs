//! What the state stores and queries hand out. Plain data; the shapes of the public interface are
//! made from it in the crate `rpc`.
//!
//! Texts that stand in a transaction (prompts, answers, turns) are not copied here: a record says
//! where the transaction is.

use serde::{Deserialize, Serialize};

use crate::{Address, Amount, Hash, PublicKey};

/// An account. It exists as soon as it is credited or sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Account {
    /// What it can spend.
    pub balance: Amount,
    /// The nonce that its next transaction must have.
    pub nonce: u64,
}

/// Where a transaction stands in the chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TxLocation {
    /// The block's index.
    pub height: u64,
    /// The place in the block, from 0.
    pub position: u32,
}

/// Where a run is in its life (docs/protocol.md sections 5.2–5.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum RunStatus {
    /// Waits for a miner.
    Pending,
    /// A miner took it and has not reported a step.
    Claimed,
    /// At least one step is recorded.
    Running,
    /// Ended by its miner with an answer.
    Completed,
    /// Ended by its miner without one.
    Failed,
    /// Ended by its miner for lack of time, or by a deadline.
    Timeout,
    /// Ended by its miner because the escrow could not pay more.
    InsufficientFunds,
    /// Ended by its submitter before a claim, or by its miner.
    Cancelled,
}

impl RunStatus {
    /// Every status, in the order of a run's life.
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

    /// The status of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the run has ended: no escrow is left.
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

/// How a run's escrow is divided. The three parts sum up to `maxFee`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settlement {
    /// To the miner.
    pub miner_reward: Amount,
    /// Back to the submitter.
    pub user_refund: Amount,
    /// Burned.
    pub network_fee: Amount,
}

impl Settlement {
    /// Nothing to anybody.
    pub const NOTHING: Self =
        Self { miner_reward: Amount::ZERO, user_refund: Amount::ZERO, network_fee: Amount::ZERO };

    /// The escrow that was divided. `None` if the parts overflow, as no stored ones do.
    #[must_use]
    pub const fn total(&self) -> Option<Amount> {
        let Some(sum) = self.miner_reward.checked_add(self.user_refund) else { return None };
        sum.checked_add(self.network_fee)
    }
}

/// The changing part of an agent run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The run's id.
    pub agent_run_id: Hash,
    /// The conversation named in the request.
    pub conversation_id: Hash,
    /// Who asked and paid.
    pub submitter: Address,
    /// The escrow at the start.
    pub max_fee: Amount,
    /// The most steps.
    pub max_steps: u64,
    /// Where it is.
    pub status: RunStatus,
    /// Who claimed it; kept when it ends, none while it is pending.
    pub miner: Option<Address>,
    /// Recorded steps.
    pub step_count: u64,
    /// The index of the last recorded step.
    pub last_step_index: Option<u64>,
    /// The sum of `outputTokens`.
    pub tokens_out: u64,
    /// Zero bytes before the first step, then `sha256(previous digest ‖ step transaction's hash)`.
    pub steps_digest: Hash,
    /// How the escrow was divided, once it was.
    pub settlement: Option<Settlement>,
    /// Block time of the request, in milliseconds.
    pub submitted_at: u64,
    /// Block time of the standing claim.
    pub claimed_at: Option<u64>,
    /// Block time of the end.
    pub finished_at: Option<u64>,
    /// When the sweep acts (docs/protocol.md section 5.7); none once it has ended.
    pub deadline_at: Option<u64>,
    /// How often a claim lapsed and the run was opened again.
    pub reopens: u32,
    /// Miners whose claim lapsed, in order.
    pub excluded_miners: Vec<Address>,
    /// The AGENT_REQUEST.
    pub request: TxLocation,
    /// The standing AGENT_CLAIM.
    pub claim: Option<TxLocation>,
    /// The AGENT_FINISH or AGENT_CANCEL.
    pub finish: Option<TxLocation>,
    /// How the submitter protects it; none for a request without such members.
    pub protection: Option<RunProtection>,
    /// What is locked of the miner's bond for it; none if nothing is.
    pub locked_bond: Option<Amount>,
    /// Who ended it; none while it is open, and of runs that ended before v7.
    pub ended_by: Option<Ender>,
    /// Whether the submitter refused the reward.
    pub is_refused: bool,
    /// The agent of which it is a run; none for a request that names none.
    pub agent: Option<RunAgent>,
}

/// The agent of which a run is one (docs/protocol.md section 5.2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunAgent {
    /// The agent.
    pub agent_id: Hash,
    /// The version of it.
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
    /// The only miners that may claim it; everybody may if there are none.
    pub miners: Vec<Address>,
    /// What a claim locks of the miner's bond.
    pub claim_bond: Amount,
    /// The most output tokens of one step; none if only the chain's bound holds.
    pub max_tokens_per_step: Option<u64>,
    /// How long the reward is held after the end, in milliseconds.
    pub refuse_ms: u64,
}

/// Who ended a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ender {
    /// Its submitter, by AGENT_CANCEL.
    Submitter,
    /// Its miner, by AGENT_FINISH.
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

/// What an account has at stake as a miner (docs/protocol.md section 5.14).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bond {
    /// All of it.
    pub bonded: Amount,
    /// The part that is locked for runs.
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
}

/// A recorded step: which transaction reported it, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The step's index.
    pub step_index: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// The AGENT_STEP.
    pub tx: TxLocation,
    /// Block time in milliseconds.
    pub timestamp: u64,
}

/// An entry of the miner directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Miner {
    /// SHA-256 of the 64 characters of the first MINER_REGISTER's hash.
    pub miner_id: Hash,
    /// The account.
    pub address: Address,
    /// As registered last.
    pub name: String,
    /// As registered last.
    pub capabilities: Vec<String>,
    /// As registered last.
    pub model_info: String,
    /// Block time of the last registration.
    pub registered_at: u64,
}

/// What a miner has done, registered or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MinerFigures {
    /// Runs claimed.
    pub claimed: u64,
    /// Runs finished as completed.
    pub completed: u64,
    /// Runs finished by the miner otherwise.
    pub failed: u64,
    /// Claims that lapsed and runs that timed out.
    pub timed_out: u64,
    /// Output tokens of recorded steps.
    pub tokens: u64,
    /// Rewards received.
    pub earnings: Amount,
    /// Rewards that submitters refused.
    pub refused: u64,
}

/// What a submitter of runs has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SubmitterFigures {
    /// Runs that ended with a reward that was held.
    pub held: u64,
    /// Rewards that it refused.
    pub refused: u64,
}

/// A blob.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Blob {
    /// The blob's id.
    pub blob_id: String,
    /// Who may add chunks.
    pub owner: Address,
    /// As the owner says.
    pub content_type: String,
    /// The size.
    pub total_bytes: u64,
    /// How many chunks make it.
    pub total_chunks: u64,
    /// How many of them are there.
    pub received: u64,
    /// SHA-256 that the bytes must have.
    pub content_hash: Hash,
    /// SHA-256 that they have, once every chunk is there.
    pub received_hash: Option<Hash>,
    /// Whether it is finalised: immutable, may be referenced.
    pub is_final: bool,
    /// Block time of SOCIAL_BLOB_INIT.
    pub created_at: u64,
}

/// The money of the chain (docs/protocol.md section 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Supply {
    /// Σ balances in genesis.
    pub genesis: Amount,
    /// Σ block rewards.
    pub minted: Amount,
    /// Σ burned fees.
    pub burned: Amount,
    /// Σ escrows of runs that have not ended, and of rewards that are held.
    pub escrowed: Amount,
    /// Σ bonds.
    pub bonded: Amount,
    /// Σ of what was taken out of bonds and is not paid out yet.
    pub unbonding: Amount,
}

impl Supply {
    /// What accounts hold: genesis + minted − burned − escrowed − bonded − unbonding. `None` if the
    /// counters contradict each other.
    #[must_use]
    pub const fn circulating(&self) -> Option<Amount> {
        let Some(total) = self.genesis.checked_add(self.minted) else { return None };
        let Some(kept) = total.checked_sub(self.burned) else { return None };
        let Some(kept) = kept.checked_sub(self.escrowed) else { return None };
        let Some(kept) = kept.checked_sub(self.bonded) else { return None };
        kept.checked_sub(self.unbonding)
    }
}

/// A validator of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetMember {
    /// The key that its votes are signed with.
    pub public_key: PublicKey,
    /// Its voting power, 1 to [`crate::params::POWER_MAX`].
    pub power: u64,
}

/// Who decides the blocks that come next (docs/protocol.md section 5.11). Sets are sorted by
/// address, hold each address once, and are not empty.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ValidatorSets {
    /// The first height that `current` decides.
    pub since: u64,
    /// The set of the next height.
    pub current: Vec<SetMember>,
    /// The set of the height after that, if it is another one.
    pub next: Option<Vec<SetMember>>,
}

/// A vote for a change of the validator set that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenVote {
    /// The voting power that the candidate shall have; 0 removes it.
    pub power: u64,
    /// The last block time at which the vote counts, in milliseconds.
    pub expires_at: u64,
}

/// What the chain remembers of a consensus key. Keys of which it remembers nothing have no row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KeyStanding {
    /// The last height that it decided alone, as the only member of the set, if others came after it:
    /// what it signed up to then proves nothing against it.
    pub alone_until: Option<u64>,
    /// The block with the evidence against it: it never has power again.
    pub punished_at: Option<u64>,
}

/// An agent of the market (docs/protocol.md section 5.18).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Agent {
    /// The agent's id.
    pub agent_id: Hash,
    /// Who may add versions and retire it.
    pub owner: Address,
    /// Its name, 1 to 64 bytes.
    pub name: String,
    /// The version that was registered last; it has precedence over all others.
    pub latest: String,
    /// How many versions there are.
    pub versions: u64,
    /// Whether it takes no calls.
    pub is_retired: bool,
    /// Block time of the first AGENT_REGISTER.
    pub registered_at: u64,
    /// Block time of the last AGENT_REGISTER or AGENT_RETIRE.
    pub changed_at: u64,
}

/// A version of an agent, which never changes. At most about 4 KiB.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentVersion {
    /// The agent's id.
    pub agent_id: Hash,
    /// The version, at most 64 bytes.
    pub version: String,
    /// The version before it; none of the first.
    pub previous: Option<String>,
    /// The agent's owner.
    pub owner: Address,
    /// What a miner must have to run it: its own executor, then those of agents among its tools, each
    /// once, at most 16.
    pub executors: Vec<String>,
    /// The language models that say which answers can be compared, in the order of `executors`.
    pub manifests: Vec<Hash>,
    /// The selectors of its methods in the order of the text, at most 64.
    pub selectors: Vec<[u8; 4]>,
    /// Its tools as they are written, at most 16.
    pub tools: Vec<String>,
    /// What the owner gets for each successful call.
    pub royalty: Amount,
    /// Whether the answers of two miners can be compared.
    pub is_deterministic: bool,
    /// How deep agents nest in it, itself counted: 1 to 3.
    pub nesting: u8,
    /// SHA-256 of the metadata.
    pub metadata_hash: Hash,
    /// The size of the metadata.
    pub metadata_bytes: u64,
    /// Block time of the AGENT_REGISTER.
    pub registered_at: u64,
    /// The AGENT_REGISTER.
    pub tx: TxLocation,
}

#[cfg(test)]
mod tests;
