//! Nodes with homes of their own, as processes that talk to each other on loopback.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::http::Connection;
use crate::node::{DevOptions, wait_for_endpoint, wait_until};
use crate::process::Process;

/// A home, and the node that may run in it. Dropping it kills the node.
#[derive(Debug)]
pub struct HomeNode {
    binary: PathBuf,
    home: PathBuf,
    /// The peer address as others write it.
    pub p2p: String,
    /// The same on the network for transactions.
    pub gossip: String,
    /// The validator's public key; none for a follower.
    pub public_key: Option<String>,
    running: Option<(Process, SocketAddr)>,
}

impl HomeNode {
    /// Makes the keys of a home.
    pub fn with_keys(home: PathBuf, is_follower: bool) -> anyhow::Result<Self> {
        let binary = DevOptions::from_environment().binary;
        let ip = own_loopback_address();
        let listeners = [TcpListener::bind((ip, 0))?, TcpListener::bind((ip, 0))?];
        let address = |listener: &TcpListener| -> anyhow::Result<String> {
            Ok(format!("/ip4/{ip}/tcp/{}", listener.local_addr()?.port()))
        };
        let (p2p, gossip) = (address(&listeners[0])?, address(&listeners[1])?);
        drop(listeners);
        let mut node = Self { binary, home, p2p, gossip, public_key: None, running: None };
        let home = node.home_text()?;
        let mut arguments = vec!["init", "--json", "--home", &home];
        if is_follower {
            arguments.push("--follower");
        }
        let answer: Value = serde_json::from_str(&node.ombra(&arguments)?)?;
        node.public_key = answer["validatorPublicKey"].as_str().map(str::to_owned);
        Ok(node)
    }

    /// Completes the home with the chain's genesis file.
    pub fn complete(&self, genesis: &Path) -> anyhow::Result<()> {
        let genesis = genesis.to_str().context("a path in UTF-8")?;
        self.ombra(&["init", "--home", &self.home_text()?, "--genesis", genesis]).map(drop)
    }

    /// Starts the node with its peers on both networks and waits until it answers.
    pub fn start(&mut self, peers: &[String], gossip_peers: &[String]) -> anyhow::Result<()> {
        let endpoints = self.home.join("endpoints.json");
        if endpoints.exists() {
            std::fs::remove_file(&endpoints)?;
        }
        let mut command = Command::new(&self.binary);
        command
            .args(["start", "--home", &self.home_text()?])
            .env("OMBRA__RPC__LISTEN", "127.0.0.1:0")
            .env("OMBRA__LOG__FILTER", "warn,node::sync=info")
            .env("OMBRA__RPC__METRICS", "false")
            .env("OMBRA__P2P__LISTEN", &self.p2p)
            .env("OMBRA__P2P__OPEN", "true")
            .env("OMBRA__P2P__PEERS", json!(peers).to_string())
            .env("OMBRA__P2P__GOSSIP__LISTEN", &self.gossip)
            .env("OMBRA__P2P__GOSSIP__PEERS", json!(gossip_peers).to_string())
            .stdout(Stdio::null())
            .stderr(File::options().create(true).append(true).open(self.log())?);
        let mut process = Process::start("the node", &mut command)?;
        let rpc = wait_for_endpoint(&endpoints, &mut process.child)
            .with_context(|| format!("its log: {}", self.logged().unwrap_or_default()))?;
        self.running = Some((process, rpc));
        Ok(())
    }

    /// The folder of its files.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    fn log(&self) -> PathBuf {
        self.home.join("node.log")
    }

    /// What it logged.
    pub fn logged(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.log())?)
    }

    /// `kill -9`.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        if let Some((mut process, _)) = self.running.take() {
            process.kill()?;
        }
        Ok(())
    }

    /// The address of its JSON-RPC port.
    pub fn rpc(&self) -> anyhow::Result<SocketAddr> {
        self.running.as_ref().map(|(_, rpc)| *rpc).context("the node does not run")
    }

    /// Calls a method and answers its result.
    pub fn call(&self, method: &str, params: &Value) -> anyhow::Result<Value> {
        Connection::open(self.rpc()?)?.call(method, params)
    }

    /// The height of its chain.
    pub fn height(&self) -> anyhow::Result<u64> {
        let info = self.call("ombra_chainInfo", &json!([]))?;
        info["height"].as_u64().context("chainInfo without height")
    }

    /// Waits until its chain has this height.
    pub fn reaches(&self, height: u64) -> anyhow::Result<()> {
        wait_until(&format!("height {height} in {}", self.home.display()), || {
            Ok(self.height()? >= height)
        })
    }

    /// Runs the program with its home's validator key as the signer, against its own node.
    pub fn sign(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let key = self.home.join("keys/validator.key");
        let (key, rpc) = (key.to_str().context("a path in UTF-8")?, self.rpc()?);
        let rpc = format!("http://{rpc}");
        let more = ["--key-file", key, "--rpc", &rpc];
        self.ombra(&[arguments, &more].concat())
    }

    /// What its validator key signs to agree to become a validator, and until when that counts.
    pub fn accept(&self) -> anyhow::Result<(String, u64)> {
        let answer =
            self.ombra(&["validator", "accept", "--json", "--home", &self.home_text()?])?;
        let answer: Value = serde_json::from_str(&answer)?;
        let acceptance = answer["acceptance"].as_str().context("a signature")?.to_owned();
        Ok((acceptance, answer["expiresAt"].as_u64().context("a time")?))
    }

    /// Runs `ombra db` on the stopped node.
    pub fn db(&self, command: &str) -> anyhow::Result<String> {
        self.db_with(command, &[])
    }

    /// Runs `ombra db` with flags on the stopped node.
    pub fn db_with(&self, command: &str, flags: &[&str]) -> anyhow::Result<String> {
        ensure!(self.running.is_none(), "the node runs");
        let home = self.home_text()?;
        self.ombra(&[&["db", command, "--home", &home], flags].concat())
    }

    fn home_text(&self) -> anyhow::Result<String> {
        Ok(self.home.to_str().context("a path in UTF-8")?.to_owned())
    }

    /// Runs the program and answers what it printed.
    fn ombra(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let Output { status, stdout, stderr } =
            Command::new(&self.binary).args(arguments).stdin(Stdio::null()).output()?;
        if !status.success() {
            bail!("ombra {}: {}", arguments.join(" "), String::from_utf8_lossy(&stderr));
        }
        Ok(String::from_utf8(stdout)?)
    }
}

/// An address of this machine on which nothing else listens. Outgoing connections take free ports of
/// 127.0.0.1; a node that was down must find its ports free, so it listens where nothing connects from.
fn own_loopback_address() -> Ipv4Addr {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    let [_, a, b, c] = std::process::id().wrapping_mul(61).wrapping_add(made).to_be_bytes();
    // An odd second byte keeps away from 127.0.0.1; the last must not name a network or a broadcast.
    Ipv4Addr::new(127, a | 1, b, c.clamp(1, 254))
}

impl Drop for HomeNode {
    fn drop(&mut self) {
        drop(self.kill());
    }
}
