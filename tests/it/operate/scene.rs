//! A node, a model that follows a rule, and a miner on development account 1.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use anyhow::Context as _;
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::model::ModelServer;
use testkit::node::{DevOptions, Node, program, wait_for};
use testkit::process::{Process, ended, lines_to};
use types::Body;
use wallet::accounts::development_account;

/// The address of development account 1.
pub(super) const MINER: &str = "69779141b27f1fb5062164ab88e27a4d00e34862";

pub(super) struct Scene {
    pub(super) node: Node,
    /// Where the miner finds the node.
    pub(super) rpc: SocketAddr,
    pub(super) folder: tempfile::TempDir,
    model: ModelServer,
    requester: Actor,
}

/// A miner that runs.
pub(super) struct Miner {
    process: Process,
    printed: mpsc::Receiver<String>,
    /// Where metrics and health are, if they are served.
    pub(super) metrics: Option<SocketAddr>,
}

impl Miner {
    /// The process id.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Reads what it prints up to a line that begins so.
    pub(super) fn prints(&mut self, beginning: &str) -> anyhow::Result<()> {
        let lines = lines_to(&self.printed, beginning);
        let lines = lines.with_context(|| format!("the miner did not print {beginning:?}"))?;
        let url = lines.iter().find_map(|line| line.strip_prefix("metrics  http://"));
        if let Some(url) = url {
            self.metrics = Some(url.trim_end_matches("/metrics").parse()?);
        }
        Ok(())
    }

    /// Stops it in order.
    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.process.stop()
    }
}

impl Scene {
    pub(super) fn new() -> anyhow::Result<Self> {
        let node = Node::start(DevOptions::from_environment())?;
        let rpc = node.rpc;
        let folder = tempfile::tempdir()?;
        let model = ModelServer::start("math_eval", &json!({ "expression": "17*23" }))?;
        let requester = Actor::new(development_account(0)?);
        let scene = Self { node, rpc, folder, model, requester };
        scene.configure("")?;
        Ok(scene)
    }

    /// Writes the miner's configuration: the model, and more settings of [policy] and other tables.
    pub(super) fn configure(&self, more: &str) -> anyhow::Result<()> {
        let text = format!("{}{more}\n[engine]\npoll_ms = 100\n", self.model.settings());
        // In one step, as an editor should.
        std::fs::write(self.path("new.toml"), text)?;
        std::fs::rename(self.path("new.toml"), self.config())?;
        Ok(())
    }

    /// Names a model's server that is not there.
    pub(super) fn without_model(&self) -> anyhow::Result<()> {
        let text = "[backend]\nurl = \"http://127.0.0.1:1\"\nmodel = \"rule\"\n";
        Ok(std::fs::write(self.config(), text)?)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn config(&self) -> PathBuf {
        self.path("miner.toml")
    }

    /// The folder of this wallet's miner.
    pub(super) fn home(&self) -> PathBuf {
        self.path("miners").join(MINER)
    }

    pub(super) fn log(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.path("miner.log"))?)
    }

    fn url(&self) -> String {
        format!("http://{}", self.rpc)
    }

    /// A command of the miner with its place.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.arg("miner").args(arguments).stdin(Stdio::null());
        command.args(["--rpc", &self.url(), "--data-dir"]).arg(self.path("miners"));
        command
    }

    /// Starts the miner and waits until it works.
    pub(super) fn mine(&self) -> anyhow::Result<Miner> {
        let mut miner = self.begin(&[])?;
        miner.prints("open").with_context(|| self.log().unwrap_or_default())?;
        Ok(miner)
    }

    /// Starts the miner with variables of its environment, and waits until it is measured.
    pub(super) fn begin(&self, variables: &[(&str, &str)]) -> anyhow::Result<Miner> {
        let log =
            std::fs::File::options().create(true).append(true).open(self.path("miner.log"))?;
        let config = self.config().display().to_string();
        let mut command =
            self.command(&["--dev", "1", "--metrics", "127.0.0.1:0", "--config", &config]);
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(log);
        let mut process = Process::start("the miner", &mut command)?;
        let printed = process.lines()?;
        let mut miner = Miner { process, printed, metrics: None };
        miner.prints("metrics").with_context(|| self.log().unwrap_or_default())?;
        Ok(miner)
    }

    /// What a command about the miner prints. It needs no wallet: the folder has one miner.
    pub(super) fn tell(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = self.command(arguments);
        let told = ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)?;
        anyhow::ensure!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        Ok(String::from_utf8(told.stdout)?)
    }

    /// What `status --json` says.
    pub(super) fn status(&self) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.tell(&["status", "--json"])?)?)
    }

    /// Waits until the status is so.
    pub(super) fn until(
        &self,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let mut last = Value::Null;
        let waited = wait_for(what, || {
            last = self.status()?;
            Ok(holds(&last).then(|| last.clone()))
        });
        let log = self.log()?;
        waited.with_context(|| format!("the status was {last:#}; the log:\n{log}"))
    }

    /// How a command of the miner that cannot succeed ends: the exit code and what it says.
    pub(super) fn refused(&self, arguments: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
        let file = std::fs::File::create(self.path("refused"))?;
        let mut command = self.command(arguments);
        let status = ended(command.stdout(Stdio::null()).stderr(file).spawn()?)?.status;
        anyhow::ensure!(!status.success(), "{arguments:?} succeeded");
        Ok((status.code(), std::fs::read_to_string(self.path("refused"))?))
    }

    /// Asks for a run with tools; answers its id. Nobody waits for it.
    pub(super) fn request(
        &mut self,
        prompt: &str,
        max_fee: u64,
        tool: &str,
    ) -> anyhow::Result<String> {
        let mut request = self.requester.request(prompt, max_fee, 10);
        request.tools_whitelist = vec![tool.to_owned()];
        let id = request.agent_run_id.to_string();
        let text = self.requester.sign(&Body::AgentRequest(request));
        self.node.call("ombra_sendTransaction", &serde_json::from_str(&format!("[{text}]"))?)?;
        wait_for("the run to be on the chain", || {
            Ok(self.node.call("ombra_getAgentRun", &json!([id])).ok())
        })?;
        Ok(id)
    }

    /// Waits until a run has ended; answers its record.
    pub(super) fn settled(&self, run: &str) -> anyhow::Result<Value> {
        wait_for("the run to be settled", || {
            let record = self.node.call("ombra_getAgentRun", &json!([run]))?;
            Ok((!record["minerReward"].is_null()).then_some(record))
        })
        .with_context(|| self.log().unwrap_or_default())
    }

    /// The micro-OMBRA of an account.
    pub(super) fn balance(&self, address: &str) -> anyhow::Result<u64> {
        let account = self.node.call("ombra_getAccount", &json!([address]))?;
        Ok(account["balance"].as_str().context("a balance")?.parse()?)
    }
}
