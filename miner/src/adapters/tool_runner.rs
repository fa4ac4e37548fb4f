//! Calls of tools, as the engine makes them.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent::messages::ToolCall;
use agent::tools::{Grant, Toolbox};
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::RunAgents;
use crate::chain::{ChainError, RunView};
use crate::ports::{ToolResult, Tools};

/// Runs the tools of a toolbox for the engine.
#[derive(Clone, Debug)]
pub struct ToolRunner {
    toolbox: Toolbox,
    /// Fetches agents; none where runs may not have them.
    agents: Option<Arc<RunAgents>>,
}

impl ToolRunner {
    /// The tools of `toolbox`, of which the agents are `agents`.
    #[must_use]
    pub const fn new(toolbox: Toolbox, agents: Option<Arc<RunAgents>>) -> Self {
        Self { toolbox, agents }
    }

    async fn fetch_agents(&self, names: &BTreeSet<String>) -> Result<(), ChainError> {
        match &self.agents {
            Some(agents) => agents.fetch(names).await,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Tools for ToolRunner {
    async fn fetch(&self, run: &RunView) -> Result<(), ChainError> {
        self.fetch_agents(&run.agent.iter().cloned().collect()).await?;
        let brief = run.agent.as_ref().and_then(|agent| self.toolbox.brief(agent));
        let own = brief.map(|it| it.tools).unwrap_or_default();
        self.fetch_agents(&run.tools.iter().cloned().chain(own).collect()).await
    }

    fn missing(&self, grant: &Grant) -> Vec<String> {
        self.toolbox.missing(grant)
    }

    fn offered(&self, grant: &Grant) -> Vec<String> {
        let specs = self.toolbox.specs(grant);
        specs.into_iter().map(|spec| spec.name).collect()
    }

    fn is_idempotent(&self, grant: &Grant, name: &str) -> bool {
        self.toolbox.is_idempotent(name, grant)
    }

    async fn call(&self, grant: &Grant, call: &ToolCall, stop: &CancellationToken) -> ToolResult {
        let ToolCall { id, name, arguments } = call;
        let outcome = self.toolbox.call(name, arguments, grant, stop).await;
        ToolResult {
            call_id: id.clone(),
            ok: outcome.ok,
            text: outcome.result,
            duration_ms: outcome.duration_ms,
            tokens: outcome.tokens,
        }
    }
}
