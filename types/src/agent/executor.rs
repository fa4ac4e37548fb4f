//! What a miner needs to run an agent, and the tools that an agent uses.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Version;
use crate::Hash;
use crate::text::ParseTextError;

/// What a miner needs to run an agent. Its text form is the executor's id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Executor {
    /// A container image: `container:` followed by the SHA-256 of the image's reference.
    Container {
        /// The SHA-256 of the image's reference.
        image: Hash,
    },
    /// A language model: `model-1:` followed by its manifest.
    Model {
        /// The manifest, which identifies models whose answers can be compared.
        manifest: Hash,
    },
    /// A WebAssembly program: `wasm-1`, followed by `:` and a manifest if the program asks a
    /// language model.
    Wasm {
        /// The id of the blob with the program.
        blob_id: String,
        /// The manifest of the language model, if the program asks one.
        manifest: Option<Hash>,
    },
}

impl Executor {
    /// Whether the answers of different miners can be compared. Only containers are not
    /// deterministic, because nobody knows their tools.
    #[must_use]
    pub const fn is_deterministic(&self) -> bool {
        match self {
            Self::Container { .. } => false,
            Self::Model { .. } | Self::Wasm { .. } => true,
        }
    }

    /// The manifest of the language model, if there is one.
    #[must_use]
    pub const fn manifest(&self) -> Option<Hash> {
        match self {
            Self::Container { .. } => None,
            Self::Model { manifest } => Some(*manifest),
            Self::Wasm { manifest, .. } => *manifest,
        }
    }
}

impl Executor {
    /// The executor's id, for which miners make offers.
    #[must_use]
    pub const fn id(&self) -> ExecutorId {
        match *self {
            Self::Container { image } => ExecutorId::Container { image },
            Self::Model { manifest } => ExecutorId::Model { manifest },
            Self::Wasm { manifest: Some(manifest), .. } => ExecutorId::WasmWithModel { manifest },
            Self::Wasm { manifest: None, .. } => ExecutorId::Wasm,
        }
    }
}

impl fmt::Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.id(), f)
    }
}

/// The id of an executor. Miners make offers for it, and a version of an agent requires it.
///
/// JSON has the text form. The binary form is one byte for the form and 32 bytes for the hash,
/// which are zeros if the form has no hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ExecutorId {
    /// `wasm-1`: programs that do not ask a language model.
    Wasm,
    /// `wasm-1:` followed by a manifest: programs that ask this language model.
    WasmWithModel {
        /// The manifest, which identifies models whose answers can be compared.
        manifest: Hash,
    },
    /// `model-1:` followed by a manifest: a language model.
    Model {
        /// The manifest, which identifies models whose answers can be compared.
        manifest: Hash,
    },
    /// `container:` followed by the SHA-256 of the image's reference.
    Container {
        /// The SHA-256 of the image's reference.
        image: Hash,
    },
}

impl ExecutorId {
    /// The length of the longest text form.
    pub const TEXT_BYTES_MAX: usize = 74;

    /// What [`ExecutorId::parse`] accepts, for messages.
    pub const EXPECTED: &str =
        "wasm-1, or wasm-1:, model-1: or container: and 64 lowercase hex characters";

    /// Parses the text form.
    ///
    /// # Errors
    /// [`ParseTextError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ParseTextError> {
        let wrong = || ParseTextError::new(Self::EXPECTED, text);
        if text == "wasm-1" {
            return Ok(Self::Wasm);
        }
        let (form, hash) = text.split_once(':').ok_or_else(wrong)?;
        let hash = Hash::parse(hash).map_err(|_hash| wrong())?;
        match form {
            "wasm-1" => Ok(Self::WasmWithModel { manifest: hash }),
            "model-1" => Ok(Self::Model { manifest: hash }),
            "container" => Ok(Self::Container { image: hash }),
            _ => Err(wrong()),
        }
    }

    /// The byte for the form, and the hash.
    #[must_use]
    pub const fn to_parts(self) -> (u8, Hash) {
        match self {
            Self::Wasm => (0, Hash::ZERO),
            Self::WasmWithModel { manifest } => (1, manifest),
            Self::Model { manifest } => (2, manifest),
            Self::Container { image } => (3, image),
        }
    }

    /// The id with these parts. `None` for an unknown form, and for a hash where the form has none.
    #[must_use]
    pub fn from_parts(form: u8, hash: Hash) -> Option<Self> {
        match form {
            0 => (hash == Hash::ZERO).then_some(Self::Wasm),
            1 => Some(Self::WasmWithModel { manifest: hash }),
            2 => Some(Self::Model { manifest: hash }),
            3 => Some(Self::Container { image: hash }),
            _ => None,
        }
    }
}

impl fmt::Display for ExecutorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wasm => f.write_str("wasm-1"),
            Self::WasmWithModel { manifest } => write!(f, "wasm-1:{manifest}"),
            Self::Model { manifest } => write!(f, "model-1:{manifest}"),
            Self::Container { image } => write!(f, "container:{image}"),
        }
    }
}

impl FromStr for ExecutorId {
    type Err = ParseTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for ExecutorId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.to_parts().serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for ExecutorId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return deserializer.deserialize_str(IdVisitor);
        }
        let (form, hash) = <(u8, Hash)>::deserialize(deserializer)?;
        Self::from_parts(form, hash).ok_or_else(|| D::Error::custom("no id of an executor"))
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = ExecutorId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ExecutorId::EXPECTED)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ExecutorId, E> {
        ExecutorId::parse(text).map_err(E::custom)
    }
}

/// The built-in tools that an agent may use. Their results depend only on their arguments.
pub const BUILT_IN_TOOLS: [&str; 4] = ["math_eval", "date_parse", "date_diff", "regex_match"];

/// A tool of an agent. Its text form is the one in the metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tool {
    /// A tool that every miner has.
    BuiltIn(&'static str),
    /// Another agent.
    Agent {
        /// The id of the agent.
        id: Hash,
        /// The version of the agent.
        version: Version,
    },
}

impl Tool {
    /// What [`Tool::parse`] accepts, for messages.
    pub(super) const EXPECTED: &str =
        "math_eval, date_parse, date_diff, regex_match or agent:AGENTID@VERSION";

    /// Parses the text form of a tool that a deterministic agent may use: the name of a built-in
    /// tool, or `agent:AGENTID@VERSION`. `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let Some(agent) = text.strip_prefix("agent:") else {
            return BUILT_IN_TOOLS.into_iter().find(|name| *name == text).map(Self::BuiltIn);
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

#[cfg(test)]
mod tests;
