//! The agents and programs that an execution may need, fetched before it begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::Hash;

use super::Agent;

/// Agents by id and version, and programs by the id of their blob. An agent never changes in a version, so
/// what is here is right for ever.
#[derive(Clone, Debug, Default)]
pub struct Library {
    agents: BTreeMap<(Hash, String), Arc<Agent>>,
    programs: BTreeMap<String, Arc<[u8]>>,
}

impl Library {
    /// Adds an agent.
    pub fn add_agent(&mut self, agent: Arc<Agent>) {
        self.agents.insert((agent.id, agent.metadata.version.as_str().to_owned()), agent);
    }

    /// Adds a program.
    pub fn add_program(&mut self, blob_id: String, program: Arc<[u8]>) {
        self.programs.insert(blob_id, program);
    }

    /// An agent.
    #[must_use]
    pub fn agent(&self, id: &Hash, version: &str) -> Option<Arc<Agent>> {
        self.agents.get(&(*id, version.to_owned())).cloned()
    }

    /// A program.
    #[must_use]
    pub fn program(&self, blob_id: &str) -> Option<Arc<[u8]>> {
        self.programs.get(blob_id).cloned()
    }
}
