//! The decision about one run.

use std::collections::BTreeSet;
use std::fmt;

use agent::backend::tokens_about;
use agent::messages::Constraint;
use agent::methods::bytes_min;
use serde::{Deserialize, Serialize};
use types::params::{AGENT_NETWORK_FEE_PER_STEP, AGENT_REWARD_PER_TOKEN};
use types::{Address, Hash, RunStatus};

use super::{Policy, Reason, Unit};
use crate::chain::{RunView, Stake};
use crate::engine::budget;
use crate::ports::Ask;

/// What a decision depends on, beside the policy and the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// The time, milliseconds since 1970.
    pub now_ms: u64,
    /// This miner.
    pub miner: Address,
    /// Its spendable balance.
    pub balance_micro: u64,
    /// Runs that are worked on, with reserved slots.
    pub runs_busy: u64,
    /// Claims of today.
    pub claims_today: u64,
    /// What today's transactions burned.
    pub spent_today_micro: u64,
    /// What was burned of this miner's bond today.
    pub burned_today_micro: u64,
    /// The model's name.
    pub model: String,
    /// Whether the node is behind the chain.
    pub node_syncing: bool,
    /// Why the back end cannot be asked; none if it can.
    pub backend_down: Option<String>,
    /// Tools of this miner that the run would be offered, by whitelist or by server.
    pub tools_offered: Vec<String>,
    /// Tools of the run that cannot be had now.
    pub tools_missing: Vec<String>,
    /// What the journal says about the run, if it knows it.
    pub journal: Option<String>,
    /// Somebody else's claim of the run in the pool.
    pub rival: Option<Address>,
    /// Bytes of the prompt, its blob included.
    pub prompt_bytes: u64,
    /// What is asked of the model; none if the request was not read yet.
    pub asked: Option<AskedWork>,
    /// The tokens of a prompt for which the model has no room, and the most that it has room for.
    pub too_long: Option<(u64, u64)>,
    /// Why the request cannot be worked on; none if it can.
    pub unreadable: Option<String>,
    /// This miner's bond; none if it was not asked for.
    pub bonded: Option<Bonded>,
    /// What the requester did with rewards that were held.
    pub refusals: Refusals,
}

/// A miner's bond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bonded {
    /// All of it, micro-OMBRA.
    pub bonded_micro: u64,
    /// The part that neither a run has locked nor a claim will that is under way.
    pub free_micro: u64,
}

/// What a requester did with rewards that were held, as the chain counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Runs whose reward was held.
    pub held: u64,
    /// Those that it refused.
    pub refused: u64,
}

/// What a request asks of the model, as far as it is money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedWork {
    /// About how many tokens the prompt has.
    pub prompt_tokens: u64,
    /// The tokens of the shortest answer, where the request allows only answers of a form, and no more
    /// than it allows.
    pub form_tokens: Option<u64>,
    /// Whether tools are offered, after whose calls the prompt is read again.
    pub has_tools: bool,
}

impl Refusals {
    /// What the chain says of an account; nothing while it has no bonds.
    #[must_use]
    pub fn of(stake: Option<Stake>) -> Self {
        let stake = stake.unwrap_or_default();
        Self { held: stake.rewards_held, refused: stake.rewards_refused }
    }
}

impl AskedWork {
    /// What is asked with a prompt of so many tokens.
    #[must_use]
    pub fn of(ask: &Ask<'_>, prompt_tokens: u64) -> Self {
        let form_tokens = match ask.constraint {
            // Thoughts are tokens that are paid as well.
            _ if ask.thinks => None,
            Constraint::Free => None,
            Constraint::Integer { .. } => Some(1),
            Constraint::OneOf(texts) => {
                Some(tokens_of(texts.iter().map(String::len).min().unwrap_or_default()))
            }
            Constraint::Json { schema, .. } => Some(tokens_of(bytes_min(schema))),
            Constraint::Call => {
                let calls = ask.tools.iter();
                let calls = calls.map(|it| it.name.len().saturating_add(bytes_min(&it.parameters)));
                Some(tokens_of(calls.min().unwrap_or_default()))
            }
        };
        let wanted = ask.output_tokens_left.map(u64::from);
        let form_tokens = form_tokens.into_iter().chain(wanted).min();
        Self { prompt_tokens, form_tokens, has_tools: !ask.tools.is_empty() }
    }
}

/// About how many tokens so many bytes of an answer are.
fn tokens_of(bytes: usize) -> u64 {
    tokens_about(u64::try_from(bytes).unwrap_or(u64::MAX)).max(1)
}

/// What to do about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Claim it after so many milliseconds.
    Claim {
        /// The wait before the claim is signed.
        after_ms: u64,
    },
    /// Never, unless the policy changes.
    Skip(Reason),
    /// Not now.
    Wait(Reason),
}

impl Decision {
    /// The reason's code, or `CLAIM`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Claim { .. } => "CLAIM",
            Self::Skip(reason) | Self::Wait(reason) => reason.code(),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim { after_ms } => write!(formatter, "claim it after {after_ms} ms"),
            Self::Skip(reason) => write!(formatter, "not to be claimed: {reason}"),
            Self::Wait(reason) => write!(formatter, "not now: {reason}"),
        }
    }
}

/// Decides about a run. Pure: the same arguments give the same decision.
#[must_use]
pub fn decide(policy: &Policy, run: &RunView, standing: &Circumstances) -> Decision {
    if let Some(reason) = skip(policy, run, standing) {
        return Decision::Skip(reason);
    }
    if let Some(reason) = wait(policy, run, standing) {
        return Decision::Wait(reason);
    }
    Decision::Claim { after_ms: jitter_ms(&standing.miner, &run.id, policy.claim_jitter_ms) }
}

/// How long a miner waits before it claims a run: 0 to `max_ms`, the same each time, so that miners
/// with the same policy do not all claim at once.
#[must_use]
pub fn jitter_ms(miner: &Address, run: &Hash, max_ms: u64) -> u64 {
    let digest = Hash::digest_parts(&[miner.to_string().as_bytes(), run.as_bytes()]);
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(digest.as_bytes()) {
        *to = *from;
    }
    u64::from_be_bytes(first) % max_ms.saturating_add(1)
}

/// Why the run itself is ruled out.
fn skip(policy: &Policy, run: &RunView, standing: &Circumstances) -> Option<Reason> {
    if run.status != RunStatus::Pending {
        return Some(Reason::NotPending { status: run.status });
    }
    if run.excluded.contains(&standing.miner) {
        return Some(Reason::Excluded);
    }
    if let Some(phase) = &standing.journal {
        return Some(Reason::Known { phase: phase.clone() });
    }
    skip_requester(policy, run)
        .or_else(|| skip_protection(policy, run, standing))
        .or_else(|| skip_money(policy, run))
        .or_else(|| skip_work(policy, run, standing))
        .or_else(|| skip_time(policy, run, standing))
}

fn skip_requester(policy: &Policy, run: &RunView) -> Option<Reason> {
    let requester = run.submitter;
    if policy.requesters_deny.contains(&requester) {
        return Some(Reason::RequesterDenied { requester });
    }
    let listed = &policy.requesters_allow;
    (!listed.is_empty() && !listed.contains(&requester))
        .then_some(Reason::RequesterNotListed { requester })
}

/// What the requester asks of a miner as its protection, and what it is known to do with it.
fn skip_protection(policy: &Policy, run: &RunView, standing: &Circumstances) -> Option<Reason> {
    let protection = run.protection.as_ref()?;
    let listed = &protection.miners;
    if !listed.is_empty() && !listed.contains(&standing.miner) {
        let miners = u64::try_from(listed.len()).unwrap_or(u64::MAX);
        return Some(Reason::MinerNotListed { miners });
    }
    let needed_micro = protection.claim_bond_micro;
    let max_micro = policy.claim_bond_micro_max.min(policy.bond_micro_max);
    if needed_micro > max_micro {
        return Some(Reason::BondTooHigh { needed_micro, max_micro });
    }
    let (got_ms, max_ms) = (protection.refuse_ms, policy.hold_ms_max);
    if got_ms > max_ms {
        return Some(Reason::HeldTooLong { got_ms, max_ms });
    }
    let Refusals { held, refused } = standing.refusals;
    let percent_max = policy.refused_percent_max;
    let refuses = refused.saturating_mul(100) > held.saturating_mul(percent_max);
    (got_ms > 0 && refused > policy.refused_ignored && refuses)
        .then_some(Reason::RequesterRefuses { refused, held, percent_max })
}

fn skip_money(policy: &Policy, run: &RunView) -> Option<Reason> {
    let (got_micro, min_micro) = (run.max_fee_micro, policy.min_max_fee_micro);
    if got_micro < min_micro {
        return Some(Reason::FeeTooLow { got_micro, min_micro });
    }
    let steps = policy.steps_expected.min(run.steps_max);
    let fees = steps.saturating_mul(AGENT_NETWORK_FEE_PER_STEP);
    let tokens = policy.tokens_expected.saturating_mul(AGENT_REWARD_PER_TOKEN);
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let margin = signed(got_micro).saturating_sub(signed(fees)).saturating_sub(signed(tokens));
    let min_micro = policy.min_margin_micro;
    (margin < min_micro).then_some(Reason::MarginTooLow { got_micro: margin, min_micro })
}

fn skip_work(policy: &Policy, run: &RunView, standing: &Circumstances) -> Option<Reason> {
    let got = run.steps_max;
    if got > policy.steps_max {
        return Some(Reason::StepsTooMany { got, max: policy.steps_max });
    }
    if got < policy.steps_min {
        return Some(Reason::StepsTooFew { got, min: policy.steps_min });
    }
    if let Some(allow) = &policy.tools_allow {
        let wanted = run.tools.iter().chain(&standing.tools_offered);
        let foreign: BTreeSet<&String> = wanted.filter(|name| !allow.contains(*name)).collect();
        if !foreign.is_empty() {
            let names = foreign.into_iter().cloned().collect();
            return Some(Reason::ToolsNotAllowed { names });
        }
    }
    if !standing.tools_missing.is_empty() {
        return Some(Reason::ToolsMissing { names: standing.tools_missing.clone() });
    }
    if let Some(reason) = skip_model(policy, run, standing) {
        return Some(reason);
    }
    if standing.prompt_bytes > policy.prompt_bytes_max {
        let (got, max) = (standing.prompt_bytes, policy.prompt_bytes_max);
        return Some(Reason::PromptTooLong { got, max, unit: Unit::Bytes });
    }
    if let Some((got, max)) = standing.too_long {
        return Some(Reason::PromptTooLong { got, max, unit: Unit::Tokens });
    }
    if let Some(why) = &standing.unreadable {
        return Some(Reason::Unreadable { why: why.clone() });
    }
    standing.asked.and_then(|asked| skip_prompt(policy, run, asked))
}

/// What is read is paid only by what is put out.
fn skip_prompt(policy: &Policy, run: &RunView, asked: AskedWork) -> Option<Reason> {
    let AskedWork { prompt_tokens, form_tokens, has_tools } = asked;
    let paid = budget::output_tokens_max(run).unwrap_or_default();
    // Where steps are short, the answer takes more of them, and each reads the prompt again.
    let step_max = run.step_tokens_max(u64::MAX);
    let all_steps = step_max.saturating_mul(run.steps_max);
    let wanted = form_tokens.unwrap_or(u64::MAX).min(policy.tokens_expected);
    let put_out = wanted.min(paid).min(all_steps);
    let reads = if has_tools { policy.steps_expected.min(run.steps_max).max(1) } else { 1 };
    let reads = reads.max(put_out.div_ceil(step_max.max(1)));
    let tokens = prompt_tokens.saturating_mul(reads);
    let cost_micro = tokens.saturating_mul(policy.prompt_micro_per_1000_tokens) / 1_000;
    let income_micro = put_out.saturating_mul(AGENT_REWARD_PER_TOKEN);
    (income_micro < cost_micro).then_some(Reason::PromptUnpaid { tokens, cost_micro, income_micro })
}

fn skip_model(policy: &Policy, run: &RunView, standing: &Circumstances) -> Option<Reason> {
    let hint = run.model_hint.as_deref().map(str::trim).filter(|hint| !hint.is_empty());
    let Some(hint) = hint else {
        return (!policy.unnamed_models).then_some(Reason::ModelUnnamed);
    };
    let same = |name: &str| name.trim().eq_ignore_ascii_case(hint);
    let known = same(&standing.model) || policy.models.iter().any(|name| same(name));
    (!known).then(|| Reason::ModelUnknown { hint: hint.to_owned() })
}

fn skip_time(policy: &Policy, run: &RunView, standing: &Circumstances) -> Option<Reason> {
    let left_ms = run.deadline_ms?.saturating_sub(standing.now_ms);
    let min_ms = policy.pending_left_ms_min;
    (left_ms < min_ms).then_some(Reason::TooLate { left_ms, min_ms })
}

/// What stands against claiming anything now.
fn wait(policy: &Policy, run: &RunView, standing: &Circumstances) -> Option<Reason> {
    if !policy.claiming {
        return Some(Reason::Paused);
    }
    if let Some(miner) = standing.rival {
        return Some(Reason::RivalClaim { miner });
    }
    if standing.node_syncing {
        return Some(Reason::NodeSyncing);
    }
    if let Some(why) = &standing.backend_down {
        return Some(Reason::BackendDown { why: why.clone() });
    }
    if standing.runs_busy >= policy.runs_max {
        return Some(Reason::SlotsFull { max: policy.runs_max });
    }
    let (got_micro, min_micro) = (standing.balance_micro, policy.balance_micro_min);
    if got_micro < min_micro {
        return Some(Reason::BalanceLow { got_micro, min_micro });
    }
    let bonded = standing.bonded;
    if let Some(reason) = bonded.and_then(|bonded| wait_bond(policy, run, standing, bonded)) {
        return Some(reason);
    }
    let (got, max) = (standing.claims_today, policy.claims_per_day_max);
    if got >= max {
        return Some(Reason::ClaimsToday { got, max });
    }
    let (spent_micro, burned_micro) = (standing.spent_today_micro, standing.burned_today_micro);
    policy.wait_spent(run, spent_micro, burned_micro)
}

/// Whether the bond is too small for the claim of a run, and cannot be made larger now.
fn wait_bond(
    policy: &Policy,
    run: &RunView,
    standing: &Circumstances,
    bonded: Bonded,
) -> Option<Reason> {
    let (needed_micro, Bonded { bonded_micro, free_micro }) = (run.claim_bond_micro(), bonded);
    let room_micro = policy.bond_room_micro(bonded_micro, standing.balance_micro);
    let missing_micro = needed_micro.saturating_sub(free_micro);
    (missing_micro > room_micro).then_some(Reason::BondLow { needed_micro, free_micro, room_micro })
}
