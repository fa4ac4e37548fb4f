//! What the journal keeps about a run.

use std::fmt;

use agent::messages::{Output, ToolCall};
use agent::text::{CUT_OFF, cut};
use serde::{Deserialize, Serialize};
use types::{Address, Hash, RunStatus};

use crate::chain::RunView;
use crate::policy::Decision;
use crate::ports::{Ending, Move, ToolResult};

/// How far the work on a run is. Each phase is written before the effect that it announces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A slot is taken; nothing is signed.
    Reserved,
    /// The claim is signed and in the outbox.
    ClaimSigned,
    /// The claim is on the chain, and so are the steps that are counted.
    Working,
    /// The next step is signed and in the outbox.
    StepSigned,
    /// How it ends is decided; nothing is signed.
    Ending(Ending),
    /// The settlement is signed and in the outbox.
    FinishSigned(Ending),
    /// Nothing is left to do.
    Over(Outcome),
}

/// How the work on a run was over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run has ended on the chain with this miner's work.
    Ended {
        /// Its status.
        status: RunStatus,
        /// What this miner got, micro-OMBRA.
        reward_micro: u64,
    },
    /// Another miner has it.
    LostTo(Address),
    /// The claim was refused, with the code.
    ClaimRefused(String),
    /// The run was taken back or ended before this miner had it.
    Gone,
    /// This miner's claim lapsed.
    Lapsed,
    /// The run waits for another miner: this one ended it without having worked on it.
    GivenBack,
    /// The chain refuses this miner's transactions, with the last code. The deadlines of the chain
    /// end the run.
    Stuck(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { status, reward_micro } => {
                write!(formatter, "ended as {}, reward {reward_micro} micro", status.as_str())
            }
            Self::LostTo(miner) => write!(formatter, "lost to {miner}"),
            Self::ClaimRefused(code) => write!(formatter, "the claim was rejected: {code}"),
            Self::Gone => formatter.write_str("the run was gone before the claim"),
            Self::Lapsed => formatter.write_str("the claim lapsed"),
            Self::GivenBack => formatter.write_str("the run was given back to other miners"),
            Self::Stuck(code) => {
                write!(formatter, "the chain rejects the next transaction: {code}")
            }
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved => formatter.write_str("a slot is reserved"),
            Self::ClaimSigned => formatter.write_str("the claim is signed"),
            Self::Working => formatter.write_str("it is being worked on"),
            Self::StepSigned => formatter.write_str("a step is signed"),
            Self::Ending(ending) => write!(formatter, "it is to end as {}", ending.status.as_str()),
            Self::FinishSigned(ending) => {
                write!(formatter, "its end as {} is signed", ending.status.as_str())
            }
            Self::Over(outcome) => outcome.fmt(formatter),
        }
    }
}

/// A run in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The run as it was when its slot was reserved.
    pub run: RunView,
    /// How far it is.
    pub phase: Phase,
    /// Steps of this miner that are on the chain.
    pub steps: u64,
    /// The sum of their output tokens.
    pub tokens: u64,
    /// Turns of the conversation that are still to be written.
    pub turns: Vec<Turn>,
    /// How often the chain rejected the transaction of this phase.
    #[serde(rename = "refusals")]
    pub rejections: u32,
    /// When the slot was reserved, milliseconds since 1970.
    pub reserved_ms: u64,
    /// How a run that is over was ended, with what its requester reads; before that the phase has it.
    /// None in journals that were written before this was kept.
    #[serde(default)]
    pub ending: Option<Ending>,
}

/// A reason in a line has at most so many bytes.
const REASON_BYTES_MAX: usize = 160;

impl Entry {
    /// A run whose slot is taken.
    #[must_use]
    pub const fn reserve(run: RunView, now_ms: u64) -> Self {
        let phase = Phase::Reserved;
        Self {
            run,
            phase,
            steps: 0,
            tokens: 0,
            turns: Vec::new(),
            rejections: 0,
            reserved_ms: now_ms,
            ending: None,
        }
    }

    /// Whether the miner must not claim the run again. It may if another miner won the race for the run.
    #[must_use]
    pub const fn stands_against_claim(&self) -> bool {
        match &self.phase {
            Phase::Over(Outcome::LostTo(_) | Outcome::ClaimRefused(_) | Outcome::Gone) => false,
            Phase::Over(
                Outcome::Ended { .. } | Outcome::Lapsed | Outcome::GivenBack | Outcome::Stuck(_),
            )
            | Phase::Reserved
            | Phase::ClaimSigned
            | Phase::Working
            | Phase::StepSigned
            | Phase::Ending(_)
            | Phase::FinishSigned(_) => true,
        }
    }

    /// The same run in another phase.
    #[must_use]
    pub fn at(&self, phase: Phase) -> Self {
        let ending = match &phase {
            Phase::Over(outcome) => self.ending_of(outcome),
            Phase::Reserved
            | Phase::ClaimSigned
            | Phase::Working
            | Phase::StepSigned
            | Phase::Ending(_)
            | Phase::FinishSigned(_) => None,
        };
        Self { phase, ending, ..self.clone() }
    }

    /// What is kept of the end of a run: what was signed, or why something else happened.
    fn ending_of(&self, outcome: &Outcome) -> Option<Ending> {
        let Outcome::Ended { status, .. } = outcome else { return self.decided().cloned() };
        let signed = match &self.phase {
            Phase::FinishSigned(ending) => Some(ending),
            Phase::Over(_) => self.ending.as_ref(),
            Phase::Reserved
            | Phase::ClaimSigned
            | Phase::Working
            | Phase::StepSigned
            | Phase::Ending(_) => None,
        };
        let signed = signed.filter(|ending| ending.status == *status);
        Some(signed.cloned().unwrap_or_else(|| Ending::without_answer(*status, others(*status))))
    }

    /// How it ends or ended, as far as that is decided.
    #[must_use]
    pub const fn decided(&self) -> Option<&Ending> {
        match &self.phase {
            Phase::Ending(ending) | Phase::FinishSigned(ending) => Some(ending),
            Phase::Over(_) => self.ending.as_ref(),
            Phase::Reserved | Phase::ClaimSigned | Phase::Working | Phase::StepSigned => None,
        }
    }

    /// How far it is, in words; with the reason, if there is no answer.
    #[must_use]
    pub fn state(&self) -> String {
        let failed = self.decided().filter(|ending| ending.status != RunStatus::Completed);
        match failed.and_then(|ending| ending.answer.as_deref()) {
            Some(why) => format!("{}: {}", self.phase, reason(why)),
            None => self.phase.to_string(),
        }
    }

    /// Whether nothing is left to do.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over(_))
    }
}

/// Why a run ended that this miner did not end.
const fn others(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Timeout => "a deadline of the chain ended the run before this miner did",
        RunStatus::Pending
        | RunStatus::Claimed
        | RunStatus::Running
        | RunStatus::Completed
        | RunStatus::Failed
        | RunStatus::InsufficientFunds
        | RunStatus::Cancelled => "the run was ended, and not as this journal has it",
    }
}

/// The reason in an answer, as a line: what there is of an answer comes before it.
fn reason(answer: &str) -> String {
    let why = answer.rsplit_once(CUT_OFF).map_or(answer, |(_, why)| why.trim_end_matches(']'));
    cut(why, REASON_BYTES_MAX).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A turn of a conversation to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// `assistant` or `tool`.
    pub role: String,
    /// The text, at most 16,384 bytes.
    pub content: String,
}

/// One model iteration, with the calls that follow from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRecord {
    /// What the model said.
    pub output: Output,
    /// The calls of tools, in their order.
    pub calls: Vec<CallRecord>,
    /// How the run ends after this step, if it does.
    pub ending: Option<Ending>,
    /// Blobs of this step that could not be written; the step does without.
    pub blobs_refused: bool,
    /// What the model was offered, as [`agent::tools::offer_hash`] has it; none in journals that were
    /// written before this was kept.
    #[serde(default)]
    pub tools: Option<Hash>,
}

/// A call of a tool within a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// What is called.
    pub call: ToolCall,
    /// How far it is.
    pub state: CallState,
}

/// How far a call of a tool is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// It was not begun.
    Wanted,
    /// It is about to begin, or has begun: after a crash its outcome is lost.
    Begun,
    /// It is done.
    Done(ToolResult),
    /// It was begun again after a crash, because repeating it does no harm. It is not begun a third time: what
    /// it does may be what kills the miner.
    Repeated,
}

impl StepRecord {
    /// A step from an output and what follows from it.
    #[must_use]
    pub fn new(output: Output, then: Move) -> Self {
        let (calls, ending) = match then {
            Move::Tools(calls) => (calls, None),
            Move::Again => (Vec::new(), None),
            Move::Finish(ending) => (Vec::new(), Some(ending)),
        };
        let wanted = |call| CallRecord { call, state: CallState::Wanted };
        let calls = calls.into_iter().map(wanted).collect();
        Self { output, calls, ending, blobs_refused: false, tools: None }
    }

    /// The same, where the model was offered these tools.
    #[must_use]
    pub fn offered(self, tools: Hash) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// Tokens that were put out in this step: by the model of the run, and for its tools.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let of_tools = self.results().iter().map(|it| it.tokens).fold(0, u64::saturating_add);
        u64::from(self.output.output_tokens).saturating_add(of_tools)
    }

    /// The results, as far as the calls are done.
    #[must_use]
    pub fn results(&self) -> Vec<ToolResult> {
        let done = |record: &CallRecord| match &record.state {
            CallState::Done(result) => Some(result.clone()),
            CallState::Wanted | CallState::Begun | CallState::Repeated => None,
        };
        self.calls.iter().filter_map(done).collect()
    }

    /// Whether all calls are done.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.results().len() == self.calls.len()
    }
}

/// What a signed transaction is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// AGENT_CLAIM.
    Claim,
    /// AGENT_STEP.
    Step {
        /// Its tokens.
        tokens: u64,
    },
    /// AGENT_FINISH.
    Finish,
    /// A transaction of a blob.
    Blob {
        /// What it burns besides its inclusion fee, micro-OMBRA: 0 to finalize it.
        burns_micro: u64,
    },
    /// MINER_BOND, for the claim of the run.
    Bond {
        /// How much is added, micro-OMBRA.
        micro: u64,
    },
    /// CHAT_TURN.
    Turn,
    /// CALL_COMMIT, for the call that `run` names.
    Commit {
        /// The round for which the miner was drawn.
        round: u8,
    },
    /// CALL_REVEAL, for the call that `run` names.
    Reveal {
        /// The round for which the miner was drawn.
        round: u8,
    },
    /// MINER_OFFER; it is of no run.
    Offer,
    /// MINER_BOND, so that offers count; it is of no run.
    Stake {
        /// How much is added, micro-OMBRA.
        micro: u64,
    },
    /// Nothing: it takes the nonce of a transaction that was refused, for those after it.
    Filler,
    /// TRANSFER of what the wallet does not need to the cold address; it is of no run.
    Sweep {
        /// Who gets it.
        to: Address,
        /// How much, micro-OMBRA.
        micro: u64,
    },
}

/// A signed transaction that is not yet known to be included or refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parcel {
    /// Its nonce.
    pub nonce: u64,
    /// Its hash.
    pub hash: Hash,
    /// The signed text, sent as it is however often.
    pub text: String,
    /// The run or the call that it belongs to; zeros if it is of none.
    pub run: Hash,
    /// What it is for.
    pub purpose: Purpose,
}

impl Parcel {
    /// When it was signed, milliseconds since 1970; none if its text has no time.
    #[must_use]
    pub fn signed_ms(&self) -> Option<u64> {
        /// What is read of a transaction.
        #[derive(Deserialize)]
        struct Dated {
            timestamp: u64,
        }
        serde_json::from_str(&self.text).ok().map(|it: Dated| it.timestamp)
    }
}

/// What happened on one day (UTC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Day {
    /// Claims that were included.
    pub claims: u64,
    /// Claims that came too late or were refused.
    pub lost: u64,
    /// What transactions burned, micro-OMBRA.
    pub spent_micro: u64,
}

/// What was burned of the miner's bond on one day (UTC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Burned {
    /// Which day, counted from 1970.
    pub(super) day: u64,
    /// How much, micro-OMBRA.
    pub(super) micro: u64,
}

impl Burned {
    /// How much of it was burned on this day.
    pub(super) const fn on(self, day: u64) -> u64 {
        if self.day == day { self.micro } else { 0 }
    }
}

/// What was sent to the cold address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// Transfers that were included.
    pub times: u64,
    /// Their sum, micro-OMBRA.
    pub total_micro: u64,
    /// When the last one was signed, milliseconds since 1970; 0 if there was none.
    pub signed_ms: u64,
    /// What became of it: its hash and amount once it is included, or the code of its rejection; none
    /// while that is not known.
    pub last: Option<SweptLast>,
}

/// What became of a transfer to the cold address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweptLast {
    /// It is in a block.
    Included {
        /// The transaction.
        tx: Hash,
        /// How much, micro-OMBRA.
        micro: u64,
    },
    /// It never will be.
    Refused {
        /// The code of docs/protocol.md section 9.
        code: String,
    },
}

/// A decision about a run, and how often it was taken in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// What was decided.
    pub decision: Decision,
    /// When first, milliseconds since 1970.
    pub first_ms: u64,
    /// When last.
    pub last_ms: u64,
    /// How often.
    pub times: u64,
}
