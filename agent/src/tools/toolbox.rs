//! The tools of one miner, and the one way to call them.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::arguments::Schema;
use super::config::Config;
use super::config_fault::ConfigFaults;
use super::hashes::canonical_json;
use super::mcp::{Server, StartError};
use super::names::OFFERED_BY_DEFAULT;
use super::offered::Offered;
use super::outcome::{Outcome, cut_result, milliseconds};
use super::ports::{AgentBrief, AgentTools};
use super::surroundings::Surroundings;
use super::tool::{Class, Code, Failure, Terms, Tool};
use super::{SchemaFault, builtin};
use crate::messages::ToolSpec;

/// What a run may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Names of tools: the run's `toolsWhitelist`.
    pub tools: BTreeSet<String>,
    /// URLs of MCP servers that the run names; all tools of those that the operator has configured
    /// with exactly this URL are granted.
    pub servers: BTreeSet<String>,
    /// Whether the run wants an answer that can be reproduced, so that only [`Class::Pure`] tools
    /// may be used.
    pub is_reproducible: bool,
}

/// Why the tools cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The settings have faults.
    #[error(transparent)]
    Config(#[from] ConfigFaults),
    /// A built-in tool's schema is wrong: a fault of this program.
    #[error("the schema of {tool}: {source}")]
    Schema {
        /// The tool.
        tool: String,
        /// What is wrong.
        source: SchemaFault,
    },
    /// An MCP server cannot even be tried.
    #[error("MCP server {server}: {source}")]
    Server {
        /// Its name.
        server: String,
        /// What is wrong.
        source: StartError,
    },
}

/// The tools of one miner. Cloning is cheap; clones share the servers.
#[derive(Clone, Debug)]
pub struct Toolbox {
    built_in: Arc<BTreeMap<String, Offered>>,
    servers: Arc<[Server]>,
    agents: Option<Arc<dyn AgentTools>>,
}

impl Toolbox {
    /// Makes the built-in tools that the operator allows, and starts the MCP servers. Their tools
    /// are there as soon as the servers answer. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the settings have faults, or a server cannot even be tried.
    pub fn open(config: &Config, around: &Surroundings) -> Result<Self, OpenError> {
        config.check()?;
        let mut tools = BTreeMap::new();
        for tool in builtin::tools(config, around) {
            let name = tool.spec().name.clone();
            let schema = Schema::compile(&tool.spec().parameters)
                .map_err(|source| OpenError::Schema { tool: name.clone(), source })?;
            let limits = config.limits_of(&name, tool.terms().limits);
            let schema = Arc::new(schema);
            tools.insert(name, Offered { tool, schema, limits, apart: None, is_of_agent: false });
        }
        let servers: Result<Vec<_>, _> = config
            .mcp
            .iter()
            .map(|server| {
                Server::start(server, config, around)
                    .map_err(|source| OpenError::Server { server: server.name.clone(), source })
            })
            .collect();
        Ok(Self { built_in: Arc::new(tools), servers: servers?.into(), agents: None })
    }

    /// The same with agents, if runs may have any.
    #[must_use]
    pub fn with_agents(self, agents: Option<Arc<dyn AgentTools>>) -> Self {
        Self { agents, ..self }
    }

    /// A toolbox of these tools.
    #[cfg(test)]
    pub(super) fn of(tools: BTreeMap<String, Offered>) -> Self {
        Self { built_in: Arc::new(tools), servers: Arc::default(), agents: None }
    }

    /// What an agent that was fetched gives to a run; none if it is not here.
    #[must_use]
    pub fn brief(&self, agent: &str) -> Option<AgentBrief> {
        self.agents.as_ref()?.brief(agent)
    }

    /// The tools that this run may use, by name. Those of a server that is away stay on the list, so
    /// that a conversation which has begun is the same however its servers are; their calls fail.
    #[must_use]
    pub fn specs(&self, grant: &Grant) -> Vec<ToolSpec> {
        let offered = self.granted(grant, Server::known);
        let mut specs: BTreeMap<String, ToolSpec> =
            offered.into_iter().map(|(name, it)| (name, it.tool.spec().clone())).collect();
        let of_agents = self.of_agents(grant).into_iter().map(|it| it.spec().clone());
        specs.extend(of_agents.map(|spec| (spec.name.clone(), spec)));
        specs.into_values().collect()
    }

    /// Names of the grant, tools and then servers, that this miner cannot serve now: not allowed by
    /// the operator, not known, not there at the moment, or not reproducible where that is asked for.
    /// Those of [`OFFERED_BY_DEFAULT`] are never among them: a run is as well off without.
    #[must_use]
    pub fn missing(&self, grant: &Grant) -> Vec<String> {
        let offered = self.granted(grant, Server::tools);
        let is_needed = |name: &&String| !OFFERED_BY_DEFAULT.contains(&name.as_str());
        let needed = grant.tools.iter().filter(is_needed);
        let is_here = |name: &&String| match &self.agents {
            Some(agents) if is_agent(name) => agents.has(name),
            _ => offered.contains_key(*name),
        };
        let tools = needed.filter(|name| !is_here(name));
        let is_away = |url: &&String| {
            let mut serving = self.serving(url).peekable();
            serving.peek().is_none() || serving.any(|server| !server.is_there())
        };
        let servers = grant.servers.iter().filter(is_away);
        tools.chain(servers).cloned().collect()
    }

    /// What may be relied on in a call of this tool, if it is there now or was.
    #[must_use]
    pub fn terms(&self, name: &str) -> Option<Terms> {
        let known = || self.servers.iter().find_map(|server| server.known().remove(name));
        let offered = self.find(name, &Grant::default()).or_else(known)?;
        Some(Terms { limits: offered.limits, ..offered.tool.terms() })
    }

    /// Whether a call of this tool whose result was lost may be made again.
    #[must_use]
    pub fn is_idempotent(&self, name: &str, grant: &Grant) -> bool {
        let of_agent = self.find(name, grant).filter(|it| it.is_of_agent);
        let terms = of_agent.map(|it| it.tool.terms()).or_else(|| self.terms(name));
        terms.is_some_and(|it| it.is_idempotent)
    }

    /// Calls a tool. Always ends within the tool's time limit, and soon after `stop` is cancelled.
    pub async fn call(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        grant: &Grant,
        stop: &CancellationToken,
    ) -> Outcome {
        let began = Instant::now();
        let Some(offered) = self.find(name, grant) else {
            let failure = Failure::new(Code::UnknownTool, "there is no such tool now");
            return Outcome::of_failure(&failure, Class::Volatile, began.elapsed());
        };
        let class = offered.tool.terms().class;
        let answer = if offered.is_of_agent || self.grants(name, class, grant) {
            guarded(&offered, arguments, stop).await
        } else {
            Err(Failure::new(Code::NotGranted, "this run does not allow the tool"))
        };
        match answer {
            Ok((text, tokens)) => Outcome {
                ok: true,
                tokens,
                result: cut_result(text, offered.limits.output_bytes_max),
                duration_ms: milliseconds(began.elapsed()),
                class,
                code: None,
            },
            Err(failure) => {
                let outcome = Outcome::of_failure(&failure, class, began.elapsed());
                let result = cut_result(outcome.result, offered.limits.output_bytes_max);
                Outcome { result, ..outcome }
            }
        }
    }

    /// Waits until each MCP server was connected once, or could not be; a handshake and a list take 10
    /// seconds each at most.
    pub async fn tried(&self) {
        futures::future::join_all(self.servers.iter().map(Server::tried)).await;
    }

    /// Ends the MCP servers and waits until their processes are gone.
    pub async fn close(&self) {
        futures::future::join_all(self.servers.iter().map(Server::close)).await;
    }

    /// The MCP servers, with what each offers now.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    fn serving<'a>(&'a self, url: &'a str) -> impl Iterator<Item = &'a Server> {
        self.servers.iter().filter(move |server| server.url() == Some(url))
    }

    fn find(&self, name: &str, grant: &Grant) -> Option<Offered> {
        let built_in = self.built_in.get(name).cloned();
        let of_agents = || {
            let tool = if is_agent(name) {
                let agents = self.agents.as_ref().filter(|_| grant.tools.contains(name));
                agents?.whole(name)?
            } else {
                self.of_agents(grant).into_iter().find(|it| it.spec().name == name)?
            };
            Offered::of_agent(tool)
        };
        let of_servers = || self.servers.iter().find_map(|server| server.tool(name));
        built_in.or_else(of_agents).or_else(of_servers)
    }

    /// The methods of a grant's agents. Whoever grants an agent grants its methods.
    /// Their schemas are compiled when they are called: a stranger's run may name a thousand.
    fn of_agents(&self, grant: &Grant) -> Vec<Arc<dyn Tool>> {
        let is_taken = |name: &str| self.built_in.contains_key(name);
        let agents = self.agents.as_ref();
        agents.map_or_else(Vec::new, |it| it.tools(&grant.tools, &is_taken))
    }

    fn grants(&self, name: &str, class: Class, grant: &Grant) -> bool {
        let by_server = || {
            let servers = grant.servers.iter().flat_map(|url| self.serving(url));
            servers.into_iter().any(|server| server.owns(name))
        };
        let may_be_any = !grant.is_reproducible || class == Class::Pure;
        may_be_any && (grant.tools.contains(name) || by_server())
    }

    fn granted(
        &self,
        grant: &Grant,
        tools: impl Fn(&Server) -> BTreeMap<String, Offered>,
    ) -> BTreeMap<String, Offered> {
        let of_servers = self.servers.iter().flat_map(tools);
        let built_in = self.built_in.iter().map(|(name, it)| (name.clone(), it.clone()));
        built_in
            .chain(of_servers)
            .filter(|(name, it)| self.grants(name, it.tool.terms().class, grant))
            .collect()
    }
}

/// Whether a tool of a run's list is an agent.
fn is_agent(name: &str) -> bool {
    matches!(types::agent::Tool::parse(name), Some(types::agent::Tool::Agent { .. }))
}

/// Calls a tool within its limits.
async fn guarded(
    offered: &Offered,
    arguments: &Map<String, Value>,
    stop: &CancellationToken,
) -> Result<(String, u64), Failure> {
    let limits = offered.limits;
    let bytes = canonical_json(&Value::Object(arguments.clone())).len();
    if bytes > limits.input_bytes_max {
        let most = limits.input_bytes_max;
        let message = format!("the arguments have {bytes} bytes: expected at most {most}");
        return Err(Failure::new(Code::BadArguments, message));
    }
    tokio::select! {
        biased;
        () = stop.cancelled() => return Err(Failure::new(Code::Cancelled, "the miner stops")),
        checked = offered.check(arguments) => checked?,
    }
    let call = AssertUnwindSafe(offered.tool.call_counted(arguments)).catch_unwind();
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(Failure::new(Code::Cancelled, "the miner stops")),
        called = tokio::time::timeout(limits.timeout, call) => match called {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => Err(panicked(&offered.tool.spec().name, &*panic)),
            Err(_) => {
                let most = limits.timeout.as_millis();
                Err(Failure::new(Code::Timeout, format!("no result within {most} ms")))
            }
        },
    }
}

/// What the model is told of a panic; the log is told more.
fn panicked(name: &str, panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(tool = name, panic = text.unwrap_or("not a text"), "a tool panicked");
    Failure::new(Code::Panicked, "the tool has a fault")
}
