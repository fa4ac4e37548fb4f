//! Which runs are claimed: the settings, and a pure decision with its reason.

mod decide;
mod reason;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use agent::tools::OFFERED_BY_DEFAULT;
use serde::{Deserialize, Serialize};
use types::Address;

use crate::chain::RunView;

pub use decide::{AskedWork, Bonded, Circumstances, Decision, Refusals, decide, jitter_ms};
pub use reason::{Reason, Unit};

/// What is claimed; the table `[policy]` of the miner's configuration. Units are in the names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a file of settings")]
pub struct Policy {
    /// Whether anything is claimed at all.
    pub claiming: bool,
    /// The least escrow.
    pub min_max_fee_micro: u64,
    /// The least that the escrow must have above the expected tokens and steps.
    pub min_margin_micro: i64,
    /// How many tokens a run is expected to put out; each earns 1 micro.
    pub tokens_expected: u64,
    /// How many steps a run is expected to take; each costs the escrow 100 micro.
    pub steps_expected: u64,
    /// What reading 1,000 tokens of prompts costs this miner; nobody pays for it but by tokens put out.
    pub prompt_micro_per_1000_tokens: u64,
    /// The least `maxSteps`.
    pub steps_min: u64,
    /// The greatest `maxSteps`.
    pub steps_max: u64,
    /// Tools that runs may be offered, by whitelist or by the address of an MCP server; none means all
    /// that this miner has.
    pub tools_allow: Option<BTreeSet<String>>,
    /// Names that a `modelHint` may have, beside the back end's own model; compared without case.
    pub models: Vec<String>,
    /// Whether runs without a `modelHint` are taken.
    pub unnamed_models: bool,
    /// If not empty, only these requesters.
    pub requesters_allow: BTreeSet<Address>,
    /// Never these requesters.
    pub requesters_deny: BTreeSet<Address>,
    /// Whether MINER_BOND adds to the bond what a claim needs and is not free of it.
    pub bond_automatically: bool,
    /// The most that this miner has as its bond.
    pub bond_micro_max: u64,
    /// The most that a run may ask of the bond: what one failure of this miner may cost.
    pub claim_bond_micro_max: u64,
    /// The longest time for which a run may have its reward held.
    pub hold_ms_max: u64,
    /// The most of a hundred rewards that a requester may have refused.
    pub refused_percent_max: u64,
    /// So many refusals of a requester say nothing yet.
    pub refused_ignored: u64,
    /// The longest prompt, its blob included.
    pub prompt_bytes_max: u64,
    /// How many runs are worked on at once.
    pub runs_max: u64,
    /// The most claims of a day (UTC).
    pub claims_per_day_max: u64,
    /// The most that a day's transactions may burn (blobs, turns); claims and steps cost nothing. For
    /// runs that ask for a bond, what was burned of the bond counts as well.
    pub spend_micro_per_day_max: u64,
    /// No claims with less than this in the account.
    pub balance_micro_min: u64,
    /// Claims wait up to this long, by a number that follows from miner and run.
    pub claim_jitter_ms: u64,
    /// No claims of runs that end sooner than this.
    pub pending_left_ms_min: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            claiming: true,
            min_max_fee_micro: 1_000,
            min_margin_micro: 0,
            tokens_expected: 500,
            steps_expected: 2,
            prompt_micro_per_1000_tokens: 5,
            steps_min: 1,
            steps_max: 200,
            tools_allow: None,
            models: Vec::new(),
            unnamed_models: true,
            requesters_allow: BTreeSet::new(),
            requesters_deny: BTreeSet::new(),
            bond_automatically: true,
            bond_micro_max: 5_000_000,
            claim_bond_micro_max: 1_010_000,
            hold_ms_max: 3_600_000,
            refused_percent_max: 10,
            refused_ignored: 2,
            prompt_bytes_max: 262_144,
            runs_max: 1,
            claims_per_day_max: 10_000,
            spend_micro_per_day_max: 1_000_000,
            balance_micro_min: 0,
            claim_jitter_ms: 300,
            pending_left_ms_min: 5_000,
        }
    }
}

/// Bounds of settings: where a value outside is a mistake of unit or typing.
const RUNS_MAX: u64 = 256;
const JITTER_MS_MAX: u64 = 60_000;
const STEPS_MAX: u64 = types::params::MAX_STEPS_MAX;

/// One thing that is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy.{field} is {got}; expected {expected}")]
pub struct PolicyFault {
    /// The setting.
    pub field: &'static str,
    /// Its value.
    pub got: String,
    /// What would be right.
    pub expected: String,
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML of the right shape.
    #[error("cannot read the policy: {0}")]
    Malformed(#[from] toml::de::Error),
    /// Values make no sense.
    #[error("{}", sentences(.0))]
    Faults(Vec<PolicyFault>),
    /// Another table of the file.
    #[error("{0}")]
    Other(String),
}

fn sentences(faults: &[PolicyFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A file that has a table `[policy]`; its other tables belong to others.
#[derive(Deserialize)]
struct PolicyTable {
    #[serde(default)]
    policy: Policy,
}

/// What is kept beside a bond for the places of transactions in blocks, micro-OMBRA: more than a claim
/// with its bond costs at the highest base fee that wallets offer unasked.
const PLACES_MICRO: u64 = 2_000;

impl Policy {
    /// What may be added to a bond of so much with such a balance, micro-OMBRA.
    #[must_use]
    pub fn bond_room_micro(&self, bonded_micro: u64, balance_micro: u64) -> u64 {
        if !self.bond_automatically {
            return 0;
        }
        let kept_micro = self.balance_micro_min.saturating_add(PLACES_MICRO);
        let spare_micro = balance_micro.saturating_sub(kept_micro);
        self.bond_micro_max.saturating_sub(bonded_micro).min(spare_micro)
    }

    /// Why a run is not to be claimed on a day on which transactions burned so much, and so much of the
    /// bond was burned. What the bond lost counts only where it is at stake again: nobody can keep the
    /// miner from other runs by that.
    pub(crate) fn wait_spent(
        &self,
        run: &RunView,
        spent_micro: u64,
        burned_micro: u64,
    ) -> Option<Reason> {
        let burned_micro = if run.claim_bond_micro() > 0 { burned_micro } else { 0 };
        let got_micro = spent_micro.saturating_add(burned_micro);
        let max_micro = self.spend_micro_per_day_max;
        (got_micro >= max_micro).then_some(Reason::SpentToday { got_micro, max_micro })
    }

    /// The run as this miner would work on it: without those of the tools which clients offer with
    /// every question that `tools_allow` does not have. Nobody insists on them, so they keep no miner
    /// from a run.
    #[must_use]
    pub fn narrowed(&self, mut run: RunView) -> RunView {
        let Some(allow) = &self.tools_allow else { return run };
        let is_default = |name: &String| OFFERED_BY_DEFAULT.contains(&name.as_str());
        run.tools.retain(|name| !is_default(name) || allow.contains(name));
        run
    }

    /// Reads the table `[policy]` of a TOML text and checks it.
    ///
    /// # Errors
    /// On an unknown setting, a value of the wrong type, or values that make no sense: then all of them.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let table: PolicyTable = toml::from_str(text)?;
        let faults = table.policy.faults();
        if faults.is_empty() { Ok(table.policy) } else { Err(PolicyError::Faults(faults)) }
    }

    /// Everything that is wrong with the values.
    #[must_use]
    pub fn faults(&self) -> Vec<PolicyFault> {
        let mut faults = Vec::new();
        let mut check = |ok: bool, field, got: String, expected: String| {
            if !ok {
                faults.push(PolicyFault { field, got, expected });
            }
        };
        let within = |value: u64, low: u64, high: u64| (low..=high).contains(&value);
        let span = |low: u64, high: u64| format!("{low} to {high}");
        let runs_ok = within(self.runs_max, 1, RUNS_MAX);
        check(runs_ok, "runs_max", self.runs_max.to_string(), span(1, RUNS_MAX));
        let steps_ok = within(self.steps_max, 1, STEPS_MAX);
        check(steps_ok, "steps_max", self.steps_max.to_string(), span(1, STEPS_MAX));
        let least_ok = within(self.steps_min, 1, self.steps_max.max(1));
        check(least_ok, "steps_min", self.steps_min.to_string(), "1 to steps_max".into());
        let jitter_ok = self.claim_jitter_ms <= JITTER_MS_MAX;
        check(
            jitter_ok,
            "claim_jitter_ms",
            self.claim_jitter_ms.to_string(),
            span(0, JITTER_MS_MAX),
        );
        let fee_ok = self.min_max_fee_micro >= types::params::AGENT_NETWORK_FEE_PER_STEP;
        let least = "at least 100, the network fee of one step".to_owned();
        check(fee_ok, "min_max_fee_micro", self.min_max_fee_micro.to_string(), least);
        let percent = self.refused_percent_max;
        check(percent <= 100, "refused_percent_max", percent.to_string(), span(0, 100));
        check(self.prompt_bytes_max > 0, "prompt_bytes_max", "0".into(), "at least 1".into());
        let both = self.requesters_allow.intersection(&self.requesters_deny).next();
        let got = both.map_or_else(String::new, ToString::to_string);
        check(both.is_none(), "requesters_deny", got, "no address of requesters_allow".into());
        let empty = self.models.iter().any(|name| name.trim().is_empty());
        check(!empty, "models", "an empty name".into(), "names of models".into());
        faults
    }
}

/// A policy in a file, read again when the file changes.
#[derive(Clone, Debug)]
pub struct PolicyFile {
    path: PathBuf,
    text: String,
    /// What the file said at the last look, if that was something else.
    newer: Option<String>,
}

impl PolicyFile {
    /// Reads a file.
    ///
    /// # Errors
    /// As for [`Policy::parse`], and when the file cannot be read.
    pub fn open(path: &Path) -> Result<(Self, Policy), PolicyError> {
        let text = read(path)?;
        let policy = Policy::parse(&text)?;
        Ok((Self { path: path.to_owned(), text, newer: None }, policy))
    }

    /// The policy, if the file says something else than before; faults are told once, and the policy
    /// before them stays in force. A change counts once two looks found the same, so that a file that
    /// is being written is not taken for a whole one.
    ///
    /// # Errors
    /// As for [`PolicyFile::open`].
    pub fn changed(&mut self) -> Result<Option<Policy>, PolicyError> {
        let text = read(&self.path)?;
        if text == self.text {
            self.newer = None;
            return Ok(None);
        }
        if self.newer.as_ref() != Some(&text) {
            self.newer = Some(text);
            return Ok(None);
        }
        (self.text, self.newer) = (text, None);
        Policy::parse(&self.text).map(Some)
    }

    /// The whole text of the file, as it counts.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the last look found a change that does not count yet.
    #[must_use]
    pub const fn is_changing(&self) -> bool {
        self.newer.is_some()
    }
}

fn read(path: &Path) -> Result<String, PolicyError> {
    let unreadable = |source| PolicyError::Unreadable { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        // Reading a pipe would wait for who writes it.
        return Err(unreadable(std::io::Error::other("this is not a regular file")));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}
