//! The public Python SDK as a client: it derives the same wallet, and what it signs is accepted.
//!
//! The SDK is installed from `PyPI` into a virtual environment beside the compile outputs, once.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tests::node::{DevOptions, Node};

const SDK: &str = "ombrachain==0.1.0";

/// A Python with the SDK.
fn python() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let target = test.ancestors().nth(3).context("tests are in target/*/deps")?;
    let environment = target.join("python-sdk");
    let python = environment.join("bin/python");
    let has_sdk = Command::new(&python).args(["-c", "import ombrachain"]).output();
    if !has_sdk.is_ok_and(|output| output.status.success()) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", SDK]))?;
    }
    Ok(python)
}

fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn the_public_sdk_signs_transactions_that_the_chain_includes() -> anyhow::Result<()> {
    let python = python()?;
    let mut node = Node::start(DevOptions::from_environment())?;
    let url = format!("http://{}", node.rpc);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/sdk/check.py");

    let printed = run(Command::new(python).args([script, &url]))?;
    let seen: Value = serde_json::from_str(printed.trim())?;

    let expected = json!({
        "golden": "94bfbb5fbd2fea4c67be283d36528a3cfd1cfda3",
        "sender": "de133ca6f509c74f6e2e849403cc461d2d5b3e3c",
        "statuses": ["included", "included"],
        "balance": "1500000",
        "miner": "minerul meu țară 😀",
    });
    assert_eq!(expected, seen);
    node.stop()
}
