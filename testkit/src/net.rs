//! A chain of several nodes, each a process of its own on loopback.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{self, Connection};
use crate::node::{binary, wait_for, wait_for_endpoint, wait_until};
use crate::process::{self, Signal};

/// Ports that `ombra testnet --local` gives each node.
const PORTS_PER_NODE: u16 = 4;
/// Below the ports that the system hands out by itself.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

/// The homes of a testnet, and the processes that run. Dropping it kills them.
#[derive(Debug)]
pub struct Net {
    pub members: Vec<Member>,
    folder: TempDir,
}

/// What a testnet is made of.
#[derive(Clone, Debug)]
pub struct NetOptions {
    pub binary: PathBuf,
    pub validators: usize,
    pub followers: usize,
    /// Development accounts with money.
    pub accounts: usize,
    /// Parameters of genesis: `minBlockIntervalMs=50`.
    pub params: Vec<String>,
    /// From which block on the rules of v7 hold; none for a chain without them.
    pub v7: Option<u64>,
    /// From which block on there is the agent market; it brings v7 with it.
    pub v8: Option<u64>,
}

impl NetOptions {
    #[must_use]
    pub fn new(validators: usize, followers: usize) -> Self {
        Self {
            binary: binary(),
            validators,
            followers,
            accounts: 10,
            params: Vec::new(),
            v7: None,
            v8: None,
        }
    }
}

/// A node of the testnet.
#[derive(Debug)]
pub struct Member {
    pub name: String,
    pub rpc: SocketAddr,
    /// What its command begins with: a program that enters a network namespace, for example.
    pub launcher: Vec<String>,
    /// Variables of its process.
    pub environment: Vec<(String, String)>,
    home: PathBuf,
    binary: PathBuf,
    process: Option<Child>,
}

/// The two networks of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// Votes and blocks.
    Consensus,
    /// Transactions.
    Gossip,
}

impl Network {
    /// Its port, counted from the node's first.
    const fn port(self) -> u16 {
        match self {
            Self::Consensus => 2,
            Self::Gossip => 3,
        }
    }
}

impl Net {
    /// Writes the homes; nothing runs yet.
    pub fn make(validators: usize, followers: usize) -> anyhow::Result<Self> {
        Self::make_as(&NetOptions::new(validators, followers))
    }

    /// Writes the homes; nothing runs yet.
    pub fn make_as(options: &NetOptions) -> anyhow::Result<Self> {
        let NetOptions { binary, validators, followers, accounts, params, v7, v8 } = options;
        let folder = tempfile::tempdir()?;
        let base = free_ports(u16::try_from(validators + followers)? * PORTS_PER_NODE)?;
        let mut command = Command::new(binary);
        command.arg("testnet").args(["--local", "--json"]);
        command.args(["--validators", &validators.to_string()]);
        command.args(["--followers", &followers.to_string()]);
        command.args(["--accounts", &accounts.to_string()]);
        command.args(params.iter().flat_map(|param| ["--param", param]));
        command.args(v7.iter().flat_map(|height| ["--v7".to_owned(), height.to_string()]));
        command.args(v8.iter().flat_map(|height| ["--v8".to_owned(), height.to_string()]));
        command.args(["--base-port", &base.to_string()]).arg("--out").arg(folder.path());
        let made = command.stdin(Stdio::null()).output()?;
        if !made.status.success() {
            bail!("no testnet: {}", String::from_utf8_lossy(&made.stderr));
        }
        let made: Value = serde_json::from_slice(&made.stdout)?;
        let nodes = made.get("nodes").and_then(Value::as_array).context("no nodes")?;
        let text = |node: &Value, key: &str| -> anyhow::Result<String> {
            Ok(node.get(key).and_then(Value::as_str).context("a member is missing")?.to_owned())
        };
        let members = nodes.iter().map(|node| {
            let (name, home) = (text(node, "name")?, PathBuf::from(text(node, "home")?));
            let (rpc, binary) = (text(node, "rpc")?.parse()?, binary.clone());
            Ok(Member { home, binary, ..Member::elsewhere(name, rpc) })
        });
        Ok(Self { members: members.collect::<anyhow::Result<_>>()?, folder })
    }

    /// Writes the homes, starts all nodes, and waits until each is connected with each and keeps up.
    pub fn start(validators: usize, followers: usize) -> anyhow::Result<Self> {
        Self::start_as(&NetOptions::new(validators, followers))
    }

    /// Writes the homes, starts all nodes, and waits until each is connected with each and keeps up.
    pub fn start_as(options: &NetOptions) -> anyhow::Result<Self> {
        let mut net = Self::make_as(options)?;
        net.start_all()?;
        Ok(net)
    }

    /// Starts all nodes, and waits until each is connected with each and keeps up: a node that starts after
    /// others have made blocks first catches up, and takes no transactions meanwhile.
    pub fn start_all(&mut self) -> anyhow::Result<()> {
        self.members.iter_mut().try_for_each(Member::start)?;
        self.meet_all()?;
        self.members.iter().try_for_each(Member::keeps_up)
    }

    /// Waits until each running node is connected with each other one.
    pub fn meet_all(&self) -> anyhow::Result<()> {
        let count = self.running().count();
        self.running().try_for_each(|member| member.meets(count.saturating_sub(1)))
    }

    /// Runs the script of the testnet.
    pub fn script(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let script = self.folder.path().join("net");
        Ok(Command::new(script).args(arguments).stdin(Stdio::null()).output()?)
    }

    /// The members that run.
    pub fn running(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.process.is_some())
    }

    /// Waits until every running node has a block at `height`, and answers its hash if it is the
    /// same for all.
    pub fn same_block(&self, height: u64) -> anyhow::Result<String> {
        let mut seen: Option<String> = None;
        for member in self.running() {
            member.reaches(height)?;
            let hash = member.block_hash(height)?;
            match &seen {
                Some(seen) if *seen != hash => {
                    bail!("{} has {hash} at {height}, others have {seen}", member.name)
                }
                Some(_) => {}
                None => seen = Some(hash),
            }
        }
        seen.context("no node runs")
    }
}

impl Member {
    /// A node that something else runs, to be called; it has no home here.
    #[must_use]
    pub fn elsewhere(name: String, rpc: SocketAddr) -> Self {
        let (launcher, environment) = (Vec::new(), Vec::new());
        let (home, binary) = (PathBuf::new(), PathBuf::new());
        Self { name, rpc, launcher, environment, home, binary, process: None }
    }

    /// The node of a home, which it may have yet to make. It names its address when it is started.
    pub(crate) fn at(home: PathBuf) -> Self {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let member = Self::elsewhere(home.display().to_string(), nowhere);
        Self { home, binary: binary(), ..member }
    }

    /// Has another program in its place from the next start on.
    pub fn replace_program(&mut self, binary: PathBuf) {
        self.binary = binary;
    }

    /// Starts the process, which must not run, and waits until it answers.
    pub fn start(&mut self) -> anyhow::Result<()> {
        self.start_with(&[])
    }

    /// The same with settings by their variables.
    pub fn start_with(&mut self, settings: &[(&str, String)]) -> anyhow::Result<()> {
        self.launch(settings)?;
        self.answers()
    }

    /// Starts the process, which must not run.
    pub fn launch(&mut self, settings: &[(&str, String)]) -> anyhow::Result<()> {
        if let Some(process) = &mut self.process {
            ensure!(process.try_wait()?.is_some(), "{} runs already", self.name);
        }
        let endpoints = self.home.join("endpoints.json");
        if endpoints.exists() {
            // Left behind by a killed process; the next one writes its own.
            std::fs::remove_file(&endpoints)?;
        }
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = self.command();
        command.arg("start").arg("--home").arg(&self.home).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.envs(settings.iter().map(|(name, value)| (name, value)));
        self.process = Some(command.stdout(Stdio::null()).stderr(log).spawn()?);
        Ok(())
    }

    /// Waits until the process answers.
    pub fn answers(&mut self) -> anyhow::Result<()> {
        let (name, process) = (&self.name, self.process.as_mut());
        let process = process.with_context(|| format!("{name} does not run"))?;
        let endpoints = self.home.join("endpoints.json");
        self.rpc = wait_for_endpoint(&endpoints, process).with_context(|| name.clone())?;
        Ok(())
    }

    /// Stops it in order.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        process::signal(process.id(), Signal::TERM)?;
        let status = process.wait()?;
        if !status.success() {
            bail!("{} ended with {status}", self.name);
        }
        Ok(())
    }

    /// `kill -9`.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Waits until the process, which ends by itself, has ended.
    pub fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let (name, process) = (&self.name, self.process.as_mut());
        let process = process.with_context(|| format!("{name} does not run"))?;
        let status = wait_for(&format!("the end of {name}"), || Ok(process.try_wait()?))?;
        self.process = None;
        Ok(status)
    }

    /// Whether the process, which ends by itself, has ended already.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        let process = self.process.as_mut();
        let process = process.with_context(|| format!("{} does not run", self.name))?;
        Ok(process.try_wait()?.is_some())
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = self.pid().with_context(|| format!("{} does not run", self.name))?;
        process::signal(pid, signal).with_context(|| self.name.clone())
    }

    /// The process id, if it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// The folder of its files.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Sets a setting in the file of a node that does not run, to a value of TOML.
    pub fn configure(&self, key: &str, value: &str) -> anyhow::Result<()> {
        let path = self.home.join("config.toml");
        let text = std::fs::read_to_string(&path)?;
        let begins = format!("{key} = ");
        // It may be there with its default, commented out.
        let line = text.lines().find(|line| line.trim_start_matches('#').starts_with(&begins));
        let line = line.with_context(|| format!("{} has no {key}", path.display()))?;
        Ok(std::fs::write(&path, text.replacen(line, &format!("{begins}{value}"), 1))?)
    }

    /// The value of one of its metrics.
    pub fn metric(&self, name: &str) -> anyhow::Result<u64> {
        // The second of its ports.
        let host = SocketAddr::new(self.rpc.ip(), self.rpc.port() + 1);
        let page = Connection::open(host)?.get("/metrics")?;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(line.with_context(|| format!("{} has no metric {name}", self.name))?.trim().parse()?)
    }

    /// What `/readyz` says, whether the node is ready or not.
    pub fn readiness(&self) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&Connection::open(self.rpc)?.get_any("/readyz")?)?)
    }

    /// Whether consensus runs and the node is, as far as it knows, at the height of the chain.
    pub fn is_level(&self) -> anyhow::Result<bool> {
        Ok(self.check("lag")?["ok"] == true)
    }

    /// Waits until it [is level](Self::is_level).
    pub fn keeps_up(&self) -> anyhow::Result<()> {
        wait_until(&format!("{} to keep up", self.name), || self.is_level())
    }

    /// The check of this name in `/readyz`: `{name, ok, detail}`.
    pub fn check(&self, name: &str) -> anyhow::Result<Value> {
        let answer = self.readiness()?;
        let mut checks = answer["checks"].as_array().into_iter().flatten();
        let check = checks.find(|check| check["name"] == name).cloned();
        check.with_context(|| format!("{} has no check {name}: {answer}", self.name))
    }

    /// The seed of the key that names it on the networks.
    pub fn node_key(&self) -> anyhow::Result<[u8; 32]> {
        self.seed("node.key")
    }

    fn seed(&self, file: &str) -> anyhow::Result<[u8; 32]> {
        let text = std::fs::read_to_string(self.home.join("keys").join(file))?;
        let seed = types::Hash::parse(text.trim_end()).ok().context("a key file holds a seed")?;
        Ok(*seed.as_bytes())
    }

    /// Its address on one of the networks.
    #[must_use]
    pub fn p2p_address(&self, network: Network) -> String {
        format!("/ip4/{}/tcp/{}", self.rpc.ip(), self.p2p_port(network))
    }

    /// Its port on one of the networks.
    #[must_use]
    pub fn p2p_port(&self, network: Network) -> u16 {
        self.rpc.port() + network.port()
    }

    /// The key that it votes with.
    pub fn validator_key(&self) -> anyhow::Result<types::Keypair> {
        Ok(types::Keypair::from_seed(&self.seed("validator.key")?))
    }

    /// The program, as this node starts it.
    fn command(&self) -> Command {
        match self.launcher.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        }
    }

    /// Runs `ombra db` on the stopped node and answers what it printed.
    pub fn db(&self, command: &str) -> anyhow::Result<String> {
        self.tell(&["db", command])
    }

    /// A figure of `/proc/PID/status` in KiB, such as `VmRSS`.
    pub fn memory_kb(&self, name: &str) -> anyhow::Result<u64> {
        let pid = self.pid().with_context(|| format!("{} does not run", self.name))?;
        process::status_kb(pid, &format!("{name}:"))
    }

    fn log(&self) -> PathBuf {
        self.home.join("node.log")
    }

    /// Where it tells its metrics, while it runs.
    pub fn metrics(&self) -> anyhow::Result<SocketAddr> {
        let endpoints = std::fs::read_to_string(self.home.join("endpoints.json"))?;
        let endpoints: Value = serde_json::from_str(&endpoints)?;
        let address = endpoints.get("metrics").and_then(Value::as_str);
        Ok(address.context("the node has no port for metrics")?.parse()?)
    }

    /// What a command of the program on its home prints, which must succeed.
    pub fn tell(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let Output { status, stdout, stderr } = self.ombra(arguments)?;
        let said = String::from_utf8_lossy(&stderr);
        ensure!(status.success(), "ombra {} of {}: {said}", arguments.join(" "), self.name);
        Ok(String::from_utf8(stdout)?)
    }

    /// Runs a command of the program on its home.
    pub fn ombra(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.binary);
        command.args(arguments).arg("--home").arg(&self.home).stdin(Stdio::null());
        Ok(command.output()?)
    }

    /// What it logged.
    pub fn logged(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.log())?)
    }

    /// Calls a method and answers its result.
    pub fn call(&self, method: &str, params: &Value) -> anyhow::Result<Value> {
        Connection::open(self.rpc)?.call(method, params).with_context(|| self.name.clone())
    }

    /// Sends a signed transaction and answers its hash.
    pub fn send(&self, text: &str) -> anyhow::Result<String> {
        let sent = Connection::open(self.rpc)?.send(text)?;
        let hash = sent.pointer("/result/hash").and_then(Value::as_str);
        Ok(hash.with_context(|| format!("{} refused: {sent}", self.name))?.to_owned())
    }

    /// Waits until the transaction is in a block, and answers the block's height and hash.
    pub fn includes(&self, hash: &str) -> anyhow::Result<(u64, String)> {
        wait_for(&format!("{hash} on {}", self.name), || {
            // A node that has not heard of it yet does not know it.
            let Ok(tx) = self.call("ombra_getTransaction", &json!([hash])) else { return Ok(None) };
            let height = tx.get("blockIndex").and_then(Value::as_u64);
            let block = tx.get("blockHash").and_then(Value::as_str).map(str::to_owned);
            Ok(height.zip(block))
        })
    }

    /// The height of its chain.
    pub fn height(&self) -> anyhow::Result<u64> {
        let info = self.call("ombra_chainInfo", &json!([]))?;
        info.get("height").and_then(Value::as_u64).context("chainInfo without height")
    }

    /// Waits until its chain is so high.
    pub fn reaches(&self, height: u64) -> anyhow::Result<()> {
        wait_until(&format!("height {height} on {}", self.name), || Ok(self.height()? >= height))
    }

    /// The hash of its block at `height`.
    pub fn block_hash(&self, height: u64) -> anyhow::Result<String> {
        let block = self.call("ombra_getBlock", &json!([height, false]))?;
        let hash = block.get("hash").and_then(Value::as_str);
        Ok(hash.context("a block without hash")?.to_owned())
    }

    /// Has it stay connected to another node for transactions, over the operator's socket.
    pub fn add_gossip_peer(&self, other: &Self) -> anyhow::Result<()> {
        let info = other.call("net_info", &json!([]))?;
        let addresses = info.get("listenAddresses").and_then(Value::as_array);
        let addresses = addresses.context("net_info has listen addresses")?;
        let address = addresses.last().and_then(Value::as_str).context("no address")?;
        let change = json!([{ "addGossip": address }]);
        let call = http::call_body("admin_changePeer", &change);
        let answer = http::post_to_socket(&self.home.join("admin.sock"), &call)?;
        let answer: Value = serde_json::from_str(&answer)?;
        answer.get("result").map(drop).with_context(|| format!("refused: {answer}"))
    }

    /// The peers that it lists.
    pub fn peers(&self) -> anyhow::Result<Vec<Value>> {
        let peers = self.call("net_peers", &json!([]))?;
        Ok(peers.as_array().context("net_peers is a list")?.clone())
    }

    /// Waits until it lists so many peers, all of them also on the network for transactions.
    pub fn meets(&self, count: usize) -> anyhow::Result<()> {
        wait_until(&format!("{count} peers of {}", self.name), || {
            let peers = self.peers()?;
            // Only that network knows heights.
            let all_known = peers.iter().all(|peer| peer.get("height").is_some());
            Ok(peers.len() == count && all_known)
        })
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // What the script started, if a test ends early.
        drop(self.script(&["stop"]));
        for member in &mut self.members {
            drop(member.kill());
        }
    }
}

/// A number in a line of the log, which may have colours.
#[must_use]
pub fn log_field(line: &str, name: &str) -> Option<u64> {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    let plain =
        parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest));
    let (_, rest) = plain.split_once(&format!(" {name}="))?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// So many free ports in a row. Where to begin depends on the process and on how many were asked for
/// before, so that tests that run at the same time do not meet.
pub fn free_ports(count: u16) -> anyhow::Result<u16> {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let room = u32::from(PORTS.end - PORTS.start - count);
    let before = ASKED.fetch_add(1, Ordering::Relaxed).wrapping_mul(211);
    let first = std::process::id().wrapping_mul(641).wrapping_add(before) % room;
    let first = u16::try_from(first)?;
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let candidates = (PORTS.start + first..PORTS.end - count).step_by(usize::from(count));
    for base in candidates.chain((PORTS.start..PORTS.end - count).step_by(usize::from(count))) {
        if (base..base + count).all(is_free) {
            return Ok(base);
        }
    }
    bail!("there are no {count} free ports in a row")
}
