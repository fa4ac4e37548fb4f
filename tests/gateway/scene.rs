//! A chain, a miner that follows a script, and a gateway between them and the clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, ensure};
use serde_json::{Value, json};
use testkit::breakpoint::Marks;
use testkit::chat::Client;
use testkit::gateway::{Gateway, Home};
use testkit::http::Connection;
use testkit::net::free_ports;
use testkit::node::{DevOptions, Node, wait_for};
use testkit::python;
use testkit::wire::Wire;

use crate::worker::Worker;

/// What most cases have: no bonds, and little patience with miners that do not come.
pub(crate) const SETTINGS: &str = "claim_bond_micro = 0\nclaim_wait_ms = 1500\n";

/// What a chain is made with on which agents are called.
pub(crate) const MARKET: [&str; 4] = ["--v7", "0", "--v8", "0"];

/// What a chain is made with on which a claim lapses soon, for good.
pub(crate) const SHORT_CLAIMS: [&str; 10] = [
    "--v7",
    "0",
    "--param",
    "claimTtlMs=1500",
    "--param",
    "maxReopens=0",
    "--param",
    "precisionMs=50",
    "--param",
    "messageDelayMs=50",
];

/// How the gateway finds its node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// Through a wire that can hold calls up, with a connection for each of them.
    Wire,
    /// As it does outside of tests.
    Straight,
}

/// Everything that a case needs.
pub(crate) struct Scene {
    pub(crate) home: Home,
    pub(crate) worker: Worker,
    /// Between the gateway and its node.
    pub(crate) wire: Wire,
    pub(crate) gateway: Option<Gateway>,
    pub(crate) client: Client,
    pub(crate) node: Node,
    _folder: tempfile::TempDir,
}

/// A program that reaches this machine and goes through no proxy.
pub(crate) fn at_home(command: &mut Command) -> &mut Command {
    for proxy in
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
    {
        command.env_remove(proxy);
    }
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("NO_PROXY", "127.0.0.1").stdin(Stdio::null())
}

impl Scene {
    /// A scene of a chain on which a claim lapses soon, for good, with a key that has these limits.
    pub(crate) fn of_short_claims(limits: &[&str]) -> anyhow::Result<Self> {
        Self::of_chain(SETTINGS, limits, &SHORT_CLAIMS)
    }

    /// A scene with a key that has these limits.
    pub(crate) fn with_key(limits: &[&str]) -> anyhow::Result<Self> {
        Self::new(SETTINGS, limits)
    }

    /// The same with other settings.
    pub(crate) fn new(settings: &str, limits: &[&str]) -> anyhow::Result<Self> {
        // Fees for places in blocks, and bonds.
        Self::of_chain(settings, limits, &["--v7", "0"])
    }

    /// The same on a chain that is made with these options.
    pub(crate) fn of_chain(
        settings: &str,
        limits: &[&str],
        chain: &[&str],
    ) -> anyhow::Result<Self> {
        Self::joined(settings, limits, (chain, Way::Wire))
    }

    /// The same where the gateway may have found another way to its node.
    pub(crate) fn joined(
        settings: &str,
        limits: &[&str],
        (chain, way): (&[&str], Way),
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let chain = chain.iter().map(ToString::to_string).collect();
        // Gateway, miner and suite are one client for the node: they have one address.
        let settings_of_node = vec![("OMBRA__RPC__LIMITS__CONNECTIONS_MAX", "4096".to_owned())];
        let options = DevOptions { accounts: 9, chain, ..DevOptions::from_environment() };
        let node = Node::start(DevOptions { settings: settings_of_node, ..options })?;
        let wire = Wire::to(node.rpc, Arc::new(Marks::default()))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_ports(1)?));
        let rpc = match way {
            Way::Wire => wire.address,
            Way::Straight => node.rpc,
        };
        let home = Home::new(folder.path(), (rpc, address), settings)?;
        let key = home.new_key("test", limits)?;
        let gateway = Some(home.start()?);
        let worker = Worker::start(node.rpc)?;
        let client = Client { address, key };
        let scene = Self { home, worker, wire, gateway, client, node, _folder: folder };
        scene.is_open()?;
        Ok(scene)
    }

    /// Waits until the gateway takes requests in.
    pub(crate) fn is_open(&self) -> anyhow::Result<()> {
        self.client.is_served()
    }

    /// `kill -9`, and a new process on the same store.
    pub(crate) fn kill_and_restart(&mut self) -> anyhow::Result<()> {
        self.gateway.take().context("a gateway that runs")?.kill()?;
        self.wire.mend();
        self.gateway = Some(self.home.start()?);
        self.is_open()
    }

    /// Waits until no request is open, and compares the books.
    pub(crate) fn check(&self) -> anyhow::Result<Value> {
        self.wire.mend();
        let told = wait_for("all requests to end", || {
            let told = self.home.told(&["check"])?;
            Ok((told["open"] == 0).then_some(told))
        })?;
        ensure!(told["escrowedMicro"] == 0, "an escrow is forgotten: {told}");
        Ok(told)
    }

    /// How many runs there are on the chain.
    pub(crate) fn runs(&self) -> anyhow::Result<usize> {
        self.listed(&json!({}))
    }

    /// How many of them have this status.
    pub(crate) fn runs_that_are(&self, status: &str) -> anyhow::Result<usize> {
        self.listed(&json!({ "status": status }))
    }

    fn listed(&self, filter: &Value) -> anyhow::Result<usize> {
        let mut connection = Connection::open(self.node.rpc)?;
        let listed = connection.pages("ombra_listAgentRuns", |page| json!([filter, page]))?;
        Ok(listed.len())
    }

    /// What the key has: `GET /v1/key`.
    pub(crate) fn key(&self) -> anyhow::Result<Value> {
        self.client.get("/v1/key", &[])?.json()
    }

    /// Runs a script with the gateway's address and a key, and gives what it printed.
    pub(crate) fn python(&self, python: &Path, script: &str) -> anyhow::Result<String> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/gateway/python");
        let mut command = Command::new(python);
        command.arg(format!("{folder}/{script}"));
        command.env("OPENAI_BASE_URL", format!("http://{}/v1", self.client.address));
        command.env("OPENAI_API_KEY", &self.client.key);
        python::run(at_home(&mut command))
    }

    /// A fault, with the last lines of the gateway's log.
    pub(crate) fn explain(&self, fault: &anyhow::Error) -> anyhow::Error {
        anyhow!("{fault:#}\nthe gateway said at last:\n{}", self.home.logged())
    }

    /// Plays a case, which answers what it has shown, and checks the books after it.
    pub(crate) fn play(
        mut self,
        case: impl FnOnce(&mut Self) -> anyhow::Result<String>,
    ) -> anyhow::Result<String> {
        let played = case(&mut self).and_then(|shown| Ok((shown, self.check()?)));
        let (shown, told) = played.map_err(|fault| self.explain(&fault))?;
        let (requests, spent) = (&told["requests"], &told["spentMicro"]);
        Ok(format!("{shown}; the books of {requests} requests and {spent} micro agree"))
    }
}
