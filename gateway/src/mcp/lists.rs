//! `wallet` and `list_agents`.

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use wallet::{ClientError, Page};

use super::arguments::Arguments;
use crate::keys::Key;
use crate::money::KeyUsage;
use crate::openai::ApiFault;
use crate::question::{STEP_MICRO, TOKEN_MICRO};
use crate::request_service::{RequestService, away};
use crate::store::KeyStanding;

/// The most agents of one page, and how many there are unless a number is named.
pub(super) const AGENTS_MAX: u64 = 50;
const AGENTS_DEFAULT: u64 = 20;
/// What agents are looked for by.
const FILTERS: [&str; 4] = ["text", "tag", "owner", "executor"];

/// What the wallet has, and what the key may still spend of it.
pub(super) async fn wallet(
    service: &RequestService,
    key: &Key,
    given: Option<JsonObject>,
) -> Result<Value, ApiFault> {
    Arguments::of(given, &[])?;
    let balance = service.node.balance_micro(&service.wallet()).await;
    let balance_micro = balance.map_err(|error| away(&error))?;
    let keys = service.store.keys().map_err(|error| {
        tracing::error!(%error, "cannot read the store");
        ApiFault::internal()
    })?;
    let standing = keys.into_iter().find(|it| it.key.id == key.id);
    let KeyStanding { key: _, tally, today } = standing.ok_or_else(ApiFault::internal)?;
    let counted = KeyUsage { tally: &tally, day: &today };
    let mut value = json!({
        "address": service.wallet(),
        "balanceMicro": balance_micro,
        "key": key.name,
        "limits": key.limits,
        "spentMicro": tally.spent_micro,
        "spentTodayMicro": today.spent_micro,
        "reservedMicro": tally.reserved_micro,
        "openRequests": tally.open,
        "completionTokenMicro": TOKEN_MICRO,
        "stepMicro": STEP_MICRO,
    });
    if let Some(left_micro) = key.limits.left_micro(counted) {
        value["leftMicro"] = json!(left_micro);
    }
    Ok(value)
}

/// Published agents.
pub(super) async fn list_agents(
    service: &RequestService,
    given: Option<JsonObject>,
) -> Result<Value, ApiFault> {
    let known = [FILTERS.as_slice(), &["limit", "cursor"]].concat();
    let arguments = Arguments::of(given, &known)?;
    let mut filter = Map::new();
    for name in FILTERS {
        if let Some(text) = arguments.text(name)? {
            filter.insert(name.to_owned(), json!(text));
        }
    }
    let limit = arguments.whole("limit", 1, AGENTS_MAX)?.unwrap_or(AGENTS_DEFAULT);
    let cursor = arguments.text("cursor")?.map(str::to_owned);
    let page = Page { cursor, limit: u32::try_from(limit).ok() };
    let told: Value =
        service.node.client.agents(&filter, &page).await.map_err(|it| fault(&it))?.into_value();
    let agents = told["items"].as_array().into_iter().flatten();
    let mut value = json!({ "agents": agents.map(agent).collect::<Vec<_>>() });
    if let Some(next) = told["nextCursor"].as_str() {
        value["nextCursor"] = json!(next);
    }
    Ok(value)
}

/// An agent with the model by which it is asked.
fn agent(told: &Value) -> Value {
    let id = told["agentId"].as_str().unwrap_or_default();
    let version = told["latest"].as_str().unwrap_or_default();
    json!({
        "model": format!("agent:{id}@{version}"),
        "id": id,
        "version": version,
        "name": told["name"],
        "description": told["description"],
        "tags": told["tags"],
        "owner": told["owner"],
        "executors": told["version"]["executors"],
        "retired": told["retired"],
    })
}

/// A filter that the node does not take is the client's fault, and everything else the node's.
fn fault(error: &ClientError) -> ApiFault {
    let ClientError::BadParams { message } = error else { return away(error) };
    ApiFault::malformed(format!("the node does not accept this request for agents: {message}"))
}
