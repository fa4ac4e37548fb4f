//! What a back end is, whether it can be asked, and how it is asked.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::BackendError;
use crate::executor::Model;
use crate::messages::{Iteration, Output};

/// What a back end is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its name in the configuration and in the claim.
    pub name: String,
    /// The model's name.
    pub model: String,
    /// Whether the same question always gives the same output, on every machine.
    pub deterministic: bool,
    /// How many tokens prompt and output may have together.
    pub context_tokens_max: u32,
    /// Whether it holds the model to a [`crate::messages::Constraint`] while it writes.
    pub constrains: bool,
}

/// Whether a back end can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Yes.
    Ready,
    /// It answers, with failures; runs that were claimed go on, and no more are.
    Degraded(String),
    /// No.
    Down(String),
}

/// A model.
///
/// An output with [`crate::messages::End::ToolCalls`] and no calls is one whose calls cannot be read; its
/// text is what the model wrote.
#[async_trait]
pub trait Backend: Debug + Send + Sync {
    /// What it is.
    fn manifest(&self) -> &Manifest;
    /// The model as agents of the market may ask it; none if its answers are not the same on every machine.
    fn for_market(&self) -> Option<Arc<dyn Model>> {
        None
    }
    /// Whether it can be asked now.
    async fn health(&self) -> Health;
    /// Whether a question, prompt and output together, has room in the context: before a run is
    /// claimed. Answers about how many tokens the prompt has. A prompt that cannot be counted is
    /// taken to be longer than most such prompts are, as far as room is concerned.
    ///
    /// # Errors
    /// [`BackendError::TooLong`] if it has not.
    async fn fits(&self, iteration: &Iteration<'_>) -> Result<u64, BackendError>;
    /// Asks the model once. Cancelling `stop` ends it early with [`BackendError::Cancelled`].
    ///
    /// # Errors
    /// When there is no output that may be paid for; nothing of it is to be used then.
    async fn infer(
        &self,
        iteration: &Iteration<'_>,
        stop: &CancellationToken,
    ) -> Result<Output, BackendError>;
}
