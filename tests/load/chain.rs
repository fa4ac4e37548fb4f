//! The chain that the load goes to: one node that makes blocks alone, or several that agree.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value;
use testkit::http::Connection;
use testkit::net::{Net, NetOptions};
use testkit::node::{DevOptions, Node};
use testkit::process;

use crate::{NO_BLOCKS_MS, Options};

/// Running nodes of one chain.
pub(crate) enum Chain {
    /// `ombra dev`.
    Alone(Box<Node>),
    /// A testnet of processes on this machine.
    Several(Net),
}

impl Chain {
    /// Starts it; `is_still` if no block is to come.
    pub(crate) fn start(options: &Options, is_still: bool) -> anyhow::Result<Self> {
        // The last one is the probe's.
        let accounts = options.accounts + 1;
        let block_time_ms = if is_still { NO_BLOCKS_MS } else { options.block_time };
        let still = is_still.then(|| format!("heartbeatMs={NO_BLOCKS_MS}"));
        if options.validators > 0 {
            let mut params = vec![format!("minBlockIntervalMs={block_time_ms}")];
            params.extend(still);
            return Ok(Self::Several(Net::start_as(&NetOptions {
                binary: options.ombra.clone(),
                validators: options.validators,
                followers: options.followers,
                accounts,
                params,
                v7: options.v7,
                v8: options.v8,
            })?));
        }
        let node = Node::start(DevOptions {
            binary: options.ombra.clone(),
            data_dir: options.data_dir.clone(),
            accounts,
            block_time_ms,
            chain: Vec::new(),
            more: still
                .into_iter()
                .flat_map(|param| ["--param".to_owned(), param])
                .chain(options.v7.into_iter().flat_map(|at| ["--v7".to_owned(), at.to_string()]))
                .chain(options.v8.into_iter().flat_map(|at| ["--v8".to_owned(), at.to_string()]))
                .collect(),
            settings: Vec::new(),
        })?;
        Ok(Self::Alone(Box::new(node)))
    }

    /// Starts one validator and followers, but for the last of them.
    pub(crate) fn start_but_last(options: &Options) -> anyhow::Result<Self> {
        let mut net = Net::make_as(&NetOptions {
            binary: options.ombra.clone(),
            validators: options.validators.max(1),
            followers: options.followers.max(2),
            accounts: options.accounts + 1,
            params: vec![format!("minBlockIntervalMs={}", options.block_time)],
            v7: options.v7,
            v8: options.v8,
        })?;
        let started = net.members.len() - 1;
        for member in net.members.iter_mut().take(started) {
            member.start()?;
        }
        for member in net.running() {
            member.meets(started - 1)?;
        }
        Ok(Self::Several(net))
    }

    /// Where each node answers, the one first that is asked for everything else.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::Alone(node) => vec![node.rpc],
            Self::Several(net) => net.members.iter().map(|member| member.rpc).collect(),
        }
    }

    /// The first node's address.
    pub(crate) fn rpc(&self) -> anyhow::Result<SocketAddr> {
        self.addresses().first().copied().context("a chain without nodes")
    }

    pub(crate) fn call(&self, method: &str, params: &Value) -> anyhow::Result<Value> {
        Connection::open(self.rpc()?)?.call(method, params)
    }

    pub(crate) fn height(&self) -> anyhow::Result<u64> {
        let info = self.call("ombra_chainInfo", &serde_json::json!([]))?;
        info.get("height").and_then(Value::as_u64).context("chainInfo without height")
    }

    /// Waits until all nodes are as high as the first, and sees that they have the same block.
    pub(crate) fn agree(&self) -> anyhow::Result<()> {
        match self {
            Self::Alone(_) => Ok(()),
            Self::Several(net) => net.same_block(self.height()?).map(drop),
        }
    }

    fn pids(&self) -> Vec<u32> {
        match self {
            Self::Alone(node) => vec![node.pid()],
            Self::Several(net) => net.running().filter_map(testkit::net::Member::pid).collect(),
        }
    }

    /// User and system time of all nodes so far.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        self.pids().into_iter().map(process::cpu_seconds).sum()
    }

    /// The memory of the node that has the most.
    pub(crate) fn rss_kb(&self) -> anyhow::Result<u64> {
        self.most(process::rss_kb)
    }

    /// The most memory that any node has had.
    pub(crate) fn peak_rss_kb(&self) -> anyhow::Result<u64> {
        self.most(process::peak_rss_kb)
    }

    fn most(&self, figure: impl Fn(u32) -> anyhow::Result<u64>) -> anyhow::Result<u64> {
        let figures: anyhow::Result<Vec<u64>> = self.pids().into_iter().map(figure).collect();
        figures?.into_iter().max().context("no node runs")
    }

    /// Bytes of the first node's files.
    pub(crate) fn disk_bytes(&self) -> anyhow::Result<u64> {
        let folder: PathBuf = match self {
            Self::Alone(node) => node.data().to_owned(),
            Self::Several(net) => net.members.first().context("no node")?.home().to_owned(),
        };
        process::folder_bytes(&folder)
    }

    /// Has the first node's files compacted. It must have stopped.
    pub(crate) fn compact(&self) -> anyhow::Result<()> {
        let output = match self {
            Self::Alone(node) => {
                let home = node.data().to_str().context("a path in UTF-8")?;
                node.ombra(&["db", "compact", "--home", home])?
            }
            Self::Several(net) => {
                net.members.first().context("no node")?.ombra(&["db", "compact"])?
            }
        };
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "compacting: {said}");
        Ok(())
    }

    /// Stops the nodes in order.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Alone(node) => node.stop(),
            Self::Several(net) => net.members.iter_mut().try_for_each(testkit::net::Member::stop),
        }
    }
}
