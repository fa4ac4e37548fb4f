//! A node, a model that follows a rule, and a miner on development account 1.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use anyhow::Context as _;
use serde_json::{Value, json};
use testkit::http::Connection;
use testkit::miners::{Requester, Wish, micro};
use testkit::model::ModelServer;
use testkit::node::{DevOptions, Node, program, wait_for};
use testkit::process::{Process, lines_to, output};

use crate::support::printed;

/// The address of development account 1.
pub(super) const MINER: &str = "69779141b27f1fb5062164ab88e27a4d00e34862";

pub(super) struct Scene {
    pub(super) node: Node,
    /// Where the miner finds the node.
    pub(super) rpc: SocketAddr,
    pub(super) folder: tempfile::TempDir,
    model: ModelServer,
    requester: Requester,
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

    /// What it answers where its metrics are.
    pub(super) fn get(&self, path: &str) -> anyhow::Result<String> {
        Connection::open(self.metrics.context("metrics are served")?)?.get_any(path)
    }

    /// What `/readyz` says.
    pub(super) fn ready(&self) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.get("/readyz")?)?)
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
        let requester = Requester::new(0, rpc)?;
        let scene = Self { node, rpc, folder, model, requester };
        scene.configure("")?;
        Ok(scene)
    }

    /// Writes the miner's configuration: the model, and more settings of [policy] and other tables.
    pub(super) fn configure(&self, more: &str) -> anyhow::Result<()> {
        let model = self.model.settings();
        self.write_config(&format!("{model}{more}\n[engine]\npoll_ms = 100\n"))
    }

    /// Writes a configuration of the miner, in one step, as an editor should.
    pub(super) fn write_config(&self, text: &str) -> anyhow::Result<()> {
        std::fs::write(self.path("new.toml"), text)?;
        Ok(std::fs::rename(self.path("new.toml"), self.config())?)
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
        printed(output(&mut self.command(arguments))?)
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

    /// What a command of the miner that must end with this exit code says of it.
    pub(super) fn refused(&self, arguments: &[&str], code: i32) -> anyhow::Result<String> {
        let Output { status, stderr, .. } = output(&mut self.command(arguments))?;
        let said = String::from_utf8(stderr)?;
        anyhow::ensure!(status.code() == Some(code), "{arguments:?} ended with {status}: {said}");
        Ok(said)
    }

    /// The same of a miner that cannot start.
    pub(super) fn refused_to_mine(&self, code: i32) -> anyhow::Result<String> {
        let config = self.config().display().to_string();
        self.refused(&["--dev", "1", "--config", &config], code)
    }

    /// Asks for a run with tools; answers its id. Nobody waits for it.
    pub(super) fn request(
        &mut self,
        prompt: &str,
        max_fee: u64,
        tool: &str,
    ) -> anyhow::Result<String> {
        let wish = Wish { max_fee, ..Wish::new(prompt, &[tool]) };
        Ok(self.requester.ask(&wish)?.to_string())
    }

    /// Waits until a run has ended; answers its record.
    pub(super) fn settled(&self, run: &str) -> anyhow::Result<Value> {
        let record = self.requester.settled(&run.parse()?);
        record.with_context(|| self.log().unwrap_or_default())
    }

    /// The micro-OMBRA of an account.
    pub(super) fn balance(&self, address: &str) -> anyhow::Result<u64> {
        micro(&self.node.call("ombra_getAccount", &json!([address]))?, "balance")
    }
}
