//! Agents of the market.

use rpc::ports::{self, AgentEntry, AgentFilter, PortFault, Slice};
use state::agents::{self, Filter, Found};
use types::{AgentVersion, Hash};

use super::{Reads, fault, page};

impl ports::Agents for Reads {
    fn agent(&self, id: &Hash, version: Option<&str>) -> Result<Option<AgentEntry>, PortFault> {
        let found = agents::find(&self.snapshot(), id, version);
        Ok(found.map_err(fault("reading an agent"))?.map(entry))
    }

    fn versions(
        &self,
        id: &Hash,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Option<Slice<AgentVersion, String>>, PortFault> {
        let most = limit.saturating_add(1);
        let versions = agents::versions(&self.snapshot(), id, from, most);
        let versions = versions.map_err(fault("listing the versions of an agent"))?;
        // The next page begins with the version before the last one of this.
        let before = |it: &AgentVersion| it.previous.clone().unwrap_or_default();
        Ok(versions.map(|versions| page(versions, limit, before)))
    }

    fn list(
        &self,
        filter: &AgentFilter,
        after: Option<Hash>,
        limit: usize,
    ) -> Result<Slice<AgentEntry, Hash>, PortFault> {
        let AgentFilter { owner, tag, executor, text, is_deterministic } = filter.clone();
        let filter = Filter { owner, tag, executor, text, is_deterministic };
        let listed = agents::list(&self.snapshot(), &filter, after.as_ref(), limit);
        let listed = listed.map_err(fault("listing agents"))?;
        Ok(Slice { items: listed.agents.into_iter().map(entry).collect(), next: listed.next })
    }
}

fn entry(found: Found) -> AgentEntry {
    let Found { agent, version, text } = found;
    AgentEntry { agent, version, metadata: text }
}
