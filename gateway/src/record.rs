//! What the store has of a request: how far it is, what was sent for it, what it cost.
//!
//! ```text
//! reserved ──▶ signed ──▶ sent ──▶ running ──▶ settled
//!     │           │         │         │
//!     └───────────┴─────────┴─────────┴──────▶ unpaid
//! ```

use serde::{Deserialize, Serialize};
use types::Hash;

use crate::keys::KeyId;

/// The number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u64);

/// What a request asks the chain for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A run, by AGENT_REQUEST: one miner works on it.
    #[default]
    Run,
    /// A call of an agent, by AGENT_CALL: a committee of miners answers it.
    Call(Called),
}

impl Work {
    /// Whether it is a run.
    #[must_use]
    pub const fn is_run(&self) -> bool {
        matches!(self, Self::Run)
    }
}

/// Which method of which agent is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Called {
    /// The agent.
    pub agent: Hash,
    /// The version of it.
    pub version: String,
    /// The method's canonical signature.
    pub method: String,
    /// How many members the committee has.
    pub committee: u8,
}

/// How far a request is. The member `run` is the id of what it made: of a run, or of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its money is kept for it; no AGENT_REQUEST or AGENT_CALL is signed.
    Reserved,
    /// That transaction is signed, and its fate is not known.
    Signed {
        /// What it makes.
        run: Hash,
    },
    /// The chain refused that transaction.
    Refused {
        /// The code of docs/protocol.md section 9.
        code: String,
    },
    /// The run is on the chain, and waits for a miner; the call waits for its committee.
    Sent {
        /// The run.
        run: Hash,
        /// Since when, by the clock of the gateway, milliseconds since 1970.
        since_ms: u64,
    },
    /// A miner works on the run, or a committee on the call.
    Running {
        /// The run.
        run: Hash,
    },
    /// The run or the call has ended, and money was paid for it.
    Settled(Bill),
    /// The request has ended, and no miner was paid.
    Unpaid {
        /// The run, if there was one.
        run: Option<Hash>,
        /// Why.
        why: Unpaid,
        /// What its transactions burned, micro-OMBRA.
        fees_micro: u64,
    },
}

/// What a run or a call cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bill {
    /// The run.
    pub run: Hash,
    /// How it ended: a status of a run (docs/protocol.md section 5.5) or of a call (section 18).
    pub status: String,
    /// What the miner got; of a call, what its members and the agent's owner got; micro-OMBRA.
    pub reward_micro: u64,
    /// What the steps burned; of a call, what the reveals burned; micro-OMBRA.
    pub network_fee_micro: u64,
    /// What the gateway's transactions for it burned, micro-OMBRA.
    pub fees_micro: u64,
    /// The transaction that settled it, where it is known.
    pub settlement_tx: Option<Hash>,
    /// The block of that transaction.
    pub block: Option<u64>,
}

impl Bill {
    /// All that was paid, micro-OMBRA.
    #[must_use]
    pub const fn cost_micro(&self) -> u64 {
        let run_micro = self.reward_micro.saturating_add(self.network_fee_micro);
        run_micro.saturating_add(self.fees_micro)
    }
}

/// Why no miner was paid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unpaid {
    /// No miner took it in time.
    NoMiner,
    /// The client took it back before a miner had it.
    Cancelled,
    /// The chain refused a transaction; its code.
    Refused(String),
    /// A miner ended the run without having been paid; what it said.
    Failed(String),
    /// The gateway ended before it had signed anything.
    Interrupted,
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A transaction of the blob with a long prompt.
    Blob {
        /// What it burns besides its place, micro-OMBRA.
        burns_micro: u64,
    },
    /// AGENT_REQUEST or AGENT_CALL.
    Request,
    /// AGENT_CANCEL.
    Cancel,
}

/// A transaction that is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Included {
    /// Its hash.
    pub hash: Hash,
    /// What it was for.
    pub purpose: Purpose,
}

/// Whether the client got its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// A connection waits for it.
    Waiting,
    /// The connection was lost, and nobody picked the request up since.
    Lost,
    /// It was sent.
    Done,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its number.
    pub id: RequestId,
    /// Whose it is.
    pub key: KeyId,
    /// SHA-256 of its body.
    pub body: Hash,
    /// SHA-256 of its `Idempotency-Key`, if it had one.
    pub name: Option<Hash>,
    /// When it came, milliseconds since 1970.
    pub created_ms: u64,
    /// The model that it asked.
    pub model: String,
    /// What it asks the chain for.
    #[serde(default, skip_serializing_if = "Work::is_run")]
    pub work: Work,
    /// What the run or the call has in escrow, micro-OMBRA.
    pub max_fee_micro: u64,
    /// What is reserved for it while it has not ended, micro-OMBRA.
    pub reserved_micro: u64,
    /// How far it is.
    pub phase: Phase,
    /// What was sent for it and is in a block.
    pub included: Vec<Included>,
    /// Whether the client got its answer.
    pub delivery: Delivery,
}

impl Record {
    /// Whether nothing is left to do.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Settled(_) | Phase::Unpaid { .. })
    }

    /// The run, if it has made one.
    #[must_use]
    pub const fn run(&self) -> Option<Hash> {
        if self.work.is_run() { self.made() } else { None }
    }

    /// The call, if it has made one.
    #[must_use]
    pub const fn call(&self) -> Option<Hash> {
        if self.work.is_run() { None } else { self.made() }
    }

    /// The run or the call, if it has made one.
    #[must_use]
    pub const fn made(&self) -> Option<Hash> {
        match &self.phase {
            Phase::Signed { run }
            | Phase::Sent { run, .. }
            | Phase::Running { run }
            | Phase::Settled(Bill { run, .. }) => Some(*run),
            Phase::Unpaid { run, .. } => *run,
            Phase::Reserved | Phase::Refused { .. } => None,
        }
    }

    /// What it has cost, once it has ended, micro-OMBRA.
    #[must_use]
    pub const fn cost_micro(&self) -> u64 {
        match &self.phase {
            Phase::Settled(bill) => bill.cost_micro(),
            Phase::Unpaid { fees_micro, .. } => *fees_micro,
            Phase::Reserved
            | Phase::Signed { .. }
            | Phase::Refused { .. }
            | Phase::Sent { .. }
            | Phase::Running { .. } => 0,
        }
    }

    /// What may still leave the wallet for it, micro-OMBRA: nothing once its escrow is on the chain.
    #[must_use]
    pub const fn outstanding_micro(&self) -> u64 {
        match &self.phase {
            Phase::Reserved | Phase::Signed { .. } => self.reserved_micro,
            Phase::Refused { .. } | Phase::Settled(_) | Phase::Unpaid { .. } => 0,
            Phase::Sent { .. } | Phase::Running { .. } => {
                self.reserved_micro.saturating_sub(self.max_fee_micro)
            }
        }
    }

    /// The AGENT_REQUEST or AGENT_CALL, once it is in a block.
    #[must_use]
    pub fn request_tx(&self) -> Option<Hash> {
        let is_request = |it: &&Included| it.purpose == Purpose::Request;
        self.included.iter().find(is_request).map(|it| it.hash)
    }
}

#[cfg(test)]
mod tests {
    //! What stores of earlier releases have.

    use super::{Phase, Record};
    use crate::testing;

    #[test]
    fn a_row_from_before_calls_is_a_run_and_is_written_back_unchanged() {
        let record = testing::record(Phase::Reserved);
        let row = serde_json::to_string(&record).unwrap();
        assert!(!row.contains("work"), "{row}");
        let read: Record = serde_json::from_str(&row).unwrap();
        assert_eq!(record, read);
    }
}
