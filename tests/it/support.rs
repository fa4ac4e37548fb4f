//! What several suites use: chains with options, a market, what programs print, log and tell systemd, and
//! transactions that get into blocks.

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Output;

use anyhow::{Context as _, ensure};
use fixtures::{EXECUTOR, PER_CALL, bond, commit, offer, register_judge};
use serde_json::{Value, json};
use testkit::actor::{Actor, people};
use testkit::http::{self, Connection};
use testkit::net::{Member, NetOptions};
use testkit::node::{DevOptions, Node, PATIENCE, wait_until};
use types::Hash;
use types::tx::CallReveal;

/// The name of every development chain.
pub(crate) const CHAIN: &str = "ombra-dev";

/// A development chain that is made with these arguments, such as `--v8 0`.
pub(crate) fn dev(arguments: &[&str]) -> DevOptions {
    DevOptions { chain: owned(arguments), ..DevOptions::from_environment() }
}

/// So many validators and followers of a chain with these parameters.
pub(crate) fn chain(validators: usize, followers: usize, params: &[&str]) -> NetOptions {
    NetOptions { params: owned(params), ..NetOptions::new(validators, followers) }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// What a miner of the market needs at stake: the default of `minBond`.
pub(crate) const MIN_BOND: u64 = 10_000_000;

/// What opens a market: its owner's agent with this metadata, and miners that offer to execute it.
pub(crate) fn market(
    chain_id: &str,
    (owner, metadata): (&mut Actor, String),
    miners: &mut [Actor],
) -> Vec<String> {
    let mut texts = vec![owner.sign_on(chain_id, &register_judge(owner.address(), metadata))];
    for miner in miners {
        let offer = offer(EXECUTOR, 9, [PER_CALL, 0, 0, 0]).into();
        texts.extend([miner.sign(&bond(MIN_BOND)), miner.sign_on(chain_id, &offer)]);
    }
    texts
}

/// A development chain with an agent, somebody who asks, and three miners that offer to execute the agent.
pub(crate) struct Market {
    pub(crate) node: Node,
    pub(crate) connection: Connection,
    pub(crate) owner: Actor,
    pub(crate) requester: Actor,
    pub(crate) members: [Actor; 3],
}

impl Market {
    /// The agent has this metadata.
    pub(crate) fn open(metadata: String) -> anyhow::Result<Self> {
        Self::open_with(metadata, &[])
    }

    /// The same on a chain with these parameters.
    pub(crate) fn open_with(metadata: String, params: &[&str]) -> anyhow::Result<Self> {
        let params = params.iter().flat_map(|param| ["--param", param]);
        let options: Vec<&str> = ["--v8", "0"].into_iter().chain(params).collect();
        let node = Node::start(dev(&options))?;
        let mut connection = Connection::open(node.rpc)?;
        let [mut owner, requester, first, second, third] = people()?;
        let mut members = [first, second, third];
        include(&mut connection, &market(CHAIN, (&mut owner, metadata), &mut members))?;
        Ok(Self { node, connection, owner, requester, members })
    }

    /// Each member hides its answer, and all show them.
    pub(crate) fn answer(&mut self, call_id: Hash, said: [CallReveal; 3]) -> anyhow::Result<()> {
        let (mut commits, mut reveals) = (Vec::new(), Vec::new());
        for (member, reveal) in self.members.iter_mut().zip(said) {
            let commit = commit(member.address(), &reveal);
            commits.push(member.sign_on(CHAIN, &commit.into()));
            reveals.push(member.sign_on(CHAIN, &reveal.into()));
        }
        // The members are drawn before the transactions of the block after the call.
        self.reaches(call_id, "committing")?;
        include(&mut self.connection, &commits)?;
        self.reaches(call_id, "revealing")?;
        include(&mut self.connection, &reveals).map(drop)
    }

    /// Waits until a call has a status.
    fn reaches(&mut self, call_id: Hash, status: &str) -> anyhow::Result<()> {
        wait_until(status, || {
            let call = self.connection.call("ombra_getCall", &json!([call_id]));
            Ok(call.is_ok_and(|call| call["status"] == status))
        })
    }
}

/// A socket that stands for systemd's.
pub(crate) struct Manager(UnixDatagram);

impl Manager {
    pub(crate) fn at(path: &Path) -> anyhow::Result<Self> {
        let socket = UnixDatagram::bind(path)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(socket))
    }

    /// The next message.
    pub(crate) fn hears(&self) -> anyhow::Result<String> {
        let mut bytes = [0; 1_000];
        let length = self.0.recv(&mut bytes)?;
        Ok(String::from_utf8(bytes[..length].to_vec())?)
    }

    /// Waits for a message that begins so; answers those before it.
    pub(crate) fn hears_of(&self, beginning: &str) -> anyhow::Result<Vec<String>> {
        let mut before = Vec::new();
        loop {
            let message = self.hears()?;
            if message.starts_with(beginning) {
                return Ok(before);
            }
            before.push(message);
        }
    }
}

/// What a program printed, which must have succeeded.
pub(crate) fn printed(output: Output) -> anyhow::Result<String> {
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Waits until a node has logged this.
pub(crate) fn logs(member: &Member, text: &str) -> anyhow::Result<()> {
    wait_until(text, || Ok(member.logged()?.contains(text)))
}

/// The first block that a node has.
pub(crate) fn earliest(member: &Member) -> anyhow::Result<u64> {
    let info = member.call("ombra_chainInfo", &json!([]))?;
    info["earliestBlock"].as_u64().context("earliestBlock")
}

/// Every sample of a page of metrics by its name, without the beginning that all of them have, and by its
/// labels; read as Prometheus reads them.
pub(crate) fn samples(page: &str, beginning: &str) -> anyhow::Result<BTreeMap<String, f64>> {
    ensure!(page.ends_with("# EOF\n"), "the end is missing: {page}");
    let mut samples = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').with_context(|| line.to_owned())?;
        let value: f64 = value.parse().with_context(|| line.to_owned())?;
        let name = name.strip_prefix(beginning).with_context(|| line.to_owned())?;
        ensure!(samples.insert(name.to_owned(), value).is_none(), "{line} comes twice");
    }
    Ok(samples)
}

/// Sends texts that are taken, and waits until they are in blocks; answers their hashes.
pub(crate) fn include(
    connection: &mut Connection,
    texts: &[String],
) -> anyhow::Result<Vec<String>> {
    let answer: Value = serde_json::from_str(&connection.post(&http::send_together_body(texts))?)?;
    let items = answer["result"].as_array().with_context(|| answer.to_string())?;
    let hash = |item: &Value| item["hash"].as_str().map(str::to_owned);
    let hashes: Option<Vec<String>> = items.iter().map(hash).collect();
    let hashes = hashes.with_context(|| format!("refused: {answer}"))?;
    for hash in &hashes {
        let seen = connection.call("ombra_waitForTransaction", &json!([hash]))?;
        ensure!(seen["status"] == "included", "{seen}");
    }
    Ok(hashes)
}
