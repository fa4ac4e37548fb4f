//! What blocks do to calls.

use serde::{Deserialize, Serialize};

use super::answer::{Answer, CallStatus};
use super::records::Bill;
use crate::{Address, Amount, Hash};

/// What happened to a call (docs/protocol.md section 18).
///
/// The order of the variants and of their fields is stored. Append new variants at the end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CallChange {
    /// An AGENT_CALL requested the call, and its fee is in escrow.
    Requested {
        /// The address of the account that requested and paid for the call.
        requester: Address,
        /// The id of the agent.
        agent_id: Hash,
        /// The amount in escrow.
        escrow: Amount,
    },
    /// The chain drew the members of a round.
    Elected {
        /// The round: 0, or 1 after an appeal.
        round: u8,
        /// The members in the order of the draw.
        members: Vec<Address>,
        /// The block time until which they may commit, in milliseconds.
        until: u64,
    },
    /// Too few members could be drawn, and the escrow was returned.
    Unassigned {
        /// The address of the account that requested the call.
        requester: Address,
        /// The amount that was returned.
        refund: Amount,
    },
    /// A member committed to its answer.
    Committed {
        /// The round.
        round: u8,
        /// The member.
        member: Address,
    },
    /// Members may reveal.
    Revealing {
        /// The block time until which they may reveal, in milliseconds.
        until: u64,
    },
    /// A member revealed its answer.
    Revealed {
        /// The round.
        round: u8,
        /// The member.
        member: Address,
        /// The member's answer.
        answer: Answer,
    },
    /// The members of a round reached a decision, or the round ended without one.
    Decided {
        /// The round.
        round: u8,
        /// The status of the call after the round.
        status: CallStatus,
        /// The number of members that agreed.
        agreeing: u8,
    },
    /// An account appealed the decision.
    Appealed {
        /// The address of the appellant.
        appellant: Address,
        /// The number of members that the second round should have.
        size: u8,
        /// What the appellant paid for the work of the second round.
        payment: Amount,
        /// The appellant's deposit.
        deposit: Amount,
    },
    /// The call is settled: all of its money has been paid out, returned or burned.
    Settled {
        /// The address of the account that requested the call.
        requester: Address,
        /// The final status of the call.
        status: CallStatus,
        /// How the money was divided.
        bill: Bill,
    },
    /// Too few miners were eligible for the second round, and the decision can be appealed again.
    AppealFailed {
        /// The address of the appellant.
        appellant: Address,
        /// The status of the call by its first decision.
        status: CallStatus,
        /// What the appellant got back of its payment and deposit.
        returned: Amount,
        /// The block time until which the decision can be appealed, in milliseconds.
        until: u64,
    },
}

/// A miner that takes part in a draw (docs/protocol.md section 17.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Candidate {
    /// The miner.
    pub miner: Address,
    /// The miner's bond.
    pub weight: Amount,
    /// Whether the miner is excluded only by its capacity or by the free part of its bond. If such
    /// a miner is drawn, its seat stays empty.
    pub is_full: bool,
}
