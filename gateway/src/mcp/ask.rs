//! `ask`: a question to a miner.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use types::Hash;

use super::answer::{self, Told};
use super::arguments::{Arguments, WAIT_SECONDS_MAX};
use super::watch::{Seen, Watcher};
use crate::desk::{Desk, Entry};
use crate::http::connection::Connection;
use crate::keys::{IDEMPOTENCY_KEY_BYTES_MAX, Key, hash_of};
use crate::model::ANY;
use crate::openai::{self, Fault};

/// What a model may be asked with.
const ARGUMENTS: &[&str] =
    &["prompt", "system", "model", "max_completion_tokens", "idempotency_key", "wait_seconds"];

/// Asks, and waits a while for the answer.
pub(super) async fn ask(
    (desk, key): (&Arc<Desk>, Key),
    given: Option<JsonObject>,
    watcher: &mut Watcher<'_>,
) -> Result<Told, Fault> {
    let began = Instant::now();
    let arguments = Arguments::of(given, ARGUMENTS)?;
    let deadline = began + Duration::from_secs(arguments.wait_seconds(WAIT_SECONDS_MAX)?);
    let name = idempotency_key(&arguments)?;
    let body = body(&arguments)?.to_string();
    if body.len() > desk.settings.request_bytes_max {
        return Err(Fault::too_long(desk.settings.request_bytes_max));
    }
    let asked = openai::parse(body.as_bytes())?;
    // Just after a start, what was begun before is brought to its end first.
    drop(timeout_at(deadline, desk.opened()).await);
    let body = Hash::digest(body.as_bytes());
    let entry = Entry { key, asked: &asked, body, name, is_retry: false };
    let (id, mut progress) = desk.enter(entry).await?;
    let mut connection = Connection::new(Arc::clone(desk), id);
    // Without its run's id a client could not ask for it again.
    let seen = match watcher.until(&mut progress, deadline, |_| false).await {
        Seen::Running(now) if now.run.is_none() => {
            let most = began + Duration::from_secs(WAIT_SECONDS_MAX);
            watcher.until(&mut progress, most, |it| it.run.is_some()).await
        }
        seen @ (Seen::Ended(_) | Seen::Running(_) | Seen::Gone) => seen,
    };
    match seen {
        Seen::Ended(ended) => {
            connection.done();
            let run = progress.borrow().run;
            Ok(Told { value: answer::ended(run, &ended), is_error: ended.is_err() })
        }
        Seen::Running(now) => {
            connection.done();
            Ok(Told::well(answer::running(None, &now)))
        }
        Seen::Gone => Err(Fault::still_running()),
    }
}

/// The question as the body of a chat completion, so that it is read and priced like one.
fn body(arguments: &Arguments) -> Result<Value, Fault> {
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

fn idempotency_key(arguments: &Arguments) -> Result<Option<Hash>, Fault> {
    let Some(text) = arguments.text("idempotency_key")? else { return Ok(None) };
    if text.is_empty() || text.len() > IDEMPOTENCY_KEY_BYTES_MAX {
        let got = text.len();
        let message =
            format!("idempotency_key: expected 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes, got {got}");
        return Err(Fault::parameter("idempotency_key", message));
    }
    Ok(Some(hash_of(text)))
}

#[cfg(test)]
mod tests {
    //! What a question becomes.

    use serde_json::json;

    use super::{ARGUMENTS, Arguments, body, idempotency_key};
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

    #[test]
    fn an_idempotency_key_is_neither_empty_nor_long() {
        for (key, is_taken) in [("", false), ("a", true), (&*"a".repeat(256), false)] {
            let given = json!({ "idempotency_key": key });
            let arguments = Arguments::of(given.as_object().cloned(), ARGUMENTS).unwrap();
            assert_eq!(is_taken, idempotency_key(&arguments).is_ok(), "{key}");
        }
    }
}
