//! What to do next about a call: a pure function of the journal and of the chain.
//!
//! The worker asks after every effect and after every start, so that work and recovery are the same.

use types::Address;
use types::call::{CallStatus, Outcome};

use crate::chain::{CallView, MemberView, RoundView};
use crate::journal::call::{CallEntry, CallOutcome, CallPhase, CallStanding};

/// What to do next about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Execute the agent, and fix what is answered.
    Execute,
    /// Sign the commitment.
    Commit,
    /// Sign the reveal.
    Reveal,
    /// Send what is in the outbox, as it is.
    Resend,
    /// The chain has what this phase is about: write that down.
    Confirm(CallPhase),
    /// It is too late, for this reason: write that down.
    Miss(&'static str),
    /// The round is decided: write down how this miner stands.
    Judge(CallStanding),
    /// The work is over: write that down.
    Close(CallOutcome),
    /// Wait until something happens to the call soon.
    AwaitPhase,
    /// Wait until somebody appeals, or nobody can any more.
    AwaitSettlement,
    /// The node is behind the journal: ask it again later.
    AwaitNode,
    /// Nothing.
    Rest,
}

const FOREIGN: &str = "the chain has a commitment that this journal does not have";
const COMMIT_LATE: &str = "the time to commit was over";
const REVEAL_LATE: &str = "the time to reveal was over";

/// The next step. `chain` is the call as the chain has it.
#[must_use]
pub fn next(entry: &CallEntry, chain: Option<&CallView>, me: &Address) -> Step {
    if entry.is_over() {
        return Step::Rest;
    }
    // What is in the outbox has a fate, and the outbox finds it.
    if matches!(entry.phase, CallPhase::CommitSigned | CallPhase::RevealSigned) {
        return Step::Resend;
    }
    let Some(view) = chain else { return Step::AwaitNode };
    let Some((round, member)) = view.member(entry.round, me) else { return Step::AwaitNode };
    if view.is_settled {
        return Step::Close(outcome(view, member));
    }
    let status = if view.is_last(entry.round) { Some(view.status) } else { None };
    match &entry.phase {
        CallPhase::Assigned => assigned(member, status),
        CallPhase::Executed => executed(entry, member, status, me),
        CallPhase::Committed => committed(member, status),
        CallPhase::Revealed | CallPhase::Missed(_) => after(entry, round, member),
        CallPhase::CommitSigned | CallPhase::RevealSigned => Step::Resend,
        CallPhase::Over(_) => Step::Rest,
    }
}

/// Nothing is answered yet. `status` is that of the call while this is its last round.
fn assigned(member: &MemberView, status: Option<CallStatus>) -> Step {
    if member.commitment.is_some() {
        return Step::Miss(FOREIGN);
    }
    if status == Some(CallStatus::Committing) { Step::Execute } else { Step::Miss(COMMIT_LATE) }
}

fn executed(
    entry: &CallEntry,
    member: &MemberView,
    status: Option<CallStatus>,
    me: &Address,
) -> Step {
    match member.commitment {
        Some(commitment) if entry.commitment(*me) == Some(commitment) => {
            Step::Confirm(CallPhase::Committed)
        }
        Some(_) => Step::Miss(FOREIGN),
        None if status == Some(CallStatus::Committing) => Step::Commit,
        None => Step::Miss(COMMIT_LATE),
    }
}

fn committed(member: &MemberView, status: Option<CallStatus>) -> Step {
    if member.revealed.is_some() {
        return Step::Confirm(CallPhase::Revealed);
    }
    match (member.commitment, status) {
        (None, _) => Step::AwaitNode,
        (Some(_), Some(CallStatus::Committing)) => Step::AwaitPhase,
        (Some(_), Some(CallStatus::Revealing)) => Step::Reveal,
        (Some(_), _) => Step::Miss(REVEAL_LATE),
    }
}

/// There is nothing to send any more.
fn after(entry: &CallEntry, round: &RoundView, member: &MemberView) -> Step {
    if !round.is_decided {
        return Step::AwaitPhase;
    }
    let standing = standing(member);
    if entry.standing == Some(standing) { Step::AwaitSettlement } else { Step::Judge(standing) }
}

/// How a member of a decided round stands.
#[must_use]
pub fn standing(member: &MemberView) -> CallStanding {
    match (&member.commitment, &member.revealed, member.agreed) {
        (None, _, _) => CallStanding::Absent,
        (Some(_), None, _) => CallStanding::Withheld,
        (Some(_), Some(answer), _) if answer.outcome == Outcome::Unable => CallStanding::Unable,
        (Some(_), Some(_), Some(true)) => CallStanding::Agreed,
        (Some(_), Some(_), Some(false)) => CallStanding::Dissented,
        (Some(_), Some(_), None) => CallStanding::Undecided,
    }
}

fn outcome(view: &CallView, member: &MemberView) -> CallOutcome {
    CallOutcome {
        status: view.status,
        standing: standing(member),
        paid_micro: member.paid_micro,
        penalty_micro: member.penalty_micro,
    }
}
