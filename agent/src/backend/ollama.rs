//! Ollama by its own interface: only there the size of the context is honoured.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::config::{Config, Constrain, GoOn, ToolForm};
use super::count::Counter;
use super::dialect::{self, Dialect, Link};
use super::http::Server;
use super::lines::Lines;
use super::wire::{Arguments, RawCall, Said};
use super::{Backend, BackendError, Health, Manifest, SetupError, prompted, wire};
use crate::messages::{Iteration, Output};

/// Bytes of what it says about a model, which has the licence and the template.
const SHOWN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A server with `POST /api/chat`.
#[derive(Debug)]
pub struct Ollama {
    server: Server,
    manifest: Manifest,
    native_tools: bool,
    /// Whether the model thinks when told to; others refuse to be told.
    can_think: bool,
    counter: Counter,
}

/// One part of a streamed answer.
#[derive(Debug, Deserialize)]
struct Part {
    message: Option<MessagePart>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u32>,
    eval_count: Option<u32>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct MessagePart {
    content: Option<String>,
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
}

#[derive(Debug, Deserialize)]
struct Call {
    function: Function,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl Ollama {
    /// Connects to a server. It lists what a model can do, so the form of tools is asked for and not
    /// probed.
    ///
    /// # Errors
    /// When the settings make no sense, the server is away, or does not have the model.
    pub async fn connect(config: Config, stop: &CancellationToken) -> Result<Self, SetupError> {
        let manifest = Manifest {
            name: config.name.clone().unwrap_or_else(|| config.model.clone()),
            model: config.model.clone(),
            deterministic: false,
            context_tokens_max: config.context_tokens_max,
            constrains: config.constrain == Constrain::JsonSchema,
        };
        let tool_form = config.tool_form;
        let server = Server::new(config)?;
        let ask = json!({ "model": server.config.model });
        let shown = server.attempts(stop, || async {
            let response = server.post("/api/show", &ask).await?;
            let body = server.body(response, SHOWN_BYTES_MAX).await?;
            let broken = |error: serde_json::Error| BackendError::Broken {
                url: server.config.url.clone(),
                what: error.to_string(),
            };
            serde_json::from_slice::<Value>(&body).map_err(broken)
        });
        let shown = shown.await?;
        let can = |what: &str| {
            shown["capabilities"].as_array().is_some_and(|all| all.iter().any(|it| it == what))
        };
        let native_tools = match tool_form {
            ToolForm::Probe => can("tools"),
            ToolForm::Native => true,
            ToolForm::Prompted => false,
        };
        let counter = Counter::of_bytes(&server);
        let can_think = can("thinking");
        Ok(Self { server, manifest, native_tools, can_think, counter })
    }
}

#[async_trait]
impl Dialect for Ollama {
    fn link(&self) -> Link<'_> {
        let Self { server, counter, native_tools, .. } = self;
        Link { server, counter, native_tools: *native_tools, form: "format" }
    }

    fn body(&self, iteration: &Iteration<'_>) -> Value {
        let tools = iteration.constraint.callable(iteration.tools);
        let mut messages = if self.native_tools {
            wire::messages(iteration.messages, Arguments::Object)
        } else {
            let plain = prompted::messages(iteration.messages, tools);
            wire::messages(&plain, Arguments::Object)
        };
        // Its templates leave a last message of the model open.
        let is_prefix = self.server.config.go_on != GoOn::Asked;
        wire::add_so_far(&mut messages, iteration.so_far, is_prefix);
        let mut body = json!({
            "model": self.server.config.model,
            "messages": messages,
            "stream": true,
            "options": {
                "num_ctx": self.manifest.context_tokens_max,
                "num_predict": iteration.output_tokens_max,
                "temperature": 0,
                "seed": 0,
            },
        });
        if iteration.thinks && self.can_think {
            body["think"] = json!(true);
        }
        if self.native_tools && !tools.is_empty() {
            body["tools"] = wire::tools(tools);
        }
        if !iteration.stops.is_empty() {
            body["options"]["stop"] = json!(iteration.stops);
        }
        if self.manifest.constrains
            && let Some(schema) = wire::schema(iteration, self.native_tools)
        {
            body["format"] = schema;
        }
        body
    }

    async fn answer(&self, body: &Value) -> Result<Said, BackendError> {
        let response = self.server.post("/api/chat", body).await?;
        let (first, later) = (self.server.first_silence(), self.server.later_silence());
        let url = self.server.config.url.clone();
        let stream = Box::pin(response.bytes_stream());
        let mut lines = Lines::new(url.clone(), stream, first, later);
        let mut said = Said::default();
        while let Some(line) = lines.next().await? {
            if line.trim().is_empty() {
                continue;
            }
            let part: Part = serde_json::from_str(&line).map_err(|error| {
                lines.broken(format!("a part is not JSON as expected: {error}"))
            })?;
            if let Some(error) = part.error {
                return Err(lines.broken(format!("it says: {error}")));
            }
            if let Some(message) = part.message {
                add(&mut said, message);
            }
            if part.done {
                let missing = |field| BackendError::NoUsage { url: url.clone(), field };
                said.output_tokens = part.eval_count.ok_or_else(|| missing("eval_count"))?;
                let read = part.prompt_eval_count;
                said.prompt_tokens = read.ok_or_else(|| missing("prompt_eval_count"))?;
                said.is_cut = part.done_reason.as_deref() == Some("length");
                return Ok(said);
            }
        }
        Err(lines.broken("it ends before the model was done".into()))
    }
}

fn add(said: &mut Said, message: MessagePart) {
    let MessagePart { content, thinking, tool_calls } = message;
    said.text.push_str(&content.unwrap_or_default());
    said.thoughts.push_str(&thinking.unwrap_or_default());
    for Call { function: Function { name, arguments } } in tool_calls.unwrap_or_default() {
        let arguments = Value::Object(arguments).to_string();
        said.calls.push(RawCall { id: String::new(), name, arguments });
    }
}

#[async_trait]
impl Backend for Ollama {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    async fn health(&self) -> Health {
        match self.server.probe("/api/version").await {
            Ok(_) => Health::Ready,
            Err(error @ (BackendError::Busy { .. } | BackendError::Stalled { .. })) => {
                Health::Degraded(error.to_string())
            }
            Err(error) => Health::Down(error.to_string()),
        }
    }

    async fn fits(&self, iteration: &Iteration<'_>) -> Result<u64, BackendError> {
        self.counter.fits(iteration).await
    }

    async fn infer(
        &self,
        iteration: &Iteration<'_>,
        stop: &CancellationToken,
    ) -> Result<Output, BackendError> {
        dialect::infer(self, iteration, stop).await
    }
}
