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
    /// The previous version. Absent for the first version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// The address of the agent's owner.
    #[schemars(with = "AddressText")]
    pub owner: Address,
    /// The executors that a miner needs to run this version, including those of the agents among
    /// its tools.
    pub executors: Vec<String>,
    /// The manifests of the language models that the executors ask. Answers of different miners can
    /// be compared if their models have the same manifest.
    #[schemars(with = "Vec<HashText>")]
    pub manifests: Vec<Hash>,
    /// The selectors of the version's methods.
    pub selectors: Vec<String>,
    /// The tools that the version uses.
    pub tools: Vec<String>,
    /// The royalty that the owner gets for each successful call.
    #[schemars(with = "AmountText")]
    pub royalty: Amount,
    /// Whether the answers of different miners can be compared.
    pub deterministic: bool,
    /// How deep agents are nested in this version, counting itself: 1 to 3.
    pub nesting: u8,
    /// The SHA-256 of the metadata.
    #[schemars(with = "HashText")]
    pub metadata_hash: Hash,
    /// The size of the metadata in bytes.
    pub metadata_bytes: u64,
    /// The block time of the AGENT_REGISTER.
    pub registered_at: u64,
    /// The index of the block that contains the AGENT_REGISTER.
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
    /// The address of the agent's owner.
    #[schemars(with = "AddressText")]
    pub owner: Address,
    /// The agent's name.
    pub name: String,
    /// What the agent is for, according to this version.
    pub description: String,
    /// The tags of this version.
    pub tags: Vec<String>,
    /// The version that was registered last.
    pub latest: String,
    /// The number of versions.
    pub versions: u64,
    /// Whether the agent is retired and takes no calls.
    pub retired: bool,
    /// The block time of the first AGENT_REGISTER.
    pub registered_at: u64,
    /// The block time of the last AGENT_REGISTER or AGENT_RETIRE.
    pub changed_at: u64,
    /// The version that this entry shows.
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

/// An agent with one of its versions and the metadata of that version.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// The agent and the version.
    #[serde(flatten)]
    pub summary: AgentSummary,
    /// The metadata exactly as the owner wrote it: a JSON text whose SHA-256 is the version's
    /// `metadataHash`.
    pub metadata: String,
}

impl From<AgentEntry> for AgentView {
    fn from(entry: AgentEntry) -> Self {
        let metadata = entry.metadata.clone();
        Self { summary: entry.into(), metadata }
    }
}
