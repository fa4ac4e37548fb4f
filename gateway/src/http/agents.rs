//! `/v1/agents/{id}/{version}`: what an agent can do, and calls of its methods.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;
use types::Hash;
use types::call::COMMITTEE_MAX;

use super::chat::{Waiting, idempotency_key, is_retry, json, patience, whole, with_headers};
use super::connection::Connection;
use super::{authentication, body};
use crate::arguments::Arguments;
use crate::keys::hash_of;
use crate::market::{AskedCall, COMMITTEE_DEFAULT, TIMEOUT_MS_DEFAULT};
use crate::openai::{ApiFault, short};
use crate::operate::{Asking, Interface};
use crate::request_service::{CallSubmission, RequestService};

/// What a body may have.
const MEMBERS: &[&str] = &["arguments", "committee", "timeout_ms", "max_cost_micro"];

/// The agent that a path names.
#[derive(Debug, Deserialize)]
pub(super) struct AgentPath {
    id: String,
    version: String,
}

/// The method that a path names.
#[derive(Debug, Deserialize)]
pub(super) struct MethodPath {
    id: String,
    version: String,
    method: String,
}

/// What an agent can do.
pub(super) async fn agent(
    State(service): State<Arc<RequestService>>,
    path: Result<Path<AgentPath>, PathRejection>,
    headers: HeaderMap,
) -> Response {
    let told = async {
        authentication::key(&service, &headers)?;
        let Path(AgentPath { id, version }) = path.map_err(|error| not_a_path(&error))?;
        service.published(agent_id(&id)?, &version).await
    };
    match told.await {
        Ok(published) => body::json(StatusCode::OK, &published.described()),
        Err(fault) => body::fault(&fault),
    }
}

/// Calls a method.
pub(super) async fn call(
    State(service): State<Arc<RequestService>>,
    path: Result<Path<MethodPath>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let asking = Asking::over(Interface::Agents, &service.store.meter.counters);
    match Box::pin(answer(&service, path, (&headers, body), &asking)).await {
        Ok(response) => response,
        Err(fault) => {
            asking.failed(&fault);
            body::fault(&fault)
        }
    }
}

async fn answer(
    service: &Arc<RequestService>,
    path: Result<Path<MethodPath>, PathRejection>,
    (headers, body): (&HeaderMap, Body),
    asking: &Asking,
) -> Result<Response, ApiFault> {
    let began = Instant::now();
    let key = authentication::key(service, headers)?;
    let Path(path) = path.map_err(|error| not_a_path(&error))?;
    let body = body::read(service, key.id, (headers, body)).await?;
    let asked = asked(path, &body)?;
    let name = idempotency_key(headers)?.map(hash_of);
    let (body, is_retry) = (asked.digest(), is_retry(headers));
    let deadline = began + patience(service, headers);
    let key_id = key.id;
    let submission = CallSubmission { key, asked, body, name, is_retry, deadline };
    let (id, progress) = service.submit_call(submission).await?;
    let connection = Connection::new(Arc::clone(service), id, asking.clone());
    let mut waiting = Waiting { key: key_id, connection, progress, deadline };
    let answered = whole(&mut waiting).await;
    let progress = waiting.progress.borrow().clone();
    // A fault, too, says of which call it is.
    let response = match answered {
        Ok(answer) => json(answer, waiting.connection),
        Err(wrong) => {
            asking.failed(&wrong);
            body::fault(&wrong)
        }
    };
    Ok(with_headers(response, &progress, id, &[]))
}

fn not_a_path(error: &PathRejection) -> ApiFault {
    ApiFault::parameter("path", format!("path: expected UTF-8: {error}"))
}

fn agent_id(text: &str) -> Result<Hash, ApiFault> {
    Hash::parse(text).map_err(|_text| {
        let message = format!("agent: expected 64 hexadecimal digits, got {:?}", short(text));
        ApiFault::parameter("agent", message)
    })
}

/// The arguments exactly as they were written: a number may have more digits than a float.
#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

fn asked(path: MethodPath, body: &[u8]) -> Result<AskedCall, ApiFault> {
    let MethodPath { id, version, method } = path;
    let malformed = |error: serde_json::Error| ApiFault::malformed(format!("the body: {error}"));
    let members: Map<String, Value> = serde_json::from_slice(body).map_err(malformed)?;
    let members = Arguments::of(Some(members), MEMBERS)?;
    let Written { arguments } = serde_json::from_slice(body).map_err(malformed)?;
    Ok(AskedCall {
        agent: agent_id(&id)?,
        version,
        method,
        arguments: arguments.map_or("{}", RawValue::get).to_owned(),
        committee: members
            .whole("committee", 1, u64::from(COMMITTEE_MAX))?
            .unwrap_or(COMMITTEE_DEFAULT),
        timeout_ms: members.whole("timeout_ms", 0, u64::MAX)?.unwrap_or(TIMEOUT_MS_DEFAULT),
        cost_micro_max: members.whole("max_cost_micro", 0, u64::MAX)?,
    })
}

#[cfg(test)]
mod tests {
    //! What a body asks.

    use types::Hash;

    use super::{AskedCall, MethodPath, asked};
    use crate::openai::ApiFault;

    fn read(body: &str) -> Result<AskedCall, ApiFault> {
        let (id, version) = (Hash::ZERO.to_string(), "1.0.0".to_owned());
        asked(MethodPath { id, version, method: "judge".to_owned() }, body.as_bytes())
    }

    #[test]
    fn arguments_keep_all_of_their_digits() {
        let number = "123456789012345678901234567890";
        let asked = read(&format!(r#"{{"arguments":{{"n":{number}}}}}"#)).unwrap();
        assert_eq!(format!(r#"{{"n":{number}}}"#), asked.arguments);
        assert_eq!((3, 60_000, None), (asked.committee, asked.timeout_ms, asked.cost_micro_max));
        assert_eq!("{}", read("{}").unwrap().arguments);
    }

    #[test]
    fn a_body_that_asks_nothing_is_told_so() {
        assert_eq!("malformed_json", read("[]").unwrap_err().code);
        assert_eq!(Some("comittee"), read(r#"{"comittee":1}"#).unwrap_err().param.as_deref());
        assert_eq!(Some("committee"), read(r#"{"committee":1.5}"#).unwrap_err().param.as_deref());
    }

    #[test]
    fn another_method_or_another_committee_is_another_request() {
        let first = read(r#"{"committee":3}"#).unwrap();
        assert_eq!(first.digest(), read("{}").unwrap().digest());
        assert_ne!(first.digest(), read(r#"{"committee":5}"#).unwrap().digest());
    }
}
