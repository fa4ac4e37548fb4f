//! What the state stores of calls.

use serde::{Deserialize, Serialize};

use super::{Answer, CallStatus, Consensus, Group, Outcome, When};
use crate::{Address, Amount, Hash, Prices, TxLocation, Usage};

/// A call. What stands in its AGENT_CALL as text (payload, version) is there as hash or place only.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The call's id.
    pub call_id: Hash,
    /// The agent.
    pub agent_id: Hash,
    /// The version of it that is called.
    pub agent_version: String,
    /// Who gets the royalty.
    pub owner: Address,
    /// Who asked and paid.
    pub requester: Address,
    /// The AGENT_CALL.
    pub request: TxLocation,
    /// Block time of the request, in milliseconds.
    pub created_at: u64,
    /// SHA-256 of the payload's bytes.
    pub payload_hash: Hash,
    /// The conversation named in the request.
    pub conversation_id: Option<Hash>,
    /// Who decides.
    pub consensus: Consensus,
    /// How many members the first round has, empty seats included.
    pub committee_size: u8,
    /// Whether an answer can be appealed.
    pub is_appealable: bool,
    /// What it pays.
    pub prices: Prices,
    /// What the work on it may take.
    pub limits: CallLimits,
    /// The escrow at the start.
    pub max_fee: Amount,
    /// How long members have to commit, in milliseconds.
    pub timeout_ms: u64,
    /// What is paid to others when it succeeds.
    pub on_result: Vec<Conditional>,
    /// The numbers that hold for it until it is settled.
    pub terms: CallTerms,
    /// Where it is.
    pub status: CallStatus,
    /// When its phase ends; none while it waits for an election, and once it is settled.
    pub deadline: Option<CallDeadline>,
    /// Its rounds: none before the first election, two at most.
    pub rounds: Vec<CallRound>,
    /// The appeal, if there was one.
    pub appeal: Option<Appeal>,
    /// What became of the money; none until it is settled.
    pub bill: Option<Bill>,
    /// [`super::members_digest`] of a settled call; zero bytes before.
    pub members_digest: Hash,
}

impl Call {
    /// Whether all of its money has moved.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.bill.is_some()
    }

    /// The round whose members work or whose answer waits; none before the first election.
    #[must_use]
    pub fn last_round(&self) -> Option<&CallRound> {
        self.rounds.last()
    }

    /// The round whose answer stands: the last one that a group decided.
    #[must_use]
    pub fn standing(&self) -> Option<(&CallRound, &Group)> {
        self.rounds.iter().rev().find_map(|round| Some((round, round.group.as_ref()?)))
    }
}

/// What the work on a call may take, nested agents included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallLimits {
    /// Tokens and fuel.
    pub usage: Usage,
    /// The bytes of the result.
    pub result_bytes: u64,
}

/// A payment that the chain makes if the call ends so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Conditional {
    /// When it is made.
    pub when: When,
    /// Who gets it.
    pub to: Address,
    /// How much.
    pub amount: Amount,
}

/// The numbers that hold for a call, whatever votes change meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CallTerms {
    /// What one member can cost: the price of work at the limits.
    pub budget: Amount,
    /// What the agent's owner gets for a success.
    pub royalty: Amount,
    /// The least bond of a member.
    pub min_bond: Amount,
    /// The penalty for dissent, *D* in the rules.
    pub dissent_penalty: Amount,
    /// The penalty for no commitment.
    pub absence_penalty: Amount,
    /// The penalty for a commitment without a reveal.
    pub unrevealed_penalty: Amount,
    /// The penalty for an answer outside the group that decided.
    pub outside_penalty: Amount,
    /// What each reveal burns.
    pub reveal_fee: Amount,
    /// How long members have to reveal, in milliseconds.
    pub reveal_ms: u64,
    /// How long a decision can be appealed, in milliseconds.
    pub appeal_ms: u64,
}

/// When a phase of a call ends: at the end of the first block with this time and this index, or later
/// ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct CallDeadline {
    /// Block time in milliseconds.
    pub at: u64,
    /// The block's index.
    pub height: u64,
}

/// A round of a call: the members that were drawn together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallRound {
    /// How many members it should have.
    pub size: u8,
    /// How many were drawn; the other seats are empty.
    pub members: u8,
    /// How many have committed.
    pub committed: u8,
    /// How many have revealed.
    pub revealed: u8,
    /// The block that drew them.
    pub elected_in: u64,
    /// That block's time in milliseconds.
    pub elected_at: u64,
    /// SHA-256 over who could be drawn, with which weight.
    pub candidates_hash: Hash,
    /// Block time of the decision.
    pub decided_at: Option<u64>,
    /// The group that decided.
    pub group: Option<Group>,
    /// How many members belong to it.
    pub agreeing: u8,
}

/// A member of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallMember {
    /// The round it was drawn for, 0 or 1.
    pub round: u8,
    /// Which it was in the order of the draw, from 0.
    pub seat: u8,
    /// Its bond when it was drawn.
    pub bond: Amount,
    /// What is locked of its bond for the call; was, once the call is settled.
    pub lock: Amount,
    /// What it committed to.
    pub commitment: Option<Commitment>,
    /// What it revealed.
    pub reveal: Option<Reveal>,
    /// What it got.
    pub paid: Amount,
    /// What it lost of its bond.
    pub penalty: Amount,
}

/// A member's commitment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Commitment {
    /// Hides the answer.
    pub hash: Hash,
    /// The CALL_COMMIT.
    pub tx: TxLocation,
}

/// A member's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reveal {
    /// The answer.
    pub answer: Answer,
    /// The CALL_REVEAL, which has the result's bytes.
    pub tx: TxLocation,
}

/// What counts of what a member did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said<'a> {
    /// It did not commit.
    Nothing,
    /// It committed and did not reveal.
    Withheld,
    /// It could not execute the agent.
    Unable,
    /// It answered.
    Answered(&'a Answer),
}

impl CallMember {
    /// What counts of what it did.
    #[must_use]
    pub const fn said(&self) -> Said<'_> {
        match (&self.commitment, &self.reveal) {
            (None, _) => Said::Nothing,
            (Some(_), None) => Said::Withheld,
            (Some(_), Some(Reveal { answer, .. })) => match answer.outcome {
                Outcome::Unable => Said::Unable,
                Outcome::Success | Outcome::Failure => Said::Answered(answer),
            },
        }
    }
}

/// An appeal against the decision of a first round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Appeal {
    /// Who appealed.
    pub appellant: Address,
    /// The CALL_APPEAL.
    pub tx: TxLocation,
    /// How many members the second round should have.
    pub size: u8,
    /// What it paid for their work.
    pub payment: Amount,
    /// What it lays down.
    pub deposit: Amount,
}

/// What became of the money of a call. Together with what members were paid it is the escrow, what the
/// appellant paid and laid down, and the penalties of the members.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bill {
    /// To the members of both rounds.
    pub wages: Amount,
    /// To the agent's owner.
    pub royalty: Amount,
    /// To those that conditional payments name.
    pub conditional: Amount,
    /// Back to the requester.
    pub refund: Amount,
    /// To the appellant.
    pub appellant: Amount,
    /// Burned, of penalties too.
    pub burned: Amount,
    /// What members lost of their bonds.
    pub penalties: Amount,
    /// How many members gave the answer that stands.
    pub agreeing: u8,
    /// The sum of their bonds when they were drawn.
    pub bond_behind: Amount,
}
