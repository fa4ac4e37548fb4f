//! What blocks do to calls.

use serde::{Deserialize, Serialize};

use super::{Answer, Bill, CallStatus};
use crate::{Address, Amount, Hash};

/// What happened to a call (docs/protocol.md section 18).
///
/// The order of the variants and of their fields is stored. Append new variants at the end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CallChange {
    /// It was requested, and its fee is held.
    Requested {
        /// Who asked and paid.
        requester: Address,
        /// The agent.
        agent_id: Hash,
        /// What is held.
        escrow: Amount,
    },
    /// Members were drawn.
    Elected {
        /// The round, 0 or 1.
        round: u8,
        /// The members in the order of the draw.
        members: Vec<Address>,
        /// Until when they may commit; block time in milliseconds.
        until: u64,
    },
    /// Too few members could be drawn: the escrow went back.
    Unassigned {
        /// Who had asked.
        requester: Address,
        /// What went back.
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
        /// Until when; block time in milliseconds.
        until: u64,
    },
    /// A member revealed its answer.
    Revealed {
        /// The round.
        round: u8,
        /// The member.
        member: Address,
        /// What it answered.
        answer: Answer,
    },
    /// A round was decided.
    Decided {
        /// The round.
        round: u8,
        /// How the call ended, if no other round follows.
        status: CallStatus,
        /// How many members agreed.
        agreeing: u8,
    },
    /// Somebody doubted the decision.
    Appealed {
        /// Who.
        appellant: Address,
        /// How many members the second round should have.
        size: u8,
        /// What the appellant paid for their work.
        payment: Amount,
        /// What it lays down.
        deposit: Amount,
    },
    /// All of its money has moved.
    Settled {
        /// Who had asked.
        requester: Address,
        /// How it ended.
        status: CallStatus,
        /// What became of the money.
        bill: Bill,
    },
}

/// A miner that takes part in a draw (docs/protocol.md section 17.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Candidate {
    /// The miner.
    pub miner: Address,
    /// Its bond.
    pub weight: Amount,
    /// Whether it is left out for its capacity or for what its bond has free, and for nothing else: if it
    /// is drawn, its seat stays empty.
    pub is_full: bool,
}
