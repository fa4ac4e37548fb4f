//! Methods for requesters: payloads and results of an agent's methods, prices, elections.

use serde_json::value::RawValue;
use types::abi::{Method, ValueError};
use types::agent::{Document, Metadata};
use types::call::{
    CALLDATA_BYTES_MAX, COMMITTEE_MAX, Call, CallLimits, Consensus, Group, Outcome,
    result_bytes_max,
};
use types::tx::HexBytes;
use types::{Amount, Hash, Params, Prices, Usage};

use super::agents::agent_entry;
use crate::error::RpcError;
use crate::ports::{AgentEntry, CallEstimate, CallFilter, CallWish, HeldElection, Ports};
use crate::wire::{
    CandidateView, DecodeQuery, DecodedResult, ElectionView, EncodeQuery, EncodedCall,
    EstimateQuery, EstimateView, TypicalView,
};

/// The number of committee members if the caller does not say.
const SIZE_DEFAULT: u8 = 3;
/// So many recent calls of an agent say what its calls take.
const TYPICAL_OF: usize = 32;

/// The payload of a call of a method with arguments.
pub(crate) fn encode_call(ports: &Ports, call: EncodeQuery) -> Result<EncodedCall, RpcError> {
    let EncodeQuery { agent_id, version, method, args } = call;
    let entry = agent_entry(ports, &agent_id.0, version.as_deref())?;
    let method = find_method(metadata(&entry)?.methods, &method)?;
    let args = args.as_deref().map_or("[]", RawValue::get);
    let payload = method.encode_arguments(args).map_err(|error| bad_value("args", error))?;
    Ok(EncodedCall {
        payload: HexBytes(payload).to_string(),
        selector: method.selector(),
        signature: method.signature(),
        version: entry.version.version,
    })
}

/// What a result of a method says.
pub(crate) fn decode_result(ports: &Ports, answer: DecodeQuery) -> Result<DecodedResult, RpcError> {
    let DecodeQuery { agent_id, version, method, result } = answer;
    let result = calldata("result", &result)?;
    let entry = agent_entry(ports, &agent_id.0, version.as_deref())?;
    let method = find_method(metadata(&entry)?.methods, &method)?;
    let values = method.decode_answer(&result).map_err(|error| bad_value("result", error))?;
    Ok(DecodedResult {
        values: RawValue::from_string(values).map_err(|error| {
            tracing::error!(%error, "values are not JSON");
            RpcError::Internal
        })?,
        signature: method.signature(),
        version: entry.version.version,
    })
}

/// What a call would cost, and who would work for it.
pub(crate) fn estimate_call(ports: &Ports, call: EstimateQuery) -> Result<EstimateView, RpcError> {
    let committee_size = committee_size(call.committee_size)?;
    let is_appealable = call.appealable.unwrap_or(false);
    let consensus = consensus(call.threshold, committee_size)?;
    let payload = call.payload.as_deref().map(|text| calldata("payload", text)).transpose()?;
    let entry = agent_entry(ports, &call.agent_id.0, call.version.as_deref())?;
    let params = ports.rules.next_rules()?.params;
    let payload_bytes = payload.map_or(0, |payload| payload.len());
    let suggested = suggested_limits(&entry, &params, payload_bytes);
    let limits = call.limits.map_or(suggested, |limits| limits.or(suggested));
    check_limits(&limits, &params)?;
    let prices = call.prices.map(Prices::from);
    let wish = CallWish { committee_size, consensus, is_appealable, limits, prices };
    let estimate = ports.market.estimate(&entry.version, &wish)?.ok_or_else(|| {
        RpcError::invalid("prices", "more than any amount of money", "prices at the limits")
    })?;
    let filter = CallFilter { agent_id: Some(call.agent_id.0), ..CallFilter::default() };
    let recent = ports.calls.list(&filter, None, TYPICAL_OF)?;
    Ok(EstimateView { typical: typical(&recent.items), ..view(entry, &wish, &estimate) })
}

/// What calls of an agent took.
fn typical(calls: &[Call]) -> Option<TypicalView> {
    let succeeded = |call: &Call| {
        let answer = match call.standing()? {
            (_, Group::Same(answer)) => answer,
            (_, Group::Of(_)) => return None,
        };
        let decided_at = call.rounds.first()?.decided_at?;
        let took = decided_at.saturating_sub(call.created_at);
        (answer.outcome == Outcome::Success).then_some((answer.usage, took))
    };
    let taken: Vec<(Usage, u64)> = calls.iter().filter_map(succeeded).collect();
    let median = |of: fn(&(Usage, u64)) -> u64| {
        let mut values: Vec<u64> = taken.iter().map(of).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied()
    };
    Some(TypicalView {
        calls: u64::try_from(taken.len()).unwrap_or(u64::MAX),
        input_tokens: median(|(usage, _)| usage.input_tokens)?,
        output_tokens: median(|(usage, _)| usage.output_tokens)?,
        fuel: median(|(usage, _)| usage.fuel)?,
        latency_ms: median(|(_, took)| *took)?,
    })
}

/// An election of a call's members, with what it was drawn from.
pub(crate) fn election(
    ports: &Ports,
    call_id: Hash,
    round: Option<u8>,
) -> Result<ElectionView, RpcError> {
    let round = round.unwrap_or(0);
    if round > 1 {
        return Err(RpcError::invalid("round", round.to_string(), "0 or 1"));
    }
    let held = ports.market.election(&call_id, round)?;
    let HeldElection { height, candidates } = held.ok_or_else(|| {
        RpcError::not_found("election", format_args!("of round {round} of call {call_id}"))
    })?;
    let candidates = candidates.into_iter().map(CandidateView::from).collect();
    Ok(ElectionView { call_id, round, block_index: height, candidates })
}

fn metadata(entry: &AgentEntry) -> Result<Metadata, RpcError> {
    let document = Document::read(entry.metadata.as_bytes());
    document.and_then(|document| document.check(Amount::MAX).outcome).map_err(|error| {
        tracing::error!(agent = %entry.agent.agent_id, %error, "stored metadata breaks a rule");
        RpcError::Internal
    })
}

fn find_method(methods: Vec<Method>, wanted: &str) -> Result<Method, RpcError> {
    let names: Vec<String> = methods.iter().map(|it| it.name.clone()).collect();
    let is_it = |it: &Method| it.name == wanted || it.signature() == wanted;
    methods.into_iter().find(is_it).ok_or_else(|| {
        let expected = format!("one of {}", names.join(", "));
        RpcError::invalid("method", wanted, expected)
    })
}

fn bad_value(field: &str, error: ValueError) -> RpcError {
    let ValueError { place, expected, found } = error;
    RpcError::invalid(format!("{field}{place}"), found, expected)
}

fn calldata(field: &'static str, text: &str) -> Result<Vec<u8>, RpcError> {
    let bytes = HexBytes::parse(text).filter(|bytes| bytes.0.len() <= CALLDATA_BYTES_MAX);
    bytes.map(|bytes| bytes.0).ok_or_else(|| {
        let expected = format!(
            "0x and lowercase hex, two characters for each of at most {CALLDATA_BYTES_MAX} bytes"
        );
        RpcError::invalid(field, text, expected)
    })
}

fn committee_size(given: Option<u8>) -> Result<u8, RpcError> {
    let size = given.unwrap_or(SIZE_DEFAULT);
    if size % 2 == 1 && size <= COMMITTEE_MAX {
        return Ok(size);
    }
    let expected = format!("an odd number up to {COMMITTEE_MAX}");
    Err(RpcError::invalid("committeeSize", size.to_string(), expected))
}

fn consensus(threshold: Option<u8>, committee_size: u8) -> Result<Consensus, RpcError> {
    match threshold {
        None => Ok(Consensus::Majority),
        Some(needed) if (1..=committee_size).contains(&needed) => Ok(Consensus::Threshold(needed)),
        Some(needed) => {
            let expected = format!("1 to {committee_size}");
            Err(RpcError::invalid("threshold", needed.to_string(), expected))
        }
    }
}

/// What the work may take that the metadata lets expect, within what the chain allows. It is what is held for
/// it, not what is paid: members are paid for what they agree that it took.
fn suggested_limits(entry: &AgentEntry, params: &Params, payload_bytes: usize) -> CallLimits {
    let document = Document::read(entry.metadata.as_bytes());
    // Of an agent with others among its tools, the metadata says nothing of their work.
    let work = document.ok().filter(|_| entry.version.nesting <= 1);
    let work = work.as_ref().and_then(Document::model_work);
    let usage = match work {
        Some(work) => work.usage(u64::try_from(payload_bytes).unwrap_or(u64::MAX)),
        None => {
            let has_model = !entry.version.manifests.is_empty();
            let tokens = |most: u64| if has_model { most / 4 } else { 0 };
            Usage {
                input_tokens: tokens(params.limit_input_tokens),
                output_tokens: tokens(params.limit_output_tokens),
                fuel: params.limit_fuel / 10,
            }
        }
    };
    let usage = Usage {
        input_tokens: usage.input_tokens.min(params.limit_input_tokens),
        output_tokens: usage.output_tokens.min(params.limit_output_tokens),
        fuel: usage.fuel,
    };
    CallLimits { usage, result_bytes: result_bytes_max(params) }
}

fn check_limits(limits: &CallLimits, params: &Params) -> Result<(), RpcError> {
    let CallLimits { usage, result_bytes } = *limits;
    let bounds = [
        ("limits.inputTokens", usage.input_tokens, params.limit_input_tokens),
        ("limits.outputTokens", usage.output_tokens, params.limit_output_tokens),
        ("limits.fuel", usage.fuel, params.limit_fuel),
        ("limits.resultBytes", result_bytes, result_bytes_max(params)),
    ];
    match bounds.into_iter().find(|(_, given, most)| given > most) {
        Some((field, given, most)) => {
            Err(RpcError::invalid(field, given.to_string(), format!("at most {most}")))
        }
        None => Ok(()),
    }
}

fn view(entry: AgentEntry, wish: &CallWish, estimate: &CallEstimate) -> EstimateView {
    let CallEstimate { prices, budget, floor, max_fee, lock, needed, eligible, full, offering } =
        *estimate;
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    EstimateView {
        agent_id: entry.agent.agent_id,
        version: entry.version.version,
        committee_size: wish.committee_size,
        prices: prices.into(),
        limits: wish.limits.into(),
        royalty: entry.version.royalty,
        budget,
        floor,
        max_fee,
        lock,
        needed: count(needed),
        eligible: count(eligible),
        full: count(full),
        offering: count(offering),
        enough: eligible >= needed,
        typical: None,
    }
}
