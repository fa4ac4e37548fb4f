//! One question to a server, whatever its interface.

use std::fmt::Debug;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::count::Counter;
use super::http::Server;
use super::wire::Said;
use super::{BackendError, check, prompted, wire};
use crate::messages::{Iteration, Output};

/// What a question needs of a back end.
#[derive(Debug)]
pub(super) struct Link<'a> {
    pub(super) server: &'a Server,
    pub(super) counter: &'a Counter,
    /// Whether tools stand in the request, and not in the prompt.
    pub(super) native_tools: bool,
    /// The member of the request that holds the model to a form.
    pub(super) form: &'static str,
}

/// What differs between the interfaces of servers.
#[async_trait]
pub(super) trait Dialect: Debug + Send + Sync {
    fn link(&self) -> Link<'_>;
    /// The request.
    fn body(&self, iteration: &Iteration<'_>) -> Value;
    /// Sends a request once and reads the answer.
    async fn answer(&self, body: &Value) -> Result<Said, BackendError>;
}

/// Asks, with what room the prompt leaves, as often as that may help; then checks what was said and
/// counted.
pub(super) async fn infer(
    dialect: &dyn Dialect,
    iteration: &Iteration<'_>,
    stop: &CancellationToken,
) -> Result<Output, BackendError> {
    let Link { server, counter, native_tools, form } = dialect.link();
    let room = stop.run_until_cancelled(counter.room(iteration)).await;
    let output_tokens_max = room.ok_or(BackendError::Cancelled)??;
    let iteration = &Iteration { output_tokens_max, ..iteration.clone() };
    let body = dialect.body(iteration);
    let mut said = server.attempts(stop, || dialect.answer(&body)).await?;
    if !native_tools {
        prompted::read_calls(&mut said, iteration);
    }
    if body.get(form).is_some() {
        said.text = wire::unwrap_answer(said.text, iteration.constraint);
    }
    let output = said.into_output(iteration);
    let output = check::plausible(&server.config, iteration, output)?;
    let read = counter.was_read(iteration, output.prompt_tokens);
    stop.run_until_cancelled(read).await.ok_or(BackendError::Cancelled)??;
    Ok(output)
}
