//! Agents of the market, and calls of them.

use super::Rest;
use super::endpoint::{Endpoint, Nothing};
use super::params::{AgentsQuery, CallsQuery, IdPath, VersionQuery};
use crate::api::agents::AgentsRpcServer;
use crate::api::calls::CallsRpcServer;
use crate::error::RpcError;
use crate::wire::{
    AgentQuery, AgentSummary, AgentVersionView, AgentView, CallQuery, CallState, CallView, Page,
    PageOf,
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new("/api/agents", "Agents of the market, in the order of ids", agents),
        Endpoint::new("/api/agents/{id}", "An agent with one of its versions", agent),
        Endpoint::new(
            "/api/agents/{id}/versions",
            "The versions of an agent, the latest first",
            versions,
        ),
        Endpoint::new("/api/calls", "Calls of agents, newest first", calls),
        Endpoint::new("/api/calls/{id}", "A call with its members and texts", call),
    ]
}

fn agents(rest: &Rest, _: Nothing, query: AgentsQuery) -> Result<PageOf<AgentSummary>, RpcError> {
    let AgentsQuery { owner, tag, executor, text, deterministic, cursor, limit } = query;
    let filter = AgentQuery { owner, tag, executor, text, deterministic };
    AgentsRpcServer::agents(rest.api(), Some(filter), Some(Page { cursor, limit }))
}

fn agent(rest: &Rest, path: IdPath, query: VersionQuery) -> Result<AgentView, RpcError> {
    AgentsRpcServer::agent(rest.api(), path.id.0, query.version)
}

fn versions(rest: &Rest, path: IdPath, page: Page) -> Result<PageOf<AgentVersionView>, RpcError> {
    AgentsRpcServer::agent_versions(rest.api(), path.id.0, Some(page))
}

fn calls(rest: &Rest, _: Nothing, query: CallsQuery) -> Result<PageOf<CallState>, RpcError> {
    let CallsQuery { agent_id, requester, member, status, cursor, limit } = query;
    let filter = CallQuery { agent_id, requester, member, status };
    CallsRpcServer::calls(rest.api(), Some(filter), Some(Page { cursor, limit }))
}

fn call(rest: &Rest, path: IdPath, _: Nothing) -> Result<CallView, RpcError> {
    CallsRpcServer::call(rest.api(), path.id.0)
}
