//! Agents of the market.

use jsonrpsee::proc_macros::rpc;
use types::Hash;

use crate::error::RpcError;
use crate::service::{Context, agents};
use crate::wire::{AgentQuery, AgentSummary, AgentVersionView, AgentView, Page, PageOf};

/// Agents of the market.
#[rpc(server, namespace = "ombra")]
pub trait AgentsRpc {
    /// Returns an agent with one of its versions, the latest if none is given.
    #[method(name = "getAgent", blocking)]
    fn agent(&self, agent_id: Hash, version: Option<String>) -> Result<AgentView, RpcError>;

    /// Returns the versions of an agent, the latest first.
    #[method(name = "getAgentVersions", blocking)]
    fn agent_versions(
        &self,
        agent_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<AgentVersionView>, RpcError>;

    /// Returns agents with their latest versions, in the order of ids.
    #[method(name = "listAgents", blocking)]
    fn agents(
        &self,
        filter: Option<AgentQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<AgentSummary>, RpcError>;
}

impl AgentsRpcServer for Context {
    fn agent(&self, agent_id: Hash, version: Option<String>) -> Result<AgentView, RpcError> {
        agents::agent(&self.ports, &agent_id, version.as_deref())
    }

    fn agent_versions(
        &self,
        agent_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<AgentVersionView>, RpcError> {
        agents::versions(&self.ports, &agent_id, &page.unwrap_or_default())
    }

    fn agents(
        &self,
        filter: Option<AgentQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<AgentSummary>, RpcError> {
        agents::agents(&self.ports, filter.unwrap_or_default(), &page.unwrap_or_default())
    }
}
