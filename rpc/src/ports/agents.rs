//! Agents of the market.

use types::{Address, Agent, AgentVersion, Hash};

use super::{PortFault, Slice};

/// An agent with one of its versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentEntry {
    /// The agent.
    pub agent: Agent,
    /// The version.
    pub version: AgentVersion,
    /// The version's metadata.
    pub metadata: String,
}

/// Which agents; conditions that are given must all hold of the latest version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AgentFilter {
    /// Whose.
    pub owner: Option<Address>,
    /// With this tag.
    pub tag: Option<String>,
    /// That need this executor.
    pub executor: Option<String>,
    /// With this text in name, description or tags.
    pub text: Option<String>,
    /// Whether answers of two miners can be compared.
    pub is_deterministic: Option<bool>,
}

/// Agents of the market.
pub trait Agents: Send + Sync {
    /// An agent with that version, or its latest.
    ///
    /// # Errors
    /// [`PortFault`].
    fn agent(&self, id: &Hash, version: Option<&str>) -> Result<Option<AgentEntry>, PortFault>;

    /// Versions of an agent from one on, or from the latest, in descending precedence. None if there is
    /// no such agent or version.
    ///
    /// # Errors
    /// [`PortFault`].
    fn versions(
        &self,
        id: &Hash,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Option<Slice<AgentVersion, String>>, PortFault>;

    /// Agents with their latest versions after one of them, in the order of ids.
    ///
    /// # Errors
    /// [`PortFault`].
    fn list(
        &self,
        filter: &AgentFilter,
        after: Option<Hash>,
        limit: usize,
    ) -> Result<Slice<AgentEntry, Hash>, PortFault>;
}
