//! Agents of the market.

use types::Hash;

use super::paging;
use crate::error::RpcError;
use crate::ports::{AgentEntry, AgentFilter, Ports};
use crate::wire::{AgentQuery, AgentSummary, AgentVersionView, AgentView, Page, PageOf};

/// The most agents, or versions of one, on a page. Each takes several look-ups.
const AGENTS_MAX: usize = 50;

/// An agent with one of its versions, the latest if none is named.
pub(crate) fn agent(
    ports: &Ports,
    agent_id: &Hash,
    version: Option<&str>,
) -> Result<AgentView, RpcError> {
    agent_entry(ports, agent_id, version).map(AgentView::from)
}

/// The versions of an agent, the latest first.
pub(crate) fn versions(
    ports: &Ports,
    agent_id: &Hash,
    page: &Page,
) -> Result<PageOf<AgentVersionView>, RpcError> {
    let from: Option<String> = page.position()?;
    let limit = page.limit().min(AGENTS_MAX);
    let slice = ports.agents.versions(agent_id, from.as_deref(), limit)?;
    let slice = slice.ok_or_else(|| RpcError::not_found("agent", agent_id))?;
    Ok(paging::page(slice, AgentVersionView::from))
}

/// Returns agents with their latest versions, in the order of ids.
pub(crate) fn agents(
    ports: &Ports,
    query: AgentQuery,
    page: &Page,
) -> Result<PageOf<AgentSummary>, RpcError> {
    let AgentQuery { owner, tag, executor, text, deterministic } = query;
    let owner = owner.map(|it| it.0);
    let filter = AgentFilter { owner, tag, executor, text, is_deterministic: deterministic };
    let limit = page.limit().min(AGENTS_MAX);
    let slice = ports.agents.list(&filter, page.position()?, limit)?;
    Ok(paging::page(slice, AgentSummary::from))
}

/// An agent with a version of it, the latest if none is named.
pub(super) fn agent_entry(
    ports: &Ports,
    id: &Hash,
    version: Option<&str>,
) -> Result<AgentEntry, RpcError> {
    let found = ports.agents.agent(id, version)?;
    let name = || match version {
        Some(version) => format!("{id}@{version}"),
        None => id.to_string(),
    };
    found.ok_or_else(|| RpcError::not_found("agent", name()))
}
