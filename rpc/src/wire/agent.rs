//! Agents of the market and their versions.

use schemars::JsonSchema;
use serde::Serialize;
use types::abi::Selector;
use types::agent::Document;
use types::{Address, Agent, AgentVersion, Amount, Hash};

use super::{AddressText, AmountText, HashText};
use crate::ports::AgentEntry;

/// A version of an agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentVersionView {
    /// The agent's id.
    #[schemars(with = "HashText")]
    pub agent_id: Hash,
    /// The version.
    pub version: String,
    /// The version before it; absent of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// The agent's owner.
    #[schemars(with = "AddressText")]
    pub owner: Address,
    /// What a miner must have to run it, the agents among its tools included.
    pub executors: Vec<String>,
    /// The language models that say which answers can be compared.
    #[schemars(with = "Vec<HashText>")]
    pub manifests: Vec<Hash>,
    /// The selectors of its methods.
    pub selectors: Vec<String>,
    /// Its tools.
    pub tools: Vec<String>,
    /// What the owner gets for each successful call.
    #[schemars(with = "AmountText")]
    pub royalty: Amount,
    /// Whether the answers of two miners can be compared.
    pub deterministic: bool,
    /// How deep agents nest in it, itself counted.
    pub nesting: u8,
    /// SHA-256 of the metadata.
    #[schemars(with = "HashText")]
    pub metadata_hash: Hash,
    /// The size of the metadata.
    pub metadata_bytes: u64,
    /// Block time of the AGENT_REGISTER.
    pub registered_at: u64,
    /// The block with the AGENT_REGISTER.
    pub block_index: u64,
}

impl From<AgentVersion> for AgentVersionView {
    fn from(version: AgentVersion) -> Self {
        let AgentVersion {
            agent_id,
            version,
            previous,
            owner,
            executors,
            manifests,
            selectors,
            tools,
            royalty,
            is_deterministic,
            nesting,
            metadata_hash,
            metadata_bytes,
            registered_at,
            tx,
        } = version;
        let selectors = selectors.into_iter().map(|bytes| Selector(bytes).to_string()).collect();
        Self {
            agent_id,
            version,
            previous,
            owner,
            executors,
            manifests,
            selectors,
            tools,
            royalty,
            deterministic: is_deterministic,
            nesting,
            metadata_hash,
            metadata_bytes,
            registered_at,
            block_index: tx.height,
        }
    }
}

/// An agent with one of its versions, without the metadata.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary {
    /// The agent's id.
    #[schemars(with = "HashText")]
    pub agent_id: Hash,
    /// Whose it is.
    #[schemars(with = "AddressText")]
    pub owner: Address,
    /// Its name.
    pub name: String,
    /// What it is for, as the version says.
    pub description: String,
    /// The version's tags.
    pub tags: Vec<String>,
    /// The version that was registered last.
    pub latest: String,
    /// How many versions there are.
    pub versions: u64,
    /// Whether it takes no calls.
    pub retired: bool,
    /// Block time of the first AGENT_REGISTER.
    pub registered_at: u64,
    /// Block time of the last AGENT_REGISTER or AGENT_RETIRE.
    pub changed_at: u64,
    /// The version.
    pub version: AgentVersionView,
}

impl From<AgentEntry> for AgentSummary {
    fn from(entry: AgentEntry) -> Self {
        let AgentEntry { agent, version, metadata } = entry;
        let Agent {
            agent_id,
            owner,
            name,
            latest,
            versions,
            is_retired,
            registered_at,
            changed_at,
        } = agent;
        // It was read when it was registered.
        let document = Document::read(metadata.as_bytes()).ok();
        let description = document.as_ref().and_then(Document::description);
        let tags = document.iter().flat_map(Document::tags).map(str::to_owned);
        Self {
            agent_id,
            owner,
            name,
            description: description.unwrap_or_default().to_owned(),
            tags: tags.collect(),
            latest,
            versions,
            retired: is_retired,
            registered_at,
            changed_at,
            version: version.into(),
        }
    }
}

/// An agent with one of its versions and the metadata of that.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// The agent and the version.
    #[serde(flatten)]
    pub summary: AgentSummary,
    /// The metadata as the owner wrote it: a JSON text, whose hash is `metadataHash` of the version.
    pub metadata: String,
}

impl From<AgentEntry> for AgentView {
    fn from(entry: AgentEntry) -> Self {
        let metadata = entry.metadata.clone();
        Self { summary: entry.into(), metadata }
    }
}
