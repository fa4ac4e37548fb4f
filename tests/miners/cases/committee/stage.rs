//! The chain, its agents, and the ten miners with their accounts.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use infer::SMOLLM2_135M_MANIFEST;
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::metadata::{method, of_model};
use testkit::miners::{Miner, MinerHome, explain_all, wait_for_offers};
use testkit::node::{DevOptions, Node, program};
use testkit::parallel;
use testkit::process;
use testkit::script::{Model, Question, Reply};
use testkit::senders::Senders;
use testkit::workload;
use types::tx::AgentRegister;
use types::{Address, Body, Hash, ids};

use super::question::{
    COMPLETION_PER_M, FUEL_PER_G, MODEL_WINDOW, PER_CALL, PRICES, PROGRAM_WINDOW, PROMPT_PER_M,
};

/// Who has which account. Accounts 1 to 8 are processes.
pub(super) const OWNER: usize = 0;
pub(super) const HONEST: std::ops::RangeInclusive<usize> = 1..=6;
pub(super) const WRONG: usize = 7;
pub(super) const KILLED: usize = 8;
pub(super) const COPIER: usize = 9;
pub(super) const ABSENT: usize = 10;
pub(super) const REQUESTER: usize = 11;
pub(super) const ACCOUNTS: usize = 12;
/// What `ombra dev` gives to each account.
pub(super) const FUNDS: u64 = 1_000_000_000;
/// What the copier and the absent put at stake: as much as a miner does unless told otherwise.
const BOND: u64 = 20_000_000;
/// What the wrong miner has at stake: enough to be drawn for most calls, so that it is found out
/// soon.
const WRONG_BOND: u64 = 100_000_000;
/// The shortest time to reveal that a chain may have: the copier has each call wait for it.
const PARAMS: [&str; 2] = ["--param", "revealMs=5000"];
/// The agent that is a program, as the repository has it.
const PROGRAM_AGENT: &str = include_str!("../../../../examples/agents/keywords/agent.json");
const PROGRAM: &[u8] = include_bytes!("../../../../examples/agents/built/keywords.wasm");
const BLOB: &str = "example-keywords-1";

/// The file of the model; the inner error says why it cannot be had.
pub(super) fn model_file() -> anyhow::Result<Result<PathBuf, String>> {
    let mut command = program();
    let ran = process::output(command.args(["model", "fetch"]))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        let first = said.lines().next().unwrap_or_default();
        return Ok(Err(format!("its file cannot be had: {first}")));
    }
    let told = String::from_utf8(ran.stdout)?;
    Ok(Ok(PathBuf::from(told.lines().last().context("no path of the model")?)))
}

/// The chain and everybody on it.
pub(super) struct Stage {
    node: Node,
    pub(super) chain_id: String,
    /// The model's file, if it can be had.
    pub(super) model: Option<PathBuf>,
    pub(super) model_agent: Hash,
    pub(super) program_agent: Hash,
    homes: Vec<MinerHome>,
    /// What miners without a model inside the process take for one; nobody asks it.
    _server: Model,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// A chain with both agents and nobody who serves them.
    pub(super) fn open(model: Option<PathBuf>) -> anyhow::Result<Self> {
        let more = ["--v8", "0"].iter().chain(&PARAMS).map(ToString::to_string).collect();
        let options = DevOptions { accounts: ACCOUNTS, more, ..DevOptions::from_environment() };
        let node = Node::start(options)?;
        let info = node.call("ombra_chainInfo", &json!([]))?;
        let chain_id = info["chainId"].as_str().context("a chain without a name")?.to_owned();
        let folder = tempfile::tempdir()?;
        let server = Model::start(|_: &Question| Reply::said("nobody asks"))?;
        let home = |account| {
            let settings = settings(account, model.as_ref(), &server);
            MinerHome::new(folder.path(), account, node.rpc, &settings)
        };
        let homes = (*HONEST.start()..=KILLED).map(home).collect::<anyhow::Result<_>>()?;
        let (owner, zero) = (key(OWNER)?, Hash::ZERO);
        let mut stage = Self {
            node,
            chain_id,
            model,
            model_agent: zero,
            program_agent: zero,
            homes,
            _server: server,
            _folder: folder,
        };
        stage.publish(owner)?;
        Ok(stage)
    }

    fn publish(&mut self, mut owner: Actor) -> anyhow::Result<()> {
        let mut senders = Senders::open(self.rpc())?;
        let blob = fixtures::blob(BLOB, PROGRAM);
        senders.include(&blob.iter().map(|body| owner.sign(body)).collect::<Vec<_>>())?;
        let mut texts = Vec::new();
        let mut register = |metadata: &str| {
            let name = serde_json::from_str::<Value>(metadata)?["name"].take();
            let name = name.as_str().context("an agent without a name")?;
            let agent_id = ids::compute_agent_id(&owner.address(), name);
            let body = AgentRegister { agent_id, metadata: metadata.to_owned() };
            texts.push(owner.sign_on(&self.chain_id, &Body::AgentRegister(body)));
            Ok::<_, anyhow::Error>(agent_id)
        };
        self.program_agent = register(PROGRAM_AGENT)?;
        self.model_agent = register(&model_agent().to_string())?;
        senders.include(&texts)
    }

    /// Starts the processes, has the copier and the absent offer, and waits until the offers of all
    /// ten are there.
    pub(super) fn start(&self) -> anyhow::Result<Vec<Miner>> {
        let miners = parallel::at_once(&self.homes, |_, home| home.start())?;
        let mut senders = Senders::open(self.rpc())?;
        for account in [COPIER, ABSENT] {
            let mut miner = key(account)?;
            let mut texts = vec![miner.sign(&fixtures::bond(BOND))];
            for (executor, capacity) in self.executors() {
                let offer = fixtures::offer(executor, u64::try_from(capacity)?, PRICES).into();
                texts.push(miner.sign_on(&self.chain_id, &offer));
            }
            senders.include(&texts)?;
        }
        for (executor, _) in self.executors() {
            wait_for_offers(self.rpc(), &executor, ABSENT)?;
        }
        Ok(miners)
    }

    /// The executors that everybody offers, and at how many calls at once.
    fn executors(&self) -> Vec<(String, usize)> {
        executors(self.model.is_some())
    }

    pub(super) const fn rpc(&self) -> SocketAddr {
        self.node.rpc
    }

    /// The home of a miner that is a process.
    pub(super) fn home(&self, account: usize) -> anyhow::Result<&MinerHome> {
        let home = self.homes.iter().find(|home| home.account() == account);
        home.with_context(|| format!("account {account} is no process"))
    }

    /// A fault, with what the miners said at last.
    pub(super) fn explain(&self, fault: &anyhow::Error) -> anyhow::Error {
        explain_all(&self.homes, anyhow!("{fault:#}"))
    }
}

/// An account that has sent nothing yet.
pub(super) fn key(account: usize) -> anyhow::Result<Actor> {
    Ok(Actor::new(workload::key(account)?))
}

pub(super) fn address(account: usize) -> anyhow::Result<Address> {
    Ok(key(account)?.address())
}

/// The executor of the agent that asks a model.
pub(super) fn model_executor() -> String {
    format!("model-1:{SMOLLM2_135M_MANIFEST}")
}

/// As many calls are under way at most as everybody takes, so that no seat stays empty.
fn executors(has_model: bool) -> Vec<(String, usize)> {
    let model = has_model.then(|| (model_executor(), MODEL_WINDOW));
    std::iter::once(("wasm-1".to_owned(), PROGRAM_WINDOW)).chain(model).collect()
}

/// The settings of a process: it serves agents and claims no runs.
fn settings(account: usize, model: Option<&PathBuf>, server: &Model) -> String {
    let mut settings = match model {
        Some(file) => format!("[embedded]\nfile = {file:?}\nthreads = 1\n"),
        None => server.settings(""),
    };
    settings += "[engine]\npoll_ms = 500\npause_ms = 50\n[policy]\nclaiming = false\n";
    if account == WRONG && model.is_some() {
        settings += &format!("[market]\nbond_micro = {WRONG_BOND}\n");
    }
    for (executor, capacity) in executors(model.is_some()) {
        settings += &format!(
            "[[market.offers]]\nexecutor = \"{executor}\"\ncapacity = {capacity}\n\
             per_call_micro = {PER_CALL}\nprompt_per_m_micro = {PROMPT_PER_M}\n\
             completion_per_m_micro = {COMPLETION_PER_M}\nfuel_per_g_micro = {FUEL_PER_G}\n"
        );
    }
    settings
}

/// An agent that asks the model for one word.
fn model_agent() -> Value {
    let mut is_positive = method("isPositive", &[("review", "string")], &[("positive", "bool")]);
    is_positive["description"] = json!("Whether a review is positive.");
    let mut agent = of_model("sentiment", SMOLLM2_135M_MANIFEST, &[is_positive]);
    agent["description"] = json!("Says whether a review is positive.");
    agent["executor"]["basePrompt"] = json!("You judge reviews of books.");
    agent["royalty"] = json!("100");
    agent
}
