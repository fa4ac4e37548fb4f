//! Miners as processes, and those who ask them.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail, ensure};
use serde_json::{Value, json};
use types::tx::Protection;
use types::{Address, Body, Hash, Keypair};

use crate::actor::Actor;
use crate::http::{self, Connection};
use crate::node::{program, wait_for, wait_until};
use crate::process::{Process, last_lines, lines_to, output};
use crate::workload::key;

/// Lines of a log that explain a fault.
const LOGGED_LINES: usize = 40;

/// The folder of a miner of one development account, and its settings.
#[derive(Clone, Debug)]
pub struct MinerHome {
    account: usize,
    folder: PathBuf,
    rpc: SocketAddr,
    key: Keypair,
}

impl MinerHome {
    /// A miner below `folder` with these settings, whose node is at `rpc`.
    pub fn new(
        folder: &Path,
        account: usize,
        rpc: SocketAddr,
        settings: &str,
    ) -> anyhow::Result<Self> {
        let folder = folder.join(format!("miner-{account}"));
        std::fs::create_dir_all(&folder)?;
        let home = Self { account, folder, rpc, key: key(account)? };
        home.configure(settings)?;
        Ok(home)
    }

    /// Replaces the settings.
    pub fn configure(&self, settings: &str) -> anyhow::Result<()> {
        Ok(std::fs::write(self.folder.join("miner.toml"), settings)?)
    }

    /// The wallet's address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.key.address()
    }

    /// The wallet's number.
    #[must_use]
    pub const fn account(&self) -> usize {
        self.account
    }

    /// Where its node answers.
    #[must_use]
    pub const fn rpc(&self) -> SocketAddr {
        self.rpc
    }

    /// The folder of the wallet's journal and of its tools.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.join("data").join(self.address().to_string())
    }

    /// All that it logged, over all of its lives.
    pub fn logged(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.folder.join("log"))?)
    }

    /// A fault, with the last lines of the log.
    #[must_use]
    pub fn explain(&self, fault: &anyhow::Error) -> anyhow::Error {
        let logged = self.logged().unwrap_or_default();
        let last = last_lines(&logged, LOGGED_LINES);
        anyhow!("{fault:#}\nthe miner of account {} said at last:\n{last}", self.account)
    }

    /// Starts the miner and waits until it works.
    pub fn start(&self) -> anyhow::Result<Miner> {
        self.start_with(&[])
    }

    /// The same with more variables in its environment.
    pub fn start_with(&self, environment: &[(&str, &str)]) -> anyhow::Result<Miner> {
        let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut command = self.command(&[]);
        command.arg("--config").arg(self.folder.join("miner.toml"));
        command.envs(environment.iter().copied());
        command.args(["--log", "info,agent=debug,miner=debug"]).stdout(Stdio::piped()).stderr(log);
        let mut miner = Process::start("the miner", &mut command)?;
        let works = lines_to(&miner.lines()?, "open").is_some();
        ensure!(works, "the miner of account {} does not work:\n{}", self.account, self.logged()?);
        Ok(miner)
    }

    /// What `ombra miner ARGUMENTS` prints about this wallet.
    pub fn tell(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = output(&mut self.command(arguments))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "ombra miner {}: {said}", arguments.join(" "));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The same as JSON.
    pub fn told(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.tell(&[arguments, &["--json"]].concat())?)?)
    }

    /// Checks a receipt as everybody can, with `ombra miner verify`.
    pub fn verify(&self, receipt: &str) -> anyhow::Result<()> {
        let file = self.folder.join("receipt.json");
        std::fs::write(&file, receipt)?;
        let mut command = program();
        command.args(["miner", "verify"]).arg(file);
        command.args(["--rpc", &format!("http://{}", self.rpc)]);
        let output = output(&mut command)?;
        let said = String::from_utf8(output.stdout)?;
        ensure!(output.status.success(), "the receipt is not verified: {said}");
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.arg("miner").args(arguments).args(["--dev", &self.account.to_string()]);
        command.args(["--rpc", &format!("http://{}", self.rpc), "--data-dir"]);
        command.arg(self.folder.join("data"));
        command
    }
}

/// A miner that runs.
pub type Miner = Process;

/// What somebody wants.
#[derive(Clone, Debug)]
pub struct Wish {
    pub prompt: String,
    pub tools: Vec<String>,
    pub max_fee: u64,
    pub max_steps: u64,
    pub protection: Protection,
}

impl Wish {
    /// A question with the tools that may be used.
    #[must_use]
    pub fn new(prompt: impl Into<String>, tools: &[&str]) -> Self {
        let tools = tools.iter().map(ToString::to_string).collect();
        let protection = Protection::default();
        Self { prompt: prompt.into(), tools, max_fee: 10_000, max_steps: 10, protection }
    }
}

/// Somebody who asks, and the node that is asked.
#[derive(Debug)]
pub struct Requester {
    actor: Actor,
    node: SocketAddr,
}

impl Requester {
    /// Development account `account`, which has sent nothing yet.
    pub fn new(account: usize, node: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self { actor: Actor::new(key(account)?), node })
    }

    /// Development account `account`, whatever it has sent.
    pub fn again(account: usize, node: SocketAddr) -> anyhow::Result<Self> {
        let mut requester = Self::new(account, node)?;
        let address = requester.address().to_string();
        requester.actor.nonce = http::account_nonce(&mut Connection::open(node)?, &address)?;
        Ok(requester)
    }

    /// Who signs.
    #[must_use]
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The account's address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.actor.address()
    }

    /// Asks, and waits until the request is in a block.
    pub fn ask(&mut self, wish: &Wish) -> anyhow::Result<Hash> {
        let Wish { prompt, tools, max_fee, max_steps, protection } = wish;
        let mut request = self.actor.request(prompt, *max_fee, *max_steps);
        request.tools_whitelist.clone_from(tools);
        request.protection = protection.clone().into();
        let run = request.agent_run_id;
        self.send(&Body::AgentRequest(request))?;
        Ok(run)
    }

    /// Sends a transaction, and waits until it is in a block. While the node is away, the same bytes
    /// are sent again.
    pub fn send(&mut self, body: &Body) -> anyhow::Result<()> {
        let text = self.actor.sign(body);
        self.until_included(&text)
    }

    /// The same for a kind that names its chain.
    pub fn send_on(&mut self, chain_id: &str, body: &Body) -> anyhow::Result<()> {
        let text = self.actor.sign_on(chain_id, body);
        self.until_included(&text)
    }

    fn until_included(&self, text: &str) -> anyhow::Result<()> {
        wait_for("a transaction to be in a block", || match self.deliver(text) {
            Ok(status) => Ok((status == "included").then_some(())),
            Err(fault) if fault.downcast_ref::<std::io::Error>().is_some() => Ok(None),
            Err(fault) => Err(fault),
        })
    }

    fn deliver(&self, text: &str) -> anyhow::Result<String> {
        let mut connection = Connection::open(self.node)?;
        let sent = connection.send(text)?;
        let hash = sent["result"]["hash"].as_str();
        let hash = hash.with_context(|| format!("a transaction was refused: {sent}"))?;
        let told = connection.call("ombra_waitForTransaction", &json!([hash]))?;
        ensure!(told["status"] != "dropped", "a transaction was dropped: {told}");
        Ok(self::text(&told, "status").to_owned())
    }

    /// The run's record.
    pub fn record(&self, run: &Hash) -> anyhow::Result<Value> {
        Connection::open(self.node)?.call("ombra_getAgentRun", &json!([run]))
    }

    /// The run's record, once it is settled.
    pub fn settled(&self, run: &Hash) -> anyhow::Result<Value> {
        let mut connection = Connection::open(self.node)?;
        wait_for(&format!("run {run} to be settled"), || {
            let record = connection.call("ombra_getAgentRun", &json!([run]))?;
            Ok(record["finishedAt"].is_number().then_some(record))
        })
    }

    /// The run's steps.
    pub fn steps(&self, run: &Hash) -> anyhow::Result<Vec<Value>> {
        let page = json!([run, { "limit": 500 }]);
        let steps = Connection::open(self.node)?.call("ombra_getAgentSteps", &page)?;
        Ok(steps["items"].as_array().cloned().unwrap_or_default())
    }
}

/// The text in a member of a record; empty if there is none.
#[must_use]
pub fn text<'a>(record: &'a Value, member: &str) -> &'a str {
    record[member].as_str().unwrap_or_default()
}

/// The amount in a member of a record.
pub fn micro(record: &Value, member: &str) -> anyhow::Result<u64> {
    match record[member].as_str().map(str::parse) {
        Some(Ok(micro)) => Ok(micro),
        Some(Err(_)) | None => bail!("{member} is no amount in {record}"),
    }
}

/// A fault, with the last lines of the logs of all these miners.
#[must_use]
pub fn explain_all(miners: &[MinerHome], fault: anyhow::Error) -> anyhow::Error {
    miners.iter().fold(fault, |fault, miner| miner.explain(&fault))
}

/// Waits until so many miners offer to execute this.
pub fn wait_for_offers(node: SocketAddr, executor: &str, count: usize) -> anyhow::Result<()> {
    let mut connection = Connection::open(node)?;
    wait_until(&format!("{count} offers for {executor}"), || {
        let listed = connection.call("ombra_listOffers", &json!({ "executor": executor }))?;
        Ok(listed["items"].as_array().map_or(0, Vec::len) == count)
    })
}
