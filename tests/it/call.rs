//! `ombra call` against members that follow a script: what it prints, and the check of the election, also
//! behind a node that lies about it.

use std::process::Output;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::front::Front;
use testkit::http::Connection;
use testkit::market::bodies::{self, MANIFEST};
use testkit::node::{DevOptions, Node, program, wait_for};
use testkit::workload::keys;
use types::ids;
use types::tx::CallReveal;
use types::{Body, Hash};

const BOND: u64 = 10_000_000;

fn register(owner: &Actor) -> Body {
    let metadata = json!({
        "name": "judge", "description": "d", "version": "1.0.0", "royalty": "7",
        "container_image": format!("ombra-model:{MANIFEST}"),
        "executor": {"kind": "model", "model": MANIFEST, "basePrompt": "", "tools": [],
            "maxIterations": 1, "maxOutputTokens": 9},
        "abi": [{"type": "function", "name": "judge",
            "inputs": [{"name": "review", "type": "string"}, {"name": "stars", "type": "uint8"}],
            "outputs": [{"name": "verdict", "type": "string"}]}],
    });
    bodies::register(owner, metadata.to_string())
}

/// `verdict` as the method answers it.
fn reveal(call_id: Hash, verdict: &str) -> anyhow::Result<CallReveal> {
    let mut result = vec![0; 96];
    (result[31], result[63]) = (32, u8::try_from(verdict.len())?);
    result[64..64 + verdict.len()].copy_from_slice(verdict.as_bytes());
    Ok(bodies::reveal(call_id, &result))
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
        let more = ["--v8", "0"].map(str::to_owned).into();
        let node = Node::start(DevOptions { more, ..DevOptions::from_environment() })?;
        let mut connection = Connection::open(node.rpc)?;
        let info = connection.call("ombra_chainInfo", &json!([]))?;
        let chain_id = info["chainId"].as_str().context("no chainId")?.to_owned();
        let mut actors = keys(5)?.into_iter().map(Actor::new);
        let mut actor = || actors.next().context("there are five accounts");
        let (mut owner, requester) = (actor()?, actor()?);
        let members = [actor()?, actor()?, actor()?];
        let text = owner.sign_on(&chain_id, &register(&owner));
        let mut market = Self { node, connection, chain_id, requester, members };
        market.include(text)?;
        for index in 0..market.members.len() {
            let offer = Body::MinerOffer(bodies::offer(MANIFEST, 9));
            for body in [bodies::bond(BOND), offer] {
                let text = market.members[index].sign_on(&market.chain_id, &body);
                market.include(text)?;
            }
        }
        Ok(market)
    }

    fn include(&mut self, text: String) -> anyhow::Result<()> {
        let tx: Value = serde_json::from_str(&text)?;
        let sent = self.connection.call("ombra_sendTransaction", &json!([tx]))?;
        let seen = self.connection.call("ombra_waitForTransaction", &json!([sent["hash"]]))?;
        ensure!(seen["status"] == "included", "{seen}");
        Ok(())
    }

    /// Waits until a call has a status.
    fn reaches(&mut self, call_id: Hash, status: &str) -> anyhow::Result<()> {
        wait_for(status, || {
            let answer = self.connection.call("ombra_getCall", &json!([call_id]));
            Ok(answer.is_ok_and(|call| call["status"] == status).then_some(()))
        })
    }

    /// The members answer: the last one says something else.
    fn answer(&mut self, call_id: Hash) -> anyhow::Result<()> {
        let said = [reveal(call_id, "good")?, reveal(call_id, "good")?, reveal(call_id, "bad")?];
        self.reaches(call_id, "committing")?;
        for (index, shown) in said.iter().enumerate() {
            let member = &mut self.members[index];
            let commit = bodies::commit(member, shown).context("an outcome that there is")?;
            let text = member.sign_on(&self.chain_id, &Body::CallCommit(commit));
            self.include(text)?;
        }
        self.reaches(call_id, "revealing")?;
        for (index, shown) in said.into_iter().enumerate() {
            let text = self.members[index].sign_on(&self.chain_id, &Body::CallReveal(shown));
            self.include(text)?;
        }
        Ok(())
    }
}

fn printed(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{out}{err}")
}

/// One byte of what members were drawn from.
fn change(election: &mut Value) {
    election["candidates"][0]["weight"] = json!((BOND + 1).to_string());
}

#[test]
fn a_call_is_asked_answered_and_billed_and_its_election_can_be_checked() -> anyhow::Result<()> {
    let mut market = Market::open()?;
    let requester = market.requester.address();
    let call_id = ids::compute_call_id(&market.chain_id, &requester, 0);
    let url = format!("http://{}", market.node.rpc);
    let asking = ["call", "judge", "judge", "stars=5", "review=Works well.", "--dev", "1"];
    let refused = program()
        .args(["call", "judge", "judge", "x", "256", "--dev", "1"])
        .args(["--rpc", &url])
        .output()?;
    assert_eq!(Some(2), refused.status.code(), "{}", printed(&refused));
    assert!(printed(&refused).contains("/1: expected an integer without a sign of 8 bits"));

    let child = program()
        .args(asking)
        .args(["--rpc", &url])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    market.answer(call_id)?;
    let output = testkit::process::ended(child)?;
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

    let check =
        ["query", "call", &call_id.to_string(), "--check-election", "--rpc"].map(str::to_owned);
    let checked = program().args(&check).arg(&url).output()?;
    let said = printed(&checked);
    ensure!(checked.status.success(), "{said}");
    ensure!(said.contains("the members are those that the draw gives"), "{said}");
    let front = Front::before(market.node.rpc)?;
    front.lie("ombra_getElection", change);
    let checked = program().args(&check).arg(front.url()).output()?;
    let said = printed(&checked);
    assert_eq!(Some(1), checked.status.code(), "{said}");
    ensure!(said.contains("WRONG") && said.contains("the record has"), "{said}");

    let shown =
        program().args(["query", "calls", "--requester", "dev:1", "--rpc", &url]).output()?;
    ensure!(printed(&shown).contains(&call_id.to_string()), "{}", printed(&shown));
    market.node.stop()
}
