//! A model server for tests: what llama-server answers, with a model that follows a simple rule.

use std::net::{SocketAddr, TcpListener};

use serde_json::{Value, json};

use crate::miners::text;
use crate::script::{Model, Question, Reply, TOKENS};

/// A running server. It ends with the process.
#[derive(Clone, Copy, Debug)]
pub struct ModelServer {
    pub address: SocketAddr,
}

/// Tokens that every answer counts.
pub const ANSWER_TOKENS: u64 = TOKENS;

impl ModelServer {
    /// A model that calls `tool` with `arguments` first, if it is offered, and then answers with the
    /// tool's result.
    pub fn start(tool: &str, arguments: &Value) -> anyhow::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), tool, arguments)
    }

    /// The same at an address; port 0 is any.
    pub fn start_at(at: SocketAddr, tool: &str, arguments: &Value) -> anyhow::Result<Self> {
        let (tool, arguments) = (tool.to_owned(), arguments.clone());
        let model = Model::start_at(at, move |question: &Question| {
            let list = |member: &str| question.body[member].as_array().into_iter().flatten();
            let result = list("messages").rfind(|message| message["role"] == "tool");
            let has_tool = list("tools").any(|it| it["function"]["name"] == tool);
            match result {
                Some(result) => Reply::said(text(result, "content")),
                None if has_tool => Reply::calls(&[(tool.as_str(), arguments.clone())], &json!({})),
                None => Reply::said("Hello."),
            }
        })?;
        Ok(Self { address: model.address })
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
