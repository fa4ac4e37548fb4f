//! Agents of the market.

use jsonrpsee::proc_macros::rpc;
use types::Hash;

use super::{Api, paging};
use crate::error::RpcError;
use crate::ports::AgentFilter;
use crate::wire::{AgentQuery, AgentSummary, AgentVersionView, AgentView, Page, PageOf};

/// The most agents, or versions of one, on a page: each takes several look-ups.
const AGENTS_MAX: usize = 50;

/// Agents of the market.
#[rpc(server, namespace = "ombra")]
pub trait AgentsRpc {
    /// An agent with one of its versions, the latest if none is named.
    #[method(name = "getAgent", blocking)]
    fn agent(&self, agent_id: Hash, version: Option<String>) -> Result<AgentView, RpcError>;

    /// The versions of an agent, the latest first.
    #[method(name = "getAgentVersions", blocking)]
    fn agent_versions(
        &self,
        agent_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<AgentVersionView>, RpcError>;

    /// Agents with their latest versions, in the order of ids.
    #[method(name = "listAgents", blocking)]
    fn agents(
        &self,
        filter: Option<AgentQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<AgentSummary>, RpcError>;
}

impl AgentsRpcServer for Api {
    fn agent(&self, agent_id: Hash, version: Option<String>) -> Result<AgentView, RpcError> {
        self.agent_entry(&agent_id, version.as_deref()).map(AgentView::from)
    }

    fn agent_versions(
        &self,
        agent_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<AgentVersionView>, RpcError> {
        let page = page.unwrap_or_default();
        let from: Option<String> = page.position()?;
        let limit = page.limit().min(AGENTS_MAX);
        let slice = self.ports.agents.versions(&agent_id, from.as_deref(), limit)?;
        let slice = slice.ok_or_else(|| RpcError::not_found("agent", agent_id))?;
        Ok(paging::page(slice, AgentVersionView::from))
    }

    fn agents(
        &self,
        filter: Option<AgentQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<AgentSummary>, RpcError> {
        let AgentQuery { owner, tag, executor, text, deterministic } = filter.unwrap_or_default();
        let owner = owner.map(|it| it.0);
        let filter = AgentFilter { owner, tag, executor, text, is_deterministic: deterministic };
        let page = page.unwrap_or_default();
        let limit = page.limit().min(AGENTS_MAX);
        let slice = self.ports.agents.list(&filter, page.position()?, limit)?;
        Ok(paging::page(slice, AgentSummary::from))
    }
}
