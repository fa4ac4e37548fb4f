//! `ombra call` against members that follow a script: what it prints, and the check of the election, also
//! behind a node that lies about it.

use std::process::{Output, Stdio};

use anyhow::{Context as _, ensure};
use fixtures::MANIFEST;
use serde_json::{Value, json};
use testkit::front::Front;
use testkit::node::{program, wait_for};
use testkit::process::{Process, Signal, ended, lines_to, output};
use types::Hash;
use types::ids;
use types::tx::CallReveal;

use crate::support::{CHAIN, MIN_BOND, Market};

/// Of an agent with a method that has arguments and an answer.
fn metadata() -> String {
    let metadata = json!({
        "name": "judge", "description": "d", "version": "1.0.0", "royalty": "7",
        "container_image": format!("ombra-model:{MANIFEST}"),
        "executor": {"kind": "model", "model": MANIFEST, "basePrompt": "", "tools": [],
            "maxIterations": 1, "maxOutputTokens": 9},
        "abi": [{"type": "function", "name": "judge",
            "inputs": [{"name": "review", "type": "string"}, {"name": "stars", "type": "uint8"}],
            "outputs": [{"name": "verdict", "type": "string"}]}],
    });
    metadata.to_string()
}

/// `verdict` as the method answers it.
fn reveal(call_id: Hash, verdict: &str) -> anyhow::Result<CallReveal> {
    let mut result = vec![0; 96];
    (result[31], result[63]) = (32, u8::try_from(verdict.len())?);
    result[64..64 + verdict.len()].copy_from_slice(verdict.as_bytes());
    Ok(fixtures::reveal(call_id, &result))
}

fn printed(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{out}{err}")
}

/// One byte of what members were drawn from.
fn change(election: &mut Value) {
    election["candidates"][0]["weight"] = json!((MIN_BOND + 1).to_string());
}

#[test]
fn a_call_is_asked_answered_and_billed_and_its_election_can_be_checked() -> anyhow::Result<()> {
    let mut market = Market::open(metadata())?;
    let requester = market.requester.address();
    let call_id = ids::compute_call_id(CHAIN, &requester, 0);
    let url = format!("http://{}", market.node.rpc);
    let ombra = |arguments: &[&str], node: &str| -> anyhow::Result<(Option<i32>, String)> {
        let output = output(program().args(arguments).args(["--rpc", node]))?;
        Ok((output.status.code(), printed(&output)))
    };
    let (code, said) = ombra(&["call", "judge", "judge", "x", "256", "--dev", "1"], &url)?;
    assert_eq!(Some(2), code, "{said}");
    assert!(said.contains("/1: expected an integer without a sign of 8 bits"));

    let asking = ["call", "judge", "judge", "stars=5", "review=Works well.", "--dev", "1"];
    let child = program()
        .args(asking)
        .args(["--rpc", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // The last member says something else.
    let said = [reveal(call_id, "good")?, reveal(call_id, "good")?, reveal(call_id, "bad")?];
    market.answer(call_id, said)?;
    let output = ended(child)?;
    let said = printed(&output);
    ensure!(output.status.success(), "{said}");
    for wanted in [
        "3 can be drawn at these prices, 3 are needed",
        "success: 2 of 3 agree",
        "verdict = \"good\"",
        "0.002000 OMBRA to 2 who agreed",
        "0.000007 OMBRA",
        &market.members[2].address().to_string(),
        "penalties",
    ] {
        ensure!(said.contains(wanted), "{said}\nhas not: {wanted}");
    }

    let id = call_id.to_string();
    let check = ["query", "call", &id, "--check-election"];
    let (code, said) = ombra(&check, &url)?;
    assert_eq!(Some(0), code, "{said}");
    ensure!(said.contains("the members are those that the draw gives"), "{said}");
    let front = Front::before(market.node.rpc)?;
    front.lie("ombra_getElection", change);
    let (code, said) = ombra(&check, &front.url())?;
    assert_eq!(Some(1), code, "{said}");
    ensure!(said.contains("WRONG") && said.contains("the record has"), "{said}");

    let (code, said) = ombra(&["query", "calls", "--requester", "dev:1"], &url)?;
    assert_eq!(Some(0), code, "{said}");
    ensure!(said.contains(&id), "{said}");
    market.node.stop()
}

/// The account's second transaction is to have a later nonce than the next one, so that it waits in the pool.
fn leave_a_gap(account: &mut Value) {
    if account["pendingNonce"] == json!(1) {
        account["pendingNonce"] = json!(2);
    }
}

#[test]
fn ctrl_c_while_a_further_try_is_sent_ends_the_command_and_names_the_call() -> anyhow::Result<()> {
    let mut market = Market::open(metadata())?;
    let front = Front::before(market.node.rpc)?;
    front.lie("ombra_getAccount", leave_a_gap);
    // There are three miners, so the first try ends unassigned.
    let asking = ["call", "judge", "judge", "Works well.", "5", "--dev", "1", "--committee", "5"];
    let mut command = program();
    command.args(asking).args(["--anyway", "--rpc", &front.url()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::start("the call", &mut command)?;
    let lines = process.lines()?;
    for word in ["unassigned: ", "call ", "transaction "] {
        lines_to(&lines, word).with_context(|| format!("the line {word:?}"))?;
    }
    process.signal(Signal::INT)?;
    let status = wait_for("the call to end", || Ok(process.child.try_wait()?))?;
    let said = std::io::read_to_string(process.child.stderr.take().context("its errors")?)?;
    assert_eq!(Some(1), status.code(), "{said}");
    let second = ids::compute_call_id(CHAIN, &market.requester.address(), 2);
    for wanted in [
        "before you repeat it, ask: ombra query tx ",
        &format!("interrupted while sending the call {second}"),
    ] {
        ensure!(said.contains(wanted), "{said}\nhas not: {wanted}");
    }
    market.node.stop()
}
