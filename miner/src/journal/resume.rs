//! What to do next about a run: a pure function of the journal and of the chain.
//!
//! The engine asks after every effect and after every start, so that work and recovery are the same.

use types::{Address, RunStatus};

use super::entry::{Entry, Outcome, Phase, StepRecord};
use crate::chain::RunView;
use crate::ports::Ending;

/// What to do next about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Decide again, and sign the claim.
    Claim,
    /// Send what is in the outbox, as it is.
    Resend,
    /// The chain has what was signed: write that down.
    Confirm,
    /// Write the next turn of the conversation.
    WriteTurn,
    /// Ask the model.
    Ask,
    /// Run the tools that the step still wants.
    RunTools,
    /// Sign the step.
    SignStep,
    /// Sign the settlement.
    SignFinish(Ending),
    /// Write down how it is to end.
    End(Ending),
    /// The work is over: write that down.
    Close(Outcome),
    /// The node is behind the journal: ask it again later.
    AwaitNode,
    /// Nothing.
    Rest,
}

/// The next action. `step` is the record of the step after those that are counted in `entry`, if the
/// journal has one; `chain` is the run as the chain has it.
#[must_use]
pub fn resume(
    entry: &Entry,
    step: Option<&StepRecord>,
    chain: Option<&RunView>,
    me: &Address,
) -> Action {
    if entry.is_over() {
        return Action::Rest;
    }
    let Some(view) = chain else {
        return absent(&entry.phase);
    };
    match (view.status, view.miner) {
        (RunStatus::Pending, _) => pending(&entry.phase, view, me),
        (RunStatus::Claimed | RunStatus::Running, Some(miner)) if miner == *me => {
            mine(entry, step, view)
        }
        (RunStatus::Claimed | RunStatus::Running, Some(miner)) => {
            Action::Close(lost(&entry.phase, miner, view, me))
        }
        (RunStatus::Claimed | RunStatus::Running, None) => Action::AwaitNode,
        (
            status @ (RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Timeout
            | RunStatus::InsufficientFunds
            | RunStatus::Cancelled),
            _,
        ) => Action::Close(ended(&entry.phase, status, view, me)),
    }
}

/// The chain does not have the run: it never had, or the node is behind.
const fn absent(phase: &Phase) -> Action {
    match phase {
        Phase::Reserved => Action::Close(Outcome::Gone),
        Phase::ClaimSigned
        | Phase::Working
        | Phase::StepSigned
        | Phase::Ending(_)
        | Phase::FinishSigned(_) => Action::AwaitNode,
        Phase::Over(_) => Action::Rest,
    }
}

/// The run waits for a miner: nobody claimed it yet, or this miner's claim lapsed.
fn pending(phase: &Phase, view: &RunView, me: &Address) -> Action {
    if view.excluded.contains(me) {
        return Action::Close(left(phase));
    }
    match phase {
        Phase::Reserved => Action::Claim,
        Phase::ClaimSigned => Action::Resend,
        Phase::Working | Phase::StepSigned | Phase::Ending(_) | Phase::FinishSigned(_) => {
            Action::AwaitNode
        }
        Phase::Over(_) => Action::Rest,
    }
}

/// This miner may not claim the run again: its claim lapsed, or it ended the run without having worked on
/// it. Whether an end that was signed came before the deadline the record of the run does not tell.
const fn left(phase: &Phase) -> Outcome {
    match phase {
        Phase::FinishSigned(_) => Outcome::GivenBack,
        Phase::Reserved
        | Phase::ClaimSigned
        | Phase::Working
        | Phase::StepSigned
        | Phase::Ending(_)
        | Phase::Over(_) => Outcome::Lapsed,
    }
}

/// Another miner has the run.
fn lost(phase: &Phase, miner: Address, view: &RunView, me: &Address) -> Outcome {
    if view.excluded.contains(me) { left(phase) } else { Outcome::LostTo(miner) }
}

/// The run is over on the chain.
fn ended(phase: &Phase, status: RunStatus, view: &RunView, me: &Address) -> Outcome {
    match view.miner {
        Some(miner) if miner == *me => {
            Outcome::Ended { status, reward_micro: view.reward_micro.unwrap_or_default() }
        }
        Some(miner) => lost(phase, miner, view, me),
        None if view.excluded.contains(me) => left(phase),
        None => Outcome::Gone,
    }
}

/// The run is this miner's and open.
fn mine(entry: &Entry, step: Option<&StepRecord>, view: &RunView) -> Action {
    let ahead = view.steps > entry.steps;
    let behind = view.steps < entry.steps;
    match &entry.phase {
        Phase::Reserved => Action::End(foreign("a claim")),
        Phase::ClaimSigned => Action::Confirm,
        Phase::StepSigned if view.steps == entry.steps.saturating_add(1) => Action::Confirm,
        Phase::Working | Phase::StepSigned | Phase::Ending(_) | Phase::FinishSigned(_)
            if behind =>
        {
            Action::AwaitNode
        }
        Phase::Working | Phase::StepSigned if ahead => Action::End(foreign("a step")),
        Phase::StepSigned | Phase::FinishSigned(_) => Action::Resend,
        Phase::Working | Phase::Ending(_) if !entry.turns.is_empty() => Action::WriteTurn,
        Phase::Ending(ending) => Action::SignFinish(ending.clone()),
        Phase::Working => match step {
            None => Action::Ask,
            Some(record) if record.is_complete() => Action::SignStep,
            Some(_) => Action::RunTools,
        },
        Phase::Over(_) => Action::Rest,
    }
}

/// The chain has something of this wallet that the journal does not know: nothing is guessed.
fn foreign(what: &str) -> Ending {
    let reason = format!("the miner's journal does not have {what} that is on the chain");
    Ending::without_answer(RunStatus::Failed, reason)
}
