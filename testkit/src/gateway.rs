//! A gateway as a process of its own.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::node::program;
use crate::process::{Process, last_lines, lines_to, output};

/// The account that pays.
pub const ACCOUNT: usize = 2;
/// Lines of a log that explain a fault.
const LOGGED_LINES: usize = 30;

/// Where a gateway keeps what it has, and where its node is.
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
    rpc: SocketAddr,
    pub address: SocketAddr,
}

/// A gateway that runs.
pub type Gateway = Process;

impl Home {
    /// A gateway below `folder` with these settings, whose node is at `rpc`.
    pub fn new(
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
    pub fn new_key(&self, name: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let told = self.told(&[&["key", "new", "--name", name], arguments].concat())?;
        Ok(told["key"].as_str().context("a key")?.to_owned())
    }

    /// What `ombra gateway ARGUMENTS` prints.
    pub fn tell(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = output(&mut self.command(arguments))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8(output.stdout)?;
        ensure!(output.status.success(), "ombra gateway {}: {said}{printed}", arguments.join(" "));
        Ok(printed)
    }

    /// The same as JSON.
    pub fn told(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.tell(&[arguments, &["--json"]].concat())?)?)
    }

    /// Starts it and waits until it takes requests in.
    pub fn start(&self) -> anyhow::Result<Gateway> {
        self.start_with(&[])
    }

    /// The same with more variables in its environment.
    pub fn start_with(&self, environment: &[(&str, &str)]) -> anyhow::Result<Gateway> {
        let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut command = self.command(&[]);
        command.arg("--config").arg(self.folder.join("gateway.toml"));
        command.args(["--listen", &self.address.to_string(), "--balance-max", "10000ombra"]);
        command.envs(environment.iter().copied());
        command.args(["--log", "info,gateway=debug"]).stdout(Stdio::piped()).stderr(log);
        let mut gateway = Process::start("the gateway", &mut command)?;
        let works = lines_to(&gateway.lines()?, "gateway").is_some();
        ensure!(works, "the gateway does not work:\n{}", self.logged());
        Ok(gateway)
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.folder.join("gateway.toml")
    }

    /// Where a gateway of another wallet keeps what it has.
    #[must_use]
    pub fn other_data(&self) -> PathBuf {
        self.folder.join("other")
    }

    /// The last lines that it logged.
    #[must_use]
    pub fn logged(&self) -> String {
        let logged = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        last_lines(&logged, LOGGED_LINES)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        // A small container has no certificates, either.
        command.env("SSL_CERT_FILE", "/dev/null").env("SSL_CERT_DIR", &self.folder);
        command.arg("gateway").args(arguments).args(["--dev", &ACCOUNT.to_string()]);
        command.args(["--rpc", &format!("http://{}", self.rpc), "--data-dir"]);
        command.arg(self.folder.join("data"));
        command
    }
}
