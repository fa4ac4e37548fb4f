//! What the tools need from outside: the time, and addresses of names.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;

use super::Tool;
pub use crate::clock::Clock;

/// Finds the addresses of a host's name.
#[async_trait]
pub trait Names: Send + Sync + Debug {
    /// Every address of `host`, in the order in which they are to be tried.
    ///
    /// # Errors
    /// When the name has none or nobody answers.
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// What an agent gives to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentBrief {
    /// What the model reads before everything else; none of an agent that is a program.
    pub base_prompt: Option<String>,
    /// The most tokens of one answer of its model; none of an agent that is a program.
    pub output_tokens_max: Option<u32>,
    /// The names of the agent's tools.
    pub tools: Vec<String>,
    /// Its methods.
    pub methods: Vec<MethodBrief>,
}

/// What a run needs to know of a method of its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodBrief {
    /// With what its payloads begin.
    pub selector: [u8; 4],
    /// What is said of it, which a model reads before the arguments; empty if nothing is.
    pub description: String,
}

/// The agents that are here to be executed as tools of runs, by the names that runs give them:
/// `agent:AGENTID@VERSION`.
pub trait AgentTools: Send + Sync + Debug {
    /// What an agent that is here gives to a run; none of an agent that is not here.
    fn brief(&self, name: &str) -> Option<AgentBrief>;

    /// Whether an agent was fetched and can be executed here.
    fn has(&self, name: &str) -> bool;

    /// An agent that is here as one tool, which takes the payload of any of its methods and answers with
    /// the encoded result, both in hex.
    fn whole(&self, name: &str) -> Option<Arc<dyn Tool>>;

    /// The methods of the agents that are here, each as a tool with a name of its own. `is_taken` tells
    /// the names of other tools.
    fn tools(
        &self,
        names: &BTreeSet<String>,
        is_taken: &dyn Fn(&str) -> bool,
    ) -> Vec<Arc<dyn Tool>>;
}

/// Finds addresses as every other program of this machine does.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

#[async_trait]
impl Names for SystemNames {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
