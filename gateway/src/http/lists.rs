//! `GET /v1/models` and `GET /v1/key`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use super::{body, door};
use crate::desk::Desk;
use crate::keys::Key;
use crate::model::ANY;
use crate::openai::Fault;
use crate::question::{STEP_MICRO, TOKEN_MICRO};
use crate::store::KeyStanding;

/// What every list of models says of them.
const PUBLIC: &str = "Everything that is asked and answered is written to a public chain for ever.";

/// The models that can be asked.
pub(super) async fn models(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Response {
    match door::key(&desk, &headers) {
        Ok(key) => {
            let names = names(&desk, &key);
            let data: Vec<Value> = names.iter().map(|name| described(&desk, name)).collect();
            body::json(StatusCode::OK, &json!({ "object": "list", "data": data }))
        }
        Err(fault) => body::fault(&fault),
    }
}

/// One model.
pub(super) async fn model(
    State(desk): State<Arc<Desk>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = door::key(&desk, &headers).and_then(|_key| {
        let known = desk.settings.model(&name);
        known.map_err(|why| Fault::no_such_model(&name, &why))
    });
    match found {
        Ok(_) => body::json(StatusCode::OK, &described(&desk, &name)),
        Err(fault) => body::fault(&fault),
    }
}

/// `ombra` and the aliases, as far as the key may ask them.
fn names(desk: &Desk, key: &Key) -> Vec<String> {
    let all = std::iter::once(ANY.to_owned()).chain(desk.settings.aliases.keys().cloned());
    let models = &key.limits.models;
    let may = |name: &String| models.is_empty() || models.iter().any(|it| it.matches(name));
    all.filter(may).collect()
}

fn described(desk: &Desk, name: &str) -> Value {
    let means = desk.settings.aliases.get(name).map_or(name, String::as_str);
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
pub(super) async fn key(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Response {
    let told = door::key(&desk, &headers).and_then(|key| {
        let keys = desk.store.keys().map_err(|error| {
            tracing::error!(%error, "keys cannot be read");
            Fault::internal()
        })?;
        keys.into_iter().find(|it| it.key.id == key.id).ok_or_else(Fault::internal)
    });
    match told {
        Ok(standing) => body::json(StatusCode::OK, &standing_of(&standing)),
        Err(fault) => body::fault(&fault),
    }
}

fn standing_of(standing: &KeyStanding) -> Value {
    let KeyStanding { key, tally, today } = standing;
    let counted = crate::money::Standing { tally, day: today };
    json!({
        "object": "key",
        "name": key.name,
        "limits": key.limits,
        "left_micro": key.limits.left_micro(counted),
        "open_requests": tally.open,
        "reserved_micro": tally.reserved_micro,
        "spent_micro": tally.spent_micro,
        "today": { "requests": today.requests, "spent_micro": today.spent_micro },
    })
}
