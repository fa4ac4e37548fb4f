//! How fast a new follower gets and executes a chain that others have, beside how fast a stopped
//! node executes the same chain again from its own storage. In turns, so that both see the same
//! machine.

use std::fs;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use testkit::net::{Member, Net};
use testkit::process::cpu_seconds;

use crate::report::line;

/// Runs both several times and prints a line for each round. The first node is stopped; the last
/// has not been started; those between serve.
pub(crate) fn measure(net: &mut Net, rounds: usize) -> anyhow::Result<()> {
    let height = net.members.first().context("no node")?.height()?;
    net.members.first_mut().context("no node")?.stop()?;
    for _ in 0..rounds {
        let (txs, replay) = replayed(net.members.first().context("no node")?)?;
        let servers = net.members.len().saturating_sub(2);
        let newcomer = net.members.last_mut().context("no node")?;
        let caught = caught_up(newcomer, height)?;
        line(&json!({
            "work": "catchup",
            "servers": servers,
            "blocks": height,
            "txs": caught.txs,
            "replayTxPerS": (txs / replay).round(),
            "catchupTxPerS": (caught.txs / caught.seconds).round(),
            "ratio": caught.txs / caught.seconds / (txs / replay),
            "wholeSeconds": caught.whole_seconds,
            "newcomerCpuUsPerTx": caught.cpu_seconds * 1e6 / caught.txs,
        }))?;
    }
    Ok(())
}

/// Transactions of the chain, and the seconds that it took to execute them again.
fn replayed(node: &Member) -> anyhow::Result<(f64, f64)> {
    let output = node.ombra(&["db", "verify", "--json"])?;
    if !output.status.success() {
        bail!("verify: {}", String::from_utf8_lossy(&output.stderr));
    }
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let figure = |name: &str| answer.get(name).and_then(Value::as_f64);
    figure("transactions").zip(figure("executedSeconds")).context("verify says how long it took")
}

struct Caught {
    txs: f64,
    /// From the first question to the last commit, as the node says.
    seconds: f64,
    /// From the start of the process until it is there.
    whole_seconds: f64,
    cpu_seconds: f64,
}

/// Starts the node with an empty database, waits until it has caught up, and stops it.
fn caught_up(node: &mut Member, height: u64) -> anyhow::Result<Caught> {
    let data = node.home().join("data");
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    fs::create_dir_all(data.join("db"))?;
    let before = node.logged().unwrap_or_default().len();
    let begun = Instant::now();
    node.start()?;
    node.reaches(height)?;
    let whole_seconds = begun.elapsed().as_secs_f64();
    let cpu = cpu_seconds(node.pid().context("it runs")?)?;
    let told = testkit::node::wait_for("the node's word that it has caught up", || {
        let log = node.logged()?;
        let mut lines = log.get(before..).unwrap_or_default().lines();
        Ok(lines.rfind(|line| line.contains("caught up")).map(str::to_owned))
    })?;
    node.stop()?;
    let figure = |name: &str| testkit::net::log_field(&told, name).context("a figure in the log");
    let number = |value: u64| -> anyhow::Result<f64> { Ok(f64::from(u32::try_from(value)?)) };
    Ok(Caught {
        txs: number(figure("transactions")?)?,
        seconds: number(figure("ms")?)? / 1e3,
        whole_seconds,
        cpu_seconds: cpu,
    })
}
