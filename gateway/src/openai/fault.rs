//! Faults as the interface tells them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::money::Refused;

/// A fault: its HTTP status, and the object `error` of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiFault {
    /// The HTTP status.
    pub status: u16,
    /// The kind of fault: the member `type`.
    pub kind: &'static str,
    /// The stable word: the member `code`.
    pub code: &'static str,
    /// The parameter that is at fault.
    pub param: Option<String>,
    /// The sentence for people.
    pub message: String,
    /// Whether the official clients are told to try again, or not to; none leaves it to them.
    pub should_retry: Option<bool>,
    /// After how many milliseconds that makes sense.
    pub retry_ms: Option<u64>,
}

const INVALID: &str = "invalid_request_error";
const QUOTA: &str = "insufficient_quota";
const SERVER: &str = "server_error";

impl ApiFault {
    fn new(status: u16, kind: &'static str, code: &'static str, message: String) -> Self {
        let (param, should_retry, retry_ms) = (None, None, None);
        Self { status, kind, code, param, message, should_retry, retry_ms }
    }

    /// A parameter that is not as it must be.
    #[must_use]
    pub fn parameter(param: impl Into<String>, message: impl Into<String>) -> Self {
        let fault = Self::new(400, INVALID, "invalid_value", message.into());
        Self { param: Some(param.into()), ..fault }
    }

    /// A parameter that this interface does not have.
    #[must_use]
    pub fn unknown_parameter(param: &str) -> Self {
        let message = format!("Unrecognized request argument supplied: {param}");
        Self { code: "unknown_parameter", ..Self::parameter(param, message) }
    }

    /// A parameter that means something elsewhere, and nothing here.
    #[must_use]
    pub fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: "unsupported_parameter", ..Self::parameter(param, message) }
    }

    /// A body that is not JSON.
    #[must_use]
    pub fn malformed(message: String) -> Self {
        Self::new(400, INVALID, "malformed_json", message)
    }

    /// A body that is too long.
    #[must_use]
    pub fn too_long(bytes_max: usize) -> Self {
        let message = format!("the body is too long: expected at most {bytes_max} bytes");
        Self::new(413, INVALID, "request_too_large", message)
    }

    /// A body that did not arrive in time.
    #[must_use]
    pub fn body_late(most: Duration) -> Self {
        let message =
            format!("the body did not arrive in time: expected all of it within {most:?}");
        Self::new(408, INVALID, "request_timeout", message)
    }

    /// A body of another type.
    #[must_use]
    pub fn not_json(found: &str) -> Self {
        let message = format!("content-type: expected application/json, got {found:?}");
        Self::new(415, INVALID, "unsupported_media_type", message)
    }

    /// No key, or one that is not in force.
    #[must_use]
    pub fn key(message: &str) -> Self {
        Self::new(401, INVALID, "invalid_api_key", message.to_owned())
    }

    /// A page or a host that may not ask.
    #[must_use]
    pub fn forbidden(message: String) -> Self {
        Self::new(403, INVALID, "forbidden", message)
    }

    /// A path that there is not.
    #[must_use]
    pub fn no_such_path(method: &str, path: &str) -> Self {
        let message = format!("Unknown request URL: {method} {path}");
        Self::new(404, INVALID, "unknown_url", message)
    }

    /// A model that there is not.
    #[must_use]
    pub fn no_such_model(model: &str, why: &str) -> Self {
        let message = format!("The model {model:?} does not exist: {why}");
        let fault = Self::new(404, INVALID, "model_not_found", message);
        Self { param: Some("model".to_owned()), ..fault }
    }

    /// An `Idempotency-Key` that was used with another body.
    #[must_use]
    pub fn name_reused() -> Self {
        let message = "the Idempotency-Key was used with another request; send the same request, or \
                       another key";
        Self::new(422, INVALID, "idempotency_key_reused", message.to_owned())
    }

    /// A key that may not spend so much.
    #[must_use]
    pub fn refused(refused: &Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Expired => Self::key(&message),
            Refused::Model { .. } => {
                let fault = Self::new(403, INVALID, "model_not_allowed", message);
                Self { param: Some("model".to_owned()), ..fault }
            }
            Refused::PerRequest { .. } | Refused::Budget { .. } => Self::quota(message),
            Refused::Parallel { .. } => {
                let fault = Self::new(429, "rate_limit_error", "too_many_parallel", message);
                Self { retry_ms: Some(1_000), ..fault }
            }
            Refused::Rate { retry_ms, .. } => {
                let fault = Self::new(429, "rate_limit_error", "rate_limit_exceeded", message);
                Self { retry_ms: Some(*retry_ms), ..fault }
            }
        }
    }

    /// Money that is not there: asking again does not bring it.
    #[must_use]
    pub fn quota(message: String) -> Self {
        let fault = Self::new(429, QUOTA, "insufficient_quota", message);
        Self { should_retry: Some(false), ..fault }
    }

    /// No miner took the run. Nothing was paid for it but its place on the chain.
    #[must_use]
    pub fn no_miner() -> Self {
        let message = "no miner took the request in time; its escrow was taken back";
        Self::new(503, SERVER, "no_miner", message.to_owned())
    }

    /// Too few miners for a committee. Nothing was paid for it but its place on the chain, if it has one.
    #[must_use]
    pub fn no_committee(why: &str) -> Self {
        Self::new(503, SERVER, "no_miner", format!("there is no committee for the call: {why}"))
    }

    /// A call that ended without an answer; money moved.
    #[must_use]
    pub fn call_failed_paid(why: &str) -> Self {
        let message = format!("the call was paid for but has no answer: {why}");
        let fault = Self::new(502, SERVER, "call_failed_paid", message);
        Self { should_retry: Some(false), ..fault }
    }

    /// A call that was paid and whose answer the node does not have.
    #[must_use]
    pub fn answer_missing() -> Self {
        let message =
            "the call was paid for, but the node does not have its answer now; the chain has it";
        let fault = Self::new(502, SERVER, "answer_missing", message.to_owned());
        Self { should_retry: Some(false), ..fault }
    }

    /// A call that may cost more than the gateway's settings allow.
    #[must_use]
    pub fn too_dear(micro: u64, most_micro: u64) -> Self {
        let message = format!(
            "the call may cost up to {micro} micro-OMBRA, but the settings of the gateway allow \
             {most_micro} (call_micro_max)"
        );
        Self::quota(message)
    }

    /// An agent that the chain does not have.
    #[must_use]
    pub fn no_such_agent(model: &str) -> Self {
        let message = format!("agent: the chain does not have {model}");
        let fault = Self::new(404, INVALID, "agent_not_found", message);
        Self { param: Some("agent".to_owned()), ..fault }
    }

    /// An agent that takes no call, or terms that the chain does not take.
    #[must_use]
    pub fn not_callable(why: &str) -> Self {
        Self::new(
            400,
            INVALID,
            "not_callable",
            format!("the agent cannot be called this way: {why}"),
        )
    }

    /// A method that an agent does not have.
    #[must_use]
    pub fn no_such_method(message: &str) -> Self {
        let fault = Self::new(404, INVALID, "method_not_found", message.to_owned());
        Self { param: Some("method".to_owned()), ..fault }
    }

    /// A run that is none of the key's.
    #[must_use]
    pub fn no_such_run(param: &str, run: &types::Hash) -> Self {
        let message = format!("{param}: no request of this key made the run {run}");
        let fault = Self::new(404, INVALID, "run_not_found", message);
        Self { param: Some(param.to_owned()), ..fault }
    }

    /// A call that is none of the key's.
    #[must_use]
    pub fn no_such_call(param: &str, call: &types::Hash) -> Self {
        let message = format!("{param}: no request of this key made the call {call}");
        let fault = Self::new(404, INVALID, "call_not_found", message);
        Self { param: Some(param.to_owned()), ..fault }
    }

    /// A run that can no longer be taken back.
    #[must_use]
    pub fn not_cancellable(why: &str) -> Self {
        Self::new(409, INVALID, "not_cancellable", format!("the run cannot be taken back: {why}"))
    }

    /// The client took the run back before a miner had it.
    #[must_use]
    pub fn cancelled() -> Self {
        let message = "the run was cancelled before a miner claimed it; its escrow came back";
        let fault = Self::new(409, INVALID, "cancelled", message.to_owned());
        Self { should_retry: Some(false), ..fault }
    }

    /// The chain refused a transaction.
    #[must_use]
    pub fn chain(code: &str) -> Self {
        if code == "INSUFFICIENT_BALANCE" {
            return Self::quota("the gateway's wallet does not have the escrow".to_owned());
        }
        let message = format!("the chain rejected the request: {code}; nothing was paid");
        Self::new(502, SERVER, "chain_refused", message)
    }

    /// A miner gave a run up, and nothing was paid.
    #[must_use]
    pub fn failed_unpaid(why: &str) -> Self {
        let message = format!("the miner gave no answer, and nothing was paid: {why}");
        Self::new(502, SERVER, "run_failed", message)
    }

    /// A run ended without an answer, and was paid for.
    #[must_use]
    pub fn failed_paid(why: &str) -> Self {
        let message = format!("the run was paid for but has no answer: {why}");
        let fault = Self::new(502, SERVER, "run_failed_paid", message);
        Self { should_retry: Some(false), ..fault }
    }

    /// The node cannot be asked. Nothing was sent.
    #[must_use]
    pub fn node_away(why: &str) -> Self {
        let message = format!("the gateway's node cannot answer now: {why}");
        let fault = Self::new(503, SERVER, "node_unavailable", message);
        Self { retry_ms: Some(1_000), ..fault }
    }

    /// The client's time is over, and the run goes on: the same request, said to be a repetition,
    /// follows it.
    #[must_use]
    pub fn still_running() -> Self {
        let message = "this request has timed out, but its run goes on; the same request again, as \
                       a retry or with the same Idempotency-Key, follows the same run";
        let fault = Self::new(504, SERVER, "still_running", message.to_owned());
        Self { should_retry: Some(true), ..fault }
    }

    /// The gateway stops. What was begun goes on at its next start.
    #[must_use]
    pub fn stopping() -> Self {
        let message = "the gateway is stopping; unfinished requests go on at its next start";
        Self::new(503, SERVER, "gateway_stopping", message.to_owned())
    }

    /// The gateway's own fault.
    #[must_use]
    pub fn internal() -> Self {
        let message = "the gateway cannot use its store; its log says why";
        Self::new(500, SERVER, "internal_error", message.to_owned())
    }

    /// The object of the body.
    #[must_use]
    pub fn json(&self) -> Value {
        let Self { kind, code, param, message, .. } = self;
        json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
    }
}
