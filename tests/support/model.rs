//! A model server for tests: what llama-server answers, with a model that follows a simple rule.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::{Value, json};

/// A running server. It ends with the process.
#[derive(Clone, Copy, Debug)]
pub struct ModelServer {
    pub address: SocketAddr,
}

/// Tokens that every answer counts.
pub const ANSWER_TOKENS: u64 = 7;

impl ModelServer {
    /// A model that calls `tool` with `arguments` first, if it is offered, and then answers with the
    /// tool's result.
    pub fn start(tool: &str, arguments: &Value) -> anyhow::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), tool, arguments)
    }

    /// The same at an address; port 0 is any.
    pub fn start_at(at: SocketAddr, tool: &str, arguments: &Value) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(at)?;
        let address = listener.local_addr()?;
        let call = json!({
            "index": 0, "id": "a",
            "function": { "name": tool, "arguments": arguments.to_string() },
        });
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let call = call.clone();
                std::thread::spawn(move || serve(stream, &call));
            }
        });
        Ok(Self { address })
    }

    /// One that is not there: its address is free, and may be started at.
    pub fn absent() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        Ok(Self { address: listener.local_addr()? })
    }

    /// The table `[backend]` of a miner that uses it.
    #[must_use]
    pub fn settings(&self) -> String {
        format!(
            "[backend]\nurl = \"http://{}\"\nmodel = \"rule\"\ntool_form = \"native\"\n\n\
             [policy]\nclaim_jitter_ms = 0\n",
            self.address
        )
    }
}

/// Answers requests until the connection ends.
fn serve(stream: TcpStream, call: &Value) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let (mut line, mut bytes) = (String::new(), 0);
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let is_question = line.starts_with("POST");
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(length) = header.strip_prefix("content-length:") {
                bytes = length.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; bytes];
        reader.read_exact(&mut body).ok()?;
        let answer = if is_question { answer(&body, call)? } else { "{\"data\":[]}".to_owned() };
        let length = answer.len();
        write!(writer, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{answer}").ok()?;
    }
}

/// The events of an answer.
fn answer(body: &[u8], call: &Value) -> Option<String> {
    let question: Value = serde_json::from_slice(body).ok()?;
    let messages = question["messages"].as_array()?;
    let result = messages.iter().rev().find(|message| message["role"] == "tool");
    let offered = question["tools"].as_array().into_iter().flatten();
    let has_tool =
        offered.into_iter().any(|tool| tool["function"]["name"] == call["function"]["name"]);
    let (delta, finish) = match result {
        Some(result) => (json!({ "content": result["content"] }), "stop"),
        None if has_tool => (json!({ "tool_calls": [call] }), "tool_calls"),
        None => (json!({ "content": "Hello." }), "stop"),
    };
    let usage = json!({ "completion_tokens": ANSWER_TOKENS, "prompt_tokens": body.len() / 4 });
    let parts = [
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }),
        json!({ "choices": [], "usage": usage }),
    ];
    let events: String = parts.iter().map(|part| format!("data: {part}\n\n")).collect();
    Some(events + "data: [DONE]\n\n")
}
