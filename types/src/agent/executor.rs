//! What a miner must have to run an agent, and the tools that an agent uses.

use std::fmt;

use super::Version;
use crate::Hash;

/// What a miner must have to run an agent; its written form is the executor's id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Executor {
    /// A container: `container:` and the SHA-256 of the image's reference.
    Container {
        /// The hash.
        image: Hash,
    },
    /// A language model: `model-1:` and its manifest.
    Model {
        /// Says which answers can be compared.
        manifest: Hash,
    },
    /// A program for `wasm-1`: that word, with `:` and a manifest if it asks a language model.
    Wasm {
        /// The blob with the program.
        blob_id: String,
        /// The language model, if it needs one.
        manifest: Option<Hash>,
    },
}

impl Executor {
    /// Whether miners can be compared: all but containers, whose tools nobody knows.
    #[must_use]
    pub const fn is_deterministic(&self) -> bool {
        match self {
            Self::Container { .. } => false,
            Self::Model { .. } | Self::Wasm { .. } => true,
        }
    }
}

impl fmt::Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Container { image } => write!(f, "container:{image}"),
            Self::Model { manifest } => write!(f, "model-1:{manifest}"),
            Self::Wasm { manifest: Some(manifest), .. } => write!(f, "wasm-1:{manifest}"),
            Self::Wasm { manifest: None, .. } => f.write_str("wasm-1"),
        }
    }
}

/// Built-in tools whose result depends on their arguments alone.
const BUILT_IN: [&str; 4] = ["math_eval", "date_parse", "date_diff", "regex_match"];

/// A tool of an agent; its written form is that of the metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tool {
    /// A tool that every miner has.
    BuiltIn(&'static str),
    /// Another agent.
    Agent {
        /// Its id.
        id: Hash,
        /// Its version.
        version: Version,
    },
}

impl Tool {
    /// What [`Tool::parse`] takes, for messages.
    pub(super) const EXPECTED: &str =
        "math_eval, date_parse, date_diff, regex_match or agent:AGENTID@VERSION";

    /// A tool that agents may have whose answers can be compared.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let Some(agent) = text.strip_prefix("agent:") else {
            return BUILT_IN.into_iter().find(|name| *name == text).map(Self::BuiltIn);
        };
        let (id, version) = agent.split_once('@')?;
        let (id, version) = (Hash::parse(id).ok()?, Version::parse(version).ok()?);
        Some(Self::Agent { id, version })
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => f.write_str(name),
            Self::Agent { id, version } => write!(f, "agent:{id}@{version}"),
        }
    }
}
