//! A model server for tests: what llama-server answers, with a model that follows a simple rule.

use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::web::{self, Request};

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
        let call = json!({
            "index": 0, "id": "a",
            "function": { "name": tool, "arguments": arguments.to_string() },
        });
        let address = web::listen_at(at, move |stream| serve(stream, &call))?;
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
    let (mut reader, mut writer) = web::both(stream)?;
    loop {
        let request = Request::read(&mut reader)?;
        let answer = match request.line.starts_with("POST") {
            true => answer(&request, call)?,
            false => "{\"data\":[]}".to_owned(),
        };
        web::answer(&mut writer, "200 OK", &[], &answer)?;
    }
}

/// The events of an answer.
fn answer(request: &Request, call: &Value) -> Option<String> {
    let question = request.json();
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
    let usage =
        json!({ "completion_tokens": ANSWER_TOKENS, "prompt_tokens": request.body.len() / 4 });
    let parts = [
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }),
        json!({ "choices": [], "usage": usage }),
    ];
    let events: String = parts.iter().map(|part| format!("data: {part}\n\n")).collect();
    Some(events + "data: [DONE]\n\n")
}
