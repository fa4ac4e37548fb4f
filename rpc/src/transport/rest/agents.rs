//! Agents of the market, and calls of them.

use super::endpoint::{Endpoint, Nothing};
use super::params::{AgentsQuery, CallsQuery, IdPath, VersionQuery};
use crate::error::RpcError;
use crate::service::{Context, agents, calls};
use crate::wire::{
    AgentQuery, AgentSummary, AgentVersionView, AgentView, CallQuery, CallState, CallView, Page,
    PageOf,
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new("/api/agents", "List agents in the order of their ids", agents),
        Endpoint::new("/api/agents/{id}", "Get an agent with one of its versions", agent),
        Endpoint::new(
            "/api/agents/{id}/versions",
            "List the versions of an agent, the latest first",
            versions,
        ),
        Endpoint::new("/api/calls", "List calls of agents, newest first", calls),
        Endpoint::new("/api/calls/{id}", "Get a call with its members and texts", call),
    ]
}

fn agents(
    context: &Context,
    _: Nothing,
    query: AgentsQuery,
) -> Result<PageOf<AgentSummary>, RpcError> {
    let AgentsQuery { owner, tag, executor, text, deterministic, cursor, limit } = query;
    let query = AgentQuery { owner, tag, executor, text, deterministic };
    agents::agents(&context.ports, query, &Page { cursor, limit })
}

fn agent(context: &Context, path: IdPath, query: VersionQuery) -> Result<AgentView, RpcError> {
    agents::agent(&context.ports, &path.id.0, query.version.as_deref())
}

fn versions(
    context: &Context,
    path: IdPath,
    page: Page,
) -> Result<PageOf<AgentVersionView>, RpcError> {
    agents::versions(&context.ports, &path.id.0, &page)
}

fn calls(context: &Context, _: Nothing, query: CallsQuery) -> Result<PageOf<CallState>, RpcError> {
    let CallsQuery { agent_id, requester, member, status, cursor, limit } = query;
    let query = CallQuery { agent_id, requester, member, status };
    calls::calls(&context.ports, &query, &Page { cursor, limit })
}

fn call(context: &Context, path: IdPath, _: Nothing) -> Result<CallView, RpcError> {
    calls::call(&context.ports, path.id.0)
}
