//! The records of calls in the state.

use serde::{Deserialize, Serialize};

use super::answer::{Answer, CallStatus, Consensus, Group, Outcome, When};
use crate::codec::encode;
use crate::{Address, Amount, Hash, Prices, TxLocation, Usage};

/// A call. Of its payload, which the AGENT_CALL contains, the record has only the hash.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The call's id.
    pub call_id: Hash,
    /// The id of the agent.
    pub agent_id: Hash,
    /// The version of the agent.
    pub agent_version: String,
    /// The address of the agent's owner, who gets the royalty.
    pub owner: Address,
    /// The address of the account that requested and paid for the call.
    pub requester: Address,
    /// The location of the AGENT_CALL.
    pub request: TxLocation,
    /// The block time of the request, in milliseconds.
    pub created_at: u64,
    /// The SHA-256 of the payload.
    pub payload_hash: Hash,
    /// The conversation that the request names.
    pub conversation_id: Option<Hash>,
    /// How the committee decides.
    pub consensus: Consensus,
    /// The number of members in the first round, including empty seats.
    pub committee_size: u8,
    /// Whether the decision can be appealed.
    pub is_appealable: bool,
    /// The prices at which the call pays each member.
    pub prices: Prices,
    /// The limits on the work of each member.
    pub limits: CallLimits,
    /// The escrow at the start.
    pub max_fee: Amount,
    /// How long members have to commit, in milliseconds.
    pub timeout_ms: u64,
    /// Payments to others that depend on the result.
    pub on_result: Vec<Conditional>,
    /// The amounts and times that apply to the call until it is settled.
    pub terms: CallTerms,
    /// The status.
    pub status: CallStatus,
    /// When the current phase ends; `None` while the call waits for an election, and once it is
    /// settled.
    pub deadline: Option<CallDeadline>,
    /// The rounds: none before the first election, at most two.
    pub rounds: Vec<CallRound>,
    /// The appeal, if there is one.
    pub appeal: Option<Appeal>,
    /// How the money was divided; `None` until the call is settled.
    pub bill: Option<Bill>,
    /// The [`members_digest`] of a settled call; zeros before.
    pub members_digest: Hash,
}

impl Call {
    /// Whether the call is settled: all of its money has been paid out, returned or burned.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.bill.is_some()
    }

    /// The last round; `None` before the first election.
    #[must_use]
    pub fn last_round(&self) -> Option<&CallRound> {
        self.rounds.last()
    }

    /// The round whose answer stands: the last round that a group decided.
    #[must_use]
    pub fn standing(&self) -> Option<(&CallRound, &Group)> {
        self.rounds.iter().rev().find_map(|round| Some((round, round.group.as_ref()?)))
    }
}

/// Limits on the work that one member does for a call, including nested agents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallLimits {
    /// Tokens and fuel.
    pub usage: Usage,
    /// The maximum size of the result in bytes.
    pub result_bytes: u64,
}

/// A payment that the chain makes if the call ends in a certain way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Conditional {
    /// The condition.
    pub when: When,
    /// The address of the recipient.
    pub to: Address,
    /// The amount to pay.
    pub amount: Amount,
}

/// The amounts and times that apply to a call, whatever votes change meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CallTerms {
    /// The most that one member's work can cost: its price at the call's limits.
    pub budget: Amount,
    /// The royalty that the agent's owner gets for a success.
    pub royalty: Amount,
    /// The minimum bond of a member.
    pub min_bond: Amount,
    /// The penalty for dissent, *D* in the rules.
    pub dissent_penalty: Amount,
    /// The penalty for not committing.
    pub absence_penalty: Amount,
    /// The penalty for committing without revealing.
    pub unrevealed_penalty: Amount,
    /// The penalty for an answer outside the deciding group.
    pub outside_penalty: Amount,
    /// The fee that each reveal burns.
    pub reveal_fee: Amount,
    /// How long members have to reveal, in milliseconds.
    pub reveal_ms: u64,
    /// How long a decision can be appealed, in milliseconds.
    pub appeal_ms: u64,
}

/// When a phase of a call ends: at the end of the first block that has at least this time and at
/// least this index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct CallDeadline {
    /// Block time in milliseconds.
    pub at: u64,
    /// The block's index.
    pub height: u64,
}

/// A round of a call, with the members that were drawn together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallRound {
    /// The number of seats, including empty ones.
    pub size: u8,
    /// The number of members that were drawn. The other seats are empty.
    pub members: u8,
    /// The number of members that have committed.
    pub committed: u8,
    /// The number of members that have revealed.
    pub revealed: u8,
    /// The index of the block that drew the members.
    pub elected_in: u64,
    /// The time of that block, in milliseconds.
    pub elected_at: u64,
    /// The SHA-256 over the candidates and their weights.
    pub candidates_hash: Hash,
    /// The block time of the decision.
    pub decided_at: Option<u64>,
    /// The group that decided the round.
    pub group: Option<Group>,
    /// The number of members in that group.
    pub agreeing: u8,
}

/// A member of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallMember {
    /// The round for which the member was drawn: 0, or 1 after an appeal.
    pub round: u8,
    /// The member's place in the order of the draw, from 0.
    pub seat: u8,
    /// The member's bond when it was drawn.
    pub bond: Amount,
    /// The part of the member's bond that is locked for the call, or was until the call was
    /// settled.
    pub lock: Amount,
    /// The member's commitment.
    pub commitment: Option<Commitment>,
    /// The answer that the member revealed.
    pub reveal: Option<Reveal>,
    /// What the member was paid.
    pub paid: Amount,
    /// The penalty that the member lost from its bond.
    pub penalty: Amount,
}

/// A member's commitment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Commitment {
    /// The hash that hides the answer until the reveal.
    pub hash: Hash,
    /// The location of the CALL_COMMIT.
    pub tx: TxLocation,
}

/// The answer that a member revealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reveal {
    /// The answer.
    pub answer: Answer,
    /// The location of the CALL_REVEAL, which contains the result.
    pub tx: TxLocation,
}

/// What a member did, as far as it counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said<'a> {
    /// The member did not commit.
    Nothing,
    /// The member committed and did not reveal.
    Withheld,
    /// The member could not execute the agent.
    Unable,
    /// The member answered.
    Answered(&'a Answer),
}

impl CallMember {
    /// What the member did, as far as it counts.
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
    /// The address of the appellant.
    pub appellant: Address,
    /// The location of the CALL_APPEAL.
    pub tx: TxLocation,
    /// The number of members that the second round should have.
    pub size: u8,
    /// What the appellant paid for the work of the second round.
    pub payment: Amount,
    /// The appellant's deposit.
    pub deposit: Amount,
}

/// How the money of a call was divided. The wages, the royalty, the conditional payments, the
/// refund, the appellant's part and the burned amount add up to the escrow, the appellant's payment
/// and deposit, and the members' penalties.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bill {
    /// What the members of both rounds were paid.
    pub wages: Amount,
    /// The royalty that the agent's owner was paid.
    pub royalty: Amount,
    /// What the recipients of conditional payments were paid.
    pub conditional: Amount,
    /// What was returned to the requester.
    pub refund: Amount,
    /// What was paid or returned to the appellant.
    pub appellant: Amount,
    /// What was burned, including burned penalties.
    pub burned: Amount,
    /// What members lost from their bonds.
    pub penalties: Amount,
    /// The number of members that gave the standing answer.
    pub agreeing: u8,
    /// The sum of the bonds that these members had when they were drawn.
    pub bond_behind: Amount,
}

/// A digest of the members of a settled call, of fixed length: the SHA-256 over the records of all
/// members, in the order of the draw.
#[must_use]
pub fn members_digest<'a>(
    members: impl IntoIterator<Item = (&'a Address, &'a CallMember)>,
) -> Hash {
    let mut bytes = Vec::new();
    for (address, member) in members {
        bytes.extend_from_slice(address.as_bytes());
        bytes.extend_from_slice(&encode(member));
    }
    Hash::digest(&bytes)
}
