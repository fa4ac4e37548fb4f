//! What follows in the journal from the fate of a transaction. Pure.

use types::RunStatus;
use types::params::CHAT_TURN_FEE;

use crate::journal::call::{CallEntry, CallPhase};
use crate::journal::entry::{Day, Entry, Outcome, Phase, Purpose, StepRecord};
pub(crate) use crate::outbox::Verdict;
use crate::ports::Ending;

/// After so many rejections in one phase something else is done.
const REJECTIONS_MAX: u32 = 5;

/// What the requester of a run reads whose step or end the chain keeps rejecting.
const REJECTED: &str = "the chain rejects what this miner reports of the run";

/// The entry after the fate of one of its transactions, and what is added to the counts of the day.
/// `step` is the record of the step that is next.
pub(super) fn settle(
    entry: &Entry,
    step: Option<&StepRecord>,
    purpose: &Purpose,
    verdict: &Verdict,
) -> (Entry, Day) {
    let none = Day::default();
    match (purpose, verdict) {
        (Purpose::Claim, Verdict::Included { .. }) => {
            (fresh(entry, Phase::Working), Day { claims: 1, ..none })
        }
        (Purpose::Claim, Verdict::Refused(code)) if is_of_nonce(code) => {
            (refused(entry, Phase::Reserved, code), none)
        }
        (Purpose::Claim, Verdict::Refused(code)) => {
            let lost = Phase::Over(Outcome::ClaimRefused(code.clone()));
            (entry.at(lost), Day { lost: 1, ..none })
        }
        (Purpose::Step { tokens }, Verdict::Included { .. }) => {
            let ending = step.and_then(|step| step.ending.clone());
            let mut after = fresh(entry, ending.map_or(Phase::Working, Phase::Ending));
            after.steps = entry.steps.saturating_add(1);
            after.tokens = entry.tokens.saturating_add(*tokens);
            (after, none)
        }
        (Purpose::Step { .. }, Verdict::Refused(code)) if is_of_run(code) => {
            let reason = format!("the chain refuses the step: {code}");
            let ending = Ending::without_answer(RunStatus::Failed, reason);
            (fresh(entry, Phase::Ending(ending)), none)
        }
        (Purpose::Step { .. }, Verdict::Refused(code)) => {
            (refused(entry, Phase::Working, code), none)
        }
        // The chain's record of the run says how it ended.
        (Purpose::Finish, Verdict::Included { .. }) => (entry.clone(), none),
        (Purpose::Finish, Verdict::Refused(code)) => {
            let mut phase = unsigned(&entry.phase);
            if let Phase::Ending(ending) = &mut phase
                && code == UNPAID
            {
                *ending = unpaid(ending.clone());
            }
            (refused(entry, phase, code), none)
        }
        (Purpose::Blob { burns_micro }, Verdict::Included { inclusion_micro }) => {
            let spent_micro = burns_micro.saturating_add(*inclusion_micro);
            (entry.clone(), Day { spent_micro, ..none })
        }
        (Purpose::Blob { .. }, Verdict::Refused(_)) => (entry.clone(), none),
        (Purpose::Turn, Verdict::Included { inclusion_micro }) => {
            let turns = entry.turns.iter().skip(1).cloned().collect();
            let spent_micro = CHAT_TURN_FEE.get().saturating_add(*inclusion_micro);
            let day = Day { spent_micro, ..none };
            (Entry { turns, ..entry.clone() }, day)
        }
        // The money is in the bond, and the claim is next.
        (Purpose::Bond { .. }, Verdict::Included { .. }) => (entry.clone(), none),
        (Purpose::Bond { .. }, Verdict::Refused(code)) if is_of_nonce(code) => {
            (refused(entry, Phase::Reserved, code), none)
        }
        (Purpose::Bond { .. }, Verdict::Refused(code)) => {
            (entry.at(Phase::Over(Outcome::ClaimRefused(code.clone()))), none)
        }
        // Turns are a courtesy: the work goes on without them.
        (Purpose::Turn, Verdict::Refused(_)) => {
            (Entry { turns: Vec::new(), ..entry.clone() }, none)
        }
        // They are of no run.
        (
            Purpose::Commit { .. }
            | Purpose::Reveal { .. }
            | Purpose::Offer
            | Purpose::Stake { .. }
            | Purpose::Filler
            | Purpose::Sweep { .. },
            _,
        ) => (entry.clone(), none),
    }
}

/// The entry of a call after the fate of the transaction of its phase. What a rejection means follows from
/// the chain's record of the call.
pub(super) fn settle_call(entry: &CallEntry, verdict: &Verdict) -> CallEntry {
    let phase = match (&entry.phase, verdict) {
        (CallPhase::CommitSigned, Verdict::Included { .. }) => CallPhase::Committed,
        (CallPhase::CommitSigned, Verdict::Refused(_)) => CallPhase::Executed,
        (CallPhase::RevealSigned, Verdict::Included { .. }) => CallPhase::Revealed,
        (CallPhase::RevealSigned, Verdict::Refused(_)) => CallPhase::Committed,
        (
            phase @ (CallPhase::Assigned
            | CallPhase::Executed
            | CallPhase::Committed
            | CallPhase::Revealed
            | CallPhase::Missed(_)
            | CallPhase::Over(_)),
            _,
        ) => phase.clone(),
    };
    entry.at(phase)
}

/// The phase before a signature.
pub(super) fn unsigned(phase: &Phase) -> Phase {
    match phase {
        Phase::ClaimSigned => Phase::Reserved,
        Phase::StepSigned => Phase::Working,
        Phase::FinishSigned(ending) => Phase::Ending(ending.clone()),
        Phase::Reserved | Phase::Working | Phase::Ending(_) | Phase::Over(_) => phase.clone(),
    }
}

fn fresh(entry: &Entry, phase: Phase) -> Entry {
    Entry { rejections: 0, ..entry.at(phase) }
}

/// Back to the phase before, unless that was tried too often. Then the run ends without what the chain
/// rejects, because a run that lapses costs the bond that its claim has locked. Only if the chain rejects
/// that end, too, the run is given up.
pub(super) fn refused(entry: &Entry, phase: Phase, code: &str) -> Entry {
    let rejections = entry.rejections.saturating_add(1);
    if rejections < REJECTIONS_MAX {
        return Entry { rejections, ..entry.at(phase) };
    }
    let bare = Ending::without_answer(RunStatus::Failed, REJECTED);
    let can_end = match &phase {
        Phase::Working => true,
        Phase::Ending(ending) => *ending != bare,
        Phase::Reserved
        | Phase::ClaimSigned
        | Phase::StepSigned
        | Phase::FinishSigned(_)
        | Phase::Over(_) => false,
    };
    if can_end {
        return fresh(entry, Phase::Ending(bare));
    }
    Entry { rejections, ..entry.at(Phase::Over(Outcome::Stuck(code.to_owned()))) }
}

/// Another transaction of the wallet took the nonce: the same can be signed with another one.
fn is_of_nonce(code: &str) -> bool {
    matches!(code, "NONCE_STALE" | "NONCE_TAKEN")
}

/// No step can be added to the run any more, or not this one, whose place nobody pays.
fn is_of_run(code: &str) -> bool {
    matches!(code, "ESCROW_EXHAUSTED" | "STEP_LIMIT" | "TOKENS_LIMIT" | UNPAID)
}

/// The code of the rejection of a long step or answer for whose place the wallet has no money.
const UNPAID: &str = "INSUFFICIENT_BALANCE";

/// The end of a run whose answer has no place: without one it costs nothing, and a run that does not end
/// costs the bond.
fn unpaid(ending: Ending) -> Ending {
    let bytes = ending.answer.map_or(0, |answer| answer.len());
    let reason = format!("the answer has {bytes} bytes and its place was refused: {UNPAID}");
    Ending::without_answer(RunStatus::Failed, reason)
}
