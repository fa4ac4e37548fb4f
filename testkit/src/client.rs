//! The program as a client of a node: `ombra … --rpc URL`.

use std::net::SocketAddr;
use std::process::Output;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::node::program;
use crate::process::output;

/// How a command ends, and what it prints.
pub fn ran(node: SocketAddr, arguments: &[&str]) -> anyhow::Result<Output> {
    output(program().args(arguments).args(["--rpc", &format!("http://{node}")]))
}

/// What a command prints that ends well.
pub fn told(node: SocketAddr, arguments: &[&str]) -> anyhow::Result<String> {
    let Output { status, stdout, stderr } = ran(node, arguments)?;
    let said = String::from_utf8_lossy(&stderr);
    let printed = String::from_utf8(stdout)?;
    ensure!(status.success(), "ombra {}: {said}{printed}", arguments.join(" "));
    Ok(printed)
}

/// What a command prints as JSON, however it ends.
pub fn answered(node: SocketAddr, arguments: &[&str]) -> anyhow::Result<Value> {
    let Output { stdout, stderr, .. } = ran(node, &[arguments, &["--json"]].concat())?;
    let said = String::from_utf8_lossy(&stderr);
    serde_json::from_slice(&stdout)
        .with_context(|| format!("ombra {}: {said}", arguments.join(" ")))
}
