//! The gateway's configuration file.
//!
//! ```toml
//! listen = "127.0.0.1:8788"
//! public_prompts = true          # on every chain that is not a development chain
//! claim_wait_ms = 20000
//! [aliases]
//! "gpt-4o-mini" = "ombra"        # what programs ask for, and the model that answers
//! ```

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::model::Model;

/// The port that the gateway has unless another is named.
pub const PORT: u16 = 8_788;

/// The settings. Units are in the names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Names by which clients may call it, without port; those of loopback are always taken.
    pub hosts: Vec<String>,
    /// Origins of web pages that may ask; none by default.
    pub origins: Vec<String>,
    /// Whether it is known that everything that is asked is public for ever.
    pub public_prompts: bool,
    /// The most that the wallet may have, micro-OMBRA: what a thief of this machine could get.
    pub balance_micro_max: u64,
    /// How long a run waits for a miner, milliseconds; then its escrow is taken back.
    pub claim_wait_ms: u64,
    /// The most iterations of the model for one request; each costs 100 micro.
    pub steps_max: u64,
    /// The least escrow of a run, micro-OMBRA: miners take no run whose escrow is less than their own
    /// least, however few tokens it asks for. What is not used comes back.
    pub escrow_micro_min: u64,
    /// The most tokens of an answer where the request names no number.
    pub output_tokens_default: u64,
    /// The most tokens that a request may name.
    pub output_tokens_max: u64,
    /// The longest body of a request, bytes.
    pub request_bytes_max: usize,
    /// How long a request that is no stream is waited for, milliseconds; less where the client says so.
    pub answer_wait_ms: u64,
    /// What a claim locks of a miner's bond, micro-OMBRA; 0 asks for none, nothing for what clients ask
    /// for by default.
    pub claim_bond_micro: Option<u64>,
    /// The address of an explorer, into which the page links; that of the node if none is named.
    pub explorer: Option<String>,
    /// Names that programs ask for, and the models that they mean.
    pub aliases: BTreeMap<String, String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            hosts: Vec::new(),
            origins: Vec::new(),
            public_prompts: false,
            balance_micro_max: 10_000_000,
            claim_wait_ms: 20_000,
            steps_max: 8,
            escrow_micro_min: 1_000,
            output_tokens_default: 1_024,
            output_tokens_max: 65_536,
            request_bytes_max: 6 * 1024 * 1024,
            answer_wait_ms: 600_000,
            claim_bond_micro: None,
            explorer: None,
            aliases: BTreeMap::new(),
        }
    }
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
    Values {
        /// Which.
        path: PathBuf,
        /// What is wrong with each.
        faults: Vec<String>,
    },
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or with everything that is wrong with its values.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
        let settings: Self = toml::from_str(&text).map_err(|source| SettingsError::Form {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        let faults = settings.faults();
        if faults.is_empty() {
            return Ok(settings);
        }
        Err(SettingsError::Values { path: path.to_owned(), faults })
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let bounds = [
            ("claim_wait_ms", self.claim_wait_ms, 100, 600_000),
            ("steps_max", self.steps_max, 1, 200),
            ("escrow_micro_min", self.escrow_micro_min, 0, 1_000_000_000),
            ("output_tokens_max", self.output_tokens_max, 1, 100_000_000),
            ("output_tokens_default", self.output_tokens_default, 1, self.output_tokens_max),
            ("answer_wait_ms", self.answer_wait_ms, 1_000, 86_400_000),
        ];
        for (name, value, least, most) in bounds {
            if value < least || value > most {
                faults.push(format!("{name}: expected {least} to {most}, got {value}"));
            }
        }
        for (alias, means) in &self.aliases {
            if let Err(why) = Model::parse(means) {
                faults.push(format!("aliases.{alias:?}: {means:?} is no model: {why}"));
            }
            if Model::parse(alias).is_ok() {
                faults.push(format!("aliases.{alias:?}: a model has this name"));
            }
        }
        faults
    }

    /// The model that a name means.
    ///
    /// # Errors
    /// Why it means none.
    pub fn model(&self, name: &str) -> Result<Model, String> {
        Model::parse(self.aliases.get(name).map_or(name, String::as_str))
    }
}

#[cfg(test)]
mod tests {
    //! What a file may say.

    use super::{Settings, SettingsError};
    use crate::model::Model;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn read(text: &str) -> Result<Settings, SettingsError> {
        Settings::read(file(text).path())
    }

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(Settings::default(), read("").unwrap());
    }

    #[test]
    fn every_value_that_makes_no_sense_is_named() {
        let text = "claim_wait_ms = 1\nsteps_max = 201\n[aliases]\na = \"b\"\nombra = \"ombra\"";
        let error = read(text).unwrap_err().to_string();
        let named =
            ["claim_wait_ms: expected 100", "steps_max", "aliases.\"a\"", "aliases.\"ombra\""];
        assert!(named.iter().all(|it| error.contains(it)), "{error}");
        assert!(matches!(read("listn = 1"), Err(SettingsError::Form { .. })));
    }

    #[test]
    fn an_alias_means_its_model() {
        let settings = read("[aliases]\n\"gpt-4o\" = \"ombra:qwen\"").unwrap();
        let qwen = Model::Named("qwen".to_owned());
        assert_eq!(Ok(qwen.clone()), settings.model("gpt-4o"));
        assert_eq!(Ok(qwen), settings.model("ombra:qwen"));
        assert_eq!(Ok(Model::Any), settings.model("ombra"));
        assert!(settings.model("gpt-5").is_err());
    }
}
