//! Whether a server's counts can be true, and whether it read the whole prompt.

use super::BackendError;
use super::config::Config;
use crate::messages::{Iteration, Output};

/// Prompts shorter than this are not checked for cuts: a few unusual words would decide.
const CHECKED_BYTES_MIN: u64 = 2_048;

/// Bytes of text that the model is to read.
pub(super) fn prompt_bytes(iteration: &Iteration<'_>) -> u64 {
    let calls = |message: &crate::messages::Message| -> usize {
        message.tool_calls.iter().map(|call| call.name.len()).sum()
    };
    let messages = iteration.messages.iter();
    let said: usize = messages.map(|message| message.text.len() + calls(message)).sum();
    let tools = iteration.tools.iter();
    let described: usize = tools.map(|tool| tool.name.len() + tool.description.len()).sum();
    u64::try_from(said + described + iteration.so_far.len()).unwrap_or(u64::MAX)
}

/// The least number of tokens that so many bytes can be.
pub(super) fn tokens_min(config: &Config, bytes: u64) -> u64 {
    bytes.checked_div(config.bytes_per_token_max.into()).unwrap_or_default()
}

/// What is said of a prompt of so many tokens that has no room.
pub(super) const fn too_long(
    config: &Config,
    iteration: &Iteration<'_>,
    tokens_min: u64,
) -> BackendError {
    let (output_tokens, context_tokens_max) =
        (iteration.output_tokens_max, config.context_tokens_max);
    BackendError::TooLong { tokens_min, output_tokens, context_tokens_max }
}

/// After the answer: the output, if its counts can be true.
pub(super) fn plausible(
    config: &Config,
    iteration: &Iteration<'_>,
    output: Output,
) -> Result<Output, BackendError> {
    let wrong = |field, got: u32, expected: String| {
        Err(BackendError::WrongUsage { url: config.url.clone(), field, got: got.into(), expected })
    };
    let (got, max) = (output.output_tokens, iteration.output_tokens_max);
    if got > max {
        return wrong("completion tokens", got, format!("at most the {max} that were asked for"));
    }
    let thoughts = output.thoughts.as_deref().unwrap_or_default();
    let silent = output.text.is_empty() && thoughts.is_empty() && output.tool_calls.is_empty();
    if got == 0 && !silent {
        return wrong("completion tokens", 0, "at least 1 for an output that is not empty".into());
    }
    if output.prompt_tokens == 0 {
        return wrong("prompt tokens", 0, "at least 1".into());
    }
    Ok(output)
}

/// After the answer: whether so many tokens can be the whole prompt, by its bytes alone.
pub(super) fn was_read(
    config: &Config,
    iteration: &Iteration<'_>,
    prompt_tokens: u32,
) -> Result<(), BackendError> {
    let prompt_bytes = prompt_bytes(iteration);
    let tokens_min = tokens_min(config, prompt_bytes);
    if prompt_bytes >= CHECKED_BYTES_MIN && u64::from(prompt_tokens) < tokens_min {
        return Err(BackendError::Truncated { prompt_bytes, prompt_tokens, tokens_min });
    }
    Ok(())
}
