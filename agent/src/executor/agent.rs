//! An agent as executors see it.

use std::collections::BTreeMap;

use serde::Deserialize;
use types::abi::{Method, Selector};
use types::agent::{Document, Metadata, MetadataFault};
use types::{Amount, Hash};

/// A version of an agent: what the chain checked of its metadata, and what only executors read in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agent {
    /// Its id.
    pub id: Hash,
    /// What the chain checked.
    pub metadata: Metadata,
    /// What it says of itself; a model reads it where the agent is a tool.
    pub description: String,
    /// The image of an agent in a container, as its metadata name it; none of another one.
    pub image: Option<String>,
    /// How a `model` agent asks its model; none of another one.
    pub model: Option<ModelSettings>,
    /// What is said of its methods, by name; those of which nothing is said are left out.
    pub methods: BTreeMap<String, MethodText>,
}

/// How an agent of `model-1` asks its model: the members of `executor` in its metadata.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSettings {
    /// What the model reads before the question.
    pub base_prompt: String,
    /// The most rounds of the model and its tools, 1 to 64.
    pub max_iterations: u32,
    /// The most tokens of one answer of the model, 1 to 4,096.
    pub max_output_tokens: u32,
}

/// What metadata say of a method beside its signature.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MethodText {
    /// What it does.
    pub description: String,
}

/// Why metadata are not those of an agent that can be executed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AgentError {
    /// A rule of docs/market.md section 3 is broken.
    #[error("metadata{}: expected {}, found {} (rule {})", .0.path, .0.expected, .0.found, .0.rule)]
    Rule(MetadataFault),
    /// The text is read differently here than by the rules.
    #[error("metadata: {0}")]
    Text(String),
}

/// The members that the chain does not keep. Their form was checked by the rules, but for that of
/// `description` in `abi`, which no rule names: there it counts if it is a string.
#[derive(Deserialize)]
struct Text {
    description: String,
    container_image: String,
    #[serde(default)]
    executor: Option<serde_json::Value>,
    abi: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    description: serde_json::Value,
}

impl Agent {
    /// Reads metadata by the rules of docs/market.md section 3, but for those that only the state decides.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn read(id: Hash, metadata: &[u8]) -> Result<Self, AgentError> {
        let document = Document::read(metadata).map_err(AgentError::Rule)?;
        // What a royalty may be is the chain's business; it has taken these metadata.
        let checked = document.check(Amount::MAX).outcome.map_err(AgentError::Rule)?;
        let unread = |error: serde_json::Error| AgentError::Text(error.to_string());
        let text: Text = serde_json::from_slice(metadata).map_err(unread)?;
        let model = match (&checked.executor, text.executor) {
            (types::agent::Executor::Model { .. }, Some(executor)) => {
                Some(ModelSettings::deserialize(executor).map_err(unread)?)
            }
            _ => None,
        };
        let image = match &checked.executor {
            types::agent::Executor::Container { .. } => Some(text.container_image),
            types::agent::Executor::Model { .. } | types::agent::Executor::Wasm { .. } => None,
        };
        let described = |entry: Entry| {
            let description = entry.description.as_str()?.to_owned();
            Some((entry.name, MethodText { description }))
        };
        let methods = text.abi.into_iter().filter_map(described).collect();
        Ok(Self { id, metadata: checked, description: text.description, image, model, methods })
    }

    /// The method with which a payload begins.
    #[must_use]
    pub fn method_of(&self, payload: &[u8]) -> Option<&Method> {
        let selector = Selector(*payload.first_chunk()?);
        self.metadata.methods.iter().find(|method| method.selector() == selector)
    }

    /// What is said of a method; empty if nothing is.
    #[must_use]
    pub fn describe(&self, method: &Method) -> &str {
        self.methods.get(&method.name).map_or("", |text| text.description.as_str())
    }
}
