//! How fast a stopped node's blocks are executed again: by `ombra db verify` from the chain's own
//! storage, and by `ombra db import` from a file.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use testkit::node::Node;
use testkit::process::cpu_seconds_of_children;

use crate::report::line;

/// Runs both on the data of a node that has stopped, several times each, and prints a line for each.
pub(crate) fn measure(node: &Node, rounds: usize) -> anyhow::Result<()> {
    let home = path(node.data())?;
    let temporary = tempfile::tempdir()?;
    let file = temporary.path().join("blocks");
    let blocks = path(&file)?;
    timed(node, &["db", "export", "--home", home, blocks])?;
    for round in 0..rounds {
        let verified = timed(node, &["db", "verify", "--home", home])?;
        let figure = |name: &str| verified.answer.get(name).and_then(Value::as_f64);
        let txs = figure("transactions").context("verify says how many transactions")?;
        let executed = figure("executedSeconds").context("verify says how long it took")?;
        print("verify", txs, executed, &verified)?;

        let other = temporary.path().join(format!("home-{round}"));
        fs::create_dir(&other)?;
        fs::copy(node.data().join("genesis.json"), other.join("genesis.json"))?;
        let to = path(&other)?;
        let imported = timed(node, &["db", "import", "--home", to, blocks])?;
        print("import", txs, imported.seconds, &imported)?;
        fs::remove_dir_all(&other)?;
    }
    Ok(())
}

fn path(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path in UTF-8")
}

/// What a command answered, and what it took.
struct Timed {
    answer: Value,
    seconds: f64,
    cpu_seconds: f64,
}

fn timed(node: &Node, arguments: &[&str]) -> anyhow::Result<Timed> {
    let (start, cpu) = (Instant::now(), cpu_seconds_of_children()?);
    let output = node.ombra(&[arguments, &["--json"]].concat())?;
    let seconds = start.elapsed().as_secs_f64();
    if !output.status.success() {
        bail!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let answer = serde_json::from_slice(&output.stdout)?;
    Ok(Timed { answer, seconds, cpu_seconds: cpu_seconds_of_children()? - cpu })
}

fn print(name: &str, txs: f64, executed_seconds: f64, timed: &Timed) -> anyhow::Result<()> {
    line(&json!({
        "work": name,
        "txs": txs,
        "blocks": timed.answer.get("height"),
        "executedTxPerS": (txs / executed_seconds).round(),
        "wholeSeconds": timed.seconds,
        "wholeCpuUsPerTx": timed.cpu_seconds * 1e6 / txs,
    }))
}
