//! `call_agent`, and agents of the settings: calls, answered by a committee.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use types::Hash;
use types::call::COMMITTEE_MAX;

use super::answer::Told;
use super::arguments::{Arguments, IDEMPOTENCY_KEY, WAIT_SECONDS, WAIT_SECONDS_MAX};
use super::wait::{NODE_WAIT_MAX, Waiting, wait};
use crate::keys::Key;
use crate::market::{AskedCall, COMMITTEE_DEFAULT, Pinned, TIMEOUT_MS_DEFAULT};
use crate::model::Model;
use crate::openai::{ApiFault, short};
use crate::request_service::{CallSubmission, RequestService};

/// What an agent may be called with.
const ARGUMENTS: &[&str] =
    &["agent", "method", "arguments", "committee", "max_cost_micro", IDEMPOTENCY_KEY, WAIT_SECONDS];

/// Calls an agent, and waits a while for the answer.
pub(super) async fn call_agent(
    (service, key): (&Arc<RequestService>, Key),
    given: Option<JsonObject>,
    waiting: Waiting<'_, '_>,
) -> Result<Told, ApiFault> {
    let began = Instant::now();
    let arguments = Arguments::of(given, ARGUMENTS)?;
    let deadline = began + Duration::from_secs(arguments.wait_seconds(WAIT_SECONDS_MAX)?);
    let name = arguments.idempotency_key()?;
    let asked = asked(&arguments)?;
    call((service, key), (asked, name, false), (began, deadline), waiting).await
}

/// Calls the method that a tool of the settings stands for.
pub(super) async fn call_pinned(
    (service, key): (&Arc<RequestService>, Key),
    (pinned, given): (&Pinned, Option<JsonObject>),
    waiting: Waiting<'_, '_>,
) -> Result<Told, ApiFault> {
    let began = Instant::now();
    let deadline = began + Duration::from_secs(WAIT_SECONDS_MAX);
    let asked = pinned.asked(Value::Object(given.unwrap_or_default()).to_string());
    // Its arguments are the method's, and none makes it idempotent: a call that was given up is followed.
    let called = call((service, key), (asked, None, true), (began, deadline), waiting).await;
    called.map_err(|fault| match fault.param.as_deref().map(|it| it.strip_prefix("arguments/")) {
        Some(Some(param)) => ApiFault { param: Some(param.to_owned()), ..fault },
        Some(None) | None => fault,
    })
}

async fn call(
    (service, key): (&Arc<RequestService>, Key),
    (asked, name, is_retry): (AskedCall, Option<Hash>, bool),
    (began, deadline): (Instant, Instant),
    waiting: Waiting<'_, '_>,
) -> Result<Told, ApiFault> {
    // Just after a start, what was begun before is brought to its end first.
    drop(timeout_at(deadline, service.opened()).await);
    let body = asked.digest();
    let until = began + NODE_WAIT_MAX;
    let entry = CallSubmission { key, asked, body, name, is_retry, deadline: until };
    let submitted = service.submit_call(entry).await?;
    wait(service, submitted, (began, deadline), waiting).await
}

/// What an agent can do.
pub(super) async fn get_agent(
    service: &RequestService,
    given: Option<JsonObject>,
) -> Result<Value, ApiFault> {
    let (id, version) = agent(&Arguments::of(given, &["agent"])?)?;
    Ok(service.published(id, &version).await?.described())
}

/// The agent that is meant.
fn agent(arguments: &Arguments) -> Result<(Hash, String), ApiFault> {
    let agent = arguments.needed("agent")?;
    match Model::parse(agent) {
        Ok(Model::Agent { id, version }) => Ok((id, version)),
        Ok(Model::Any | Model::Named(_)) | Err(_) => {
            let message = format!("agent: expected agent:ID@VERSION, got {:?}", short(agent));
            Err(ApiFault::parameter("agent", message))
        }
    }
}

fn asked(arguments: &Arguments) -> Result<AskedCall, ApiFault> {
    let (id, version) = agent(arguments)?;
    let given = arguments.any("arguments").cloned().unwrap_or_else(|| json!({}));
    if !given.is_object() && !given.is_array() {
        let got = short(&given.to_string());
        let message = format!("arguments: expected an object or an array, got {got}");
        return Err(ApiFault::parameter("arguments", message));
    }
    Ok(AskedCall {
        agent: id,
        version,
        method: arguments.needed("method")?.to_owned(),
        arguments: given.to_string(),
        committee: arguments
            .whole("committee", 1, u64::from(COMMITTEE_MAX))?
            .unwrap_or(COMMITTEE_DEFAULT),
        timeout_ms: TIMEOUT_MS_DEFAULT,
        cost_micro_max: arguments.whole("max_cost_micro", 0, u64::MAX)?,
    })
}

#[cfg(test)]
mod tests {
    //! What is asked of an agent.

    use serde_json::{Value, json};
    use types::Hash;

    use super::{ARGUMENTS, Arguments, asked};

    fn given(value: &Value) -> Arguments {
        Arguments::of(value.as_object().cloned(), ARGUMENTS).unwrap()
    }

    #[test]
    fn an_agent_is_called_by_its_version_and_method() {
        let agent = format!("agent:{}@1.0.0", Hash::ZERO);
        let value =
            json!({ "agent": agent, "method": "judge", "arguments": { "a": 1 }, "committee": 5 });
        let asked = asked(&given(&value)).unwrap();
        assert_eq!((Hash::ZERO, "1.0.0"), (asked.agent, asked.version.as_str()));
        assert_eq!(5, asked.committee);
        assert_eq!(r#"{"a":1}"#, asked.arguments);
    }

    #[test]
    fn what_is_no_agent_and_no_arguments_is_told() {
        let agent = format!("agent:{}@1.0.0", Hash::ZERO);
        for (value, param) in [
            (json!({ "agent": "judge", "method": "judge" }), "agent"),
            (json!({ "agent": agent }), "method"),
            (json!({ "agent": agent, "method": "judge", "arguments": "x" }), "arguments"),
            (json!({ "agent": agent, "method": "judge", "committee": "3" }), "committee"),
        ] {
            assert_eq!(Some(param), asked(&given(&value)).unwrap_err().param.as_deref(), "{value}");
        }
    }
}
