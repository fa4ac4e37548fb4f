//! The folder that `ombra testnet` writes, and the containers that Compose makes of it.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Context;
use serde_json::Value;
use tempfile::TempDir;
use testkit::client;
use testkit::docker::docker;
use testkit::net::{Member, free_ports};
use testkit::node::{binary, wait_until};
use testkit::process::run;
use testkit::workload::Workload;

use crate::engine::Engine;

/// Transfers that are signed in advance.
const TRANSFERS: usize = 40;

/// A testnet in containers. Dropping it removes them with their volumes.
#[derive(Debug)]
pub(crate) struct Testnet<'a> {
    engine: &'a Engine,
    image: String,
    folder: TempDir,
    /// The nodes as clients of this machine see them.
    pub(crate) members: Vec<Member>,
    transfers: std::vec::IntoIter<String>,
}

impl<'a> Testnet<'a> {
    /// Writes the folder; nothing runs yet.
    pub(crate) fn write(
        engine: &'a Engine,
        image: &str,
        validators: u16,
        followers: u16,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        // A port for each node and two for monitoring.
        let base = free_ports(validators + followers + 2)?;
        let mut command = Command::new(binary());
        command.args(["testnet", "--json", "--base-port", &base.to_string()]);
        command.args(["--validators", &validators.to_string()]);
        command.args(["--followers", &followers.to_string()]).arg("--out").arg(folder.path());
        let made: Value = serde_json::from_str(&run(&mut command)?)?;
        let nodes = made.get("nodes").and_then(Value::as_array).context("no nodes")?;
        let members = nodes.iter().map(|node| {
            let text = |key| node.get(key).and_then(Value::as_str).context("a member is missing");
            let rpc: SocketAddr = text("rpc")?.parse()?;
            Ok(Member::elsewhere(text("name")?.to_owned(), rpc))
        });
        let members = members.collect::<anyhow::Result<_>>()?;
        let work = Workload::transfers(TRANSFERS, 1)?;
        let mut senders = work.waves.into_iter().flat_map(|wave| wave.by_sender);
        let transfers = senders.next().unwrap_or_default().into_iter();
        Ok(Self { engine, image: image.to_owned(), folder, members, transfers })
    }

    /// Runs Compose.
    pub(crate) fn compose(&self, arguments: &[&str]) -> anyhow::Result<String> {
        run(self.engine.compose(self.folder.path(), &self.image).args(arguments))
    }

    /// Runs a command of the program, as a client on this machine.
    pub(crate) fn client(&self, node: usize, arguments: &[&str]) -> anyhow::Result<String> {
        client::told(self.members[node].rpc, arguments)
    }

    /// The container of a service, running or not.
    pub(crate) fn container(&self, service: &str) -> anyhow::Result<String> {
        // The older program has no `--all` here and lists stopped ones anyway.
        let named = format!("label=com.docker.compose.service={service}");
        let project = format!("label=com.docker.compose.project={}", self.project()?);
        let found = docker(&["ps", "--all", "--quiet", "--filter", &named, "--filter", &project])?;
        let first = found.lines().next().with_context(|| format!("no container of {service}"))?;
        Ok(first.to_owned())
    }

    /// The name under which Compose keeps containers, volumes and the network.
    pub(crate) fn project(&self) -> anyhow::Result<String> {
        let text = std::fs::read_to_string(self.folder.path().join(".env"))?;
        let name = text.lines().find_map(|line| line.strip_prefix("COMPOSE_PROJECT_NAME="));
        Ok(name.context("the project has no name")?.to_owned())
    }

    /// Runs a command in the container of a node.
    pub(crate) fn inside(&self, node: usize, command: &[&str]) -> anyhow::Result<String> {
        let container = self.container(&self.members[node].name)?;
        docker(&[&["exec", container.as_str()], command].concat())
    }

    /// A field of what the engine knows of a node's container.
    pub(crate) fn inspect(&self, node: usize, format: &str) -> anyhow::Result<String> {
        docker(&["inspect", "--format", format, &self.container(&self.members[node].name)?])
    }

    /// Waits until the engine calls these nodes healthy.
    pub(crate) fn healthy(&self, nodes: std::ops::Range<usize>) -> anyhow::Result<()> {
        for node in nodes {
            wait_until(&format!("health of {}", self.members[node].name), || {
                let health = self.inspect(node, "{{.State.Health.Status}}")?;
                Ok(health == "healthy")
            })?;
        }
        Ok(())
    }

    /// Sends the next transfer through a node, waits until it is in a block there, and answers the
    /// block's height and hash.
    pub(crate) fn transfer(&mut self, node: usize) -> anyhow::Result<(u64, String)> {
        let text = self.transfers.next().context("all transfers were sent")?;
        let hash = self.members[node].send(&text)?;
        self.members[node].includes(&hash)
    }

    /// Waits until these nodes have the block, and fails if one has another.
    pub(crate) fn agree(&self, nodes: &[usize], block: &(u64, String)) -> anyhow::Result<()> {
        for node in nodes {
            let member = &self.members[*node];
            wait_until(&format!("height {} on {}", block.0, member.name), || {
                // A node that starts does not answer yet.
                Ok(member.height().is_ok_and(|height| height >= block.0))
            })?;
            let hash = member.block_hash(block.0)?;
            anyhow::ensure!(hash == block.1, "{} has {hash} at {}", member.name, block.0);
        }
        Ok(())
    }

    /// The last lines of every container, for whoever looks into a failure.
    pub(crate) fn logs(&self) -> String {
        self.compose(&["logs", "--no-color", "--tail", "30"]).unwrap_or_default()
    }
}

impl Drop for Testnet<'_> {
    fn drop(&mut self) {
        drop(self.compose(&["down", "--volumes", "--timeout", "5"]));
    }
}
