//! Receipts: what was said and done in a run, with the hashes that are on the chain; and earnings.

use agent::tools::args_hash;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use types::{Hash, RunStatus};

use crate::chain::{RunView, StepView};
use crate::journal::entry::{CallState, Outcome, Phase, StepRecord};
use crate::journal::{Journal, JournalError};

/// A whole run, as this miner kept it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The run.
    pub run: Hash,
    /// What was asked.
    pub prompt: String,
    /// How far it is, in words.
    pub state: String,
    /// How the run ended on the chain; none while it is open, if this miner had no part in its end,
    /// and in receipts that were made before this was told.
    #[serde(default)]
    pub ended: Option<ReceiptEnd>,
    /// The answer, or the reason why there is none.
    pub answer: Option<String>,
    /// The steps that are on the chain, by index from 0.
    pub steps: Vec<ReceiptStep>,
}

/// The end of a receipt's run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptEnd {
    /// Its status, as the chain has it: `timeout`.
    pub status: String,
    /// What this miner got, micro-OMBRA.
    pub reward_micro: u64,
}

/// One step of a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptStep {
    /// What the model said.
    pub output: String,
    /// What it thought.
    pub thoughts: Option<String>,
    /// Tokens that were paid for.
    pub output_tokens: u64,
    /// The calls of tools.
    pub calls: Vec<ReceiptCall>,
}

/// One call of a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptCall {
    /// The tool.
    pub name: String,
    /// What it was given.
    pub arguments: Map<String, Value>,
    /// What it gave back.
    pub result: String,
}

/// A place where a receipt and the chain differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {step}: {what} is {receipt} in the receipt and {chain} on the chain")]
pub struct Difference {
    /// Which step.
    pub step: u64,
    /// What differs.
    pub what: String,
    /// As the receipt's bytes give it.
    pub receipt: String,
    /// As the chain has it.
    pub chain: String,
}

/// The receipt of a run; none if the journal does not know it.
///
/// # Errors
/// When the journal cannot be read.
pub fn receipt(journal: &Journal, run: &Hash) -> Result<Option<Receipt>, JournalError> {
    let Some(entry) = journal.entry(run)? else { return Ok(None) };
    let on_chain = usize::try_from(entry.steps).unwrap_or(usize::MAX);
    let records = journal.steps(run)?;
    // Journals of before keep the end only of runs that a step ended.
    let of_step = || records.iter().take(on_chain).rev().find_map(|record| record.ending.clone());
    let ending = entry.decided().cloned().or_else(of_step);
    let ended = match entry.phase {
        Phase::Over(Outcome::Ended { status, reward_micro }) => {
            Some(ReceiptEnd { status: status.as_str().to_owned(), reward_micro })
        }
        Phase::Reserved
        | Phase::ClaimSigned
        | Phase::Working
        | Phase::StepSigned
        | Phase::Ending(_)
        | Phase::FinishSigned(_)
        | Phase::Over(_) => None,
    };
    Ok(Some(Receipt {
        run: *run,
        prompt: entry.run.prompt,
        state: entry.phase.to_string(),
        ended,
        answer: ending.and_then(|ending| ending.answer),
        steps: records.into_iter().take(on_chain).map(ReceiptStep::from).collect(),
    }))
}

impl From<StepRecord> for ReceiptStep {
    fn from(record: StepRecord) -> Self {
        Self {
            output_tokens: record.tokens(),
            calls: record.calls.into_iter().map(call).collect(),
            output: record.output.text,
            thoughts: record.output.thoughts,
        }
    }
}

fn call(record: crate::journal::entry::CallRecord) -> ReceiptCall {
    let result = match record.state {
        CallState::Done(result) => result.text,
        CallState::Wanted | CallState::Begun | CallState::Repeated => String::new(),
    };
    ReceiptCall { name: record.call.name, arguments: record.call.arguments, result }
}

impl Receipt {
    /// Hashes the receipt's texts again and compares them with the chain; no differences means that
    /// the receipt is what the chain vouches for.
    #[must_use]
    pub fn differences(&self, chain: &[StepView]) -> Vec<Difference> {
        let mut found = Vec::new();
        if self.steps.len() != chain.len() {
            found.push(Difference {
                step: u64::try_from(self.steps.len().min(chain.len())).unwrap_or(u64::MAX),
                what: "the number of steps".into(),
                receipt: self.steps.len().to_string(),
                chain: chain.len().to_string(),
            });
        }
        for (index, (step, view)) in (0..).zip(self.steps.iter().zip(chain)) {
            let mut compare = |what: &str, receipt: String, chain: String| {
                if receipt != chain {
                    found.push(Difference { step: index, what: what.into(), receipt, chain });
                }
            };
            compare("the index", index.to_string(), view.index.to_string());
            compare("outputTokens", step.output_tokens.to_string(), view.output_tokens.to_string());
            let hash = Hash::digest(step.output.as_bytes());
            compare("outputHash", hash.to_string(), view.output_hash.to_string());
            compare(
                "the number of calls",
                step.calls.len().to_string(),
                view.calls.len().to_string(),
            );
            for (call, (args, result)) in step.calls.iter().zip(&view.calls) {
                compare("argsHash", args_hash(&call.arguments).to_string(), args.to_string());
                let hash = Hash::digest(call.result.as_bytes());
                compare("resultHash", hash.to_string(), result.to_string());
            }
        }
        found
    }
}

/// What a miner's runs on the chain add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Earnings {
    /// Runs that ended with an answer.
    pub completed: u64,
    /// Runs that ended without one.
    pub failed: u64,
    /// Of those, runs that ended for lack of time.
    pub timed_out: u64,
    /// Runs that are open.
    pub open: u64,
    /// Rewards of ended runs that were paid, micro-OMBRA.
    pub earned_micro: u64,
    /// Tokens of open runs: what they will pay at most so far, micro-OMBRA.
    pub pending_micro: u64,
    /// Rewards that are held, micro-OMBRA.
    #[serde(skip_serializing_if = "is_none")]
    pub held_micro: u64,
    /// Rewards that requesters refused: nobody got them.
    #[serde(skip_serializing_if = "is_none")]
    pub refused: u64,
}

/// Whether there is nothing to tell: most chains have no such thing.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
const fn is_none(value: &u64) -> bool {
    *value == 0
}

impl Earnings {
    /// Adds up the runs of one miner.
    #[must_use]
    pub fn of(runs: &[RunView]) -> Self {
        let mut sum = Self::default();
        for run in runs {
            let reward = run.reward_micro.unwrap_or_default();
            if run.is_refused {
                sum.refused = sum.refused.saturating_add(1);
            } else if run.held_until_ms.is_some() {
                sum.held_micro = sum.held_micro.saturating_add(reward);
            } else {
                sum.earned_micro = sum.earned_micro.saturating_add(reward);
            }
            match run.status {
                RunStatus::Completed => sum.completed = sum.completed.saturating_add(1),
                RunStatus::Timeout => {
                    sum.failed = sum.failed.saturating_add(1);
                    sum.timed_out = sum.timed_out.saturating_add(1);
                }
                RunStatus::Failed | RunStatus::InsufficientFunds | RunStatus::Cancelled => {
                    sum.failed = sum.failed.saturating_add(1);
                }
                RunStatus::Claimed | RunStatus::Running => {
                    sum.open = sum.open.saturating_add(1);
                    sum.pending_micro = sum.pending_micro.saturating_add(run.tokens);
                }
                RunStatus::Pending => (),
            }
        }
        sum
    }
}
