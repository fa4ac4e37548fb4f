//! A chain of nodes to do something to, and the checks that hold after anything was done.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::net::{Member, Net, NetOptions};
use crate::node::wait_until;
use crate::process::{Process, lines_to};
use anyhow::{Context as _, ensure};
use serde_json::json;

use super::ledger::Ledger;
use super::switch::{Switch, address};
use crate::suite::say;

/// The most memory that a node of these tests may ever have had, in KiB.
const MEMORY_KB_MAX: u64 = 800 * 1024;
/// Blocks that may still be decided when a quorum has just been lost.
const LAST_BLOCKS_MAX: u64 = 2;
/// How long something is watched that must not happen.
const WHILE: Duration = Duration::from_secs(4);
/// So many transactions of a load are asked for at most at each node but the first.
const ASKED_MAX: usize = 20_000;
/// Ports of each node.
const PORTS_PER_NODE: usize = 4;

/// Blocks as fast as they come, and a heartbeat that a test can wait for.
pub const FAST: &[&str] = &["minBlockIntervalMs=100", "heartbeatMs=1000"];

/// A chain of nodes.
#[derive(Debug)]
pub struct Town {
    pub net: Net,
    switch: Option<Switch>,
    holders: Vec<Process>,
}

impl Town {
    /// Nodes on loopback that run and know each other.
    pub fn start(validators: usize, followers: usize) -> anyhow::Result<Self> {
        Self::make(validators, followers)?.started()
    }

    /// Starts its nodes, which then know each other.
    pub fn started(mut self) -> anyhow::Result<Self> {
        self.start_all()?;
        Ok(self)
    }

    /// Homes of nodes on loopback; nothing runs yet.
    pub fn make(validators: usize, followers: usize) -> anyhow::Result<Self> {
        Self::make_with(validators, followers, FAST)
    }

    /// The same with other parameters of the chain.
    pub fn make_with(validators: usize, followers: usize, params: &[&str]) -> anyhow::Result<Self> {
        Self::of(NetOptions::new(validators, followers), params)
    }

    /// Homes of nodes on loopback with anything that a testnet can be made of; nothing runs yet.
    pub fn of(options: NetOptions, params: &[&str]) -> anyhow::Result<Self> {
        let params = params.iter().map(ToString::to_string).collect();
        let net = Net::make_as(&NetOptions { params, ..options })?;
        Ok(Self { net, switch: None, holders: Vec::new() })
    }

    /// The same with the rules of v7 from the first block on.
    pub fn from_v7(validators: usize, followers: usize, params: &[&str]) -> anyhow::Result<Self> {
        let options = NetOptions::new(validators, followers);
        Self::of(NetOptions { v7: Some(0), ..options }, params)
    }

    /// One validator, which runs, with the rules of v7, fast blocks, and these parameters besides.
    pub fn one_from_v7(params: &[&str]) -> anyhow::Result<Self> {
        Self::from_v7(1, 0, &[FAST, params].concat())?.started()
    }

    /// Nodes, which run, with the agent market from the first block on and so many development accounts that
    /// have money; every answer can be appealed.
    pub fn from_v8(validators: usize, accounts: usize, params: &[&str]) -> anyhow::Result<Self> {
        let options = NetOptions { accounts, v8: Some(0), ..NetOptions::new(validators, 0) };
        Self::of(options, &[params, &["slashableModels=all"]].concat())?.started()
    }

    /// Nodes with an address each, in network namespaces behind a switch.
    pub fn on_wires(validators: usize, followers: usize) -> anyhow::Result<Self> {
        let mut town = Self::make(validators, followers)?;
        let count = town.net.members.len();
        town.holders = (0..count).map(|_| holder()).collect::<anyhow::Result<_>>()?;
        let pids: Vec<u32> = town.holders.iter().map(Process::pid).collect();
        town.switch = Some(Switch::new(&pids)?);
        let base = town.net.members.first().context("a node")?.rpc.port();
        for (at, (member, pid)) in town.net.members.iter_mut().zip(&pids).enumerate() {
            let enter = ["nsenter", "--net", "-t", &pid.to_string(), "--"];
            member.launcher = enter.map(str::to_owned).to_vec();
            member.rpc.set_ip(address(at).into());
            move_addresses(&member.home().join("config.toml"), base, count)?;
        }
        town.started()
    }

    /// Starts all nodes and waits until each knows each.
    pub fn start_all(&mut self) -> anyhow::Result<()> {
        self.net.start_all()
    }

    pub fn switch(&self) -> anyhow::Result<&Switch> {
        self.switch.as_ref().context("these nodes are not behind a switch")
    }

    pub fn node(&self, at: usize) -> anyhow::Result<&Member> {
        self.net.members.get(at).context("no such node")
    }

    pub fn node_mut(&mut self, at: usize) -> anyhow::Result<&mut Member> {
        self.net.members.get_mut(at).context("no such node")
    }

    pub fn kill(&mut self, at: usize) -> anyhow::Result<()> {
        self.node_mut(at)?.kill()
    }

    pub fn restart(&mut self, at: usize) -> anyhow::Result<()> {
        self.node_mut(at)?.start()
    }

    /// The greatest height of these nodes.
    pub fn height(&self, nodes: &[usize]) -> anyhow::Result<u64> {
        let heights = nodes.iter().map(|at| self.node(*at)?.height());
        heights.collect::<anyhow::Result<Vec<_>>>()?.into_iter().max().context("no nodes")
    }

    /// Waits until these nodes have so many blocks more than the highest of them has now; answers
    /// how long it took.
    pub fn goes_on(&self, nodes: &[usize], more: u64) -> anyhow::Result<Duration> {
        let (started, goal) = (Instant::now(), self.height(nodes)? + more);
        nodes.iter().try_for_each(|at| self.node(*at)?.reaches(goal))?;
        Ok(started.elapsed())
    }

    /// Watches for a while that no node makes a block. One that was under way may come first.
    pub fn stands_still(&self, nodes: &[usize]) -> anyhow::Result<()> {
        self.comes_to_rest(nodes, self.height(nodes)? + LAST_BLOCKS_MAX)
    }

    /// Waits until these nodes have had no new block for a while, and watches that they get none above a
    /// height.
    pub fn comes_to_rest(&self, nodes: &[usize], highest: u64) -> anyhow::Result<()> {
        let (mut height, mut since) = (self.height(nodes)?, Instant::now());
        while since.elapsed() < WHILE {
            let now = self.height(nodes)?;
            ensure!(now <= highest, "blocks go on coming: height {now}, {highest} at most");
            if now > height {
                (height, since) = (now, Instant::now());
            }
            // What must not happen is watched for a while.
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// No block that the first node has is this validator's.
    pub fn takes_nothing_of(&self, liar: usize) -> anyhow::Result<()> {
        let liar = self.node(liar)?.validator_key()?.address().to_string();
        let node = self.node(0)?;
        for height in 1..=node.height()? {
            let block = node.call("ombra_getBlock", &json!([height, false]))?;
            ensure!(block["proposer"] != liar.as_str(), "a block of the liar was decided: {block}");
        }
        Ok(())
    }

    /// Milliseconds between the timestamps of successive blocks from one height to another.
    pub fn intervals(&self, at: usize, first: u64, last: u64) -> anyhow::Result<Vec<u64>> {
        let node = self.node(at)?;
        let time = |height: u64| -> anyhow::Result<u64> {
            let block = node.call("ombra_getBlock", &json!([height, false]))?;
            block.get("timestamp").and_then(serde_json::Value::as_u64).context("no timestamp")
        };
        let times = (first..=last).map(time).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(times
            .windows(2)
            .filter_map(|it| Some(it.get(1)?.saturating_sub(*it.first()?)))
            .collect())
    }

    /// What holds after every fault: the running nodes have one chain with all that was confirmed,
    /// none has taken memory without bound, all stop in order, and every block, certificate, row
    /// and sum of money on their disks is right.
    pub fn check(mut self, ledger: &Ledger) -> anyhow::Result<()> {
        let nodes: Vec<usize> = (0..self.net.members.len())
            .filter(|at| self.net.members.get(*at).is_some_and(|node| node.pid().is_some()))
            .collect();
        let height = self.height(&nodes)?;
        self.net.same_block(height)?;
        let confirmed = ledger.confirmed();
        for (place, at) in nodes.iter().enumerate() {
            let node = self.node(*at)?;
            // The others have the same blocks; of a long load a part of it is asked for there.
            let step = if place == 0 { 1 } else { confirmed.len().div_ceil(ASKED_MAX).max(1) };
            for tx in confirmed.iter().step_by(step) {
                let (height, _) = node.includes(&tx.hash)?;
                ensure!(height == tx.height, "{} moved to another block on {}", tx.hash, node.name);
            }
        }
        let memory = self.memory()?;
        say(&format!(
            "   {} nodes have the same block {height}, {} confirmed transactions are there; peak memory {memory:?} MiB",
            nodes.len(),
            confirmed.len(),
        ));
        for member in self.net.members.iter_mut().filter(|member| member.pid().is_some()) {
            member.stop()?;
        }
        for at in nodes {
            let said = self.node(at)?.db("verify")?;
            ensure!(said.contains("verified"), "{said}");
        }
        Ok(())
    }

    /// The most memory that each running node has had, in MiB; too much is an error.
    fn memory(&self) -> anyhow::Result<Vec<u64>> {
        let mut peaks = Vec::new();
        for member in self.net.running() {
            let peak = member.memory_kb("VmHWM")?;
            ensure!(peak < MEMORY_KB_MAX, "{} has had {peak} KiB", member.name);
            peaks.push(peak / 1024);
        }
        Ok(peaks)
    }
}

/// A process that keeps a network namespace alive.
fn holder() -> anyhow::Result<Process> {
    let script = "ip link set lo up && echo ready && exec cat";
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "sh", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Process::start("a network namespace", &mut command)?;
    ensure!(lines_to(&process.lines()?, "ready").is_some(), "no network namespace was made");
    Ok(process)
}

/// Gives every node in a settings file its own address; until now they differ by port.
fn move_addresses(settings: &Path, base: u16, nodes: usize) -> anyhow::Result<()> {
    let mut text = std::fs::read_to_string(settings)?;
    for node in 0..nodes {
        for port in (0..PORTS_PER_NODE).map(|port| usize::from(base) + node * PORTS_PER_NODE + port)
        {
            for between in [":", "/tcp/"] {
                let old = format!("127.0.0.1{between}{port}");
                text = text.replace(&old, &format!("{}{between}{port}", address(node)));
            }
        }
    }
    std::fs::write(settings, text)?;
    Ok(())
}

/// Waits until a node's chain has stopped being behind another's, and the node says so itself: until
/// then it refuses transactions.
pub fn catches_up(behind: &Member, ahead: &Member) -> anyhow::Result<Duration> {
    let started = Instant::now();
    wait_until(&format!("{} to catch up", behind.name), || {
        Ok(behind.height()? + 1 >= ahead.height()? && behind.is_level()?)
    })?;
    Ok(started.elapsed())
}
