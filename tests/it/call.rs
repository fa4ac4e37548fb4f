//! `ombra call` against members that follow a script: what it prints, and the check of the election, also
//! behind a node that lies about it.

use std::process::Output;

use anyhow::{Context, ensure};
use fixtures::MANIFEST;
use serde_json::{Value, json};
use testkit::actor::{Actor, people};
use testkit::front::Front;
use testkit::http::Connection;
use testkit::node::{Node, program, wait_until};
use testkit::process::{ended, output};
use types::Hash;
use types::ids;
use types::tx::CallReveal;

use crate::support::{MIN_BOND, dev, include, market};

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

/// A chain with an agent, somebody who asks, and three miners.
struct Market {
    node: Node,
    connection: Connection,
    chain_id: String,
    requester: Actor,
    members: [Actor; 3],
}

impl Market {
    fn open() -> anyhow::Result<Self> {
        let node = Node::start(dev(&["--v8", "0"]))?;
        let mut connection = Connection::open(node.rpc)?;
        let info = connection.call("ombra_chainInfo", &json!([]))?;
        let chain_id = info["chainId"].as_str().context("no chainId")?.to_owned();
        let [mut owner, requester, first, second, third] = people()?;
        let mut members = [first, second, third];
        let texts = market(&chain_id, (&mut owner, metadata()), &mut members);
        include(&mut connection, &texts)?;
        Ok(Self { node, connection, chain_id, requester, members })
    }

    /// Waits until a call has a status.
    fn reaches(&mut self, call_id: Hash, status: &str) -> anyhow::Result<()> {
        wait_until(status, || {
            let answer = self.connection.call("ombra_getCall", &json!([call_id]));
            Ok(answer.is_ok_and(|call| call["status"] == status))
        })
    }

    /// The members answer: the last one says something else.
    fn answer(&mut self, call_id: Hash) -> anyhow::Result<()> {
        let said = [reveal(call_id, "good")?, reveal(call_id, "good")?, reveal(call_id, "bad")?];
        let (mut commits, mut reveals) = (Vec::new(), Vec::new());
        for (member, shown) in self.members.iter_mut().zip(said) {
            let commit = fixtures::commit(member.address(), &shown);
            commits.push(member.sign_on(&self.chain_id, &commit.into()));
            reveals.push(member.sign_on(&self.chain_id, &shown.into()));
        }
        self.reaches(call_id, "committing")?;
        include(&mut self.connection, &commits)?;
        self.reaches(call_id, "revealing")?;
        include(&mut self.connection, &reveals).map(drop)
    }
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
    let mut market = Market::open()?;
    let requester = market.requester.address();
    let call_id = ids::compute_call_id(&market.chain_id, &requester, 0);
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
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    market.answer(call_id)?;
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
