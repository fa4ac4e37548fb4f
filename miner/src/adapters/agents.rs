//! Agents of the market as tools of runs.
//!
//! What an agent answers here depends on its arguments alone: it is executed as members of a committee
//! execute it, for a call whose id and requester are all zeros.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use agent::executor::{Agent, Context, Executed, Executors, MethodTool, Stop, Task, Verdict};
use agent::messages::ToolSpec;
use agent::tools::ports::{AgentBrief, AgentTools, MethodBrief};
use agent::tools::{Class, Code, Failure, Limits, Terms, Tool};
use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use types::abi::Method;
use types::agent::Tool as ToolName;
use types::call::{CallLimits, Outcome};
use types::{Address, Hash, Usage};

use crate::chain::ChainError;
use crate::market::{AgentCache, Fitness, MarketParts, Unfound};

/// What one call of a run may use. A run pays for tokens and for no fuel, so it has little of that: work
/// that takes more is asked for by AGENT_CALL, which pays for it.
const LIMITS: CallLimits = CallLimits {
    usage: Usage { input_tokens: 4_096, output_tokens: 512, fuel: 100_000_000 },
    result_bytes: 16_384,
};
/// The most bytes of a payload or a result of 16,384 bytes in hex, with what is around it.
const PAYLOAD_TEXT_BYTES_MAX: usize = 40 * 1_024;
/// How long one call may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The most agents that one run has as tools.
const AGENTS_PER_RUN_MAX: usize = 16;
/// The most agents that are remembered, at most 64 KiB of metadata each; the one that was wanted longest
/// ago gives way.
const AGENTS_MAX: usize = 128;
/// An agent that cannot be had is not looked for again before.
const ABSENCE_PAUSE: Duration = Duration::from_secs(60);

/// The agents of the market that this miner executes as tools of runs.
#[derive(Debug)]
pub struct RunAgents {
    agents: Arc<AgentCache>,
    executors: Arc<Executors>,
    fitness: Fitness,
    fetched: Mutex<BTreeMap<String, Fetched>>,
}

/// What is known of an agent.
#[derive(Clone, Debug)]
struct Fetched {
    /// None where it cannot be had.
    agent: Option<Arc<Agent>>,
    wanted: Instant,
}

impl RunAgents {
    /// Those that the executors of a market can execute.
    #[must_use]
    pub fn of(market: &MarketParts) -> Self {
        Self {
            agents: Arc::clone(&market.agents),
            executors: Arc::clone(&market.executors),
            fitness: market.fitness.clone(),
            fetched: Mutex::default(),
        }
    }

    /// Whether an agent has to be fetched; if not, it is wanted now.
    fn is_new(&self, name: &str) -> bool {
        let mut fetched = self.fetched.lock();
        let Some(known) = fetched.get_mut(name) else { return true };
        if known.agent.is_none() {
            return known.wanted.elapsed() >= ABSENCE_PAUSE;
        }
        known.wanted = Instant::now();
        false
    }

    /// Fetches an agent, if everything is here that its execution needs.
    async fn gather(&self, id: &Hash, version: &str) -> Result<Arc<Agent>, Unfound> {
        let (agent, library) = self.agents.gather(id, version).await?;
        if let Some(why) = self.executors.missing(&agent, &library) {
            return Err(Unfound::Never(why));
        }
        for executor in Executors::needed(&agent, &library) {
            if !self.executors.is_deterministic(&executor) {
                let why = format!("answers of {executor} differ from miner to miner");
                return Err(Unfound::Never(why));
            }
            if self.fitness.fault(&executor).await.is_some() {
                return Err(Unfound::Never(format!("{executor} fails its test here")));
            }
        }
        Ok(agent)
    }

    fn remember(&self, name: &str, agent: Option<Arc<Agent>>) {
        let mut fetched = self.fetched.lock();
        let known = Fetched { agent, wanted: Instant::now() };
        fetched.insert(name.to_owned(), known);
        if fetched.len() > AGENTS_MAX {
            let oldest = fetched.iter().min_by_key(|(_, known)| known.wanted);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                fetched.remove(&oldest);
            }
        }
    }

    fn find(&self, name: &str) -> Option<Arc<Agent>> {
        self.fetched.lock().get(name)?.agent.clone()
    }

    /// Fetches those of the agents that are not here yet. Those that there are not stay unknown.
    ///
    /// # Errors
    /// When the node cannot be asked.
    pub(super) async fn fetch(&self, names: &BTreeSet<String>) -> Result<(), ChainError> {
        let agents = names.iter().filter_map(|name| match ToolName::parse(name)? {
            ToolName::Agent { id, version } => Some((name, id, version)),
            ToolName::BuiltIn(_) => None,
        });
        for (name, id, version) in agents.take(AGENTS_PER_RUN_MAX) {
            if self.is_new(name) {
                let agent = match self.gather(&id, version.as_str()).await {
                    Ok(agent) => Some(agent),
                    Err(Unfound::Never(why)) => {
                        tracing::debug!(name, why, "cannot get the agent of a run");
                        None
                    }
                    Err(Unfound::Node(error)) => return Err(error),
                };
                self.remember(name, agent);
            }
        }
        Ok(())
    }
}

impl AgentTools for RunAgents {
    fn brief(&self, name: &str) -> Option<AgentBrief> {
        let agent = self.find(name)?;
        let Agent { metadata, model, .. } = &*agent;
        let method = |method: &Method| MethodBrief {
            selector: method.selector().0,
            description: agent.describe(method).to_owned(),
        };
        Some(AgentBrief {
            base_prompt: model.as_ref().map(|it| it.base_prompt.clone()),
            output_tokens_max: model.as_ref().map(|it| it.max_output_tokens),
            tools: metadata.tools.iter().map(ToString::to_string).collect(),
            methods: metadata.methods.iter().map(method).collect(),
        })
    }

    fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn whole(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let agent = self.find(name)?;
        let execution = Execution {
            agent: Arc::clone(&agent),
            agents: Arc::clone(&self.agents),
            executors: Arc::clone(&self.executors),
        };
        Some(Arc::new(WholeAgent { spec: payload_spec(name), execution }))
    }

    fn tools(
        &self,
        names: &BTreeSet<String>,
        is_taken: &dyn Fn(&str) -> bool,
    ) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for agent in names.iter().filter_map(|name| self.find(name)) {
            let has = |name: &str| is_taken(name) || tools.iter().any(|it| it.spec().name == name);
            for method in MethodTool::all(&agent, has) {
                let execution = Execution {
                    agent: Arc::clone(&agent),
                    agents: Arc::clone(&self.agents),
                    executors: Arc::clone(&self.executors),
                };
                tools.push(Arc::new(AgentMethod { method, execution }));
            }
        }
        tools
    }
}

/// An agent with what executes it here.
#[derive(Debug)]
struct Execution {
    agent: Arc<Agent>,
    agents: Arc<AgentCache>,
    executors: Arc<Executors>,
}

impl Execution {
    /// What the agent answers to a payload, and how many tokens its model put out for that.
    async fn run(&self, payload: Vec<u8>) -> Result<(Verdict, u64), Failure> {
        let stop = CancellationToken::new();
        // The execution ends soon after nobody waits for it any more.
        let _guard = stop.clone().drop_guard();
        let Agent { id, metadata, .. } = &*self.agent;
        let gathered = self.agents.gather(id, metadata.version.as_str()).await;
        let (agent, library) =
            gathered.map_err(|error| Failure::new(Code::Transport, error.to_string()))?;
        let executors = Arc::clone(&self.executors);
        let executed = tokio::task::spawn_blocking(move || {
            executors.run(&Task {
                context: Context { call_id: Hash::ZERO, requester: Address::new([0; 20]) },
                agent: &agent,
                payload: &payload,
                limits: LIMITS,
                library: &library,
                stop: Stop::new(stop, None),
            })
        });
        let executed =
            executed.await.map_err(|_broken| Failure::failed("the executor broke off"))?;
        let Executed { answer, result, reason, work: _ } = executed;
        let verdict = match answer.outcome {
            Outcome::Success => Verdict::Success(result),
            Outcome::Failure | Outcome::Unable => Verdict::Failure(reason.unwrap_or_default()),
        };
        Ok((verdict, answer.usage.output_tokens))
    }
}

/// A method of an agent that is executed here.
#[derive(Debug)]
struct AgentMethod {
    method: MethodTool,
    execution: Execution,
}

#[async_trait]
impl Tool for AgentMethod {
    fn spec(&self) -> &ToolSpec {
        self.method.spec()
    }

    fn terms(&self) -> Terms {
        let limits = Limits { timeout: TIMEOUT, ..Limits::DEFAULT };
        Terms { class: Class::Pure, is_idempotent: true, limits }
    }

    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure> {
        Ok(self.call_counted(arguments).await?.0)
    }

    async fn call_counted(&self, arguments: &Map<String, Value>) -> Result<(String, u64), Failure> {
        let bad = |why| Failure::new(Code::BadArguments, why);
        let payload = self.method.payload(arguments).map_err(bad)?;
        let (verdict, tokens) = self.execution.run(payload).await?;
        // What fails is not billed.
        let text = self.method.text(verdict).map_err(Failure::failed)?;
        Ok((text, tokens))
    }
}

/// An agent that is executed here for whatever payload it is given.
#[derive(Debug)]
struct WholeAgent {
    spec: ToolSpec,
    execution: Execution,
}

/// The argument of an agent as a whole: `0x` and the payload in hex.
pub(super) const PAYLOAD: &str = "payload";

fn payload_spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({
            "type": "object",
            "properties": { PAYLOAD: { "type": "string" } },
            "required": [PAYLOAD],
            "additionalProperties": false,
        }),
    }
}

#[async_trait]
impl Tool for WholeAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn terms(&self) -> Terms {
        let limits = Limits {
            timeout: TIMEOUT,
            input_bytes_max: PAYLOAD_TEXT_BYTES_MAX,
            output_bytes_max: PAYLOAD_TEXT_BYTES_MAX,
        };
        Terms { class: Class::Pure, is_idempotent: true, limits }
    }

    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure> {
        Ok(self.call_counted(arguments).await?.0)
    }

    async fn call_counted(&self, arguments: &Map<String, Value>) -> Result<(String, u64), Failure> {
        let given = arguments.get(PAYLOAD).and_then(Value::as_str).unwrap_or_default();
        let payload = const_hex::decode(given)
            .map_err(|error| Failure::new(Code::BadArguments, format!("{PAYLOAD}: {error}")))?;
        match self.execution.run(payload).await? {
            (Verdict::Success(result), tokens) => Ok((const_hex::encode_prefixed(result), tokens)),
            (Verdict::Failure(why), _) => Err(Failure::failed(why)),
        }
    }
}

#[cfg(test)]
mod tests;
