//! The miner's configuration file.
//!
//! ```toml
//! [policy]      # what is claimed: [`crate::policy::Policy`]; read again while the miner runs
//! [engine]      # how runs are worked on: [`crate::engine::Config`]
//! [tools]       # what models may use: [`agent::tools::Config`]
//! [backend]     # a model server: [`agent::backend::config::Config`] …
//! [embedded]    # … or a model inside the process: [`agent::backend::EmbeddedConfig`]
//! [alarms]      # when somebody has to look: [`crate::operate::AlarmConfig`]
//! [metrics]     # metrics and health over HTTP: [`crate::operate::MetricsConfig`]
//! [sweep]       # what goes to a cold address: [`crate::operate::SweepConfig`]
//! [market]      # calls of agents: [`crate::market::MarketConfig`]; read again while the miner runs
//! ```

use std::path::{Path, PathBuf};

use agent::backend::EmbeddedConfig;
use agent::{backend, tools};
use serde::Deserialize;

use crate::engine;
use crate::market::MarketConfig;
use crate::operate::{AlarmConfig, MetricsConfig, SweepConfig};
use crate::policy::Policy;

/// The whole file, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What is claimed.
    pub policy: Policy,
    /// How runs are worked on.
    pub engine: engine::Config,
    /// What models may use.
    pub tools: tools::Config,
    /// The model.
    pub model: ModelConfig,
    /// When somebody has to look.
    pub alarms: AlarmConfig,
    /// Metrics and health over HTTP.
    pub metrics: MetricsConfig,
    /// What goes to a cold address, if anything does.
    pub sweep: Option<SweepConfig>,
    /// How calls of agents are served, if they are.
    pub market: Option<MarketConfig>,
}

/// Where the model is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelConfig {
    /// In a server: the table `[backend]`.
    Server(backend::config::Config),
    /// Inside the process: the table `[embedded]`.
    Embedded(EmbeddedConfig),
}

/// The file as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    policy: Policy,
    engine: engine::Config,
    tools: tools::Config,
    backend: Option<backend::config::Config>,
    embedded: Option<EmbeddedConfig>,
    alarms: AlarmConfig,
    metrics: MetricsConfig,
    sweep: Option<SweepConfig>,
    market: Option<MarketConfig>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML, has an unknown setting, or a value of another type.
    #[error("{path}: {source}", path = path.display())]
    Form {
        /// Which.
        path: PathBuf,
        /// What is wrong, and where.
        source: Box<toml::de::Error>,
    },
    /// Values that make no sense: all of them.
    #[error("{path}: {}", faults.join("; "), path = path.display())]
    Faults {
        /// Which.
        path: PathBuf,
        /// What is wrong, as sentences that name the setting.
        faults: Vec<String>,
    },
}

impl Settings {
    /// Reads a file and checks it.
    ///
    /// # Errors
    /// When it cannot be read or has faults: then all of them.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(path, &text)
    }

    /// Checks the text of a file; `path` is where it is from.
    ///
    /// # Errors
    /// When it has faults: then all of them.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SettingsError> {
        let file: File = toml::from_str(text).map_err(|source| SettingsError::Form {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        file.check().map_err(|faults| SettingsError::Faults { path: path.to_owned(), faults })
    }
}

impl File {
    /// The settings, or everything that is wrong with them.
    fn check(self) -> Result<Settings, Vec<String>> {
        let Self { policy, engine, tools, backend, embedded, alarms, metrics, sweep, market } =
            self;
        let mut faults: Vec<_> = policy.faults().iter().map(ToString::to_string).collect();
        faults.extend(engine.faults());
        faults.extend(alarms.faults());
        faults.extend(market.iter().flat_map(MarketConfig::faults));
        faults.extend(sweep.iter().flat_map(|sweep| sweep.faults(&policy, &alarms)));
        if let Err(wrong) = tools.check() {
            faults.extend(wrong.0.iter().map(|fault| format!("tools.{fault}")));
        }
        let model = match (backend, embedded) {
            (Some(backend), None) => {
                faults.extend(backend.faults());
                Some(ModelConfig::Server(backend))
            }
            (None, Some(embedded)) => {
                if market.as_ref().is_some_and(|market| market.server_manifest.is_some()) {
                    faults.push(
                        "market.server_manifest names the model of a [backend], and there is a \
                         table [embedded]"
                            .to_owned(),
                    );
                }
                Some(ModelConfig::Embedded(embedded))
            }
            (both, _) => {
                let found = if both.is_some() { "both" } else { "neither" };
                faults.push(format!(
                    "there is {found} of [backend] (a model server) and [embedded] (a model \
                     file); expected one of them"
                ));
                None
            }
        };
        match model {
            Some(model) if faults.is_empty() => {
                Ok(Settings { policy, engine, tools, model, alarms, metrics, sweep, market })
            }
            Some(_) | None => Err(faults),
        }
    }
}
