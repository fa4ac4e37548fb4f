//! AGENT_CALL: ask a committee of miners for an agent's answer (docs/protocol.md section 5.21).
//!
//! Refused with AGENT_NOT_FOUND, AGENT_RETIRED, CALL_ID_MISMATCH, SELECTOR_UNKNOWN, CALL_LIMITS,
//! MAX_FEE_TOO_LOW, in this order.

use types::abi::Selector;
use types::call::{Call, CallChange, CallLimits, CallStatus, CallTerms, result_bytes_max};
use types::ids::{compute_call_id, compute_result_hash};
use types::tx::AgentCall;
use types::{AgentVersion, Amount, Code, Event, Hash, Params, Prices, Rejection, Transaction};

use super::{Cost, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::ledger;
use crate::market::callable;
use crate::market::calls;
use crate::market::terms::AskedCall;
use crate::rules::Rules;
use crate::tables::{CallQueue, CallsByAgent, CallsByRequester};
use crate::view::Read;
use crate::work;

/// The call to be made, the work of its election, and the least that counts as such.
pub(crate) struct Plan {
    call: Call,
    election: u64,
    least_work: u64,
}

impl Kind for AgentCall {
    type Plan = Plan;

    fn cost(&self, _: &Transaction, _: &dyn Read, _: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "maxFee", total: Some(self.max_fee) })
    }

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        const UNREAD: StorageError =
            StorageError::Inconsistent { what: "a call without a consensus was checked" };
        let agent = callable::callable(state, &self.agent_id, &self.agent_version)?;
        let chain_id = &ctx.rules.domain.chain_id;
        let derived = compute_call_id(chain_id, &tx.from(), tx.nonce());
        if self.call_id != derived {
            return Err(
                Rejection::new(Code::CallIdMismatch, "callId", self.call_id, derived).into()
            );
        }
        check_selector(&self.payload.0, &agent)?;
        let (prices, limits) = (Prices::from(&self.prices), CallLimits::from(&self.limits));
        let on_result = self.conditional();
        let asked = AskedCall {
            committee_size: self.size(),
            prices: &prices,
            limits: &limits,
            royalty: agent.royalty,
            on_result: &on_result,
        };
        let params = &ctx.rules.params;
        check_limits(&limits, params)?;
        if self.is_appealable() {
            check_appealable(&agent, params)?;
        }
        check_conditional(&asked, params)?;
        let terms = check_fee(self.max_fee, &asked, params)?;
        let consensus = self.rule().ok_or(UNREAD)?;
        let election = work::election(params, agent.executors.len(), self.size());
        let call = Call {
            call_id: self.call_id,
            agent_id: self.agent_id,
            agent_version: self.agent_version.clone(),
            owner: agent.owner,
            requester: tx.from(),
            request: ctx.location(),
            created_at: ctx.timestamp,
            payload_hash: compute_result_hash(&self.payload.0),
            conversation_id: self.conversation_id,
            consensus,
            committee_size: self.size(),
            is_appealable: self.is_appealable(),
            prices,
            limits,
            max_fee: self.max_fee,
            timeout_ms: self.timeout_ms,
            on_result,
            terms,
            status: CallStatus::Electing,
            deadline: None,
            rounds: Vec::new(),
            appeal: None,
            bill: None,
            members_digest: Hash::ZERO,
        };
        Ok(Plan { call, election, least_work: work::least_of_election(params) })
    }

    fn work(plan: &Plan) -> u64 {
        // The agent and its version, the call, its places in the lists of calls and among the elections
        // that wait, and the election.
        work::rows(9).saturating_add(plan.election)
    }

    fn least_work(plan: &Plan) -> u64 {
        plan.least_work
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { call, election: _, least_work: _ } = plan;
        // The pool checked it for no place in particular.
        let call = Call { request: ctx.location(), created_at: ctx.timestamp, ..call };
        let (call_id, at) = (call.call_id, call.request);
        ledger::hold(draft, call.max_fee)?;
        draft.insert::<CallQueue>(&(at.height, at.position), &call_id);
        let Call { requester, agent_id, max_fee: escrow, .. } = call;
        draft.insert::<CallsByAgent>(&(agent_id, at.height, at.position), &call_id);
        draft.insert::<CallsByRequester>(&(requester, at.height, at.position), &call_id);
        calls::save(draft, call, None)?;
        let change = CallChange::Requested { requester, agent_id, escrow };
        Ok(Event::CallChanged { call_id, change })
    }
}

/// The numbers that hold for the call, or MAX_FEE_TOO_LOW.
fn check_fee(
    max_fee: Amount,
    asked: &AskedCall<'_>,
    params: &Params,
) -> Result<CallTerms, Rejection> {
    let least = asked.least_fee(params);
    let terms = asked.terms(params).filter(|_| u128::from(max_fee.get()) >= least);
    terms.ok_or_else(|| {
        let expected = format_args!("at least {least}");
        Rejection::new(Code::MaxFeeTooLow, "maxFee", max_fee, expected)
            .with("budget", asked.budget())
    })
}

/// SELECTOR_UNKNOWN unless the payload begins with a method of the agent.
fn check_selector(payload: &[u8], agent: &AgentVersion) -> Result<(), Rejection> {
    let selector = payload.first_chunk::<4>();
    if selector.is_some_and(|it| agent.selectors.contains(it)) {
        return Ok(());
    }
    let known: Vec<String> = agent.selectors.iter().map(|it| Selector(*it).to_string()).collect();
    let expected = format!("to begin with one of {}", known.join(", "));
    let got = match selector {
        Some(selector) => Selector(*selector).to_string(),
        None => format!("{} bytes", payload.len()),
    };
    Err(Rejection::new(Code::SelectorUnknown, "payload", got, expected))
}

/// CALL_LIMITS for more than the chain allows.
fn check_limits(limits: &CallLimits, params: &Params) -> Result<(), Rejection> {
    let bounds = [
        ("limits.inputTokens", limits.usage.input_tokens, params.limit_input_tokens),
        ("limits.outputTokens", limits.usage.output_tokens, params.limit_output_tokens),
        ("limits.fuel", limits.usage.fuel, params.limit_fuel),
        ("limits.resultBytes", limits.result_bytes, result_bytes_max(params)),
    ];
    match bounds.into_iter().find(|(_, limit, max)| limit > max) {
        Some((name, limit, max)) => {
            Err(Rejection::new(Code::CallLimits, name, limit, format_args!("at most {max}")))
        }
        None => Ok(()),
    }
}

/// CALL_LIMITS unless every honest miner gives the same answer, whatever its processor.
fn check_appealable(agent: &AgentVersion, params: &Params) -> Result<(), Rejection> {
    let refused =
        |expected: &str| Err(Rejection::new(Code::CallLimits, "appealable", true, expected));
    if !agent.is_deterministic {
        return refused("no appeal: the agent is not deterministic");
    }
    let is_unknown = |manifest: &&Hash| !params.slashable_models.contains(manifest);
    match agent.manifests.iter().find(is_unknown) {
        Some(manifest) => refused(&format!("no appeal: {manifest} is not among slashableModels")),
        None => Ok(()),
    }
}

/// CALL_LIMITS for more conditional payments than a false decision would cost.
fn check_conditional(asked: &AskedCall<'_>, params: &Params) -> Result<(), Rejection> {
    let (sum, most) = (asked.conditional(), asked.most_conditional(params));
    if asked.on_result.is_empty() || sum <= most {
        return Ok(());
    }
    let expected = format_args!("at most {most}");
    Err(Rejection::new(Code::CallLimits, "onResult", sum, expected))
}
