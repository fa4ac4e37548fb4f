//! Settings of the engine.

use serde::{Deserialize, Serialize};
use types::tx::HARDWARE_TIERS;

/// How runs are worked on; the table `[engine]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What the claim says about this machine.
    pub hardware_tier: String,
    /// The most tokens of one step.
    pub output_tokens_max: u32,
    /// How long before a deadline of the chain a run is ended.
    pub deadline_margin_ms: u64,
    /// How often pending runs are listed beside the notices of the subscription.
    pub poll_ms: u64,
    /// The first pause before something that failed is tried again; it doubles up to thirty times.
    pub pause_ms: u64,
    /// Whether assistant and tool turns are written into the conversation; each burns 100 micro.
    pub turns: bool,
    /// Whether thoughts are kept as blobs; each chunk of 400,000 bytes burns 100 micro. From fork v7 on
    /// they cost more, and are kept only where the step earns at least twice as much.
    pub thought_blobs: bool,
    /// Outputs of steps from this size on are kept as blobs.
    pub output_blob_bytes_min: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hardware_tier: "desktop".into(),
            output_tokens_max: 1_024,
            deadline_margin_ms: 15_000,
            poll_ms: 10_000,
            pause_ms: 500,
            turns: false,
            thought_blobs: true,
            output_blob_bytes_min: 16_384,
        }
    }
}

impl Config {
    /// Everything that is wrong with the values, as sentences that name the setting.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let tier = &self.hardware_tier;
        if !HARDWARE_TIERS.contains(&tier.as_str()) {
            let expected = HARDWARE_TIERS.join(", ");
            faults.push(format!("engine.hardware_tier is {tier:?}; expected one of {expected}"));
        }
        let mut within = |field: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                faults.push(format!("engine.{field} is {value}; expected {low} to {high}"));
            }
        };
        within("output_tokens_max", self.output_tokens_max.into(), 1, 131_072);
        within("deadline_margin_ms", self.deadline_margin_ms, 1_000, 100_000);
        within("poll_ms", self.poll_ms, 100, 600_000);
        within("pause_ms", self.pause_ms, 1, 60_000);
        within("output_blob_bytes_min", self.output_blob_bytes_min, 1, u64::MAX);
        faults
    }
}
