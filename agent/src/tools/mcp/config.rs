//! The settings of an MCP server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use reqwest::Url;
use serde::Deserialize;

use crate::tools::config_fault::{Faults, quoted};
use crate::tools::sandbox::Confinement;

/// Stands between a server's name and a tool's.
pub(super) const SEPARATOR: &str = "__";
/// Bytes of a server's name.
const NAME_BYTES_MAX: usize = 24;

/// An MCP server: either a `command` or a `url`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Its name here: lower-case letters, digits and `-`. A tool `t` of it is offered as `NAME__t`.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The environment of the program, beside `PATH`, `LANG`, `HOME` and `TMPDIR`. The miner's own is
    /// never passed on.
    pub environment: BTreeMap<String, String>,
    /// What the program may do.
    pub sandbox: SandboxConfig,
    /// The address of a server on the network.
    pub url: Option<String>,
    /// A file with a token that the server on the network asks for.
    pub token_file: Option<PathBuf>,
    /// The server's names of the tools that are offered; all if not given.
    pub tools: Option<BTreeSet<String>>,
    /// The server's names of tools whose result depends on the arguments alone, which the operator
    /// vouches for; others are volatile.
    pub pure: BTreeSet<String>,
    /// The server's names of tools that may be called again when a result was lost; pure ones may be
    /// anyway.
    pub idempotent: BTreeSet<String>,
}

/// What the program of an MCP server may do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// Whether it is confined. If the system cannot confine it, it is not started.
    pub enabled: bool,
    /// Files and folders that it may read and run, beside the system's programs and libraries.
    pub read: Vec<PathBuf>,
    /// Folders that it may write in, beside its own.
    pub write: Vec<PathBuf>,
    /// Whether it may open and accept TCP connections.
    pub network: bool,
    /// Memory of one process, in MiB.
    pub memory_mib_max: u64,
    /// The largest file that it may write, in MiB.
    pub file_mib_max: u64,
    /// Files and connections that one process may have open.
    pub files_max: u64,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            read: Vec::new(),
            write: Vec::new(),
            network: false,
            memory_mib_max: 1024,
            file_mib_max: 64,
            files_max: 256,
        }
    }
}

const MIB: u64 = 1024 * 1024;

impl SandboxConfig {
    /// The confinement of a program whose own folder is `folder`.
    pub(super) fn confinement(&self, folder: &Path) -> Confinement {
        let mut write = self.write.clone();
        write.push(folder.to_owned());
        Confinement {
            read: self.read.clone(),
            write,
            network: self.network,
            memory_bytes_max: self.memory_mib_max.saturating_mul(MIB),
            file_bytes_max: self.file_mib_max.saturating_mul(MIB),
            files_max: self.files_max,
        }
    }
}

impl ServerConfig {
    /// Whether a tool of this name would be this server's.
    pub(in crate::tools) fn owns(&self, tool: &str) -> bool {
        tool.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with(SEPARATOR))
    }

    /// Adds the faults of these settings.
    pub(in crate::tools) fn check(&self, faults: &mut Faults) {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=NAME_BYTES_MAX).contains(&self.name.len());
        if !fits || !self.name.bytes().all(is_plain) {
            let expected = format!("1 to {NAME_BYTES_MAX} characters of [a-z0-9-]");
            faults.add("mcp.name", quoted(&self.name), expected);
        }
        let setting = |name: &str| format!("mcp.{}.{name}", self.name);
        match (&self.url, self.command.is_empty()) {
            (None, true) => faults.add(setting("command"), "empty", "a command or a url"),
            (Some(url), false) => {
                faults.add(setting("url"), quoted(url), "either a command or a url");
            }
            (None, false) => self.check_program(faults, setting),
            (Some(url), true) => self.check_url(url, faults, setting),
        }
    }

    fn check_program(&self, faults: &mut Faults, setting: impl Fn(&str) -> String) {
        if self.token_file.is_some() {
            faults.add(setting("token_file"), "given", "it only beside a url");
        }
        for (name, value) in &self.environment {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                faults.add(setting("environment"), quoted(name), "names without = and zero bytes");
            }
        }
        let paths = self.sandbox.read.iter().chain(&self.sandbox.write);
        for path in paths.filter(|path| !path.is_absolute()) {
            faults.add(setting("sandbox"), path.display(), "absolute paths");
        }
        let numbers = [
            ("sandbox.memory_mib_max", self.sandbox.memory_mib_max),
            ("sandbox.file_mib_max", self.sandbox.file_mib_max),
            ("sandbox.files_max", self.sandbox.files_max),
        ];
        for (name, value) in numbers.into_iter().filter(|(_, value)| *value == 0) {
            faults.add(setting(name), value, "at least 1");
        }
    }

    fn check_url(&self, text: &str, faults: &mut Faults, setting: impl Fn(&str) -> String) {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some(url) = url else {
            faults.add(setting("url"), quoted(text), "an address with http:// or https://");
            return;
        };
        let host = url.host_str().unwrap_or_default();
        let is_here = matches!(host, "127.0.0.1" | "[::1]" | "localhost");
        if self.token_file.is_some() && url.scheme() == "http" && !is_here {
            faults.add(setting("url"), quoted(text), "https:// beside a token_file");
        }
        if !self.environment.is_empty() {
            faults.add(setting("environment"), "given", "it only beside a command");
        }
    }
}
