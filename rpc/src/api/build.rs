//! Builders of unsigned transactions, one for each kind, made from the kinds' declarations. They
//! never see a private key.

use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Methods, RpcModule};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use types::agent::{Document, METADATA_BYTES_MAX};
use types::build::{Envelope, Unsigned};
use types::check::{self, StaticRules};
use types::params::BLOB_CHUNK_BYTES;
use types::tx::spec::{Filled, Form};
use types::{Address, Bid, Body, Code, Fork, Hash, Rejection, SizeLimits, Transaction, ids};

use super::Api;
use crate::error::RpcError;
use crate::ports::{NextRules, SettlementNow};
use crate::registry::Builder;
use crate::wire::{BuildEnvelope, Built};

/// How long a vote for a change of the validators counts if the caller does not say: a week.
const VOTE_TTL_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The fields of a kind by name.
type Fields = Map<String, Value>;

/// The methods: `ombra_build` and the name of the kind.
pub(super) fn methods(api: &Api) -> Methods {
    let mut module = RpcModule::new(api.clone());
    for builder in Builder::all() {
        module
            .register_blocking_method(&builder.method, move |params: Params<'_>, api, _| {
                let (envelope, fields) = params.parse::<(BuildEnvelope, Fields)>()?;
                api.build_kind(builder, envelope, fields).map_err(ErrorObjectOwned::from)
            })
            .expect("no two kinds have the same name");
    }
    module.into()
}

/// Who sends, with everything filled in.
struct Sender {
    from: String,
    public_key: types::PublicKey,
    envelope: Envelope,
}

impl Api {
    fn build_kind(
        &self,
        builder: &Builder,
        envelope: BuildEnvelope,
        mut fields: Fields,
    ) -> Result<Built, RpcError> {
        let sender = self.sender(envelope)?;
        // A member that is null counts as left out.
        fields.retain(|_, value| !value.is_null());
        self.complete(builder, &sender, &mut fields)?;
        let text = Value::Object(fields).to_string();
        let body = Body::parse(builder.spec.type_name, text.as_bytes())
            .map_err(|refusal| bad_field(&text, refusal))?;
        self.build(&sender, &body)
    }

    /// Fills in what the caller left out.
    fn complete(
        &self,
        builder: &Builder,
        sender: &Sender,
        fields: &mut Fields,
    ) -> Result<(), RpcError> {
        for field in builder.spec.fields {
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
        match builder.spec.type_name {
            "AGENT_REQUEST" => complete_request(sender, fields),
            "AGENT_FINISH" => self.complete_finish(fields),
            "AGENT_REGISTER" => self.complete_agent(sender, fields),
            "AGENT_CALL" => self.complete_call(sender, fields),
            "SOCIAL_BLOB_INIT" => complete_blob(fields),
            "VALIDATOR_VOTE" => {
                let week = || sender.envelope.timestamp.saturating_add(VOTE_TTL_MS);
                fields.entry("expiresAt").or_insert_with(|| json!(week()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The call's id follows from chain, sender and nonce.
    fn complete_call(&self, sender: &Sender, fields: &mut Fields) -> Result<(), RpcError> {
        let from = parse_address("from", &sender.from)?;
        let id = ids::compute_call_id(&self.facts.chain_id, &from, sender.envelope.nonce);
        fields.insert("callId".to_owned(), json!(id.to_string()));
        Ok(())
    }

    /// The amounts are those that the run's steps give, pending ones counted.
    fn complete_finish(&self, fields: &mut Fields) -> Result<(), RpcError> {
        let run = text(fields, "agentRunId")?;
        let run = run.parse().map_err(|e: types::text::ParseTextError| {
            RpcError::invalid("agentRunId", e.got, e.expected)
        })?;
        let SettlementNow { total_tokens_out, fees, .. } = self.settlement_now(run)?;
        fields.insert("totalTokensOut".to_owned(), json!(total_tokens_out));
        fields.insert("minerReward".to_owned(), json!(fees.miner_reward.to_string()));
        fields.insert("userRefund".to_owned(), json!(fees.user_refund.to_string()));
        fields.insert("networkFee".to_owned(), json!(fees.network_fee.to_string()));
        Ok(())
    }
}

impl Api {
    /// The agent's id follows from the sender and the name in the metadata, which has to keep the rules
    /// that need no state.
    fn complete_agent(&self, sender: &Sender, fields: &mut Fields) -> Result<(), RpcError> {
        let owner = parse_address("from", &sender.from)?;
        let metadata = text(fields, "metadata")?;
        if metadata.len() > METADATA_BYTES_MAX {
            // Its own limit is told where all limits are.
            fields.insert("agentId".to_owned(), json!(Hash::ZERO.to_string()));
            return Ok(());
        }
        let document = Document::read(metadata.as_bytes()).map_err(Rejection::from)?;
        let outcome = document.check(self.facts.params.royalty_max).outcome;
        let id = ids::compute_agent_id(&owner, &outcome.map_err(Rejection::from)?.name);
        fields.insert("agentId".to_owned(), json!(id.to_string()));
        Ok(())
    }
}

/// The run's id follows from sender, nonce and prompt, a new conversation's from `seed` and the time.
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

/// A field of `text` that is not of its form is a bad parameter.
fn bad_field(text: &str, refusal: Rejection) -> RpcError {
    if refusal.code() != Code::Malformed {
        return refusal.into();
    }
    let (field, expected) = (refusal.field().to_owned(), refusal.expected());
    let fields: Fields = serde_json::from_str(text).unwrap_or_default();
    let got = fields.get(&field).map_or_else(|| refusal.got().to_owned(), Value::to_string);
    RpcError::invalid(field, got, expected)
}

impl Api {
    fn sender(&self, envelope: BuildEnvelope) -> Result<Sender, RpcError> {
        let BuildEnvelope { from, public_key, nonce, timestamp, chain_id, max_base_fee, tip } =
            envelope;
        let address = parse_address("from", &from)?;
        let nonce = match nonce {
            Some(nonce) => nonce,
            None => self.ports.projection.account(&address)?.nonce,
        };
        let timestamp = timestamp.unwrap_or_else(|| self.ports.clock.now_ms());
        let bid = Bid { max_base_fee: max_base_fee.map(|it| it.0), tip: tip.map(|it| it.0) };
        let envelope = Envelope { bid, ..Envelope::new(nonce, timestamp, chain_id) };
        Ok(Sender { from, public_key: public_key.0, envelope })
    }

    /// The chain's name is filled in where the chain, or the kind, asks for it.
    fn chain_id(&self, given: Option<&String>, body: &Body) -> Option<String> {
        let is_required = self.facts.params.require_chain_id || body.fork() == Some(Fork::V8);
        given.cloned().or_else(|| is_required.then(|| self.facts.chain_id.clone()))
    }

    /// Writes the payload, after the checks that need no state.
    fn build(&self, sender: &Sender, body: &Body) -> Result<Built, RpcError> {
        let Sender { from, public_key, envelope } = sender;
        let chain_id = self.chain_id(envelope.chain_id.as_ref(), body);
        let envelope = Envelope { chain_id, ..envelope.clone() };
        let unsigned = Unsigned::build(body, from, public_key, &envelope);
        let params = &self.facts.params;
        let limits = SizeLimits::from(params);
        let tx = Transaction::parse_unsigned(unsigned.payload().as_bytes(), &limits)?;
        let rules = StaticRules {
            chain_id: &self.facts.chain_id,
            params,
            forks: self.facts.forks,
            height: self.ports.chain.tip().height.saturating_add(1),
        };
        let tx = check::verify_unsigned(tx, &rules)?;
        let NextRules { params, base_fee, .. } = self.ports.rules.next_rules()?;
        if base_fee.is_some() {
            check::check_v7(&tx, &params)?;
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
}

fn parse_address(field: &'static str, text: &str) -> Result<Address, RpcError> {
    Address::parse(text).map_err(|e| RpcError::invalid(field, e.got, e.expected))
}
