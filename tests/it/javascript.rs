//! The JavaScript library in `examples/js`: its own tests, against the vectors and against a node.

use std::process::Command;

use anyhow::{Context, ensure};
use testkit::node::Node;

use crate::support::dev;

/// The library's tests that need no node, and one of the explorer, which uses the library.
const ALONE: &[&str] =
    &["vectors", "engines", "fields", "methods", "chain", "market", "retries", "explorer"];
/// Those that need one. They run one after the other, because one of them empties the pool.
const WITH_NODE: &[&str] = &["node", "subscription", "programs"];

/// Has Node.js run a test file; fails with everything that it printed.
fn pass(name: &str, node: Option<&Node>) -> anyhow::Result<()> {
    let mut command = Command::new("node");
    command.arg("--test");
    command.arg(format!("{}/js/{name}.test.mjs", env!("CARGO_MANIFEST_DIR")));
    if let Some(node) = node {
        command.env("OMBRA_URL", format!("http://{}", node.rpc));
        command.env("OMBRA_HOME", node.data());
    }
    let output = command.output().context("`node` does not start; `./run test` installs it")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{printed}\n{errors}");
    Ok(())
}

#[test]
fn the_javascript_library_agrees_with_the_vectors() -> anyhow::Result<()> {
    ALONE.iter().try_for_each(|name| pass(name, None))
}

#[test]
fn what_the_javascript_library_signs_the_chain_includes() -> anyhow::Result<()> {
    let mut node = Node::start(dev(&[]))?;
    WITH_NODE.iter().try_for_each(|name| pass(name, Some(&node)))?;
    node.stop()
}

#[test]
fn what_a_node_says_of_calls_to_agents_the_javascript_library_checks() -> anyhow::Result<()> {
    let mut node = Node::start(dev(&["--v8", "0"]))?;
    pass("calls", Some(&node))?;
    node.stop()
}
