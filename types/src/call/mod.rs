//! Calls of the market: one paid request to an agent, the members that answer it, and what they agree
//! about (docs/protocol.md section 18).
//!
//! ```text
//! electing ──▶ committing ──▶ revealing ──▶ success, failed, timedOut ──▶ settled
//!     └─▶ unassigned                          └─ appealed ─▶ electing, a second round
//! ```

mod answer;
mod event;
mod limits;
mod records;

pub use answer::{Answer, CallStatus, Consensus, Group, Outcome, When};
pub use event::{CallChange, Candidate};
pub use limits::{
    CALLDATA_BYTES_MAX, COMMITTEE_MAX, ON_RESULT_MAX, PHASE_BLOCKS, result_bytes_max,
};
pub use records::{
    Appeal, Bill, Call, CallDeadline, CallLimits, CallMember, CallRound, CallTerms, Commitment,
    Conditional, Reveal, Said, members_digest,
};

#[cfg(test)]
mod tests;
