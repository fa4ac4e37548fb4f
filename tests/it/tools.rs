//! The miner's tools with an MCP server that others wrote.
//!
//! The server is installed from `PyPI` into a virtual environment beside the compile outputs, once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agent::tools::ports::{Clock, SystemNames};
use agent::tools::{Config, Grant, Outcome, Surroundings, Toolbox};
use anyhow::Context;
use serde_json::{Map, Value, json};
use testkit::python::with_packages;
use tokio_util::sync::CancellationToken;
use wallet::Client;

/// The server, which uses the official SDK for Python.
const PACKAGES: [&str; 1] = ["mcp-server-time==2026.10.19"];
/// How long Python may take to start on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// No tool of this test asks for the time.
#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now_ms(&self) -> u64 {
        0
    }
}

async fn call(toolbox: &Toolbox, name: &str, arguments: Value) -> anyhow::Result<Outcome> {
    let arguments: Map<_, _> = serde_json::from_value(arguments)?;
    let grant = Grant { tools: BTreeSet::from([name.to_owned()]), ..Grant::default() };
    Ok(toolbox.call(name, &arguments, &grant, &CancellationToken::new()).await)
}

#[tokio::test]
async fn a_public_mcp_server_is_used_as_it_is() -> anyhow::Result<()> {
    let python = with_packages("python-mcp", &PACKAGES, "mcp_server_time")?;
    let config: Config = serde_json::from_value(json!({"allow": [], "mcp": [{
        "name": "time",
        "command": [python, "-m", "mcp_server_time", "--local-timezone", "UTC"],
        "sandbox": {"enabled": false},
    }]}))?;
    let folder = tempfile::tempdir()?;
    let toolbox = Toolbox::open(
        &config,
        &Surroundings {
            node: Client::new("http://127.0.0.1:1")?,
            clock: Arc::new(Stopped),
            names: Arc::new(SystemNames),
            folder: folder.path().to_owned(),
            wrapper: None,
            stop: CancellationToken::new(),
        },
    )?;
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let ready = async {
        while !toolbox.servers()[0].is_there() {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(DEADLINE, ready).await.context("the server is there in time")?;

    let times = |from: &str| json!({"source_timezone": from, "time": "16:30", "target_timezone": "Asia/Tokyo"});
    let outcome = call(&toolbox, "time__convert_time", times("Asia/Kolkata")).await?;
    let answer: Value = serde_json::from_str(&outcome.result).context(outcome.result.clone())?;
    assert_eq!(answer["time_difference"], "+3.5h");

    let outcome = call(&toolbox, "time__convert_time", times("Mars")).await?;
    assert!(!outcome.ok && outcome.result.starts_with("failed: "), "{outcome:?}");
    let outcome = call(&toolbox, "time__convert_time", json!({"time": "16:30"})).await?;
    assert!(outcome.result.starts_with("bad_arguments: argument "), "{outcome:?}");
    toolbox.close().await;
    assert!(!toolbox.servers()[0].is_there());
    Ok(())
}
