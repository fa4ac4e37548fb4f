//! `GET /v1/models`, `GET /v1/key` and `GET /v1/requests`.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use super::{authentication, body};
use crate::keys::Key;
use crate::model::ANY;
use crate::money::Day;
use crate::openai::ApiFault;
use crate::question::{STEP_MICRO, TOKEN_MICRO};
use crate::record::{Phase, Record};
use crate::request_service::RequestService;
use crate::store::KeyStanding;

/// The most days that are told of a key.
const DAYS_MAX: usize = 31;
/// The most requests that are told of a key.
const REQUESTS_MAX: usize = 50;

/// What every list of models says of them.
pub(crate) const PUBLIC: &str =
    "All questions and answers are written to a public chain and stay there forever.";

/// The models that can be asked.
pub(super) async fn models(
    State(service): State<Arc<RequestService>>,
    headers: HeaderMap,
) -> Response {
    match authentication::key(&service, &headers) {
        Ok(key) => {
            let names = names(&service, &key);
            let data: Vec<Value> = names.iter().map(|name| described(&service, name)).collect();
            body::json(StatusCode::OK, &json!({ "object": "list", "data": data }))
        }
        Err(fault) => body::fault(&fault),
    }
}

/// One model.
pub(super) async fn model(
    State(service): State<Arc<RequestService>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = authentication::key(&service, &headers).and_then(|_key| {
        let known = service.settings.model(&name);
        known.map_err(|why| ApiFault::no_such_model(&name, &why))
    });
    match found {
        Ok(_) => body::json(StatusCode::OK, &described(&service, &name)),
        Err(fault) => body::fault(&fault),
    }
}

/// `ombra` and the aliases, as far as the key may ask them, and what else the key names in full.
fn names(service: &RequestService, key: &Key) -> BTreeSet<String> {
    let all = std::iter::once(ANY.to_owned()).chain(service.settings.aliases.keys().cloned());
    let models = &key.limits.models;
    let may = |name: &String| models.is_empty() || models.iter().any(|it| it.matches(name));
    let named = models.iter().map(|pattern| &pattern.0);
    let named = named.filter(|name| service.settings.model(name).is_ok() && !name.contains('*'));
    all.filter(may).chain(named.cloned()).collect()
}

fn described(service: &RequestService, name: &str) -> Value {
    let means = service.settings.aliases.get(name).map_or(name, String::as_str);
    let owner = means.split_once('@').map_or("ombra", |(agent, _)| agent);
    json!({
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": owner,
        "description": PUBLIC,
        "means": means,
        "pricing": {
            "unit": "micro-OMBRA",
            "prompt_token": 0,
            "completion_token": TOKEN_MICRO,
            "step": STEP_MICRO,
        },
    })
}

/// What the key may do, and what it has left.
pub(super) async fn key(
    State(service): State<Arc<RequestService>>,
    headers: HeaderMap,
) -> Response {
    let told = authentication::key(&service, &headers).and_then(|key| {
        let keys = service.store.keys().map_err(unreadable)?;
        keys.into_iter().find(|it| it.key.id == key.id).ok_or_else(ApiFault::internal)
    });
    let told = told.and_then(|standing| {
        let days = service.store.days(standing.key.id, DAYS_MAX).map_err(unreadable)?;
        Ok((standing, days))
    });
    match told {
        Ok((standing, days)) => body::json(StatusCode::OK, &standing_of(&standing, &days)),
        Err(fault) => body::fault(&fault),
    }
}

/// The newest requests of the key.
pub(super) async fn requests(
    State(service): State<Arc<RequestService>>,
    headers: HeaderMap,
) -> Response {
    let told = authentication::key(&service, &headers)
        .and_then(|key| service.store.requests_of(key.id, REQUESTS_MAX).map_err(unreadable));
    match told {
        Ok(records) => {
            let data: Vec<Value> = records.iter().map(|it| request_of(&service, it)).collect();
            body::json(StatusCode::OK, &json!({ "object": "list", "data": data }))
        }
        Err(fault) => body::fault(&fault),
    }
}

fn request_of(service: &RequestService, record: &Record) -> Value {
    let state = match &record.phase {
        Phase::Reserved => "reserved",
        Phase::Signed { .. } => "signed",
        Phase::Refused { .. } => "refused",
        Phase::Sent { .. } => "sent",
        Phase::Running { .. } => "running",
        Phase::Settled(bill) => bill.status.as_str(),
        Phase::Unpaid { .. } => "unpaid",
    };
    let explorer = service.settings.explorer.clone();
    let of_node = || format!("{}/explorer/", service.node.client.shown_url());
    let explorer = explorer.unwrap_or_else(of_node);
    let url = match (record.run(), record.call()) {
        (Some(run), _) => Some(format!("{explorer}#/run/{run}")),
        (None, Some(call)) => Some(format!("{explorer}#/call/{call}")),
        (None, None) => None,
    };
    json!({
        "id": record.id,
        "created": record.created_ms / 1_000,
        "model": record.model,
        "state": state,
        "cost_micro": record.cost_micro(),
        "run": record.run(),
        "call": record.call(),
        "url": url,
    })
}

fn unreadable(error: miner::journal::JournalError) -> ApiFault {
    tracing::error!(%error, "cannot read the store");
    ApiFault::internal()
}

fn standing_of(standing: &KeyStanding, days: &[(u64, Day)]) -> Value {
    let KeyStanding { key, tally, today } = standing;
    let day = |(number, day): &(u64, Day)| {
        let Day { requests, spent_micro, reserved_micro } = day;
        json!({
            "day": number,
            "requests": requests,
            "spent_micro": spent_micro,
            "reserved_micro": reserved_micro,
        })
    };
    let days: Vec<Value> = days.iter().map(day).collect();
    let counted = crate::money::KeyUsage { tally, day: today };
    json!({
        "object": "key",
        "name": key.name,
        "limits": key.limits,
        "left_micro": key.limits.left_micro(counted),
        "open_requests": tally.open,
        "reserved_micro": tally.reserved_micro,
        "spent_micro": tally.spent_micro,
        "days": days,
        "today": { "requests": today.requests, "spent_micro": today.spent_micro },
    })
}
