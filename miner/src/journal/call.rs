//! What the journal keeps about a call of the market for which this miner was drawn.

use std::fmt;

use serde::{Deserialize, Serialize};
use types::agent::ExecutorId;
use types::call::{Answer, CallStatus, Outcome};
use types::ids::{Committer, compute_commitment};
use types::{Address, Hash};

/// How far the work on a call is. Each phase is written before the effect that it announces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPhase {
    /// This miner was drawn; what it answers is open.
    Assigned,
    /// What it answers is fixed for good, and so is the salt.
    Executed,
    /// The commitment is signed and in the outbox.
    CommitSigned,
    /// The commitment is on the chain.
    Committed,
    /// The reveal is signed and in the outbox.
    RevealSigned,
    /// The answer is on the chain.
    Revealed,
    /// A commitment or a reveal is not on the chain and never will be, and why.
    Missed(String),
    /// All money of the call has moved.
    Over(CallOutcome),
}

/// What a member answers, and what opens its commitment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// What is compared.
    pub answer: Answer,
    /// The result's bytes as hex with `0x`; empty once the call is over.
    pub result: String,
    /// Why there is no success.
    pub reason: Option<String>,
    /// What makes the commitment unguessable.
    pub salt: Hash,
    /// When it was fixed, milliseconds since 1970.
    pub said_ms: u64,
}

/// How a member stands when a round is decided (docs/protocol.md section 18.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStanding {
    /// It gave the answer that stands.
    Agreed,
    /// It gave another answer.
    Dissented,
    /// It answered, and no group was large enough.
    Undecided,
    /// It said that it was unable.
    Unable,
    /// It committed and did not reveal.
    Withheld,
    /// It did not commit.
    Absent,
}

/// How a call was over for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallOutcome {
    /// How the call ended.
    pub status: CallStatus,
    /// How the member stood.
    pub standing: CallStanding,
    /// What it got, micro-OMBRA.
    pub paid_micro: u64,
    /// What it lost of its bond, micro-OMBRA.
    pub penalty_micro: u64,
}

/// A call in the journal, for the round for which this miner was drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEntry {
    /// The call.
    pub call: Hash,
    /// The round, 0 or 1.
    pub round: u8,
    /// The agent.
    pub agent: Hash,
    /// Its version.
    pub version: String,
    /// Who asked and pays.
    pub requester: Address,
    /// What a member gets at most, micro-OMBRA.
    pub budget_micro: u64,
    /// How far it is.
    pub phase: CallPhase,
    /// What is answered, once that is fixed.
    pub said: Option<Said>,
    /// The agent's executor, once its metadata were read.
    pub executor: Option<ExecutorId>,
    /// How this miner stood when its round was decided; an appeal may change it.
    pub standing: Option<CallStanding>,
    /// When it was noticed that this miner was drawn, milliseconds since 1970.
    pub assigned_ms: u64,
    /// How often the execution was begun and came to no end, because the miner died meanwhile.
    #[serde(default)]
    pub attempts: u32,
}

/// An answer of this miner that was compared with those of other members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The call.
    pub call: Hash,
    /// The round.
    pub round: u8,
    /// Whether it was the answer that stands.
    pub agreed: bool,
}

/// Why an executor is not offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// The last call whose members agreed about another answer.
    pub call: Hash,
    /// The round.
    pub round: u8,
    /// When that was noticed, milliseconds since 1970.
    pub since_ms: u64,
    /// When it is offered again, milliseconds since 1970; none if somebody has to find the cause first.
    #[serde(default)]
    pub until_ms: Option<u64>,
}

/// What became of all calls of a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Served {
    /// For how many rounds this miner was drawn.
    pub elected: u64,
    /// Of those that are over, in how many it gave the answer that stands.
    pub agreed: u64,
    /// In how many it gave another one.
    pub dissented: u64,
    /// In how many no group was large enough.
    pub undecided: u64,
    /// In how many it said that it was unable.
    pub unable: u64,
    /// In how many it committed and did not reveal.
    pub withheld: u64,
    /// In how many it did not commit.
    pub absent: u64,
    /// In how many it lost bond.
    pub penalised: u64,
    /// What it got, micro-OMBRA.
    pub earned_micro: u64,
    /// What it lost of its bond, micro-OMBRA.
    pub lost_micro: u64,
}

impl CallEntry {
    /// Whether nothing is left to do.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, CallPhase::Over(_))
    }

    /// The same call in another phase.
    #[must_use]
    pub fn at(&self, phase: CallPhase) -> Self {
        Self { phase, ..self.clone() }
    }

    /// The same call with nothing left to do. The chain has the result, so the journal drops it.
    #[must_use]
    pub fn over(&self, outcome: CallOutcome) -> Self {
        let said = self.said.clone().map(|said| Said { result: String::new(), ..said });
        let (phase, standing) = (CallPhase::Over(outcome), Some(outcome.standing));
        Self { phase, standing, said, ..self.clone() }
    }

    /// What hides the answer; none while it is open.
    #[must_use]
    pub fn commitment(&self, member: Address) -> Option<Hash> {
        let Said { answer, salt, .. } = self.said.as_ref()?;
        let by = Committer { call_id: self.call, round: self.round.into(), member };
        Some(compute_commitment(&by, salt, answer))
    }

    /// How far it is, in words.
    #[must_use]
    pub fn state(&self) -> String {
        let phase = match (&self.phase, self.standing) {
            (CallPhase::Revealed, Some(standing)) => format!("revealed; so far it {standing}"),
            (phase, _) => phase.to_string(),
        };
        match self.said.as_ref().and_then(|said| said.reason.as_deref()) {
            Some(why) => format!("{phase}: {why}"),
            None => phase,
        }
    }
}

impl Said {
    /// What the member says.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.answer.outcome
    }
}

impl CallStanding {
    /// A fixed word for programs and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::Dissented => "dissented",
            Self::Undecided => "undecided",
            Self::Unable => "unable",
            Self::Withheld => "withheld",
            Self::Absent => "absent",
        }
    }
}

impl fmt::Display for CallStanding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Agreed => "agrees with the answer that stands",
            Self::Dissented => "differs from the answer that stands",
            Self::Undecided => "answered, and too few members agreed",
            Self::Unable => "was unable to execute the agent",
            Self::Withheld => "committed and did not reveal",
            Self::Absent => "did not commit",
        })
    }
}

impl fmt::Display for CallPhase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assigned => formatter.write_str("it is to be executed"),
            Self::Executed => formatter.write_str("executed"),
            Self::CommitSigned => formatter.write_str("the commitment is signed"),
            Self::Committed => formatter.write_str("committed"),
            Self::RevealSigned => formatter.write_str("the reveal is signed"),
            Self::Revealed => formatter.write_str("revealed"),
            Self::Missed(why) => write!(formatter, "missed: {why}"),
            Self::Over(CallOutcome { status, standing, paid_micro, penalty_micro }) => write!(
                formatter,
                "ended as {}; the miner {standing}, got {paid_micro} micro and lost {penalty_micro}",
                status.as_str()
            ),
        }
    }
}

impl Served {
    /// The sums after a call went from one entry to another.
    #[must_use]
    pub(super) fn after(mut self, before: Option<&CallEntry>, now: &CallEntry) -> Self {
        if before.is_none() {
            self.elected = self.elected.saturating_add(1);
        }
        let CallPhase::Over(outcome) = &now.phase else { return self };
        if before.is_some_and(CallEntry::is_over) {
            return self;
        }
        let CallOutcome { status: _, standing, paid_micro, penalty_micro } = *outcome;
        let count = match standing {
            CallStanding::Agreed => &mut self.agreed,
            CallStanding::Dissented => &mut self.dissented,
            CallStanding::Undecided => &mut self.undecided,
            CallStanding::Unable => &mut self.unable,
            CallStanding::Withheld => &mut self.withheld,
            CallStanding::Absent => &mut self.absent,
        };
        *count = count.saturating_add(1);
        self.penalised = self.penalised.saturating_add(u64::from(penalty_micro > 0));
        self.earned_micro = self.earned_micro.saturating_add(paid_micro);
        self.lost_micro = self.lost_micro.saturating_add(penalty_micro);
        self
    }
}
