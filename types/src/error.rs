//! Rejections: what is wrong with a transaction, as a fixed code and the values that disagree
//! (docs/protocol.md section 9).

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Amount;
use crate::text::shorten;

/// The fixed codes of rejections, in the order in which the checks are made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the codes are explained in docs/protocol.md section 9")]
pub enum Code {
    Malformed,
    UnsupportedType,
    ForkNotActive,
    AddressMismatch,
    HashMismatch,
    BadSignature,
    ChainIdMismatch,
    InvalidField,
    NonceStale,
    NonceTooHigh,
    NonceTaken,
    FeeAboveMax,
    InsufficientBalance,
    AgentIdMismatch,
    AgentMetadata,
    AgentNotFound,
    NotAgentOwner,
    AgentRetired,
    CallIdMismatch,
    SelectorUnknown,
    CallLimits,
    MaxFeeTooLow,
    CallNotFound,
    NotMember,
    CallPhase,
    CommitExists,
    RevealExists,
    RevealMismatch,
    AppealClosed,
    OfferLimit,
    RunIdMismatch,
    RunExists,
    RunNotFound,
    RunNotPending,
    RunNotActive,
    NotRunMiner,
    NotSubmitter,
    MinerExcluded,
    MinerNotAllowed,
    BondTooSmall,
    RefuseClosed,
    StepOutOfOrder,
    StepLimit,
    TokensLimit,
    EscrowExhausted,
    SettlementMismatch,
    BlobNotFound,
    BlobNotFinal,
    BlobExists,
    BlobChunk,
    BlobHash,
    NotBlobOwner,
    TurnNotFound,
    EvidenceInvalid,
    NotValidator,
    ValidatorUnchanged,
    ValidatorSetLimit,
    VoteLimit,
    AcceptanceInvalid,
    ForkUnknown,
    ParamBounds,
    PoolFull,
    SenderLimit,
    ClockSkew,
    Evicted,
}

impl Code {
    /// Every code, in order of precedence.
    pub const ALL: [Self; 65] = [
        Self::Malformed,
        Self::UnsupportedType,
        Self::ForkNotActive,
        Self::AddressMismatch,
        Self::HashMismatch,
        Self::BadSignature,
        Self::ChainIdMismatch,
        Self::InvalidField,
        Self::NonceStale,
        Self::NonceTooHigh,
        Self::NonceTaken,
        Self::FeeAboveMax,
        Self::InsufficientBalance,
        Self::AgentIdMismatch,
        Self::AgentMetadata,
        Self::AgentNotFound,
        Self::NotAgentOwner,
        Self::AgentRetired,
        Self::CallIdMismatch,
        Self::SelectorUnknown,
        Self::CallLimits,
        Self::MaxFeeTooLow,
        Self::CallNotFound,
        Self::NotMember,
        Self::CallPhase,
        Self::CommitExists,
        Self::RevealExists,
        Self::RevealMismatch,
        Self::AppealClosed,
        Self::OfferLimit,
        Self::RunIdMismatch,
        Self::RunExists,
        Self::RunNotFound,
        Self::RunNotPending,
        Self::RunNotActive,
        Self::NotRunMiner,
        Self::NotSubmitter,
        Self::MinerExcluded,
        Self::MinerNotAllowed,
        Self::BondTooSmall,
        Self::RefuseClosed,
        Self::StepOutOfOrder,
        Self::StepLimit,
        Self::TokensLimit,
        Self::EscrowExhausted,
        Self::SettlementMismatch,
        Self::BlobNotFound,
        Self::BlobNotFinal,
        Self::BlobExists,
        Self::BlobChunk,
        Self::BlobHash,
        Self::NotBlobOwner,
        Self::TurnNotFound,
        Self::EvidenceInvalid,
        Self::NotValidator,
        Self::ValidatorUnchanged,
        Self::ValidatorSetLimit,
        Self::VoteLimit,
        Self::AcceptanceInvalid,
        Self::ForkUnknown,
        Self::ParamBounds,
        Self::PoolFull,
        Self::SenderLimit,
        Self::ClockSkew,
        Self::Evicted,
    ];

    /// The text that clients compare: `NONCE_STALE`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.texts().0
    }

    /// The beginning of the message for people: `Nonce stale`.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Malformed => ("MALFORMED", "Malformed transaction"),
            Self::UnsupportedType => ("UNSUPPORTED_TYPE", "Unsupported transaction type"),
            Self::ForkNotActive => ("FORK_NOT_ACTIVE", "Fork not active"),
            Self::AddressMismatch => ("ADDRESS_MISMATCH", "Address mismatch"),
            Self::HashMismatch => ("HASH_MISMATCH", "Hash mismatch"),
            Self::BadSignature => ("BAD_SIGNATURE", "Bad signature"),
            Self::ChainIdMismatch => ("CHAIN_ID_MISMATCH", "Chain id mismatch"),
            Self::InvalidField => ("INVALID_FIELD", "Invalid field"),
            Self::NonceStale => ("NONCE_STALE", "Nonce stale"),
            Self::NonceTooHigh => ("NONCE_TOO_HIGH", "Nonce too high"),
            Self::NonceTaken => ("NONCE_TAKEN", "Nonce taken"),
            Self::FeeAboveMax => ("FEE_ABOVE_MAX", "Base fee above maxBaseFee"),
            Self::InsufficientBalance => ("INSUFFICIENT_BALANCE", "Insufficient balance"),
            Self::AgentIdMismatch => ("AGENT_ID_MISMATCH", "Agent id mismatch"),
            Self::AgentMetadata => ("AGENT_METADATA", "Agent metadata"),
            Self::AgentNotFound => ("AGENT_NOT_FOUND", "Agent not found"),
            Self::NotAgentOwner => ("NOT_AGENT_OWNER", "Not the agent's owner"),
            Self::AgentRetired => ("AGENT_RETIRED", "Agent retired"),
            Self::CallIdMismatch => ("CALL_ID_MISMATCH", "Call id mismatch"),
            Self::SelectorUnknown => ("SELECTOR_UNKNOWN", "Unknown method"),
            Self::CallLimits => ("CALL_LIMITS", "Call limits"),
            Self::MaxFeeTooLow => ("MAX_FEE_TOO_LOW", "maxFee too low"),
            Self::CallNotFound => ("CALL_NOT_FOUND", "Call not found"),
            Self::NotMember => ("NOT_MEMBER", "Not a member of the call"),
            Self::CallPhase => ("CALL_PHASE", "Wrong phase of the call"),
            Self::CommitExists => ("COMMIT_EXISTS", "Commitment exists"),
            Self::RevealExists => ("REVEAL_EXISTS", "Reveal exists"),
            Self::RevealMismatch => ("REVEAL_MISMATCH", "Reveal mismatch"),
            Self::AppealClosed => ("APPEAL_CLOSED", "Appeal closed"),
            Self::OfferLimit => ("OFFER_LIMIT", "Offer limit"),
            Self::RunIdMismatch => ("RUN_ID_MISMATCH", "Run id mismatch"),
            Self::RunExists => ("RUN_EXISTS", "Run exists"),
            Self::RunNotFound => ("RUN_NOT_FOUND", "Run not found"),
            Self::RunNotPending => ("RUN_NOT_PENDING", "Run not pending"),
            Self::RunNotActive => ("RUN_NOT_ACTIVE", "Run not active"),
            Self::NotRunMiner => ("NOT_RUN_MINER", "Not the run's miner"),
            Self::NotSubmitter => ("NOT_SUBMITTER", "Not the run's submitter"),
            Self::MinerExcluded => ("MINER_EXCLUDED", "Miner excluded from the run"),
            Self::MinerNotAllowed => ("MINER_NOT_ALLOWED", "Miner not allowed for the run"),
            Self::BondTooSmall => ("BOND_TOO_SMALL", "Bond too small"),
            Self::RefuseClosed => ("REFUSE_CLOSED", "Nothing to refuse"),
            Self::StepOutOfOrder => ("STEP_OUT_OF_ORDER", "Step out of order"),
            Self::StepLimit => ("STEP_LIMIT", "Step limit"),
            Self::TokensLimit => ("TOKENS_LIMIT", "Tokens limit"),
            Self::EscrowExhausted => ("ESCROW_EXHAUSTED", "Escrow exhausted"),
            Self::SettlementMismatch => ("SETTLEMENT_MISMATCH", "Settlement mismatch"),
            Self::BlobNotFound => ("BLOB_NOT_FOUND", "Blob not found"),
            Self::BlobNotFinal => ("BLOB_NOT_FINAL", "Blob not final"),
            Self::BlobExists => ("BLOB_EXISTS", "Blob exists"),
            Self::BlobChunk => ("BLOB_CHUNK", "Blob chunk"),
            Self::BlobHash => ("BLOB_HASH", "Blob hash"),
            Self::NotBlobOwner => ("NOT_BLOB_OWNER", "Not the blob's owner"),
            Self::TurnNotFound => ("TURN_NOT_FOUND", "Turn not found"),
            Self::NotValidator => ("NOT_VALIDATOR", "Not a validator"),
            Self::ValidatorUnchanged => ("VALIDATOR_UNCHANGED", "Validator unchanged"),
            Self::ValidatorSetLimit => ("VALIDATOR_SET_LIMIT", "Validator set limit"),
            Self::VoteLimit => ("VOTE_LIMIT", "Vote limit"),
            Self::AcceptanceInvalid => ("ACCEPTANCE_INVALID", "Acceptance invalid"),
            Self::EvidenceInvalid => ("EVIDENCE_INVALID", "Evidence invalid"),
            Self::ForkUnknown => ("FORK_UNKNOWN", "Unknown fork"),
            Self::ParamBounds => ("PARAM_BOUNDS", "Parameter out of bounds"),
            Self::PoolFull => ("POOL_FULL", "Pool full"),
            Self::SenderLimit => ("SENDER_LIMIT", "Sender limit"),
            Self::ClockSkew => ("CLOCK_SKEW", "Clock skew"),
            Self::Evicted => ("EVICTED", "Evicted from the pool"),
        }
    }

    /// Whether waiting can make the same transaction valid: because of what others do, because of
    /// the sender's own earlier transactions, because time passes, or because deadlines reopen runs
    /// and drop blobs. There is no guarantee that this happens.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(
            self,
            Self::ForkNotActive
                | Self::NonceTooHigh
                | Self::NonceTaken
                | Self::FeeAboveMax
                | Self::InsufficientBalance
                | Self::AgentMetadata
                | Self::AgentNotFound
                | Self::AgentRetired
                | Self::CallNotFound
                | Self::NotMember
                | Self::CallPhase
                | Self::OfferLimit
                | Self::RunNotFound
                | Self::RunNotPending
                | Self::RunNotActive
                | Self::NotRunMiner
                | Self::BondTooSmall
                | Self::RefuseClosed
                | Self::SettlementMismatch
                | Self::BlobExists
                | Self::BlobChunk
                | Self::BlobHash
                | Self::NotBlobOwner
                | Self::BlobNotFound
                | Self::BlobNotFinal
                | Self::TurnNotFound
                | Self::NotValidator
                | Self::ValidatorUnchanged
                | Self::ValidatorSetLimit
                | Self::VoteLimit
                | Self::AcceptanceInvalid
                | Self::EvidenceInvalid
                | Self::PoolFull
                | Self::SenderLimit
                | Self::ClockSkew
                | Self::Evicted
        )
    }

    /// Whether the sender of such a transaction broke a rule that needs no state, so that the
    /// transaction is wrong for every node at every time. All other codes depend on the state, on
    /// the space in the pool, or on the time.
    #[must_use]
    pub const fn is_peer_fault(self) -> bool {
        match self {
            Self::Malformed
            | Self::UnsupportedType
            | Self::AddressMismatch
            | Self::HashMismatch
            | Self::BadSignature
            | Self::ChainIdMismatch
            | Self::InvalidField => true,
            // A peer that is ahead may be past the fork, and its clock may differ.
            Self::ForkNotActive
            | Self::ClockSkew
            | Self::Evicted
            | Self::NonceStale
            | Self::NonceTooHigh
            | Self::NonceTaken
            | Self::FeeAboveMax
            | Self::InsufficientBalance
            | Self::AgentIdMismatch
            | Self::AgentMetadata
            | Self::AgentNotFound
            | Self::NotAgentOwner
            | Self::AgentRetired
            | Self::CallIdMismatch
            | Self::SelectorUnknown
            | Self::CallLimits
            | Self::MaxFeeTooLow
            | Self::CallNotFound
            | Self::NotMember
            | Self::CallPhase
            | Self::CommitExists
            | Self::RevealExists
            | Self::RevealMismatch
            | Self::AppealClosed
            | Self::OfferLimit
            | Self::RunIdMismatch
            | Self::RunExists
            | Self::RunNotFound
            | Self::RunNotPending
            | Self::RunNotActive
            | Self::NotRunMiner
            | Self::NotSubmitter
            | Self::MinerExcluded
            | Self::MinerNotAllowed
            | Self::BondTooSmall
            | Self::RefuseClosed
            | Self::StepOutOfOrder
            | Self::StepLimit
            | Self::TokensLimit
            | Self::EscrowExhausted
            | Self::SettlementMismatch
            | Self::BlobNotFound
            | Self::BlobNotFinal
            | Self::BlobExists
            | Self::BlobChunk
            | Self::BlobHash
            | Self::NotBlobOwner
            | Self::TurnNotFound
            | Self::NotValidator
            | Self::ValidatorUnchanged
            | Self::ValidatorSetLimit
            | Self::VoteLimit
            | Self::AcceptanceInvalid
            | Self::EvidenceInvalid
            | Self::ForkUnknown
            | Self::ParamBounds
            | Self::PoolFull
            | Self::SenderLimit => false,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A rejection: the input's fault, with the field, its value and what was expected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rejection {
    code: Code,
    field: Cow<'static, str>,
    got: String,
    expected: String,
    extra: Vec<(Cow<'static, str>, String)>,
}

/// The key for the fork that introduced the broken rule.
const SINCE: &str = "since";

impl Rejection {
    /// The field `field` has the value `got`, and the rule expects `expected`. Long values are
    /// shortened.
    pub fn new(
        code: Code,
        field: impl Into<Cow<'static, str>>,
        got: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self {
            code,
            field: field.into(),
            got: shorten(&got.to_string()),
            expected: expected.to_string(),
            extra: Vec::new(),
        }
    }

    /// A field that is missing or does not have its JSON type.
    pub fn malformed(
        field: impl Into<Cow<'static, str>>,
        got: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self::new(Code::Malformed, field, got, expected)
    }

    /// A field outside a limit or an enumeration.
    pub fn invalid(
        field: impl Into<Cow<'static, str>>,
        got: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self::new(Code::InvalidField, field, got, expected)
    }

    /// `what` would cost `needed`, and the sender has `available`.
    #[must_use]
    pub fn insufficient_balance(field: &'static str, needed: Amount, available: Amount) -> Self {
        Self::new(Code::InsufficientBalance, field, needed, format_args!("at most {available}"))
            .with("needed", needed)
            .with("available", available)
    }

    /// Adds a value to the machine-readable data.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.extra.push((Cow::Borrowed(key), value.to_string()));
        self
    }

    /// The same rejection for a field of an object at `place`: `ok` becomes `toolCalls[3].ok`.
    #[must_use]
    pub fn within(mut self, place: impl fmt::Display) -> Self {
        self.field = Cow::Owned(format!("{place}.{}", self.field));
        self
    }

    /// Says that the rule applies from a fork on whose height only the state knows. A peer that has
    /// not reached the fork may pass the transaction on without being at fault.
    #[must_use]
    pub fn since(self, fork: &'static str) -> Self {
        self.with(SINCE, fork)
    }

    /// Whether the sender of such a transaction broke a rule that applies to every node at every
    /// time.
    #[must_use]
    pub fn is_peer_fault(&self) -> bool {
        self.code.is_peer_fault() && !self.extra().any(|(key, _)| key == SINCE)
    }

    /// The fixed code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The field at fault.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The value found, shortened.
    #[must_use]
    pub fn got(&self) -> &str {
        &self.got
    }

    /// What was expected.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Further values by name.
    pub fn extra(&self) -> impl Iterator<Item = (&str, &str)> {
        self.extra.iter().map(|(key, value)| (key.as_ref(), value.as_str()))
    }

    /// The message for people: `Nonce stale: tx=4, state=5`.
    #[must_use]
    pub fn message(&self) -> String {
        let title = self.code.title();
        if matches!(self.code, Code::NonceStale | Code::NonceTooHigh) {
            return format!("{title}: tx={}, state={}", self.got, self.expected);
        }
        format!("{title}: {} is {}, expected {}", self.field, self.got, self.expected)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl std::error::Error for Rejection {}
