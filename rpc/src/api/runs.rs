//! Agent runs, their steps, conversations.

use std::collections::{BTreeMap, BTreeSet};

use jsonrpsee::proc_macros::rpc;
use types::tx::{AgentClaim, AgentFinish, AgentRequest};
use types::{Body, CheckedTx, Hash, Run, RunStatus, TxLocation};

use super::Api;
use super::paging::{self, Entry};
use crate::error::RpcError;
use crate::ports::{IncludedTx, LOADED_TOGETHER, RunFilter, SettlementNow, Slice};
use crate::wire::{
    FeeSplit, Page, PageOf, RunQuery, RunTexts, RunView, SettlementView, StepView, TurnView,
};

/// Agent runs and conversations.
#[rpc(server, namespace = "ombra")]
pub trait RunsRpc {
    /// A run.
    #[method(name = "getAgentRun", blocking)]
    fn agent_run(&self, agent_run_id: Hash) -> Result<RunView, RpcError>;

    /// The steps of a run, by index.
    #[method(name = "getAgentSteps", blocking)]
    fn agent_steps(
        &self,
        agent_run_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<StepView>, RpcError>;

    /// Runs, newest first.
    #[method(name = "listAgentRuns", blocking)]
    fn agent_runs(
        &self,
        filter: Option<RunQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<RunView>, RpcError>;

    /// The turns of a conversation, in chain order.
    #[method(name = "getConversation", blocking)]
    fn conversation(
        &self,
        conversation_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<TurnView>, RpcError>;

    /// A turn.
    #[method(name = "getChatTurn", blocking)]
    fn chat_turn(&self, hash: Hash) -> Result<TurnView, RpcError>;

    /// What an AGENT_FINISH of the run must state now, pending steps counted.
    #[method(name = "settlement", blocking)]
    fn settlement(&self, agent_run_id: Hash) -> Result<SettlementView, RpcError>;
}

impl RunsRpcServer for Api {
    fn agent_run(&self, agent_run_id: Hash) -> Result<RunView, RpcError> {
        let run = self.run_record(agent_run_id)?;
        let texts = self.texts_of(std::slice::from_ref(&run))?;
        Ok(run_view(&run, &texts)?.item)
    }

    fn agent_steps(
        &self,
        agent_run_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<StepView>, RpcError> {
        let page = page.unwrap_or_default();
        let after = page.position()?;
        self.run_record(agent_run_id)?;
        let Slice { items, next } = self.ports.runs.steps(&agent_run_id, after, page.limit())?;
        let locations: Vec<_> = items.iter().map(|step| step.tx).collect();
        let included = self.ports.transactions.at_within(&locations, self.page_bytes_max())?;
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
        Ok(paging::page_within(entries, next.as_ref(), self.page_bytes_max()))
    }

    fn agent_runs(
        &self,
        filter: Option<RunQuery>,
        page: Option<Page>,
    ) -> Result<PageOf<RunView>, RpcError> {
        let filter = run_filter(filter.unwrap_or_default())?;
        let page = page.unwrap_or_default();
        let before = page.position()?;
        let Slice { items, next } = self.ports.runs.list(&filter, before, page.limit())?;
        let places: Vec<_> = items.iter().map(|run| run.request).collect();
        let entries = self.run_views(items)?;
        let next = paging::next_after(&places, entries.len(), next);
        Ok(paging::page_within(entries, next.as_ref(), self.page_bytes_max()))
    }

    fn conversation(
        &self,
        conversation_id: Hash,
        page: Option<Page>,
    ) -> Result<PageOf<TurnView>, RpcError> {
        let page = page.unwrap_or_default();
        let after = page.position()?;
        let Slice { items, next } =
            self.ports.transactions.turns(&conversation_id, after, page.limit())?;
        let included = self.ports.transactions.at_within(&items, self.page_bytes_max())?;
        let next = paging::next_after(&items, included.len(), next);
        let entries = included.iter().map(|included| {
            Ok(Entry {
                item: self.turn_view(included)?.ok_or(RpcError::Internal)?,
                bytes: included.tx.signed_bytes(),
                position: included.location,
            })
        });
        let entries = entries.collect::<Result<_, RpcError>>()?;
        Ok(paging::page_within(entries, next.as_ref(), self.page_bytes_max()))
    }

    fn chat_turn(&self, hash: Hash) -> Result<TurnView, RpcError> {
        let included = self.ports.transactions.by_hash(&hash)?;
        let view = included.map(|included| self.turn_view(&included)).transpose()?.flatten();
        view.ok_or_else(|| self.missing("turn", hash))
    }

    fn settlement(&self, agent_run_id: Hash) -> Result<SettlementView, RpcError> {
        let SettlementNow { total_tokens_out, step_count, fees } =
            self.settlement_now(agent_run_id)?;
        Ok(SettlementView { total_tokens_out, step_count, fees: FeeSplit::from(fees) })
    }
}

impl Api {
    pub(super) fn settlement_now(&self, agent_run_id: Hash) -> Result<SettlementNow, RpcError> {
        let settlement = self.ports.projection.settlement(&agent_run_id)?;
        settlement.ok_or_else(|| RpcError::not_found("agent run", agent_run_id))
    }

    /// Runs with the texts of their transactions, as many as a page holds.
    fn run_views(&self, runs: Vec<Run>) -> Result<Vec<Entry<RunView, TxLocation>>, RpcError> {
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        for some in runs.chunks(LOADED_TOGETHER) {
            let texts = self.texts_of(some)?;
            for run in some {
                let entry = run_view(run, &texts)?;
                bytes = bytes.saturating_add(entry.bytes);
                entries.push(entry);
                if bytes >= self.page_bytes_max() {
                    return Ok(entries);
                }
            }
        }
        Ok(entries)
    }

    /// The transactions that the texts of runs are in, by their places and read in the order of these:
    /// what stands side by side in a block is read once.
    fn texts_of(&self, runs: &[Run]) -> Result<BTreeMap<TxLocation, CheckedTx>, RpcError> {
        let places = runs.iter().flat_map(|run| [Some(run.request), run.claim, run.finish]);
        let places: BTreeSet<TxLocation> = places.flatten().collect();
        let places: Vec<_> = places.into_iter().collect();
        let included = self.ports.transactions.at(&places)?;
        Ok(included.into_iter().map(|included| (included.location, included.tx)).collect())
    }

    /// The view of a turn; none if the transaction is of another kind.
    pub(crate) fn turn_view(&self, included: &IncludedTx) -> Result<Option<TurnView>, RpcError> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "only one kind is a turn")]
        let turn = match included.tx.body() {
            Body::ChatTurn(turn) => turn,
            _ => return Ok(None),
        };
        let run = turn.agent_run_id.map(|id| self.ports.runs.run(&id)).transpose()?.flatten();
        Ok(Some(TurnView::new(included, turn, run.as_ref())))
    }
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

fn run_filter(query: RunQuery) -> Result<RunFilter, RpcError> {
    let RunQuery { status, submitter, miner, conversation_id } = query;
    Ok(RunFilter {
        status: status.as_deref().map(parse_status).transpose()?,
        submitter: submitter.map(|address| address.0),
        miner: miner.map(|address| address.0),
        conversation_id: conversation_id.map(|id| id.0),
    })
}

pub(crate) fn parse_status(word: &str) -> Result<RunStatus, RpcError> {
    RunStatus::parse(word).ok_or_else(|| {
        let words = RunStatus::ALL.map(RunStatus::as_str).join(", ");
        RpcError::invalid("status", word, format!("one of {words}"))
    })
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
