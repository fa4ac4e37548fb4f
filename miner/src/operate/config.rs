//! Settings of alarms, metrics and the cold address.

use std::net::SocketAddr;

use serde::Deserialize;
use types::Address;

use crate::policy::Policy;

/// When somebody has to look; the table `[alarms]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlarmConfig {
    /// An alarm while the account has less than this, micro-OMBRA; 0 for never.
    pub balance_micro_min: u64,
    /// An alarm after so many seconds without work; 0 for never.
    pub no_work_s: u64,
}

impl Default for AlarmConfig {
    fn default() -> Self {
        Self { balance_micro_min: 1_000, no_work_s: 3_600 }
    }
}

/// Metrics and health over HTTP; the table `[metrics]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsConfig {
    /// Where they are served; nowhere if not given. Port 0 picks a free one.
    pub address: Option<SocketAddr>,
}

/// What goes to the cold address; the table `[sweep]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepConfig {
    /// The cold address: its key is not on this machine.
    pub address: Address,
    /// What stays in the wallet, micro-OMBRA.
    pub keep_micro: u64,
    /// The least that is sent, micro-OMBRA.
    #[serde(default = "min_micro")]
    pub min_micro: u64,
    /// The least time between two transfers, seconds.
    #[serde(default = "pause_s")]
    pub pause_s: u64,
}

const fn min_micro() -> u64 {
    1_000_000
}

const fn pause_s() -> u64 {
    3_600
}

/// A year.
const SECONDS_MAX: u64 = 366 * 24 * 60 * 60;

impl AlarmConfig {
    /// Everything that is wrong with the values, as sentences that name the setting.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let Self { balance_micro_min: _, no_work_s } = *self;
        let wrong = no_work_s > SECONDS_MAX;
        let fault = format!("alarms.no_work_s is {no_work_s}; expected 0 to {SECONDS_MAX}");
        if wrong { vec![fault] } else { Vec::new() }
    }
}

impl SweepConfig {
    /// Everything that is wrong with the values, as sentences that name the setting.
    #[must_use]
    pub fn faults(&self, policy: &Policy, alarms: &AlarmConfig) -> Vec<String> {
        let Self { address, keep_micro, min_micro, pause_s } = *self;
        let mut faults = Vec::new();
        if address == Address::default() {
            faults.push("sweep.address is all zeros; expected an address that has a key".into());
        }
        if min_micro == 0 {
            faults.push("sweep.min_micro is 0; expected at least 1".into());
        }
        if !(1..=SECONDS_MAX).contains(&pause_s) {
            faults.push(format!("sweep.pause_s is {pause_s}; expected 1 to {SECONDS_MAX}"));
        }
        let needed = [
            ("policy.balance_micro_min", policy.balance_micro_min),
            ("alarms.balance_micro_min", alarms.balance_micro_min),
        ];
        for (setting, micro) in needed.into_iter().filter(|(_, micro)| keep_micro < *micro) {
            faults.push(format!(
                "sweep.keep_micro is {keep_micro}; expected at least {setting}, which is {micro}"
            ));
        }
        faults
    }

    /// What is wrong with it for this wallet.
    ///
    /// # Errors
    /// A sentence, when the cold address is the wallet's own.
    pub fn check_wallet(&self, wallet: Address) -> Result<(), String> {
        if self.address != wallet {
            return Ok(());
        }
        let Self { address, .. } = self;
        Err(format!("sweep.address is {address}, the wallet's own; expected another address"))
    }
}
