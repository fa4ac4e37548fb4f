//! The plainest client of the gateway: one request on one connection, which it may hang up.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::node::{PATIENCE, wait_until};

/// Where the gateway is, and with which key it is asked.
#[derive(Clone, Debug)]
pub struct Client {
    pub address: SocketAddr,
    pub key: String,
}

/// What was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub text: String,
}

/// What is sent besides the key.
pub type Headers<'a> = &'a [(&'a str, &'a str)];

/// A request that says this to the miner.
#[must_use]
pub fn chat(says: &str) -> Value {
    json!({ "model": "ombra", "max_tokens": 50, "messages": [{ "role": "user", "content": says }] })
}

/// The same as a stream.
#[must_use]
pub fn stream(says: &str) -> Value {
    let mut body = chat(says);
    body["stream"] = json!(true);
    body
}

/// What the official clients say of a repetition.
pub const RETRY: (&str, &str) = ("x-stainless-retry-count", "1");

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.text).with_context(|| self.text.clone())
    }

    /// The member `code` of an error; empty if it is none.
    #[must_use]
    pub fn code(&self) -> String {
        let body = self.json().unwrap_or_default();
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Status and code.
    #[must_use]
    pub fn fault(&self) -> (u16, String) {
        (self.status, self.code())
    }

    /// The text of the answer.
    pub fn content(&self) -> anyhow::Result<String> {
        let body = self.json()?;
        let content = body["choices"][0]["message"]["content"].as_str();
        content.map(str::to_owned).with_context(|| self.text.clone())
    }

    /// A header, if it is there.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

impl Client {
    /// Asks, and waits for the whole answer.
    pub fn ask(&self, body: &Value, headers: Headers<'_>) -> anyhow::Result<Answer> {
        self.send(&body.to_string(), headers)
    }

    /// The same with a body that may be anything.
    pub fn send(&self, body: &str, headers: Headers<'_>) -> anyhow::Result<Answer> {
        read(self.open("POST", "/v1/chat/completions", body, headers)?)
    }

    /// Begins to ask. Dropping the connection hangs up.
    pub fn begin(&self, body: &Value, headers: Headers<'_>) -> anyhow::Result<TcpStream> {
        self.open("POST", "/v1/chat/completions", &body.to_string(), headers)
    }

    /// The same at another path, with a body that may be anything.
    pub fn begin_at(
        &self,
        path: &str,
        body: &str,
        headers: Headers<'_>,
    ) -> anyhow::Result<TcpStream> {
        self.open("POST", path, body, headers)
    }

    /// Waits until the gateway takes requests in.
    pub fn is_served(&self) -> anyhow::Result<()> {
        wait_until("the gateway to take requests in", || {
            Ok(self.get("/healthz", &[]).is_ok_and(|answer| answer.status == 200))
        })
    }

    /// What is at a path.
    pub fn get(&self, path: &str, headers: Headers<'_>) -> anyhow::Result<Answer> {
        read(self.open("GET", path, "", headers)?)
    }

    /// What a path answers to a body.
    pub fn post(&self, path: &str, body: &str, headers: Headers<'_>) -> anyhow::Result<Answer> {
        read(self.open("POST", path, body, headers)?)
    }

    fn open(
        &self,
        method: &str,
        path: &str,
        body: &str,
        headers: Headers<'_>,
    ) -> anyhow::Result<TcpStream> {
        let mut connection = TcpStream::connect(self.address)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        let host = self.address.to_string();
        let bearer = format!("Bearer {}", self.key);
        let length = body.len().to_string();
        let mut all = vec![
            ("host", host.as_str()),
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("content-length", length.as_str()),
            ("connection", "close"),
        ];
        for (name, value) in headers {
            all.retain(|(other, _)| other != name);
            all.push((name, value));
        }
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in all.into_iter().filter(|(_, value)| !value.is_empty()) {
            text.extend([name, ": ", value, "\r\n"]);
        }
        connection.write_all(format!("{text}\r\n{body}").as_bytes())?;
        Ok(connection)
    }
}

/// The end of an answer in chunks. No other answer here has lines of this kind.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// The whole answer on a connection.
pub fn read(mut connection: TcpStream) -> anyhow::Result<Answer> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4_096]);
    // Some servers keep the connection open, whatever they are told.
    while !bytes.ends_with(LAST_CHUNK) {
        match connection.read(&mut part)? {
            0 => break,
            length => bytes.extend(part.iter().take(length)),
        }
    }
    parsed(bytes)
}

/// The whole answer that these bytes are.
pub fn parsed(bytes: Vec<u8>) -> anyhow::Result<Answer> {
    let text = String::from_utf8(bytes)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no answer")?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("a status")?;
    let header = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    };
    let headers: Vec<_> = lines.filter_map(header).collect();
    let is_chunked =
        headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let text = if is_chunked { unchunked(body)? } else { body.to_owned() };
    Ok(Answer { status: status.parse()?, headers, text })
}

fn unchunked(mut body: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n").context("the answer was cut off")?;
        let size = usize::from_str_radix(size, 16)?;
        if size == 0 {
            return Ok(text);
        }
        text.push_str(rest.get(..size).context("the answer was cut off")?);
        body = rest.get(size + 2..).context("the answer was cut off")?;
    }
}

/// The text of a stream that has come to its end. A stream may end with a fault instead: then its code, or
/// all of it where it has no code.
pub fn streamed(text: &str) -> anyhow::Result<Result<String, String>> {
    let mut content = String::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if line == "[DONE]" {
            return Ok(Ok(content));
        }
        let chunk: Value = serde_json::from_str(line).with_context(|| text.to_owned())?;
        let fault = &chunk["error"];
        if !fault.is_null() {
            return Ok(Err(fault["code"]
                .as_str()
                .map_or_else(|| fault.to_string(), str::to_owned)));
        }
        content.push_str(chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
    }
    bail!("a stream that ends without an end: {text}")
}
