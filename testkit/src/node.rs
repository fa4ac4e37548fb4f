//! A node as a process of its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Connection;
use crate::process::{self, Process};

/// How long anything that a test waits for may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What `ombra dev` is started with.
#[derive(Clone, Debug)]
pub struct DevOptions {
    pub binary: PathBuf,
    pub data_dir: Option<PathBuf>,
    pub accounts: usize,
    pub block_time_ms: u64,
    /// Arguments that only a new chain takes, as `--v7 0`: a node that is started again must not have them.
    pub chain: Vec<String>,
    /// Arguments at each start.
    pub more: Vec<String>,
    /// Settings of the node by their variables: `OMBRA__TXPOOL__COUNT_MAX`.
    pub settings: Vec<(&'static str, String)>,
}

impl DevOptions {
    /// The binary in `OMBRA_BIN`, or the one beside the running test.
    #[must_use]
    pub fn from_environment() -> Self {
        Self {
            binary: binary(),
            data_dir: None,
            accounts: 10,
            block_time_ms: 50,
            chain: Vec::new(),
            more: Vec::new(),
            settings: Vec::new(),
        }
    }
}

/// The binary in `OMBRA_BIN`, or the one beside the running test.
#[must_use]
pub fn binary() -> PathBuf {
    let beside = || {
        let test = std::env::current_exe().expect("a process knows its file");
        // Tests are in target/*/deps, other programs beside the node.
        let mut folders = test.ancestors().skip(1).take(2).map(|folder| folder.join("ombra"));
        folders.find(|binary| binary.exists()).expect("the node's binary is built")
    };
    std::env::var_os("OMBRA_BIN").map_or_else(beside, PathBuf::from)
}

/// The program, as it is where nobody has set a variable for it or for a proxy. The place of the model
/// stays.
#[must_use]
pub fn program() -> Command {
    plain(&binary())
}

fn plain(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("OMBRA_") && text != "OMBRA_MODEL" {
            command.env_remove(&name);
        }
    }
    command.env("NO_PROXY", "127.0.0.1");
    command
}

/// A running `ombra dev`. Dropping it kills it.
#[derive(Debug)]
pub struct Node {
    process: Process,
    options: DevOptions,
    data: PathBuf,
    pub rpc: SocketAddr,
    _temporary: Option<TempDir>,
}

impl Node {
    /// Starts a chain on free ports, with its data on disk, and waits until it answers.
    pub fn start(options: DevOptions) -> anyhow::Result<Self> {
        let temporary = match options.data_dir {
            Some(_) => None,
            None => Some(tempfile::tempdir()?),
        };
        let data = match (&options.data_dir, &temporary) {
            (Some(data), _) => data.clone(),
            (None, Some(temporary)) => temporary.path().join("node"),
            (None, None) => bail!("no folder for the node's data"),
        };
        let (process, rpc) = launch(&options, &data, ANY_PORT)?;
        Ok(Self { process, options, data, rpc, _temporary: temporary })
    }

    /// `kill -9`, and a new process on the same data.
    pub fn kill_and_restart(&mut self) -> anyhow::Result<()> {
        self.kill()?;
        self.restart()
    }

    /// `kill -9`.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill()
    }

    /// A new process on the same data.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        (self.process, self.rpc) = launch(&self.options, &self.data, ANY_PORT)?;
        Ok(())
    }

    /// A new process on the same data, which answers where the last one did.
    pub fn restart_in_place(&mut self) -> anyhow::Result<()> {
        (self.process, self.rpc) = launch(&self.options, &self.data, self.rpc)?;
        Ok(())
    }

    /// Stops the node in order.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.process.terminate()
    }

    /// Runs the node's binary with other arguments and answers what it printed.
    pub fn ombra(&self, arguments: &[&str]) -> anyhow::Result<std::process::Output> {
        let mut command = plain(&self.options.binary);
        process::output(command.args(arguments))
    }

    /// Calls a method and answers its result.
    pub fn call(&self, method: &str, params: &Value) -> anyhow::Result<Value> {
        Connection::open(self.rpc)?.call(method, params)
    }

    /// Calls a method that must be refused and answers the error object.
    pub fn rejection(&self, method: &str, params: &Value) -> anyhow::Result<Value> {
        Connection::open(self.rpc)?.rejection(method, params)
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The folder of the node's files.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// User and system time of the process so far.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        process::cpu_seconds(self.process.pid())
    }

    /// The memory that the process has now.
    pub fn rss_kb(&self) -> anyhow::Result<u64> {
        process::rss_kb(self.process.pid())
    }

    /// The most memory that the process has had.
    pub fn peak_rss_kb(&self) -> anyhow::Result<u64> {
        process::peak_rss_kb(self.process.pid())
    }

    /// The height of the chain.
    pub fn height(&self) -> anyhow::Result<u64> {
        let info = self.call("ombra_chainInfo", &json!([]))?;
        info.get("height").and_then(Value::as_u64).context("chainInfo without height")
    }

    /// Bytes of all files of the node.
    pub fn disk_bytes(&self) -> anyhow::Result<u64> {
        process::folder_bytes(&self.data)
    }
}

/// A port of this machine that is free.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn launch(
    options: &DevOptions,
    data: &Path,
    rpc: SocketAddr,
) -> anyhow::Result<(Process, SocketAddr)> {
    let endpoints = data.join("endpoints.json");
    if endpoints.exists() {
        // Left behind by a killed process; the next one writes its own.
        std::fs::remove_file(&endpoints)?;
    }
    let is_new = !data.join("genesis.json").exists();
    let mut command = plain(&options.binary);
    command.arg("dev").args(["--rpc", &rpc.to_string(), "--metrics", "127.0.0.1:0"]);
    if is_new {
        command.args(["--accounts", &options.accounts.to_string()]);
        command.args(["--block-time", &options.block_time_ms.to_string()]);
        command.args(&options.chain);
    }
    command.args(&options.more).arg("--data-dir").arg(data).stdout(Stdio::null());
    command.envs(options.settings.iter().map(|(name, value)| (name, value)));
    let mut process = Process::start("the node", &mut command)
        .with_context(|| options.binary.display().to_string())?;
    let rpc = wait_for_endpoint(&endpoints, &mut process.child)?;
    Ok((process, rpc))
}

/// Waits until the process says in the file where it answers.
pub(crate) fn wait_for_endpoint(file: &Path, process: &mut Child) -> anyhow::Result<SocketAddr> {
    let read = || -> Option<SocketAddr> {
        let text = std::fs::read_to_string(file).ok()?;
        let endpoints: Value = serde_json::from_str(&text).ok()?;
        endpoints.get("rpc")?.as_str()?.parse().ok()
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = process.try_wait()? {
            bail!("the node ended with {status}");
        }
        if let Some(rpc) = read() {
            return Ok(rpc);
        }
        if Instant::now() > deadline {
            process.kill()?;
            bail!("the node did not answer within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until `check` answers something, asking again and again until the deadline.
pub fn wait_for<T>(
    what: &str,
    mut check: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = check()? {
            return Ok(answer);
        }
        if Instant::now() > deadline {
            bail!("waited {PATIENCE:?} for {what}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until something holds, asking again and again until the deadline.
pub fn wait_until(
    what: &str,
    mut holds: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    wait_for(what, || Ok(holds()?.then_some(())))
}
