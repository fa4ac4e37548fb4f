//! The settings of the tools.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;

use super::config_fault::{ConfigFaults, Faults, quoted};
use super::fetch::HostRule;
use super::mcp::ServerConfig;
use super::names::{BUILT_IN, FETCH_URL};
use super::tool::Limits;

/// The settings of the tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Names of the built-in tools that runs may use.
    pub allow: BTreeSet<String>,
    /// Whether agents of the market are executed as tools of runs that name them.
    pub agents: bool,
    /// Limits that differ from a tool's own, by its name.
    pub limits: BTreeMap<String, LimitsConfig>,
    /// What `fetch_url` may fetch.
    pub fetch: FetchConfig,
    /// MCP servers, the tools of which runs may use.
    pub mcp: Vec<ServerConfig>,
}

impl Default for Config {
    fn default() -> Self {
        let safe = BUILT_IN.iter().filter(|name| **name != FETCH_URL);
        Self {
            allow: safe.map(|name| (*name).to_owned()).collect(),
            agents: true,
            limits: BTreeMap::new(),
            fetch: FetchConfig::default(),
            mcp: Vec::new(),
        }
    }
}

/// Limits of a call; those that are not given are the tool's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// How long a call may take, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Bytes of the arguments.
    pub input_bytes_max: Option<usize>,
    /// Bytes of the result.
    pub output_bytes_max: Option<usize>,
}

/// What `fetch_url` may fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchConfig {
    /// Hosts: `example.org`, `*.example.org` (any name below it), with `:PORT` if it is neither 80
    /// nor 443.
    pub hosts_allow: Vec<String>,
    /// Networks that may be fetched from although they are private, such as `10.1.0.0/16`.
    pub networks_allow: Vec<IpNet>,
}

/// The longest that a call may be given.
const TIMEOUT_MS_MAX: u64 = 600_000;
/// The most bytes of arguments and results.
const BYTES_MAX: usize = 1024 * 1024;
/// Room for a word and a sentence of a failure.
const OUTPUT_BYTES_MIN: usize = 256;

impl Config {
    /// Finds every fault.
    ///
    /// # Errors
    /// When there is one.
    pub fn check(&self) -> Result<(), ConfigFaults> {
        let mut faults = Faults::default();
        for name in self.allow.iter().filter(|name| !BUILT_IN.contains(&name.as_str())) {
            faults.add("allow", quoted(name), format!("one of {}", BUILT_IN.join(", ")));
        }
        for (name, limits) in &self.limits {
            limits.check(name, &mut faults);
            let of_server = self.mcp.iter().any(|server| server.owns(name));
            if !of_server && !BUILT_IN.contains(&name.as_str()) {
                faults.add("limits", quoted(name), "a built-in tool's name or SERVER__TOOL");
            }
        }
        for host in &self.fetch.hosts_allow {
            if HostRule::parse(host).is_none() {
                let expected = "HOST, *.DOMAIN, HOST:PORT or *.DOMAIN:PORT in lower case";
                faults.add("fetch.hosts_allow", quoted(host), expected);
            }
        }
        let mut names = BTreeSet::new();
        for server in &self.mcp {
            server.check(&mut faults);
            if !names.insert(&server.name) {
                faults.add("mcp.name", quoted(&server.name), "each name once");
            }
        }
        faults.end()
    }

    /// The limits of the tool with this name, the own ones of which are `own`.
    pub(super) fn limits_of(&self, name: &str, own: Limits) -> Limits {
        let Some(given) = self.limits.get(name) else { return own };
        Limits {
            timeout: given.timeout_ms.map_or(own.timeout, Duration::from_millis),
            input_bytes_max: given.input_bytes_max.unwrap_or(own.input_bytes_max),
            output_bytes_max: given.output_bytes_max.unwrap_or(own.output_bytes_max),
        }
    }
}

impl LimitsConfig {
    fn check(&self, name: &str, faults: &mut Faults) {
        let Self { timeout_ms, input_bytes_max, output_bytes_max } = *self;
        let setting = |limit: &str| format!("limits.{name}.{limit}");
        if let Some(value) = timeout_ms.filter(|it| !(1..=TIMEOUT_MS_MAX).contains(it)) {
            faults.add(setting("timeout_ms"), value, format!("1 to {TIMEOUT_MS_MAX}"));
        }
        if let Some(value) = input_bytes_max.filter(|it| !(2..=BYTES_MAX).contains(it)) {
            faults.add(setting("input_bytes_max"), value, format!("2 to {BYTES_MAX}"));
        }
        let outputs = OUTPUT_BYTES_MIN..=BYTES_MAX;
        if let Some(value) = output_bytes_max.filter(|it| !outputs.contains(it)) {
            let expected = format!("{OUTPUT_BYTES_MIN} to {BYTES_MAX}");
            faults.add(setting("output_bytes_max"), value, expected);
        }
    }
}
