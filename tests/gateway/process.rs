//! The gateway as a process of its own.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tests::node::{program, wait_for};
use tests::process::{self, Signal, ended, lines, lines_to};

/// The account that pays.
pub(crate) const ACCOUNT: usize = 2;
/// Lines of a log that explain a fault.
const LOGGED_LINES: usize = 30;

/// Where a gateway keeps what it has, and where its node is.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    folder: PathBuf,
    rpc: SocketAddr,
    pub(crate) address: SocketAddr,
}

/// A gateway that runs. Dropping it is `kill -9`.
#[derive(Debug)]
pub(crate) struct Gateway(Child);

impl Home {
    /// A gateway below `folder` with these settings, whose node is at `rpc`.
    pub(crate) fn new(
        folder: &Path,
        (rpc, address): (SocketAddr, SocketAddr),
        settings: &str,
    ) -> anyhow::Result<Self> {
        let folder = folder.join("gateway");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("gateway.toml"), settings)?;
        Ok(Self { folder, rpc, address })
    }

    /// Makes a key; what clients send.
    pub(crate) fn new_key(&self, name: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let told = self.tell(&[&["key", "new", "--name", name, "--json"], arguments].concat())?;
        let told: Value = serde_json::from_str(&told)?;
        Ok(told["key"].as_str().context("a key")?.to_owned())
    }

    /// What `ombra gateway ARGUMENTS` prints.
    pub(crate) fn tell(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = ended(command.spawn()?)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8(output.stdout)?;
        ensure!(output.status.success(), "ombra gateway {}: {said}{printed}", arguments.join(" "));
        Ok(printed)
    }

    /// Starts it and waits until it takes requests in.
    pub(crate) fn start(&self) -> anyhow::Result<Gateway> {
        let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut command = self.command(&[]);
        command.arg("--config").arg(self.folder.join("gateway.toml"));
        command.args(["--listen", &self.address.to_string(), "--balance-max", "10000ombra"]);
        command.args(["--log", "info,gateway=debug"]).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn()?;
        let printed = process.stdout.take().context("its output")?;
        let gateway = Gateway(process);
        let works = lines_to(&lines(printed), "gateway").is_some();
        ensure!(works, "the gateway does not work:\n{}", self.logged());
        Ok(gateway)
    }

    /// Its settings.
    pub(crate) fn settings(&self) -> PathBuf {
        self.folder.join("gateway.toml")
    }

    /// Where a gateway of another wallet keeps what it has.
    pub(crate) fn other_data(&self) -> PathBuf {
        self.folder.join("other")
    }

    /// The last lines that it logged.
    pub(crate) fn logged(&self) -> String {
        let logged = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<_> = logged.lines().collect();
        let begin = lines.len().saturating_sub(LOGGED_LINES);
        lines.get(begin..).unwrap_or_default().join("\n")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.arg("gateway").args(arguments).args(["--dev", &ACCOUNT.to_string()]);
        command.args(["--rpc", &format!("http://{}", self.rpc), "--data-dir"]);
        command.arg(self.folder.join("data"));
        command
    }
}

impl Gateway {
    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// Stops it in order, with SIGTERM.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        process::signal(self.0.id(), Signal::TERM)?;
        let status = wait_for("the gateway to end", || Ok(self.0.try_wait()?))?;
        ensure!(status.success(), "the gateway ended with {status}");
        Ok(())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
