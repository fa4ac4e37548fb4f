//! The gateway's configuration file.
//!
//! ```toml
//! listen = "127.0.0.1:8788"
//! public_prompts = true          # on every chain that is not a development chain
//! claim_wait_ms = 20000
//! [aliases]
//! "gpt-4o-mini" = "ombra"        # what programs ask for, and the model that answers
//! [tools.judge_review]           # a method of an agent as a tool of MCP
//! agent = "agent:ID@VERSION"
//! method = "judge"
//! ```

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use miner::operate::MetricsConfig;
use serde::Deserialize;
use types::Hash;
use types::call::COMMITTEE_MAX;

use crate::market::COMMITTEE_DEFAULT;
use crate::model::Model;

/// The longest name of a tool: what clients of MCP take.
pub const TOOL_NAME_BYTES_MAX: usize = 64;
/// The tools that are there without settings.
pub const BUILT_IN_TOOLS: [&str; 8] =
    ["ask", "call_agent", "list_agents", "get_agent", "get_run", "get_call", "cancel", "wallet"];

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
    /// The least that the wallet should have left, micro-OMBRA: with less somebody has to look.
    pub balance_micro_min: u64,
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
    /// The most that a call of an agent may cost, micro-OMBRA: its price is what miners ask for.
    pub call_micro_max: u64,
    /// The longest body of a request, bytes.
    pub request_bytes_max: usize,
    /// How long a request that is no stream is waited for, milliseconds; less where the client says so.
    pub answer_wait_ms: u64,
    /// What a claim locks of a miner's bond, micro-OMBRA; 0 asks for none, nothing for what clients ask
    /// for by default.
    pub claim_bond_micro: Option<u64>,
    /// The address of an explorer, into which the page links; that of the node if none is named.
    pub explorer: Option<String>,
    /// Metrics and health over HTTP.
    pub metrics: MetricsConfig,
    /// Names that programs ask for, and the models that they mean.
    pub aliases: BTreeMap<String, String>,
    /// Methods of agents that are tools of MCP, by the names of the tools.
    pub tools: BTreeMap<String, PinnedTool>,
}

/// A method of an agent as a tool of MCP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedTool {
    /// The agent, as models are named: `agent:ID@VERSION`.
    pub agent: String,
    /// The method's name, or its canonical signature.
    pub method: String,
    /// How many members answer: an odd number up to 15.
    #[serde(default = "committee_default")]
    pub committee: u64,
    /// A call that may cost more micro-OMBRA is not made.
    #[serde(default)]
    pub max_cost_micro: Option<u64>,
    /// SHA-256 of the agent's metadata, as they were when the tool was added; with it a node cannot tell
    /// others.
    #[serde(default)]
    pub metadata: Option<Hash>,
}

const fn committee_default() -> u64 {
    COMMITTEE_DEFAULT
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            hosts: Vec::new(),
            origins: Vec::new(),
            public_prompts: false,
            balance_micro_max: 10_000_000,
            balance_micro_min: 50_000,
            claim_wait_ms: 20_000,
            steps_max: 8,
            escrow_micro_min: 1_000,
            output_tokens_default: 1_024,
            output_tokens_max: 65_536,
            call_micro_max: 1_000_000,
            request_bytes_max: 6 * 1024 * 1024,
            answer_wait_ms: 600_000,
            claim_bond_micro: None,
            explorer: None,
            metrics: MetricsConfig::default(),
            aliases: BTreeMap::new(),
            tools: BTreeMap::new(),
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
                faults.push(format!("aliases.{alias:?}: {means:?} is not a model: {why}"));
            }
            if Model::parse(alias).is_ok() {
                faults.push(format!("aliases.{alias:?}: a model already has this name"));
            }
        }
        for (name, tool) in &self.tools {
            faults.extend(tool.faults(name));
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

impl PinnedTool {
    /// The agent that is meant.
    ///
    /// # Errors
    /// What was expected.
    pub(crate) fn agent(&self) -> Result<(Hash, String), String> {
        match Model::parse(&self.agent) {
            Ok(Model::Agent { id, version }) => Ok((id, version)),
            Ok(Model::Any | Model::Named(_)) | Err(_) => {
                Err(format!("expected agent:ID@VERSION, got {:?}", self.agent))
            }
        }
    }

    fn faults(&self, name: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
        if name.is_empty() || name.len() > TOOL_NAME_BYTES_MAX || !name.bytes().all(is_plain) {
            let most = TOOL_NAME_BYTES_MAX;
            faults.push(format!(
                "tools.{name:?}: expected 1 to {most} letters, digits, underscores and hyphens"
            ));
        }
        if BUILT_IN_TOOLS.contains(&name) {
            faults.push(format!("tools.{name:?}: the gateway already has a tool with this name"));
        }
        if let Err(why) = self.agent() {
            faults.push(format!("tools.{name}.agent: {why}"));
        }
        let committee = self.committee;
        if committee > u64::from(COMMITTEE_MAX) || committee.is_multiple_of(2) {
            faults.push(format!(
                "tools.{name}.committee: expected an odd number up to {COMMITTEE_MAX}, got {committee}"
            ));
        }
        faults
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
    fn a_tool_has_a_plain_name_and_an_agent() {
        let agent = format!("agent:{}@1.0.0", types::Hash::ZERO);
        let good = format!("[tools.judge-2]\nagent = {agent:?}\nmethod = \"judge\"");
        let tool = &read(&good).unwrap().tools["judge-2"];
        assert_eq!((3, types::Hash::ZERO), (tool.committee, tool.agent().unwrap().0));
        let bad = "[tools.\"a b\"]\nagent = \"judge\"\nmethod = \"x\"\ncommittee = 2\n\
                   [tools.ask]\nagent = \"ombra\"\nmethod = \"x\"";
        let error = read(bad).unwrap_err().to_string();
        for named in
            ["tools.\"a b\"", "a b.agent", "a b.committee", "already has a tool with this name"]
        {
            assert!(error.contains(named), "{named}: {error}");
        }
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
