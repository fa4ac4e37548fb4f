//! `ask`: a question to a miner.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use types::Hash;

use super::answer::Told;
use super::arguments::{Arguments, WAIT_SECONDS_MAX};
use super::wait::{NODE_WAIT_MAX, Waiting, wait};
use crate::keys::Key;
use crate::model::ANY;
use crate::openai::{self, ApiFault};
use crate::request_service::{RequestService, Submission};

/// What a model may be asked with.
const ARGUMENTS: &[&str] =
    &["prompt", "system", "model", "max_completion_tokens", "idempotency_key", "wait_seconds"];

/// Asks, and waits a while for the answer.
pub(super) async fn ask(
    (service, key): (&Arc<RequestService>, Key),
    given: Option<JsonObject>,
    waiting: Waiting<'_, '_>,
) -> Result<Told, ApiFault> {
    let began = Instant::now();
    let arguments = Arguments::of(given, ARGUMENTS)?;
    let deadline = began + Duration::from_secs(arguments.wait_seconds(WAIT_SECONDS_MAX)?);
    let name = arguments.idempotency_key()?;
    let body = body(&arguments)?.to_string();
    if body.len() > service.settings.request_bytes_max {
        return Err(ApiFault::too_long(service.settings.request_bytes_max));
    }
    let asked = openai::parse(body.as_bytes())?;
    // Just after a start, what was begun before is brought to its end first.
    drop(timeout_at(deadline, service.opened()).await);
    let body = Hash::digest(body.as_bytes());
    let until = began + NODE_WAIT_MAX;
    let entry = Submission { key, asked: &asked, body, name, is_retry: false, deadline: until };
    let submitted = service.submit(entry).await?;
    wait(service, submitted, (began, deadline), waiting).await
}

/// The question as the body of a chat completion, so that it is read and priced like one.
fn body(arguments: &Arguments) -> Result<Value, ApiFault> {
    let prompt = arguments.needed("prompt")?;
    let mut messages = Vec::new();
    if let Some(system) = arguments.text("system")? {
        messages.push(json!({ "role": "system", "content": system }));
    }
    messages.push(json!({ "role": "user", "content": prompt }));
    let model = arguments.text("model")?.unwrap_or(ANY);
    let mut body = json!({ "model": model, "messages": messages });
    if let Some(tokens) = arguments.whole("max_completion_tokens", 1, u64::MAX)? {
        body["max_completion_tokens"] = json!(tokens);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    //! What a question becomes.

    use serde_json::json;

    use super::{ARGUMENTS, Arguments, body};
    use crate::openai;

    #[test]
    fn a_question_is_a_chat_completion_that_the_interface_takes() {
        let given = json!({ "prompt": "Why?", "system": "Be brief.", "max_completion_tokens": 9 });
        let arguments = Arguments::of(given.as_object().cloned(), ARGUMENTS).unwrap();
        let asked = openai::parse(body(&arguments).unwrap().to_string().as_bytes()).unwrap();
        assert_eq!(("ombra", Some(9)), (asked.model.as_str(), asked.output_tokens_max));
        let messages = asked.args["messages"].as_array().unwrap();
        assert_eq!(2, messages.len(), "{messages:?}");
    }
}
