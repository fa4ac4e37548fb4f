//! How many tokens a prompt has, before a model reads it and after.

use serde_json::{Value, json};

use super::BackendError;
use super::check::{self, prompt_bytes};
use super::http::Server;
use crate::messages::{Iteration, Message};

/// More tokens than a template puts around a message or a tool.
const AROUND_TOKENS: u64 = 16;
/// Bytes of a token in most texts.
const USUAL_BYTES_PER_TOKEN: u64 = 4;
/// Bytes of an answer to `/tokenize`, per byte of text, and for whatever else it has.
const ANSWER_BYTES_PER_BYTE: usize = 16;
const ANSWER_BYTES: usize = 64 * 1024;
/// Prompts shorter than this are not counted again after the answer.
const CHECKED_BYTES_MIN: u64 = 2_048;
/// What of a prompt a template may leave out, such as white space: one part in so many, and some.
const LEFT_OUT_PART: u64 = 16;
const LEFT_OUT_TOKENS: u64 = 32;

/// Counts prompts for a server.
#[derive(Debug)]
pub(super) struct Counter {
    /// The server that splits texts; none if it cannot.
    splits: Option<Server>,
    server: Server,
}

impl Counter {
    /// Counts by bytes alone.
    pub(super) fn of_bytes(server: &Server) -> Self {
        Self { splits: None, server: server.clone() }
    }

    /// Asks the server whether it splits texts, as llama-server and vLLM do.
    pub(super) async fn probe(server: &Server) -> Self {
        let splits = split(server, "Hello, world").await.filter(|tokens| *tokens > 0);
        Self { splits: splits.map(|_| server.clone()), server: server.clone() }
    }

    /// Whether prompts are counted exactly, but for what the template adds.
    pub(super) const fn is_exact(&self) -> bool {
        self.splits.is_some()
    }

    async fn tokens(&self, text: &str) -> Option<u64> {
        split(self.splits.as_ref()?, text).await
    }

    /// Before a claim: whether there is room for the prompt and for the output.
    pub(super) async fn fits(&self, iteration: &Iteration<'_>) -> Result<u64, BackendError> {
        let config = &self.server.config;
        let output = u64::from(iteration.output_tokens_max);
        let room = u64::from(config.context_tokens_max).saturating_sub(output);
        let text = whole_text(iteration);
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let around = around(iteration);
        // No token has less than a byte.
        if bytes.saturating_add(around) <= room {
            return Ok(about(bytes));
        }
        let known = check::tokens_min(config, bytes);
        // Spaces and rules can be more bytes for a token, which only a count tells.
        let tokens = if known > room && !self.is_exact() {
            known
        } else {
            let by_bytes = bytes.div_ceil(u64::from(config.bytes_per_token_min.max(1)));
            let tokens = self.tokens(&text).await.unwrap_or(by_bytes);
            tokens.saturating_add(around)
        };
        if tokens > room { Err(check::too_long(config, iteration, tokens)) } else { Ok(tokens) }
    }

    /// Before a question: the most tokens that its output has room for, at most as many as asked for.
    pub(super) async fn room(&self, iteration: &Iteration<'_>) -> Result<u32, BackendError> {
        let config = &self.server.config;
        let wanted = iteration.output_tokens_max;
        let context = u64::from(config.context_tokens_max);
        let bytes = prompt_bytes(iteration);
        let most = bytes.saturating_add(around(iteration)).saturating_add(wanted.into());
        let counted = if most > context { self.tokens(&whole_text(iteration)).await } else { None };
        let tokens = match counted {
            Some(counted) => counted.saturating_add(around(iteration)),
            None => check::tokens_min(config, bytes),
        };
        let room = context.saturating_sub(tokens);
        if room == 0 {
            return Err(check::too_long(config, iteration, tokens));
        }
        Ok(u32::try_from(room).unwrap_or(u32::MAX).min(wanted))
    }

    /// After the answer: whether the server can have read the whole prompt, by its own count of it
    /// where there is one. Tools are left out of that, as templates write them in forms of their own.
    pub(super) async fn was_read(
        &self,
        iteration: &Iteration<'_>,
        prompt_tokens: u32,
    ) -> Result<(), BackendError> {
        let texts: Vec<&str> = iteration.messages.iter().map(|it| it.text.as_str()).collect();
        let text = texts.join("\n");
        let prompt_bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if self.is_exact() && prompt_bytes < CHECKED_BYTES_MIN {
            return Ok(());
        }
        let Some(tokens) = self.tokens(&text).await else {
            return check::was_read(&self.server.config, iteration, prompt_tokens);
        };
        let left_out = (tokens / LEFT_OUT_PART).saturating_add(LEFT_OUT_TOKENS);
        let tokens_min = tokens.saturating_sub(left_out);
        if u64::from(prompt_tokens) < tokens_min {
            return Err(BackendError::Truncated { prompt_bytes, prompt_tokens, tokens_min });
        }
        Ok(())
    }
}

/// About how many tokens so many bytes are.
#[must_use]
pub const fn about(bytes: u64) -> u64 {
    bytes.div_ceil(USUAL_BYTES_PER_TOKEN)
}

/// How many tokens a text has by a server's word; none if it does not say.
async fn split(server: &Server, text: &str) -> Option<u64> {
    // The members of llama-server and of vLLM; each passes over those of the other.
    let body = json!({
        "model": server.config.model,
        "content": text,
        "add_special": false,
        "prompt": text,
        "add_special_tokens": false,
    });
    let asked = server.post_beside("/tokenize", &body).await;
    let response = asked.inspect_err(|error| tracing::debug!(%error, "no count")).ok()?;
    let bytes_max = text.len().saturating_mul(ANSWER_BYTES_PER_BYTE).saturating_add(ANSWER_BYTES);
    let read = server.body(response, bytes_max).await;
    let bytes = read.inspect_err(|error| tracing::debug!(%error, "no count")).ok()?;
    let answer: Value = serde_json::from_slice(&bytes).ok()?;
    let listed = || u64::try_from(answer["tokens"].as_array()?.len()).ok();
    answer["count"].as_u64().or_else(listed)
}

/// Everything that the model is to read, but for what the template adds.
fn whole_text(iteration: &Iteration<'_>) -> String {
    let mut text = String::new();
    let mut add = |part: &str| {
        text.push_str(part);
        text.push('\n');
    };
    for Message { text, tool_calls, role: _, tool_call_id: _ } in iteration.messages {
        add(text);
        for call in tool_calls {
            add(&call.name);
            add(&Value::Object(call.arguments.clone()).to_string());
        }
    }
    for tool in iteration.tools {
        add(&tool.name);
        add(&tool.description);
        add(&tool.parameters.to_string());
    }
    add(iteration.so_far);
    text
}

/// More tokens than a template puts around all of it.
fn around(iteration: &Iteration<'_>) -> u64 {
    let parts = iteration.messages.len().saturating_add(iteration.tools.len()).saturating_add(2);
    u64::try_from(parts).unwrap_or(u64::MAX).saturating_mul(AROUND_TOKENS)
}
