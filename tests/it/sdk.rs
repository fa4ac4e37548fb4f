//! The public Python SDK as a client: it derives the same wallet, and what it signs is accepted.
//!
//! The SDK is installed from `PyPI` into a virtual environment beside the compile outputs, once.

use std::process::Command;

use serde_json::{Value, json};
use tests::node::{DevOptions, Node};
use tests::python::{run, with_package};

const SDK: &str = "ombrachain==0.1.0";

#[test]
fn the_public_sdk_signs_transactions_that_the_chain_includes() -> anyhow::Result<()> {
    let python = with_package("python-sdk", SDK, "ombrachain")?;
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
