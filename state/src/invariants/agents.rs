//! What must hold of agents: each has as many versions as it says, each version its text, and the
//! indexes have nothing else.

use types::{Agent, AgentVersion, Hash};

use super::{Broken, Walk, count, pages};
use crate::error::StorageError;
use crate::table::Table;
use crate::tables::{AgentTexts, AgentVersions, Agents, AgentsByOwner};
use crate::view;

impl Walk<'_> {
    pub(super) fn agents(&mut self) -> Result<(), StorageError> {
        let state = self.state;
        let (mut agents, mut versions) = (0_u64, 0_u64);
        pages::<Agents>(state, |id, agent| {
            agents = agents.saturating_add(1);
            versions = versions.saturating_add(agent.versions);
            self.agent(id, &agent)
        })?;
        pages::<AgentVersions>(state, |(id, name), version| {
            self.agent_version(id, &name, &version)
        })?;
        let rows = [
            (AgentVersions::ID.name, count::<AgentVersions>(state)?, versions),
            (AgentTexts::ID.name, count::<AgentTexts>(state)?, versions),
            (AgentsByOwner::ID.name, count::<AgentsByOwner>(state)?, agents),
        ];
        for (table, got, expected) in rows.into_iter().filter(|(_, got, it)| got != it) {
            self.index(table, format!("{got} rows, expected {expected}"));
        }
        Ok(())
    }

    fn agent(&mut self, id: Hash, agent: &Agent) -> Result<(), StorageError> {
        if agent.agent_id != id {
            self.index(Agents::ID.name, format!("the agent {} stands under {id}", agent.agent_id));
        }
        if !view::contains::<AgentsByOwner>(self.state, &(agent.owner, id))? {
            self.index(AgentsByOwner::ID.name, format!("the agent {id} is missing"));
        }
        if !view::contains::<AgentVersions>(self.state, &(id, agent.latest.clone()))? {
            let what = format!("the latest version of the agent {id} is missing");
            self.index(AgentVersions::ID.name, what);
        }
        Ok(())
    }

    fn agent_version(
        &mut self,
        id: Hash,
        name: &str,
        version: &AgentVersion,
    ) -> Result<(), StorageError> {
        let agent = view::get::<Agents>(self.state, &id)?;
        let is_his = agent.is_some_and(|agent| agent.owner == version.owner);
        if !is_his || version.agent_id != id || version.version != name {
            let what = format!("the version {name} of the agent {id} is none of it");
            self.index(AgentVersions::ID.name, what);
        }
        let text = view::get::<AgentTexts>(self.state, &(id, name.to_owned()))?;
        let is_right = text.is_some_and(|text| {
            let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
            bytes == version.metadata_bytes
                && Hash::digest(text.as_bytes()) == version.metadata_hash
        });
        if !is_right {
            let (agent_id, version) = (id, name.to_owned());
            self.broken(Broken::AgentText { agent_id, version });
        }
        Ok(())
    }
}
