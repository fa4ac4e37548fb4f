//! A client that asks for a stream, reads it to its end, and looks at the clock.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use testkit::chat::{Client, read};

/// An answer, and how long it took from the connection to its last byte.
pub(super) struct Timed {
    pub(super) took: Duration,
    pub(super) said: String,
}

/// A request of so many bytes that nobody asked before.
pub(super) fn body(number: usize, length: usize) -> Value {
    let content = format!("{:.<length$}", format!("number {number} "));
    let messages = json!([{ "role": "user", "content": content }]);
    json!({ "model": "ombra", "max_tokens": 200, "stream": true, "messages": messages })
}

/// Asks, and reads the answer to its end.
pub(super) fn timed(client: &Client, body: &Value) -> anyhow::Result<Timed> {
    let began = Instant::now();
    let answer = read(client.begin(body, &[])?)?;
    let took = began.elapsed();
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.text);
    let events = answer.text.lines().filter_map(|line| line.strip_prefix("data: "));
    let (mut said, mut is_done) = (String::new(), false);
    for event in events {
        if event == "[DONE]" {
            is_done = true;
            continue;
        }
        let event: Value = serde_json::from_str(event).with_context(|| event.to_owned())?;
        ensure!(event["error"].is_null(), "{event}");
        said.push_str(event["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
    }
    ensure!(is_done, "the answer was cut off: {}", answer.text);
    Ok(Timed { took, said })
}
