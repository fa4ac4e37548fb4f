//! The public Python SDK as a client, unmodified: each test has a node and a script of tests/sdk that
//! uses it through the SDK.
//!
//! The SDK is installed from `PyPI` into a virtual environment beside the compile outputs, once.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use testkit::node::{DevOptions, Node, binary};
use testkit::python::{run, with_packages};

use crate::rejections::before_the_fork;

/// The SDK, and what checks the OpenAPI document.
pub(crate) const PACKAGES: [&str; 2] = ["ombrachain==0.1.0", "openapi-spec-validator==0.9.0"];
/// What they bring.
pub(crate) const MODULES: &str = "ombrachain, openapi_spec_validator";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/python");

/// A script of tests/sdk in a Python that has the packages.
fn script(name: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(with_packages("python-sdk", &PACKAGES, MODULES)?);
    command.arg(format!("{}/sdk/{name}", env!("CARGO_MANIFEST_DIR"))).env("PYTHONUTF8", "1");
    // Nothing is written into the clone.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

fn url(node: &Node) -> String {
    format!("http://{}", node.rpc)
}

/// What the script prints at its end, with a node of its own.
fn seen(name: &str, options: DevOptions, arguments: &[&str]) -> anyhow::Result<Value> {
    let mut node = Node::start(options)?;
    let printed = run(script(name)?.arg(url(&node)).args(arguments))?;
    node.stop()?;
    Ok(serde_json::from_str(printed.trim())?)
}

fn plain() -> DevOptions {
    DevOptions::from_environment()
}

/// The same, with a node that the script is told the process id of.
fn seen_with_pid(name: &str, options: DevOptions) -> anyhow::Result<Value> {
    let mut node = Node::start(options)?;
    let printed = run(script(name)?.arg(url(&node)).arg(node.pid().to_string()))?;
    node.stop()?;
    Ok(serde_json::from_str(printed.trim())?)
}

/// A node with these settings.
fn with(settings: &[(&'static str, &str)]) -> DevOptions {
    let settings = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    DevOptions { settings, ..plain() }
}

/// What the script prints at its end. Before that it asks for the node to be stopped, killed, and
/// started again at the same address.
fn seen_over_restarts(name: &str) -> anyhow::Result<Value> {
    let mut node = Node::start(plain())?;
    let mut command = script(name)?;
    command.arg(url(&node)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().with_context(|| format!("starting {command:?}"))?;
    let mut answers = process.stdin.take().context("a pipe to the script")?;
    let lines = BufReader::new(process.stdout.take().context("a pipe from the script")?).lines();
    let mut last = String::new();
    for line in lines {
        last = line?;
        match last.as_str() {
            "stop" => node.stop()?,
            "kill" => node.kill()?,
            "start" => node.restart_in_place()?,
            _ => continue,
        }
        writeln!(answers, "done")?;
    }
    let mut faults = String::new();
    process.stderr.take().context("a pipe of faults")?.read_to_string(&mut faults)?;
    if !process.wait()?.success() {
        bail!("{name}: {faults}");
    }
    node.stop()?;
    Ok(serde_json::from_str(&last)?)
}

#[test]
fn the_public_sdk_signs_transactions_that_the_chain_includes() -> anyhow::Result<()> {
    let expected = json!({
        "golden": "94bfbb5fbd2fea4c67be283d36528a3cfd1cfda3",
        "sender": "de133ca6f509c74f6e2e849403cc461d2d5b3e3c",
        "statuses": ["included", "included"],
        "balance": "1500000",
        "miner": "minerul meu țară 😀",
    });
    assert_eq!(expected, seen("check.py", plain(), &[])?);
    Ok(())
}

#[test]
fn every_rest_method_of_the_public_sdk_is_answered_as_it_expects() -> anyhow::Result<()> {
    assert_eq!(json!({ "nonces": [6, 1] }), seen("rest.py", plain(), &[])?);
    Ok(())
}

#[test]
fn the_public_sdk_sends_again_and_again_without_waiting() -> anyhow::Result<()> {
    // So slow that the nonce of what is pending must be counted.
    let slow = DevOptions { block_time_ms: 500, ..plain() };
    assert_eq!(json!({ "nonces": [10, 0, 10, 10] }), seen("send.py", slow, &[])?);
    Ok(())
}

#[test]
fn what_the_public_sdk_sends_over_a_restart_is_counted_once() -> anyhow::Result<()> {
    assert_eq!(json!({ "ends": ["kill", "stop", "kill"] }), seen_over_restarts("restart.py")?);
    Ok(())
}

#[test]
fn the_public_sdk_reads_both_event_streams_whatever_people_write() -> anyhow::Result<()> {
    let seen = seen("streams.py", plain(), &[])?;
    assert_eq!(json!({ "types": ["block", "hello", "ping"] }), seen);
    Ok(())
}

#[test]
fn the_public_sdk_comes_back_to_its_web_socket_and_hears_every_channel() -> anyhow::Result<()> {
    // 1006 is a connection that was broken off.
    assert_eq!(json!({ "closed": [1012, 1006] }), seen_over_restarts("websocket.py")?);
    Ok(())
}

#[test]
fn the_public_sdk_and_the_key_store_open_each_others_wallet_files() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let printed = run(script("storage.py")?.arg(binary()).arg(folder.path()))?;
    let seen: Value = serde_json::from_str(printed.trim())?;
    assert_eq!(json!({ "listed": ["key", "long", "made", "words"] }), seen);
    Ok(())
}

#[test]
fn a_whole_agent_run_is_signed_with_the_functions_of_the_public_sdk() -> anyhow::Result<()> {
    assert_eq!(json!({ "nonces": [11, 7] }), seen("agent.py", plain(), &[])?);
    Ok(())
}

#[test]
fn the_python_package_for_calls_agrees_with_the_vectors() -> anyhow::Result<()> {
    let mut command = Command::new("python3");
    command.arg(format!("{}/sdk/calls.py", env!("CARGO_MANIFEST_DIR"))).arg(ROOT);
    let printed = run(command.env("PYTHONUTF8", "1").env("PYTHONDONTWRITEBYTECODE", "1"))?;
    let counted: Value = serde_json::from_str(&printed)?;
    assert_eq!(json!({ "coded": 9, "elections": 4 }), counted);
    Ok(())
}

#[test]
fn an_agent_is_called_from_python_and_what_the_node_says_is_checked() -> anyhow::Result<()> {
    let market = vec!["--v8".to_owned(), "0".to_owned()];
    let mut node = Node::start(DevOptions { more: market, ..plain() })?;
    let printed = run(script("calls.py")?.arg(ROOT).arg(url(&node)))?;
    node.stop()?;
    let counted: Value = serde_json::from_str(printed.trim())?;
    let expected = json!({ "coded": 9, "elections": 4, "called": 2, "changes": 9, "refunded": 2 });
    assert_eq!(expected, counted);
    Ok(())
}

#[test]
fn every_rest_answer_is_as_the_openapi_document_says() -> anyhow::Result<()> {
    answers_as_the_openapi_document_says(plain(), "v6")
}

#[test]
fn every_rest_answer_about_runs_and_bonds_of_v7_is_as_the_openapi_document_says()
-> anyhow::Result<()> {
    let v7 = DevOptions { more: vec!["--v7".to_owned(), "0".to_owned()], ..plain() };
    answers_as_the_openapi_document_says(v7, "v7")
}

#[test]
fn every_rest_answer_about_agents_and_calls_is_as_the_openapi_document_says() -> anyhow::Result<()>
{
    let v8 = DevOptions { more: vec!["--v8".to_owned(), "0".to_owned()], ..plain() };
    answers_as_the_openapi_document_says(v8, "v8")
}

fn answers_as_the_openapi_document_says(options: DevOptions, fork: &str) -> anyhow::Result<()> {
    let statuses = json!([200, 400, 404, 409, 413, 422, 426]);
    assert_eq!(json!({ "statuses": statuses }), seen("openapi.py", options, &[fork])?);
    Ok(())
}

#[test]
fn who_asks_too_often_is_told_when_to_come_back() -> anyhow::Result<()> {
    let limited = with(&[
        ("OMBRA__RPC__RATE__REQUESTS_PER_SECOND", "1"),
        ("OMBRA__RPC__RATE__BURST", "5"),
        ("OMBRA__RPC__RATE__KEYS", r#"["key"]"#),
        ("OMBRA__RPC__RATE__KEY_REQUESTS_PER_SECOND", "1000"),
    ]);
    assert_eq!(json!({ "answered": 50 }), seen("limits.py", limited, &["some"])?);
    Ok(())
}

#[test]
fn nobody_hears_of_a_limit_where_there_is_none() -> anyhow::Result<()> {
    assert_eq!(json!({ "answered": 50 }), seen("limits.py", plain(), &["none"])?);
    Ok(())
}

#[test]
fn the_public_sdk_is_told_once_that_a_fork_is_not_active() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    before_the_fork(folder.path())?;
    let before = DevOptions { data_dir: Some(folder.path().to_owned()), ..plain() };
    assert_eq!(json!({ "refused": 6, "nonce": 0 }), seen("fork.py", before, &[])?);
    Ok(())
}

#[test]
fn a_full_pool_makes_the_public_sdk_ask_again_until_there_is_room() -> anyhow::Result<()> {
    let full = with(&[("OMBRA__TXPOOL__COUNT_MAX", "3")]);
    let full = DevOptions { block_time_ms: 3_000, ..full };
    assert_eq!(json!({ "statuses": ["included", "included"] }), seen("full.py", full, &[])?);
    Ok(())
}

#[test]
fn the_public_sdk_reads_a_long_chain_page_by_page() -> anyhow::Result<()> {
    let short_pages = with(&[("OMBRA__RPC__LIMITS__PAGE_BYTES_MAX", "100000")]);
    let more = ["--param", "heartbeatMs=10"].map(str::to_owned).to_vec();
    let quick = DevOptions { block_time_ms: 10, more, ..short_pages };
    assert_eq!(json!({ "turns": 30 }), seen("pages.py", quick, &[])?);
    Ok(())
}

#[test]
fn who_stops_reading_is_told_what_it_lost_and_harms_nobody() -> anyhow::Result<()> {
    let settings = [
        ("OMBRA__RPC__LIMITS__SUBSCRIPTION_LAG_BLOCKS_MAX", "5"),
        ("OMBRA__RPC__LIMITS__WRITE_TIMEOUT_MS", "600000"),
    ];
    assert_eq!(json!({ "closed": 1013 }), seen_with_pid("slow.py", with(&settings))?);
    Ok(())
}

#[test]
fn the_python_examples_do_what_they_say() -> anyhow::Result<()> {
    assert_eq!(json!({ "examples": 7 }), seen("examples.py", plain(), &[EXAMPLES])?);
    Ok(())
}
