//! Miners, agent runs, conversations, and the money of the chain.

use types::Amount;

use super::Rest;
use super::endpoint::{Endpoint, Nothing};
use super::params::{AddressPath, AfterQuery, IdPath, LimitQuery, MinerPath, StatusPath};
use crate::PAGE_ITEMS_MAX;
use crate::api::accounts::AccountsRpcServer;
use crate::api::chain::ChainRpcServer;
use crate::api::runs::{RunsRpcServer, parse_status};
use crate::error::RpcError;
use crate::ports::{RunFilter, Slice};
use crate::wire::{
    AddressText, ConversationTurns, Distribution, HeldBy, Holder, Holders, MinerSelector,
    MinerView, Page, RunList, RunQuery, RunSteps, RunView, SupplyView,
};

/// Runs of a list, if the client does not say.
const RUNS_DEFAULT: usize = 30;
/// Accounts in the list of the richest, if the client does not say.
const HOLDERS_DEFAULT: usize = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new("/api/miners", "The miner directory, in order of addresses", miners),
        Endpoint::new("/api/miners/{id}", "A miner by its minerId", miner),
        Endpoint::new("/api/miners/by-address/{address}", "A miner by its account", miner_of),
        Endpoint::new("/api/tokenomics/supply", "The counters of the supply", supply),
        Endpoint::new("/api/tokenomics/holders", "The richest accounts", holders),
        Endpoint::new("/api/tokenomics/distribution", "Who holds the supply", distribution),
        Endpoint::new("/api/agent/v6/run/{id}", "A run", run),
        Endpoint::new("/api/agent/v6/run/{id}/steps", "The steps of a run", steps),
        Endpoint::new("/api/agent/v6/by-status/{status}", "Runs of a status", by_status),
        Endpoint::new(
            "/api/agent/v6/by-submitter/{address}",
            "Runs that an account asked for",
            by_submitter,
        ),
        Endpoint::new("/api/agent/v6/by-miner/{address}", "Runs of a miner", by_miner),
        Endpoint::new(
            "/api/agent/v6/conversation/{id}",
            "The turns of a conversation",
            conversation,
        ),
    ]
}

fn miners(rest: &Rest, _: Nothing, query: AfterQuery) -> Result<Vec<MinerView>, RpcError> {
    let after = query.after.map(|AddressText(address)| address);
    let limit = query.limit.map_or(PAGE_ITEMS_MAX, crate::wire::PageLimit::get);
    let Slice { items, .. } = rest.ports().directory.miners(after, limit)?;
    Ok(items.into_iter().map(MinerView::from).collect())
}

fn miner(rest: &Rest, path: MinerPath, _: Nothing) -> Result<MinerView, RpcError> {
    AccountsRpcServer::miner(rest.api(), MinerSelector::Id(path.id.0))
}

fn miner_of(rest: &Rest, path: AddressPath, _: Nothing) -> Result<MinerView, RpcError> {
    AccountsRpcServer::miner(rest.api(), MinerSelector::Address(path.address.0))
}

fn supply(rest: &Rest, _: Nothing, _: Nothing) -> Result<SupplyView, RpcError> {
    ChainRpcServer::supply(rest.api())
}

/// A part of a whole in hundredths of a percent, rounded down.
fn share_bps(part: Amount, whole: Amount) -> u64 {
    let share = u128::from(part.get()) * 10_000 / u128::from(whole.get().max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn holders(rest: &Rest, _: Nothing, query: LimitQuery) -> Result<Holders, RpcError> {
    let census = rest.census()?;
    let richest = census.richest.iter().take(query.or(HOLDERS_DEFAULT)).zip(1..);
    let holder = |(&(address, balance), rank): (&(types::Address, Amount), u64)| Holder {
        rank,
        address,
        balance,
        balance_ombra: balance.ombra(),
        share_bps: share_bps(balance, census.held),
    };
    Ok(Holders {
        holders: richest.map(holder).collect(),
        total: census.accounts,
        block_index: census.height,
    })
}

fn distribution(rest: &Rest, _: Nothing, _: Nothing) -> Result<Distribution, RpcError> {
    let census = rest.census()?;
    let (by_validators, by_miners) = (census.held_by_validators, census.held_by_miners);
    let total = census.held.checked_add(census.escrowed);
    let others = census
        .held
        .checked_sub(by_validators.amount)
        .and_then(|rest| rest.checked_sub(by_miners.amount));
    let (Some(total), Some(others)) = (total, others) else {
        tracing::error!(?census, "the parts of the supply contradict each other");
        return Err(RpcError::Internal);
    };
    let counted = by_validators.accounts.saturating_add(by_miners.accounts);
    let part = |kind, accounts, amount| HeldBy {
        kind,
        accounts,
        amount,
        share_bps: share_bps(amount, total),
    };
    Ok(Distribution {
        total,
        kinds: vec![
            part("validators", by_validators.accounts, by_validators.amount),
            part("miners", by_miners.accounts, by_miners.amount),
            part("accounts", census.accounts.saturating_sub(counted), others),
            part("escrow", rest.api().hub.escrows().accounts(rest.ports())?, census.escrowed),
        ],
        block_index: census.height,
    })
}

fn run(rest: &Rest, path: IdPath, _: Nothing) -> Result<RunView, RpcError> {
    RunsRpcServer::agent_run(rest.api(), path.id.0)
}

fn steps(rest: &Rest, path: IdPath, page: Page) -> Result<RunSteps, RpcError> {
    let page = page.or(PAGE_ITEMS_MAX);
    let steps = RunsRpcServer::agent_steps(rest.api(), path.id.0, Some(page))?;
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

fn by_status(rest: &Rest, path: StatusPath, page: Page) -> Result<RunList, RpcError> {
    let status = parse_status(&path.status)?;
    let query = RunQuery { status: Some(path.status), ..RunQuery::default() };
    Ok(RunList { status: Some(status.as_str()), ..list(rest, query, page)? })
}

fn by_submitter(rest: &Rest, path: AddressPath, page: Page) -> Result<RunList, RpcError> {
    let query = RunQuery { submitter: Some(path.address), ..RunQuery::default() };
    Ok(RunList { submitter: Some(path.address.0), ..list(rest, query, page)? })
}

fn by_miner(rest: &Rest, path: AddressPath, page: Page) -> Result<RunList, RpcError> {
    let query = RunQuery { miner: Some(path.address), ..RunQuery::default() };
    Ok(RunList { miner: Some(path.address.0), ..list(rest, query, page)? })
}

fn list(rest: &Rest, query: RunQuery, page: Page) -> Result<RunList, RpcError> {
    let page = page.or(RUNS_DEFAULT);
    let runs = RunsRpcServer::agent_runs(rest.api(), Some(query), Some(page))?;
    Ok(RunList {
        status: None,
        submitter: None,
        miner: None,
        count: count(&runs.items),
        runs: runs.items,
        next_cursor: runs.next_cursor,
    })
}

fn conversation(rest: &Rest, path: IdPath, page: Page) -> Result<ConversationTurns, RpcError> {
    let turns = RunsRpcServer::conversation(rest.api(), path.id.0, Some(page.or(PAGE_ITEMS_MAX)))?;
    Ok(ConversationTurns {
        conversation_id: path.id.0,
        count: count(&turns.items),
        turns: turns.items,
        next_cursor: turns.next_cursor,
    })
}

impl Rest {
    /// Rewards of the completed runs that were asked for last.
    pub(super) fn recent_rewards(&self, runs: usize) -> Result<Amount, RpcError> {
        let filter =
            RunFilter { status: Some(types::RunStatus::Completed), ..RunFilter::default() };
        // Nothing but the records is read; where the node began later, their texts are missing.
        let runs = match self.ports().runs.list(&filter, None, runs) {
            Ok(Slice { items, .. }) => items,
            Err(fault) if fault.missing.is_some() => Vec::new(),
            Err(fault) => return Err(fault.into()),
        };
        let rewards = runs.iter().filter_map(|run| run.settlement).map(|it| it.miner_reward);
        let sum = rewards.into_iter().try_fold(Amount::ZERO, Amount::checked_add);
        sum.ok_or(RpcError::Internal)
    }
}
