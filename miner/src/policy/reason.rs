//! Why a run is not claimed: every reason with its numbers, a stable code and a sentence.

use serde::{Deserialize, Serialize};
use types::{Address, RunStatus};

/// In what a prompt is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// In bytes, for the policy.
    #[default]
    Bytes,
    /// In tokens, for the model's context beside the output that the policy expects.
    Tokens,
}

impl Unit {
    fn sentence(self, got: u64, max: u64) -> String {
        match self {
            Self::Bytes => format!("the prompt has {got} bytes, above prompt_bytes_max {max}"),
            Self::Tokens => format!(
                "the prompt takes {got} tokens, above the {max} that the model's context has \
                 beside the output that the policy expects"
            ),
        }
    }
}

/// A reason not to claim a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// Somebody has it, or it has ended.
    #[error("the run is {}, not pending", status.as_str())]
    NotPending {
        /// Where it is.
        status: RunStatus,
    },
    /// A claim of this miner lapsed.
    #[error("this miner let a claim of the run lapse and may not claim it again")]
    Excluded,
    /// The journal has worked on it.
    #[error("the journal knows the run: {phase}")]
    Known {
        /// The phase that it is in.
        phase: String,
    },
    /// The escrow is small.
    #[error("maxFee {got_micro} micro is below min_max_fee_micro {min_micro}")]
    FeeTooLow {
        /// The run's.
        got_micro: u64,
        /// The policy's.
        min_micro: u64,
    },
    /// The escrow may not pay for the work.
    #[error("margin {got_micro} micro is below min_margin_micro {min_micro}")]
    MarginTooLow {
        /// `maxFee` less the expected tokens and steps.
        got_micro: i64,
        /// The policy's.
        min_micro: i64,
    },
    /// It may take too many steps.
    #[error("maxSteps {got} is above steps_max {max}")]
    StepsTooMany {
        /// The run's.
        got: u64,
        /// The policy's.
        max: u64,
    },
    /// It may take too few steps.
    #[error("maxSteps {got} is below steps_min {min}")]
    StepsTooFew {
        /// The run's.
        got: u64,
        /// The policy's.
        min: u64,
    },
    /// It wants tools that are not here.
    #[error("tools that this miner does not have: {}", names.join(", "))]
    ToolsMissing {
        /// Their names.
        names: Vec<String>,
    },
    /// It would be offered a tool that the policy does not allow.
    #[error("tools that the policy does not allow: {}", names.join(", "))]
    ToolsNotAllowed {
        /// Their names.
        names: Vec<String>,
    },
    /// It wants another model.
    #[error("modelHint {hint:?} is not one of the policy's models")]
    ModelUnknown {
        /// The run's.
        hint: String,
    },
    /// It wants a model, and the policy takes only runs that name one, or the reverse.
    #[error("the run names no model and the policy wants one of its models named")]
    ModelUnnamed,
    /// The policy excludes the requester.
    #[error("requester {requester} is in requesters_deny")]
    RequesterDenied {
        /// Who.
        requester: Address,
    },
    /// The policy names requesters, and this is none.
    #[error("requester {requester} is not in requesters_allow")]
    RequesterNotListed {
        /// Who.
        requester: Address,
    },
    /// The requester named miners, and this is none.
    #[error(
        "the requester names {miners} who may claim the run, and this miner is not one of them"
    )]
    MinerNotListed {
        /// How many.
        miners: u64,
    },
    /// A claim would lock more than the policy allows.
    #[error("claimBond {needed_micro} micro is above {max_micro}, the most that the policy allows")]
    BondTooHigh {
        /// The run's.
        needed_micro: u64,
        /// The smaller one of `claim_bond_micro_max` and `bond_micro_max`.
        max_micro: u64,
    },
    /// The reward would come late.
    #[error("the reward would be held for {got_ms} ms, above hold_ms_max {max_ms}")]
    HeldTooLong {
        /// The run's `refuseMs`.
        got_ms: u64,
        /// The policy's.
        max_ms: u64,
    },
    /// The requester often refuses what was answered.
    #[error(
        "the requester refused {refused} of {held} rewards, above refused_percent_max {percent_max}"
    )]
    RequesterRefuses {
        /// Rewards that it refused.
        refused: u64,
        /// Of so many that were held.
        held: u64,
        /// The policy's.
        percent_max: u64,
    },
    /// The prompt is long.
    #[error("{}", unit.sentence(*got, *max))]
    PromptTooLong {
        /// The run's.
        got: u64,
        /// The policy's, or the model's.
        max: u64,
        /// What is counted.
        #[serde(default)]
        unit: Unit,
    },
    /// The answer is not expected to pay for reading the prompt.
    #[error(
        "reading about {tokens} tokens costs {cost_micro} micro by prompt_micro_per_1000_tokens, \
         above the {income_micro} that the answer is expected to earn"
    )]
    PromptUnpaid {
        /// Tokens that are read, each as often as it is.
        tokens: u64,
        /// What that costs.
        cost_micro: u64,
        /// What is put out earns.
        income_micro: u64,
    },
    /// It asks for something that is not understood.
    #[error("the request cannot be worked on: {why}")]
    Unreadable {
        /// The sentence of the one who reads requests.
        why: String,
    },
    /// It will end soon.
    #[error("{left_ms} ms are left before the run ends, below pending_left_ms_min {min_ms}")]
    TooLate {
        /// Until the deadline.
        left_ms: u64,
        /// The policy's.
        min_ms: u64,
    },
    /// Another miner is first.
    #[error("a claim of {miner} for the run is in the pool")]
    RivalClaim {
        /// Who.
        miner: Address,
    },
    /// This miner is busy.
    #[error("all {max} slots are taken")]
    SlotsFull {
        /// `runs_max`.
        max: u64,
    },
    /// The node does not know the newest blocks, and so not who has the run.
    #[error("the node is catching up with the chain")]
    NodeSyncing,
    /// The model's server is not there.
    #[error("the back end is down: {why}")]
    BackendDown {
        /// What it said last.
        why: String,
    },
    /// The account is nearly empty.
    #[error("balance {got_micro} micro is below balance_micro_min {min_micro}")]
    BalanceLow {
        /// The account's.
        got_micro: u64,
        /// The policy's.
        min_micro: u64,
    },
    /// Too little of the bond is free, and no more may be bonded.
    #[error(
        "claimBond {needed_micro} micro is above the free bond {free_micro}, and the policy and the \
         balance let {room_micro} be added"
    )]
    BondLow {
        /// The run's.
        needed_micro: u64,
        /// What is free, claims under way counted.
        free_micro: u64,
        /// What may be added now.
        room_micro: u64,
    },
    /// Enough for today.
    #[error("{got} claims today reach claims_per_day_max {max}")]
    ClaimsToday {
        /// So far.
        got: u64,
        /// The policy's.
        max: u64,
    },
    /// Enough was spent today.
    #[error("{got_micro} micro spent today reach spend_micro_per_day_max {max_micro}")]
    SpentToday {
        /// So far.
        got_micro: u64,
        /// The policy's.
        max_micro: u64,
    },
    /// The operator switched claiming off.
    #[error("the policy has claiming = false")]
    Paused,
}

impl Reason {
    /// A fixed word for programs and metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotPending { .. } => "NOT_PENDING",
            Self::Excluded => "EXCLUDED",
            Self::Known { .. } => "KNOWN",
            Self::FeeTooLow { .. } => "FEE_TOO_LOW",
            Self::MarginTooLow { .. } => "MARGIN_TOO_LOW",
            Self::StepsTooMany { .. } => "STEPS_TOO_MANY",
            Self::StepsTooFew { .. } => "STEPS_TOO_FEW",
            Self::ToolsMissing { .. } => "TOOLS_MISSING",
            Self::ToolsNotAllowed { .. } => "TOOLS_NOT_ALLOWED",
            Self::ModelUnknown { .. } => "MODEL_UNKNOWN",
            Self::ModelUnnamed => "MODEL_UNNAMED",
            Self::RequesterDenied { .. } => "REQUESTER_DENIED",
            Self::RequesterNotListed { .. } => "REQUESTER_NOT_LISTED",
            Self::PromptTooLong { .. } => "PROMPT_TOO_LONG",
            Self::PromptUnpaid { .. } => "PROMPT_UNPAID",
            Self::Unreadable { .. } => "UNREADABLE",
            Self::TooLate { .. } => "TOO_LATE",
            Self::RivalClaim { .. } => "RIVAL_CLAIM",
            Self::SlotsFull { .. } => "SLOTS_FULL",
            Self::NodeSyncing => "NODE_SYNCING",
            Self::BackendDown { .. } => "BACKEND_DOWN",
            Self::BalanceLow { .. } => "BALANCE_LOW",
            Self::MinerNotListed { .. } => "MINER_NOT_LISTED",
            Self::BondTooHigh { .. } => "BOND_TOO_HIGH",
            Self::HeldTooLong { .. } => "HELD_TOO_LONG",
            Self::RequesterRefuses { .. } => "REQUESTER_REFUSES",
            Self::BondLow { .. } => "BOND_LOW",
            Self::ClaimsToday { .. } => "CLAIMS_TODAY",
            Self::SpentToday { .. } => "SPENT_TODAY",
            Self::Paused => "PAUSED",
        }
    }
}
