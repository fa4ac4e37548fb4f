//! Unsigned transactions, built from the fields of their kinds. Nothing here ever sees a private key.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use types::agent::{Document, METADATA_BYTES_MAX};
use types::build::{Envelope, Unsigned};
use types::check::{self, StaticRules};
use types::params::BLOB_CHUNK_BYTES;
use types::tx::spec::{Filled, Form, KindSpec};
use types::{Bid, Body, Code, Fork, Hash, PublicKey, Rejection, SizeLimits, Transaction, ids};

use super::compute::parse_address;
use super::runs::settlement_now;
use super::{Context, accounts};
use crate::error::RpcError;
use crate::ports::{ChainFacts, NextRules, Ports, SettlementNow};
use crate::wire::{BuildEnvelope, Built};

/// How long a vote for a change to the validator set counts if the caller does not say: a week.
const VOTE_TTL_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The fields of a kind by name.
pub(crate) type Fields = Map<String, Value>;

/// The sender, and the members that every transaction has.
struct Sender {
    from: String,
    public_key: PublicKey,
    envelope: Envelope,
}

/// An unsigned transaction of a kind.
pub(crate) fn build(
    context: &Context,
    spec: &KindSpec,
    envelope: BuildEnvelope,
    mut fields: Fields,
) -> Result<Built, RpcError> {
    let sender = sender(&context.ports, envelope)?;
    // A member that is null counts as left out.
    fields.retain(|_, value| !value.is_null());
    complete(context, spec, &sender, &mut fields)?;
    let text = Value::Object(fields).to_string();
    let body = Body::parse(spec.type_name, text.as_bytes())
        .map_err(|rejection| bad_field(&text, rejection))?;
    write(context, &sender, &body)
}

/// Fills in what the caller left out.
fn complete(
    context: &Context,
    spec: &KindSpec,
    sender: &Sender,
    fields: &mut Fields,
) -> Result<(), RpcError> {
    for field in spec.fields {
        let value = match field.filled {
            Filled::ByCaller | Filled::Default | Filled::Computed => continue,
            Filled::Sender => json!(sender.from),
            Filled::Empty => match field.form {
                Form::Amount(_) => json!("0"),
                Form::Names(_) | Form::Objects(_) => json!([]),
                Form::Address
                | Form::Addresses(_)
                | Form::Base64
                | Form::Boolean
                | Form::Hash
                | Form::Hex(_)
                | Form::Integer(_)
                | Form::Key
                | Form::Object(_)
                | Form::Signature
                | Form::Text(_) => continue,
            },
        };
        fields.entry(field.name).or_insert(value);
    }
    match spec.type_name {
        "AGENT_REQUEST" => complete_request(sender, fields),
        "AGENT_FINISH" => complete_finish(&context.ports, fields),
        "AGENT_REGISTER" => complete_agent(context, sender, fields),
        "AGENT_CALL" => complete_call(context, sender, fields),
        "SOCIAL_BLOB_INIT" => complete_blob(fields),
        "VALIDATOR_VOTE" => {
            let week = || sender.envelope.timestamp.saturating_add(VOTE_TTL_MS);
            fields.entry("expiresAt").or_insert_with(|| json!(week()));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The id of a call is computed from the chain id, the sender and the nonce.
fn complete_call(context: &Context, sender: &Sender, fields: &mut Fields) -> Result<(), RpcError> {
    let from = parse_address("from", &sender.from)?;
    let id = ids::compute_call_id(&context.facts.chain_id, &from, sender.envelope.nonce);
    fields.insert("callId".to_owned(), json!(id.to_string()));
    Ok(())
}

/// The amounts follow from the steps of the run, including pending ones.
fn complete_finish(ports: &Ports, fields: &mut Fields) -> Result<(), RpcError> {
    let run = text(fields, "agentRunId")?;
    let run = run.parse().map_err(|e: types::text::ParseTextError| {
        RpcError::invalid("agentRunId", e.got, e.expected)
    })?;
    let SettlementNow { total_tokens_out, fees, .. } = settlement_now(ports, &run)?;
    fields.insert("totalTokensOut".to_owned(), json!(total_tokens_out));
    fields.insert("minerReward".to_owned(), json!(fees.miner_reward.to_string()));
    fields.insert("userRefund".to_owned(), json!(fees.user_refund.to_string()));
    fields.insert("networkFee".to_owned(), json!(fees.network_fee.to_string()));
    Ok(())
}

/// The id of an agent is computed from the sender and the name in the metadata, which must meet the
/// rules that need no state.
fn complete_agent(context: &Context, sender: &Sender, fields: &mut Fields) -> Result<(), RpcError> {
    let owner = parse_address("from", &sender.from)?;
    let metadata = text(fields, "metadata")?;
    if metadata.len() > METADATA_BYTES_MAX {
        // Its own limit is told where all limits are.
        fields.insert("agentId".to_owned(), json!(Hash::ZERO.to_string()));
        return Ok(());
    }
    let document = Document::read(metadata.as_bytes()).map_err(Rejection::from)?;
    let outcome = document.check(context.facts.params.royalty_max).outcome;
    let id = ids::compute_agent_id(&owner, &outcome.map_err(Rejection::from)?.name);
    fields.insert("agentId".to_owned(), json!(id.to_string()));
    Ok(())
}

/// The id of a run is computed from the sender, the nonce and the prompt; that of a new
/// conversation from `seed` and the time.
fn complete_request(sender: &Sender, fields: &mut Fields) -> Result<(), RpcError> {
    let Sender { from, envelope: Envelope { nonce, timestamp, .. }, .. } = sender;
    let id = ids::compute_agent_run_id(from, *nonce, text(fields, "prompt")?);
    let seed = match fields.remove("seed") {
        None => None,
        Some(Value::String(seed)) => Some(seed),
        Some(other) => return Err(RpcError::invalid("seed", other.to_string(), "a string")),
    };
    if let (Some(seed), true) = (&seed, fields.contains_key("conversationId")) {
        return Err(RpcError::invalid("seed", seed, "either conversationId or seed"));
    }
    fields.entry("conversationId").or_insert_with(|| {
        json!(ids::compute_conversation_id(from, seed.as_deref(), *timestamp).to_string())
    });
    fields.insert("agentRunId".to_owned(), json!(id.to_string()));
    Ok(())
}

fn complete_blob(fields: &mut Fields) -> Result<(), RpcError> {
    let bytes = fields.get("totalBytes").unwrap_or(&Value::Null);
    let bytes = bytes.as_u64().ok_or_else(|| {
        RpcError::invalid("totalBytes", bytes.to_string(), "an integer of at least 1")
    })?;
    let chunks = bytes.div_ceil(BLOB_CHUNK_BYTES);
    fields.insert("totalChunks".to_owned(), json!(chunks));
    Ok(())
}

fn text<'a>(fields: &'a Fields, name: &'static str) -> Result<&'a str, RpcError> {
    let value = fields.get(name).unwrap_or(&Value::Null);
    value.as_str().ok_or_else(|| RpcError::invalid(name, value.to_string(), "a string"))
}

/// The error for a field of `text` that does not have its form.
fn bad_field(text: &str, rejection: Rejection) -> RpcError {
    if rejection.code() != Code::Malformed {
        return rejection.into();
    }
    let (field, expected) = (rejection.field().to_owned(), rejection.expected());
    let fields: Fields = serde_json::from_str(text).unwrap_or_default();
    let got = fields.get(&field).map_or_else(|| rejection.got().to_owned(), Value::to_string);
    RpcError::invalid(field, got, expected)
}

fn sender(ports: &Ports, envelope: BuildEnvelope) -> Result<Sender, RpcError> {
    let BuildEnvelope { from, public_key, nonce, timestamp, chain_id, max_base_fee, tip } =
        envelope;
    let address = parse_address("from", &from)?;
    let nonce = match nonce {
        Some(nonce) => nonce,
        None => accounts::next_nonce(ports, &address)?,
    };
    let timestamp = timestamp.unwrap_or_else(|| ports.clock.now_ms());
    let bid = Bid { max_base_fee: max_base_fee.map(|it| it.0), tip: tip.map(|it| it.0) };
    let envelope = Envelope { bid, ..Envelope::new(nonce, timestamp, chain_id) };
    Ok(Sender { from, public_key: public_key.0, envelope })
}

/// The builder fills in the chain's id if the chain or the kind requires it.
fn chain_id(facts: &ChainFacts, given: Option<&String>, body: &Body) -> Option<String> {
    let is_required = facts.params.require_chain_id || body.fork() == Some(Fork::V8);
    given.cloned().or_else(|| is_required.then(|| facts.chain_id.clone()))
}

/// Writes the payload, after the checks that need no state.
fn write(context: &Context, sender: &Sender, body: &Body) -> Result<Built, RpcError> {
    let Context { facts, ports, .. } = context;
    let Sender { from, public_key, envelope } = sender;
    let chain_id = chain_id(facts, envelope.chain_id.as_ref(), body);
    let envelope = Envelope { chain_id, ..envelope.clone() };
    let unsigned = Unsigned::build(body, from, public_key, &envelope);
    let params = &facts.params;
    let limits = SizeLimits::from(params);
    let tx = Transaction::parse_unsigned(unsigned.payload().as_bytes(), &limits)?;
    let rules = StaticRules {
        chain_id: &facts.chain_id,
        params,
        forks: facts.forks,
        height: ports.chain.tip().height.saturating_add(1),
    };
    let tx = check::verify_unsigned(tx, &rules)?;
    let NextRules { height, v7_from: _, v8_from, params, base_fee } = ports.rules.next_rules()?;
    if base_fee.is_some() {
        check::check_v7(&tx, &params)?;
    }
    if v8_from.is_some_and(|from| height >= from) {
        check::check_v8(&tx, &params)?;
    } else {
        check::check_before_v8(&tx)?;
    }
    let payload = unsigned.payload().to_owned();
    Ok(Built {
        tx: RawValue::from_string(payload.clone()).map_err(|e| {
            tracing::error!(error = %e, "a payload is not JSON");
            RpcError::Internal
        })?,
        payload,
        hash: unsigned.hash(),
        signing_message: unsigned.signing_message(),
    })
}
