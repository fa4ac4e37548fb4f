//! Calls of tools, as the engine makes them.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::granted;
use crate::chain::{ChainError, RunView};
use crate::ports::{Grant, ToolResult, Tools};
use crate::talk::ToolCall;
use crate::tools::Toolbox;

/// A toolbox in the engine's hands.
#[derive(Clone, Debug)]
pub struct Hands {
    toolbox: Toolbox,
}

impl Hands {
    /// The tools of `toolbox`.
    #[must_use]
    pub const fn new(toolbox: Toolbox) -> Self {
        Self { toolbox }
    }
}

#[async_trait]
impl Tools for Hands {
    async fn fetch(&self, run: &RunView) -> Result<(), ChainError> {
        self.toolbox.fetch_agents(&run.agent.iter().cloned().collect()).await?;
        let brief = run.agent.as_ref().and_then(|agent| self.toolbox.brief(agent));
        let own = brief.map(|it| it.tools).unwrap_or_default();
        self.toolbox.fetch_agents(&run.tools.iter().cloned().chain(own).collect()).await
    }

    fn missing(&self, grant: &Grant) -> Vec<String> {
        self.toolbox.missing(&granted(grant))
    }

    fn offered(&self, grant: &Grant) -> Vec<String> {
        let specs = self.toolbox.specs(&granted(grant));
        specs.into_iter().map(|spec| spec.name).collect()
    }

    fn is_idempotent(&self, grant: &Grant, name: &str) -> bool {
        self.toolbox.is_idempotent(name, &granted(grant))
    }

    async fn call(&self, grant: &Grant, call: &ToolCall, stop: &CancellationToken) -> ToolResult {
        let ToolCall { id, name, arguments } = call;
        let outcome = self.toolbox.call(name, arguments, &granted(grant), stop).await;
        ToolResult {
            call_id: id.clone(),
            ok: outcome.ok,
            text: outcome.result,
            duration_ms: outcome.duration_ms,
            tokens: outcome.tokens,
        }
    }
}
