//! Methods of agents that the settings make tools of, so that a model finds them by name.

use std::sync::Arc;

use super::{AskedCall, Published, TIMEOUT_MS_DEFAULT};
use crate::settings::PinnedTool;
use types::abi::Method;

/// A method of one version of an agent as a tool. A version never changes, so nor does what the tool says
/// of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The tool's name.
    pub name: String,
    /// The agent.
    pub published: Arc<Published>,
    /// The method.
    pub method: Method,
    committee: u64,
    cost_micro_max: Option<u64>,
}

impl Pinned {
    /// The tool that a setting asks for.
    ///
    /// # Errors
    /// What was expected of the setting.
    pub(crate) fn new(
        name: &str,
        tool: &PinnedTool,
        published: Arc<Published>,
    ) -> Result<Self, String> {
        let method = published
            .method(&tool.method)
            .map_err(|expected| format!("method: {expected}, got {:?}", tool.method))?;
        let method = method.clone();
        if let Some(expected) = tool.metadata.filter(|it| *it != published.metadata) {
            let got = published.metadata;
            return Err(format!("expected an agent with metadata {expected}, the node has {got}"));
        }
        let (committee, cost_micro_max) = (tool.committee, tool.max_cost_micro);
        Ok(Self { name: name.to_owned(), method, committee, cost_micro_max, published })
    }

    /// What a client asks by it.
    pub(crate) fn asked(&self, arguments: String) -> AskedCall {
        AskedCall {
            agent: self.published.agent.id,
            version: self.published.version.clone(),
            method: self.method.signature(),
            arguments,
            committee: self.committee,
            timeout_ms: TIMEOUT_MS_DEFAULT,
            cost_micro_max: self.cost_micro_max,
        }
    }

    /// What its author says of it.
    #[must_use]
    pub fn description(&self) -> String {
        self.published.words(&self.method)
    }
}
