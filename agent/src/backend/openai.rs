//! Servers with the interface of `OpenAI`: llama-server, vLLM and others.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::config::{Config, Constrain, GoOn, ToolForm};
use super::count::Counter;
use super::dialect::{self, Dialect, Link};
use super::http::Server;
use super::lines::Lines;
use super::wire::{Arguments, RawCall, Said};
use super::{Backend, BackendError, Health, Manifest, SetupError, prompted, wire};
use crate::messages::{Constraint, Iteration, Message, Output, Role, ToolSpec};

/// A server with `POST /chat/completions`.
#[derive(Debug)]
pub struct OpenAi {
    server: Server,
    manifest: Manifest,
    native_tools: bool,
    /// Whether the model writes on in its own last message.
    goes_on: bool,
    counter: Counter,
}

/// One part of a streamed answer.
#[derive(Debug, Deserialize)]
struct Part {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Delta {
    content: Option<String>,
    /// llama-server and vLLM name the thoughts differently.
    #[serde(alias = "reasoning")]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallPart>>,
}

#[derive(Debug, Deserialize)]
struct CallPart {
    #[serde(default)]
    index: usize,
    id: Option<String>,
    function: Option<FunctionPart>,
}

#[derive(Debug, Deserialize)]
struct FunctionPart {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    completion_tokens: Option<u32>,
    prompt_tokens: Option<u32>,
}

/// Calls of one answer that are kept while it comes; more cannot be read anyway.
const CALLS_MAX: usize = 256;

impl OpenAi {
    /// Connects to a server: it must answer, count tokens, and, where tools are shown natively, let
    /// the model see them.
    ///
    /// # Errors
    /// When the settings make no sense, the server is away, or it cannot be used.
    pub async fn connect(config: Config, stop: &CancellationToken) -> Result<Self, SetupError> {
        let manifest = Manifest {
            name: config.name.clone().unwrap_or_else(|| config.model.clone()),
            model: config.model.clone(),
            deterministic: false,
            context_tokens_max: config.context_tokens_max,
            constrains: config.constrain == Constrain::JsonSchema,
        };
        let native_tools = config.tool_form == ToolForm::Native;
        let goes_on = config.go_on == GoOn::Prefix;
        let server = Server::new(config)?;
        let counter = Counter::of_bytes(&server);
        let mut server = Self { server, manifest, native_tools, goes_on, counter };
        let bare = server.probe_tokens(None, "", stop).await?;
        if server.server.config.tool_form == ToolForm::Probe {
            let shown = server.probe_tokens(Some(&probe_tool()), "", stop).await;
            server.native_tools = match shown {
                Ok(tokens) => tokens > bare,
                // Some servers refuse tools for models without a template for them.
                Err(BackendError::Refused { .. } | BackendError::Failed { .. }) => false,
                Err(error) => return Err(error.into()),
            };
            let form = if server.native_tools { "native" } else { "prompted" };
            tracing::info!(model = %server.manifest.model, form, "tools are shown to the model");
        }
        if server.server.config.go_on == GoOn::Probe {
            server.goes_on = server.probe_go_on(bare, stop).await?;
        }
        if server.server.config.tokenize {
            server.counter = Counter::probe(&server.server).await;
        }
        let (prefix, exact) = (server.goes_on, server.counter.is_exact());
        tracing::info!(prefix, exact, "how cut texts are continued, and prompts counted");
        Ok(server)
    }

    /// Whether the model writes on in a last message of its own: then this one word makes the prompt
    /// longer by itself alone, and not by the end of one message and the beginning of another.
    async fn probe_go_on(&self, bare: u32, stop: &CancellationToken) -> Result<bool, BackendError> {
        match self.probe_tokens(None, "Hello", stop).await {
            Ok(tokens) => Ok(tokens.checked_sub(bare).is_some_and(|more| more == 1)),
            // Some servers refuse such a message, or the members that go with it.
            Err(BackendError::Refused { .. } | BackendError::Failed { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether tools go into the request, and not into the prompt.
    #[must_use]
    pub const fn has_native_tools(&self) -> bool {
        self.native_tools
    }

    /// The tokens that a short prompt is counted as, with a tool and with the beginning of the model's
    /// message, if there are any.
    async fn probe_tokens(
        &self,
        tool: Option<&ToolSpec>,
        so_far: &str,
        stop: &CancellationToken,
    ) -> Result<u32, BackendError> {
        let message = Message {
            role: Role::User,
            text: "Hello".into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        };
        let mut messages = wire::messages(&[message], Arguments::Text);
        wire::add_so_far(&mut messages, so_far, true);
        let mut body = json!({
            "model": self.server.config.model,
            "messages": messages,
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_tokens": 1,
            "temperature": 0,
        });
        if !so_far.is_empty() {
            add_prefix_members(&mut body);
        }
        if let Some(tool) = tool {
            body["tools"] = wire::tools(std::slice::from_ref(tool));
        }
        let said = self.server.attempts(stop, || self.answer(&body)).await?;
        Ok(said.prompt_tokens)
    }
}

#[async_trait]
impl Dialect for OpenAi {
    fn link(&self) -> Link<'_> {
        let Self { server, counter, native_tools, .. } = self;
        Link { server, counter, native_tools: *native_tools, form: "response_format" }
    }

    fn body(&self, iteration: &Iteration<'_>) -> Value {
        let prompted = !self.native_tools;
        let tools = iteration.constraint.callable(iteration.tools);
        let mut messages = if prompted {
            let plain = prompted::messages(iteration.messages, tools);
            wire::messages(&plain, Arguments::Text)
        } else {
            wire::messages(iteration.messages, Arguments::Text)
        };
        wire::add_so_far(&mut messages, iteration.so_far, self.goes_on);
        let mut body = json!({
            "model": self.server.config.model,
            "messages": messages,
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_tokens": iteration.output_tokens_max,
            "temperature": 0,
            "seed": 0,
        });
        if self.goes_on && !iteration.so_far.is_empty() {
            add_prefix_members(&mut body);
        }
        if self.native_tools && !tools.is_empty() {
            body["tools"] = wire::tools(tools);
            if *iteration.constraint == Constraint::Call {
                body["tool_choice"] = json!("required");
            }
        }
        if !iteration.stops.is_empty() {
            body["stop"] = json!(iteration.stops);
        }
        if self.manifest.constrains
            && let Some(schema) = wire::schema(iteration, self.native_tools)
        {
            let named = json!({ "name": "answer", "strict": true, "schema": schema });
            body["response_format"] = json!({ "type": "json_schema", "json_schema": named });
        }
        body
    }

    /// One attempt: the whole answer, or why there is none.
    async fn answer(&self, body: &Value) -> Result<Said, BackendError> {
        let response = self.server.post("/chat/completions", body).await?;
        let (first, later) = (self.server.first_silence(), self.server.later_silence());
        let url = self.server.config.url.clone();
        let stream = Box::pin(response.bytes_stream());
        let mut lines = Lines::new(url.clone(), stream, first, later);
        let mut said = Said::default();
        let mut finish = None;
        let mut usage = None;
        let mut is_done = false;
        while let Some(line) = lines.next().await? {
            let Some(data) = line.strip_prefix("data:") else { continue };
            let data = data.trim();
            if data == "[DONE]" {
                is_done = true;
                break;
            }
            let part: Part = serde_json::from_str(data).map_err(|error| {
                lines.broken(format!("a part is not JSON as expected: {error}"))
            })?;
            if let Some(error) = part.error {
                return Err(lines.broken(format!("it says: {error}")));
            }
            usage = part.usage.or(usage);
            for choice in part.choices {
                finish = choice.finish_reason.or(finish);
                add(&mut said, choice.delta);
            }
        }
        if !is_done && finish.is_none() {
            return Err(lines.broken("it ends before the model was done".into()));
        }
        let missing = |field| BackendError::NoUsage { url: url.clone(), field };
        let usage = usage.ok_or_else(|| missing("usage"))?;
        let (out, read) = (usage.completion_tokens, usage.prompt_tokens);
        said.output_tokens = out.ok_or_else(|| missing("usage.completion_tokens"))?;
        said.prompt_tokens = read.ok_or_else(|| missing("usage.prompt_tokens"))?;
        said.is_cut = finish.as_deref() == Some("length");
        Ok(said)
    }
}

/// Adds a part of the stream to what was said.
fn add(said: &mut Said, delta: Delta) {
    let Delta { content, reasoning_content, tool_calls } = delta;
    said.text.push_str(&content.unwrap_or_default());
    said.thoughts.push_str(&reasoning_content.unwrap_or_default());
    for part in tool_calls.unwrap_or_default() {
        if part.index >= CALLS_MAX {
            continue;
        }
        if said.calls.len() <= part.index {
            said.calls.resize_with(part.index.saturating_add(1), RawCall::default);
        }
        let Some(call) = said.calls.get_mut(part.index) else { continue };
        call.id.push_str(&part.id.unwrap_or_default());
        if let Some(FunctionPart { name, arguments }) = part.function {
            call.name.push_str(&name.unwrap_or_default());
            call.arguments.push_str(&arguments.unwrap_or_default());
        }
    }
}

/// vLLM has to be told to continue the last message; llama-server does so anyway.
fn add_prefix_members(body: &mut Value) {
    body["add_generation_prompt"] = json!(false);
    body["continue_final_message"] = json!(true);
}

fn probe_tool() -> ToolSpec {
    ToolSpec {
        name: "report_position".into(),
        description: "Reports where the caller stands, as a pair of whole numbers.".into(),
        parameters: json!({ "type": "object", "properties": { "unit": { "type": "string" } } }),
    }
}

#[async_trait]
impl Backend for OpenAi {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    async fn health(&self) -> Health {
        match self.server.probe("/models").await {
            Ok(_) => Health::Ready,
            Err(error @ BackendError::Busy { .. }) => Health::Degraded(error.to_string()),
            // A server that reads a prompt may be too busy for this, and some have no list.
            Err(error @ BackendError::Stalled { .. }) => Health::Degraded(error.to_string()),
            Err(BackendError::Refused { .. }) => Health::Ready,
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
