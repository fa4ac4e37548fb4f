//! A client that asks for a stream, reads it to its end, and looks at the clock.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};
use testkit::chat::{Client, read, streamed};

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
    let said = streamed(&answer.text)?.map_err(anyhow::Error::msg)?;
    Ok(Timed { took, said })
}
