//! What a policy would decide about the runs that wait now. Nothing is claimed, nothing is written.

use agent::backend::{Manifest, tokens_about};
use agent::tools::mcp::ServerConfig;
use agent::tools::{BUILT_IN, Grant, OpenError, Surroundings, Toolbox};
use types::{Address, Hash};

use crate::adapters::Understanding;
use crate::chain::{ChainError, Ledger, RunView, Runs};
use crate::policy::{AskedWork, Bonded, Circumstances, Decision, Policy, Refusals, decide};
use crate::ports::Courses;
use crate::settings::{ModelConfig, Settings};

/// A policy that is tried.
#[derive(Debug)]
pub struct Trial {
    policy: Policy,
    model: Manifest,
    toolbox: Toolbox,
    /// The MCP servers, which are taken to be there: they are not started.
    servers: Vec<ServerConfig>,
    /// Whether agents may be tools of runs; they are taken to be there, too.
    has_agents: bool,
}

/// What would be decided about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The run.
    pub run: Hash,
    /// The escrow, micro-OMBRA.
    pub max_fee_micro: u64,
    /// The decision.
    pub decision: Decision,
}

impl Trial {
    /// A trial of the policy of a configuration. The model is not asked and MCP servers are not
    /// started: they are taken to be there.
    ///
    /// # Errors
    /// When the built-in tools cannot be had.
    pub fn new(settings: Settings, around: &Surroundings) -> Result<Self, OpenError> {
        let Settings { policy, mut tools, model, .. } = settings;
        let servers = std::mem::take(&mut tools.mcp);
        // Limits of a server's tools would be faults where there are no servers.
        tools.limits.retain(|name, _| BUILT_IN.contains(&name.as_str()));
        let (has_agents, toolbox) = (tools.agents, Toolbox::open(&tools, around)?);
        Ok(Self { has_agents, policy, model: manifest(&model), toolbox, servers })
    }

    /// Decides about every pending run of the node, those with the highest escrow first. Without a
    /// wallet its balance and its lapsed claims stand against nothing.
    ///
    /// # Errors
    /// When the node cannot be asked.
    pub async fn run(
        &self,
        node: &(impl Runs + Ledger),
        wallet: Option<Address>,
        now_ms: u64,
    ) -> Result<Vec<Tried>, ChainError> {
        let balance_micro = match &wallet {
            Some(wallet) => node.funds(wallet).await?.balance_micro,
            None => u64::MAX,
        };
        let head = node.head().await?;
        let now_ms = now_ms.max(head.block_ms);
        let mut runs = node.pending().await?;
        runs.sort_by_key(|run| (std::cmp::Reverse(run.max_fee_micro), run.id));
        let mut tried = Vec::new();
        for run in runs {
            let run = self.policy.narrowed(run);
            let standing = Circumstances {
                now_ms,
                miner: wallet.unwrap_or_default(),
                balance_micro,
                runs_busy: 0,
                claims_today: 0,
                spent_today_micro: 0,
                burned_today_micro: 0,
                model: self.model.model.clone(),
                node_syncing: head.syncing,
                backend_down: None,
                asked: None,
                too_long: None,
                tools_offered: Vec::new(),
                tools_missing: Vec::new(),
                journal: None,
                rival: None,
                prompt_bytes: u64::try_from(run.prompt.len()).unwrap_or(u64::MAX),
                unreadable: None,
                bonded: None,
                refusals: Refusals::default(),
            };
            let standing = staked(node, wallet.as_ref(), &run, standing).await?;
            let standing = self.read(node, &run, standing).await?;
            let decision = decide(&self.policy, &run, &standing);
            tried.push(Tried { run: run.id, max_fee_micro: run.max_fee_micro, decision });
        }
        Ok(tried)
    }

    /// With what the request says.
    async fn read(
        &self,
        node: &impl Runs,
        run: &RunView,
        mut standing: Circumstances,
    ) -> Result<Circumstances, ChainError> {
        let bytes_max = usize::try_from(self.policy.prompt_bytes_max).unwrap_or(usize::MAX);
        let blob = match &run.prompt_blob_id {
            None => None,
            Some(id) => match node.blob_text(id, bytes_max).await? {
                Some(text) => Some(text),
                None => {
                    standing.unreadable = Some(format!("the prompt's blob {id} cannot be read"));
                    return Ok(standing);
                }
            },
        };
        let blob_bytes = blob.as_ref().map_or(0, String::len);
        let blob_bytes = u64::try_from(blob_bytes).unwrap_or(u64::MAX);
        standing.prompt_bytes = standing.prompt_bytes.saturating_add(blob_bytes);
        let courses = Understanding::new(self.toolbox.clone(), self.model.clone());
        match courses.begin(run, blob.as_deref(), &[]) {
            Err(why) => standing.unreadable = Some(why),
            Ok(session) => {
                standing.asked =
                    Some(AskedWork::of(&session.ask(), tokens_about(standing.prompt_bytes)));
                let grant = session.grant();
                standing.tools_offered = self.offered(&grant);
                standing.tools_missing = self.missing(&grant);
            }
        }
        Ok(standing)
    }

    /// The tools that a grant gives: of a server that it names by its address, those that the
    /// configuration lists.
    fn offered(&self, grant: &Grant) -> Vec<String> {
        let mut names: Vec<_> =
            self.toolbox.specs(grant).into_iter().map(|spec| spec.name).collect();
        let is_named = |server: &&ServerConfig| {
            server.url.as_ref().is_some_and(|url| grant.servers.contains(url))
        };
        for server in self.servers.iter().filter(is_named) {
            let listed = server.tools.iter().flatten();
            let listed = listed.filter(|it| !grant.is_reproducible || server.pure.contains(*it));
            names.extend(listed.map(|tool| format!("{}__{tool}", server.name)));
        }
        names
    }

    fn missing(&self, grant: &Grant) -> Vec<String> {
        let missing = self.toolbox.missing(grant);
        let of_server = |name: &String| {
            let owner = name.split_once("__").map_or(name.as_str(), |(owner, _)| owner);
            let is_it =
                |server: &ServerConfig| server.name == owner || server.url.as_ref() == Some(name);
            self.servers.iter().any(is_it)
        };
        let is_agent = |name: &String| self.has_agents && name.starts_with("agent:");
        missing.into_iter().filter(|name| !of_server(name) && !is_agent(name)).collect()
    }
}

/// Adds what the policy needs to know of a run that asks for a bond: the miner's own bond and the
/// requester's refusals. Without a wallet nothing is known of the miner's bond, so no run is declined for
/// it.
async fn staked(
    node: &impl Ledger,
    wallet: Option<&Address>,
    run: &RunView,
    mut standing: Circumstances,
) -> Result<Circumstances, ChainError> {
    if let Some(wallet) = wallet.filter(|_| run.claim_bond_micro() > 0) {
        let stake = node.stake(wallet).await?.unwrap_or_default();
        let (bonded_micro, free_micro) = (stake.bonded_micro, stake.free_micro());
        standing.bonded = Some(Bonded { bonded_micro, free_micro });
    }
    if run.refuse_ms() > 0 {
        standing.refusals = Refusals::of(node.stake(&run.submitter).await?);
    }
    Ok(standing)
}

/// What the configuration says about the model.
fn manifest(model: &ModelConfig) -> Manifest {
    match model {
        ModelConfig::Server(config) => Manifest {
            name: config.name.clone().unwrap_or_else(|| config.model.clone()),
            model: config.model.clone(),
            deterministic: false,
            context_tokens_max: config.context_tokens_max,
            constrains: false,
        },
        ModelConfig::Embedded(config) => Manifest {
            name: "embedded".to_owned(),
            model: config.model_name(),
            deterministic: true,
            context_tokens_max: u32::try_from(config.context_tokens_max.get()).unwrap_or(u32::MAX),
            constrains: true,
        },
    }
}
