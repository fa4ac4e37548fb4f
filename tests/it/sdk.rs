//! The public Python SDK as a client, unmodified: each test has a node and a script of tests/sdk that
//! uses it through the SDK.
//!
//! The SDK is installed from `PyPI` into a virtual environment beside the compile outputs, once.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use testkit::node::{DevOptions, Node, binary};
use testkit::python::{run, with_packages};

use crate::support::dev;

/// The SDK, and what checks the OpenAPI document.
pub(crate) const PACKAGES: [&str; 2] = ["ombrachain==0.1.0", "openapi-spec-validator==0.9.0"];
/// What they bring.
pub(crate) const MODULES: &str = "ombrachain, openapi_spec_validator";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/python");

/// A script of tests/sdk in a Python that has the packages.
fn script(name: &str) -> anyhow::Result<Command> {
    Ok(script_in(with_packages("python-sdk", &PACKAGES, MODULES)?, name))
}

fn script_in(python: PathBuf, name: &str) -> Command {
    let mut command = Command::new(python);
    command.arg(format!("{}/sdk/{name}", env!("CARGO_MANIFEST_DIR"))).env("PYTHONUTF8", "1");
    // Nothing is written into the clone.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// What a script prints at its end.
fn told(script: &mut Command) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&run(script)?)?)
}

/// What a script that needs neither packages nor a node counts in the vectors.
pub(crate) fn counted(name: &str) -> anyhow::Result<Value> {
    told(script_in("python3".into(), name).arg(ROOT))
}

fn url(node: &Node) -> String {
    format!("http://{}", node.rpc)
}

/// The script prints this at its end, with a node of its own.
fn prints(
    name: &str,
    options: DevOptions,
    arguments: &[&str],
    expected: &Value,
) -> anyhow::Result<()> {
    let mut node = Node::start(options)?;
    assert_eq!(*expected, told(script(name)?.arg(url(&node)).args(arguments))?);
    node.stop()
}

fn plain() -> DevOptions {
    DevOptions::from_environment()
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
fn every_rest_method_of_the_public_sdk_is_answered_as_it_expects() -> anyhow::Result<()> {
    prints("rest.py", plain(), &[], &json!({ "nonces": [4, 1] }))
}

#[test]
fn the_public_sdk_sends_again_and_again_without_waiting() -> anyhow::Result<()> {
    // So slow that the nonce of what is pending must be counted.
    let slow = DevOptions { block_time_ms: 500, ..plain() };
    prints("send.py", slow, &[], &json!({ "nonces": [10, 0, 10, 10] }))
}

#[test]
fn what_the_public_sdk_sends_over_a_restart_is_counted_once() -> anyhow::Result<()> {
    assert_eq!(json!({ "ends": ["kill", "stop", "kill"] }), seen_over_restarts("restart.py")?);
    Ok(())
}

#[test]
fn the_public_sdk_reads_both_event_streams_whatever_people_write() -> anyhow::Result<()> {
    prints("streams.py", plain(), &[], &json!({ "types": ["block", "hello", "ping"] }))
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
    let seen = told(script("storage.py")?.arg(binary()).arg(folder.path()))?;
    assert_eq!(json!({ "listed": ["key", "long", "made", "words"] }), seen);
    Ok(())
}

#[test]
fn a_whole_agent_run_is_signed_with_the_functions_of_the_public_sdk() -> anyhow::Result<()> {
    prints("agent.py", plain(), &[], &json!({ "nonces": [11, 7] }))
}

#[test]
fn the_python_package_for_calls_agrees_with_the_vectors() -> anyhow::Result<()> {
    assert_eq!(json!({ "coded": 9, "elections": 4 }), counted("calls.py")?);
    Ok(())
}

#[test]
fn an_agent_is_called_from_python_and_what_the_node_says_is_checked() -> anyhow::Result<()> {
    let mut node = Node::start(dev(&["--v8", "0"]))?;
    let counted = told(script("calls.py")?.arg(ROOT).arg(url(&node)))?;
    node.stop()?;
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
    answers_as_the_openapi_document_says(dev(&["--v7", "0"]), "v7")
}

#[test]
fn every_rest_answer_about_agents_and_calls_is_as_the_openapi_document_says() -> anyhow::Result<()>
{
    answers_as_the_openapi_document_says(dev(&["--v8", "0"]), "v8")
}

fn answers_as_the_openapi_document_says(options: DevOptions, fork: &str) -> anyhow::Result<()> {
    let statuses = json!([200, 400, 404, 409, 413, 422, 426]);
    prints("openapi.py", options, &[fork], &json!({ "statuses": statuses }))
}

#[test]
fn a_full_pool_makes_the_public_sdk_ask_again_until_there_is_room() -> anyhow::Result<()> {
    let settings = vec![("OMBRA__TXPOOL__COUNT_MAX", "3".to_owned())];
    let full = DevOptions { settings, block_time_ms: 3_000, ..plain() };
    prints("full.py", full, &[], &json!({ "statuses": ["included", "included"] }))
}

#[test]
fn who_stops_reading_is_told_what_it_lost_and_harms_nobody() -> anyhow::Result<()> {
    let settings = vec![
        ("OMBRA__RPC__LIMITS__SUBSCRIPTION_LAG_BLOCKS_MAX", "5".to_owned()),
        ("OMBRA__RPC__LIMITS__WRITE_TIMEOUT_MS", "600000".to_owned()),
    ];
    let mut node = Node::start(DevOptions { settings, ..plain() })?;
    let seen = told(script("slow.py")?.arg(url(&node)).arg(node.pid().to_string()))?;
    node.stop()?;
    assert_eq!(json!({ "closed": 1013 }), seen);
    Ok(())
}

#[test]
fn the_python_examples_do_what_they_say() -> anyhow::Result<()> {
    prints("examples.py", plain(), &[EXAMPLES], &json!({ "examples": 7 }))
}
