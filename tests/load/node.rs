//! The node under load, as a process of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::Options;
use crate::http::Connection;

pub(crate) struct Node {
    process: Child,
    data: PathBuf,
    pub(crate) rpc: SocketAddr,
    _temporary: Option<TempDir>,
}

impl Node {
    /// Starts `ombra dev` on free ports, with its data on disk, and waits until it answers.
    pub(crate) fn start(options: &Options) -> anyhow::Result<Self> {
        let temporary = match options.data_dir {
            Some(_) => None,
            None => Some(tempfile::tempdir()?),
        };
        let data = match (&options.data_dir, &temporary) {
            (Some(data), _) => data.clone(),
            (None, Some(temporary)) => temporary.path().join("node"),
            (None, None) => bail!("no folder for the node's data"),
        };
        let mut process = Command::new(&options.ombra)
            .arg("dev")
            .args(["--rpc", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
            .args(["--accounts", &options.accounts.to_string()])
            .args(["--block-time", &options.block_time.to_string()])
            .arg("--data-dir")
            .arg(&data)
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", options.ombra.display()))?;
        let rpc = wait_for_endpoint(&data, &mut process)?;
        Ok(Self { process, data, rpc, _temporary: temporary })
    }

    /// Stops the node in order.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        let asked = Command::new("kill").arg(self.process.id().to_string()).status()?;
        if !asked.success() {
            bail!("the node was gone");
        }
        let status = self.process.wait()?;
        if !status.success() {
            bail!("the node ended with {status}");
        }
        Ok(())
    }

    /// User and system time of the process so far.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let after_name = stat.rsplit(')').next().context("an odd stat line")?;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |index: usize| -> anyhow::Result<u32> {
            Ok(fields.get(index).context("a short stat line")?.parse()?)
        };
        Ok(f64::from(ticks(11)? + ticks(12)?) / 100.0)
    }

    /// The most memory that the process has had.
    pub(crate) fn peak_rss_kb(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let figure = line.and_then(|line| line.split_whitespace().next());
        Ok(figure.context("no VmHWM in the status")?.parse()?)
    }

    /// The height of the chain.
    pub(crate) fn height(&self) -> anyhow::Result<u64> {
        let info = Connection::open(self.rpc)?.call("ombra_chainInfo", &serde_json::json!([]))?;
        info.get("height").and_then(serde_json::Value::as_u64).context("chainInfo without height")
    }

    /// Fails if the process has ended.
    pub(crate) fn is_alive(&self) -> anyhow::Result<()> {
        std::fs::metadata(format!("/proc/{}", self.process.id()))?;
        Ok(())
    }

    /// Bytes of all files of the node.
    pub(crate) fn disk_bytes(&self) -> anyhow::Result<u64> {
        folder_bytes(&self.data)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn folder_bytes(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        bytes += if facts.is_dir() { folder_bytes(&entry.path())? } else { facts.len() };
    }
    Ok(bytes)
}

fn wait_for_endpoint(data: &Path, process: &mut Child) -> anyhow::Result<SocketAddr> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        if let Some(status) = process.try_wait()? {
            bail!("the node ended with {status}");
        }
        if let Ok(text) = std::fs::read_to_string(data.join("endpoints.json")) {
            let endpoints: serde_json::Value = serde_json::from_str(&text)?;
            let rpc = endpoints.get("rpc").and_then(serde_json::Value::as_str);
            return Ok(rpc.context("endpoints.json without rpc")?.parse()?);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("the node did not answer within a minute")
}
