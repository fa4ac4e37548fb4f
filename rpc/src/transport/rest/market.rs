//! Miners, agent runs, conversations, and the money of the chain.

use super::endpoint::{Endpoint, Nothing};
use super::params::{AddressPath, AfterQuery, IdPath, LimitQuery, MinerPath, StatusPath};
use crate::error::RpcError;
use crate::service::{Context, chain, conversations, miners, runs, tokenomics};
use crate::wire::{
    AddressText, ConversationTurns, Distribution, Holders, MinerSelector, MinerView,
    PAGE_ITEMS_MAX, Page, PageLimit, RunList, RunQuery, RunSteps, RunView, SupplyView,
    parse_run_status,
};

/// Runs of a list, if the client does not say.
const RUNS_DEFAULT: usize = 30;
/// Accounts in the list of the richest, if the client does not say.
const HOLDERS_DEFAULT: usize = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new("/api/miners", "List the miner directory in the order of addresses", miners),
        Endpoint::new("/api/miners/{id}", "Get a miner by its minerId", miner),
        Endpoint::new("/api/miners/by-address/{address}", "Get a miner by its address", miner_of),
        Endpoint::new("/api/tokenomics/supply", "Get the counters of the money supply", supply),
        Endpoint::new(
            "/api/tokenomics/holders",
            "List the accounts with the largest balances",
            holders,
        ),
        Endpoint::new(
            "/api/tokenomics/distribution",
            "Get the distribution of the supply",
            distribution,
        ),
        Endpoint::new("/api/agent/v6/run/{id}", "Get a run", run),
        Endpoint::new("/api/agent/v6/run/{id}/steps", "List the steps of a run", steps),
        Endpoint::new("/api/agent/v6/by-status/{status}", "List the runs with a status", by_status),
        Endpoint::new(
            "/api/agent/v6/by-submitter/{address}",
            "List the runs that an account requested",
            by_submitter,
        ),
        Endpoint::new(
            "/api/agent/v6/by-miner/{address}",
            "List the runs that a miner claimed",
            by_miner,
        ),
        Endpoint::new(
            "/api/agent/v6/conversation/{id}",
            "List the turns of a conversation",
            conversation,
        ),
    ]
}

fn miners(context: &Context, _: Nothing, query: AfterQuery) -> Result<Vec<MinerView>, RpcError> {
    let after = query.after.map(|AddressText(address)| address);
    let limit = query.limit.map_or(PAGE_ITEMS_MAX, PageLimit::get);
    miners::miners_after(&context.ports, after, limit)
}

fn miner(context: &Context, path: MinerPath, _: Nothing) -> Result<MinerView, RpcError> {
    miners::miner(&context.ports, MinerSelector::Id(path.id.0))
}

fn miner_of(context: &Context, path: AddressPath, _: Nothing) -> Result<MinerView, RpcError> {
    miners::miner(&context.ports, MinerSelector::Address(path.address.0))
}

fn supply(context: &Context, _: Nothing, _: Nothing) -> Result<SupplyView, RpcError> {
    chain::supply(&context.ports)
}

fn holders(context: &Context, _: Nothing, query: LimitQuery) -> Result<Holders, RpcError> {
    tokenomics::holders(context, query.or(HOLDERS_DEFAULT))
}

fn distribution(context: &Context, _: Nothing, _: Nothing) -> Result<Distribution, RpcError> {
    tokenomics::distribution(context)
}

fn run(context: &Context, path: IdPath, _: Nothing) -> Result<RunView, RpcError> {
    runs::agent_run(&context.ports, &path.id.0)
}

fn steps(context: &Context, path: IdPath, page: Page) -> Result<RunSteps, RpcError> {
    let steps = runs::agent_steps(context, &path.id.0, &page.or(PAGE_ITEMS_MAX))?;
    Ok(RunSteps {
        agent_run_id: path.id.0,
        count: count(&steps.items),
        steps: steps.items,
        next_cursor: steps.next_cursor,
    })
}

fn count<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

fn by_status(context: &Context, path: StatusPath, page: Page) -> Result<RunList, RpcError> {
    let status = parse_run_status(&path.status)?;
    let query = RunQuery { status: Some(path.status), ..RunQuery::default() };
    Ok(RunList { status: Some(status.as_str()), ..list(context, query, page)? })
}

fn by_submitter(context: &Context, path: AddressPath, page: Page) -> Result<RunList, RpcError> {
    let query = RunQuery { submitter: Some(path.address), ..RunQuery::default() };
    Ok(RunList { submitter: Some(path.address.0), ..list(context, query, page)? })
}

fn by_miner(context: &Context, path: AddressPath, page: Page) -> Result<RunList, RpcError> {
    let query = RunQuery { miner: Some(path.address), ..RunQuery::default() };
    Ok(RunList { miner: Some(path.address.0), ..list(context, query, page)? })
}

fn list(context: &Context, query: RunQuery, page: Page) -> Result<RunList, RpcError> {
    let runs = runs::agent_runs(context, query, &page.or(RUNS_DEFAULT))?;
    Ok(RunList {
        status: None,
        submitter: None,
        miner: None,
        count: count(&runs.items),
        runs: runs.items,
        next_cursor: runs.next_cursor,
    })
}

fn conversation(
    context: &Context,
    path: IdPath,
    page: Page,
) -> Result<ConversationTurns, RpcError> {
    let page = page.or(PAGE_ITEMS_MAX);
    let turns = conversations::conversation(context, &path.id.0, &page)?;
    Ok(ConversationTurns {
        conversation_id: path.id.0,
        count: count(&turns.items),
        turns: turns.items,
        next_cursor: turns.next_cursor,
    })
}
