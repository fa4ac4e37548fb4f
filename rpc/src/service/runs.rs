//! Agent runs and their steps.

use std::collections::{BTreeMap, BTreeSet};

use types::tx::{AgentClaim, AgentFinish, AgentRequest};
use types::{Body, CheckedTx, Hash, Run, TxLocation};

use super::Context;
use super::paging::{self, Entry};
use crate::error::RpcError;
use crate::ports::{LOADED_TOGETHER, Ports, SettlementNow, Slice};
use crate::wire::{FeeSplit, Page, PageOf, RunQuery, RunTexts, RunView, SettlementView, StepView};

/// A run.
pub(crate) fn agent_run(ports: &Ports, agent_run_id: &Hash) -> Result<RunView, RpcError> {
    let run = run_record(ports, agent_run_id)?;
    let texts = texts_of(ports, std::slice::from_ref(&run))?;
    Ok(run_view(&run, &texts)?.item)
}

/// Returns the steps of a run in the order of their indexes.
pub(crate) fn agent_steps(
    context: &Context,
    agent_run_id: &Hash,
    page: &Page,
) -> Result<PageOf<StepView>, RpcError> {
    let Context { ports, .. } = context;
    let after = page.position()?;
    run_record(ports, agent_run_id)?;
    let Slice { items, next } = ports.runs.steps(agent_run_id, after, page.limit())?;
    let locations: Vec<_> = items.iter().map(|step| step.tx).collect();
    let included = ports.transactions.at_within(&locations, context.page_bytes_max())?;
    let indexes: Vec<_> = items.iter().map(|step| step.step_index).collect();
    let next = paging::next_after(&indexes, included.len(), next);
    let entries = items.iter().zip(&included).map(|(step, included)| {
        let Body::AgentStep(body) = included.tx.body() else {
            return Err(wrong_kind(&included.tx, "AGENT_STEP"));
        };
        Ok(Entry {
            item: StepView::new(step, included.tx.hash(), body),
            bytes: included.tx.signed_bytes(),
            position: step.step_index,
        })
    });
    let entries = entries.collect::<Result<_, _>>()?;
    Ok(paging::page_within(entries, next.as_ref(), context.page_bytes_max()))
}

/// Returns runs, newest first.
pub(crate) fn agent_runs(
    context: &Context,
    query: RunQuery,
    page: &Page,
) -> Result<PageOf<RunView>, RpcError> {
    let filter = query.filter()?;
    let before = page.position()?;
    let Slice { items, next } = context.ports.runs.list(&filter, before, page.limit())?;
    let places: Vec<_> = items.iter().map(|run| run.request).collect();
    let entries = run_views(context, &items)?;
    let next = paging::next_after(&places, entries.len(), next);
    Ok(paging::page_within(entries, next.as_ref(), context.page_bytes_max()))
}

/// What an AGENT_FINISH of the run must state now, pending steps counted.
pub(crate) fn settlement(ports: &Ports, agent_run_id: &Hash) -> Result<SettlementView, RpcError> {
    let SettlementNow { total_tokens_out, step_count, fees } = settlement_now(ports, agent_run_id)?;
    Ok(SettlementView { total_tokens_out, step_count, fees: FeeSplit::from(fees) })
}

pub(super) fn settlement_now(
    ports: &Ports,
    agent_run_id: &Hash,
) -> Result<SettlementNow, RpcError> {
    let settlement = ports.projection.settlement(agent_run_id)?;
    settlement.ok_or_else(|| RpcError::not_found("agent run", agent_run_id))
}

fn run_record(ports: &Ports, agent_run_id: &Hash) -> Result<Run, RpcError> {
    let run = ports.runs.run(agent_run_id)?;
    run.ok_or_else(|| RpcError::not_found("agent run", agent_run_id))
}

/// Runs with the texts of their transactions, as many as a page holds.
fn run_views(context: &Context, runs: &[Run]) -> Result<Vec<Entry<RunView, TxLocation>>, RpcError> {
    let (mut entries, mut bytes) = (Vec::new(), 0_usize);
    for some in runs.chunks(LOADED_TOGETHER) {
        let texts = texts_of(&context.ports, some)?;
        for run in some {
            let entry = run_view(run, &texts)?;
            bytes = bytes.saturating_add(entry.bytes);
            entries.push(entry);
            if bytes >= context.page_bytes_max() {
                return Ok(entries);
            }
        }
    }
    Ok(entries)
}

/// The transactions that contain the texts of runs, by location. They are read in the order of
/// locations, so that neighbors in a block are read once.
fn texts_of(ports: &Ports, runs: &[Run]) -> Result<BTreeMap<TxLocation, CheckedTx>, RpcError> {
    let places = runs.iter().flat_map(|run| [Some(run.request), run.claim, run.finish]);
    let places: BTreeSet<TxLocation> = places.flatten().collect();
    let places: Vec<_> = places.into_iter().collect();
    let included = ports.transactions.at(&places)?;
    Ok(included.into_iter().map(|included| (included.location, included.tx)).collect())
}

/// A run with the texts of its transactions.
fn run_view(
    run: &Run,
    texts: &BTreeMap<TxLocation, CheckedTx>,
) -> Result<Entry<RunView, TxLocation>, RpcError> {
    let at = |place: TxLocation| texts.get(&place).ok_or(RpcError::Internal);
    let request = at(run.request)?;
    let (claim, finish) = (run.claim.map(at).transpose()?, run.finish.map(at).transpose()?);
    let txs = [Some(request), claim, finish];
    let bytes = txs.into_iter().flatten().map(|tx| tx.signed_bytes()).sum();
    let texts = RunTexts {
        request: (request.hash(), request_body(request)?),
        claim: claim.map(claim_body).transpose()?,
        finish: finish.map(finish_body).transpose()?,
    };
    Ok(Entry { item: RunView::new(run, texts), bytes, position: run.request })
}

/// A record points at a transaction of another kind: the database contradicts itself.
fn wrong_kind(tx: &CheckedTx, expected: &'static str) -> RpcError {
    tracing::error!(hash = %tx.hash(), kind = tx.body().type_name(), expected, "a record is wrong");
    RpcError::Internal
}

fn request_body(tx: &CheckedTx) -> Result<&AgentRequest, RpcError> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "one kind is right")]
    match tx.body() {
        Body::AgentRequest(body) => Ok(body),
        _ => Err(wrong_kind(tx, "AGENT_REQUEST")),
    }
}

fn claim_body(tx: &CheckedTx) -> Result<(Hash, &AgentClaim), RpcError> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "one kind is right")]
    match tx.body() {
        Body::AgentClaim(body) => Ok((tx.hash(), body)),
        _ => Err(wrong_kind(tx, "AGENT_CLAIM")),
    }
}

fn finish_body(tx: &CheckedTx) -> Result<(Hash, Option<&AgentFinish>), RpcError> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "two kinds are right")]
    match tx.body() {
        Body::AgentFinish(body) => Ok((tx.hash(), Some(body))),
        Body::AgentCancel(_) => Ok((tx.hash(), None)),
        _ => Err(wrong_kind(tx, "AGENT_FINISH or AGENT_CANCEL")),
    }
}
