//! The same around the transactions of the agent market: whatever the miner was about to send when it was
//! killed, the next life bonds, offers, commits and reveals once, and is paid for the answer.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use testkit::breakpoint::Marks;
use testkit::miners::{MinerHome, Requester, text};
use testkit::node::{DevOptions, Node, wait_for, wait_until};
use testkit::parallel;
use testkit::script::{Model, Reply};
use testkit::wire::{Call, Side, Trap, Wire};
use types::agent::Document;
use types::tx::{AgentCall, AgentRegister, CallPrices, HexBytes, WorkLimits};
use types::{Amount, Body, Hash, ids};

use super::{journal_of, name};
use crate::support::{CHAIN, dev};

/// A program that tells by its words whether a review is friendly, and its metadata.
const PROGRAM: &[u8] = include_bytes!("../../../examples/agents/built/keywords.wasm");
const METADATA: &str = include_str!("../../../examples/agents/keywords/agent.json");
const BLOB: &str = "example-keywords-1";
const PER_CALL: u64 = 1_000;
/// What the miner sends when nothing goes wrong: a bond, an offer, a commitment and a reveal.
const SENT: u64 = 4;

/// Where the miner is killed, and what its journal has signed then.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    kind: &'static str,
    side: Side,
    signed: &'static str,
}

const fn case(name: &'static str, kind: &'static str, side: Side, signed: &'static str) -> Case {
    Case { name, kind, side, signed }
}

/// The purposes of the outbox in which a miner is killed here.
pub(super) const SIGNED: [&str; 4] = ["stake", "offer", "commit", "reveal"];

const CASES: &[Case] = &[
    case("the bond is signed, and not sent", "MINER_BOND", Side::Request, "stake"),
    case("the bond is sent, and nobody has said so", "MINER_BOND", Side::Answer, "stake"),
    case("the offer is signed, and not sent", "MINER_OFFER", Side::Request, "offer"),
    case("the offer is sent, and nobody has said so", "MINER_OFFER", Side::Answer, "offer"),
    case("the commitment is signed, and not sent", "CALL_COMMIT", Side::Request, "commit"),
    case("the commitment is sent, and nobody has said so", "CALL_COMMIT", Side::Answer, "commit"),
    case("the reveal is signed, and not sent", "CALL_REVEAL", Side::Request, "reveal"),
    case("the reveal is sent, and nobody has said so", "CALL_REVEAL", Side::Answer, "reveal"),
];

/// A chain with the agent, its author who asks as well, and a miner behind a wire.
struct Stage {
    node: Node,
    author: Requester,
    home: MinerHome,
    wire: Wire,
    agent: Hash,
    _model: Model,
}

impl Stage {
    fn new(folder: &Path) -> anyhow::Result<Self> {
        let node = Node::start(DevOptions { accounts: 2, ..dev(&["--v8", "0"]) })?;
        let mut author = Requester::new(0, node.rpc)?;
        let agent = publish(&mut author)?;
        let wire = Wire::to(node.rpc, Arc::new(Marks::default()))?;
        // Nobody asks it: the agent is a program.
        let model = Model::start(|_| Reply::said("nothing"))?;
        let settings = format!(
            "{}[engine]\npoll_ms = 500\npause_ms = 20\n[policy]\nclaiming = false\n\
             [[market.offers]]\nexecutor = \"wasm-1\"\nper_call_micro = {PER_CALL}\n",
            model.settings(""),
        );
        let home = MinerHome::new(folder, 1, wire.address, &settings)?;
        Ok(Self { node, author, home, wire, agent, _model: model })
    }

    /// Kills the miner when it sends a transaction of this type, and looks what its journal has signed.
    fn kill_at(&mut self, case: &Case) -> anyhow::Result<Option<Hash>> {
        let trap = Trap { after: "", call: Call::Send(case.kind), passing: 0, side: case.side };
        let gate = self.wire.hold(trap, &Hash::ZERO);
        let mut miner = self.home.start()?;
        let is_about_a_call = matches!(case.signed, "commit" | "reveal");
        let call = if is_about_a_call { Some(self.ask()?) } else { None };
        gate.reached("the miner to be held up").map_err(|fault| self.home.explain(&fault))?;
        miner.kill()?;
        self.wire.mend();
        let outbox = journal_of(&self.home, &self.node)?.outbox()?;
        let signed = outbox.iter().map(|parcel| name(&parcel.purpose));
        let signed: Vec<_> = signed.collect::<anyhow::Result<_>>()?;
        ensure!(signed == [case.signed], "{}: the journal has signed {signed:?}", case.name);
        Ok(call)
    }

    /// Waits until the miner offers, and calls the agent.
    fn ask(&mut self) -> anyhow::Result<Hash> {
        let filter = json!([{ "executor": "wasm-1" }]);
        wait_until("the offer", || {
            let offers = self.node.call("ombra_listOffers", &filter)?;
            Ok(offers["items"].as_array().is_some_and(|it| !it.is_empty()))
        })
        .map_err(|fault| self.home.explain(&fault))?;
        let asked = self.author.actor().call(CHAIN, self.agent);
        let call_id = asked.call_id;
        let document = Document::read(METADATA.as_bytes());
        let metadata = document.and_then(|it| it.check(Amount::MAX).outcome);
        let metadata = metadata.map_err(|fault| anyhow::anyhow!("{fault}"))?;
        let method = metadata.methods.first().context("a method")?;
        self.author.send_on(
            CHAIN,
            &Body::AgentCall(AgentCall {
                agent_version: metadata.version.to_string(),
                payload: HexBytes(method.encode_arguments("[\"Works great.\"]")?),
                committee_size: 1,
                prices: CallPrices { per_call: Amount::new(PER_CALL), ..asked.prices },
                limits: WorkLimits {
                    input_tokens: 0,
                    output_tokens: 0,
                    fuel: 10_000_000,
                    result_bytes: 1_024,
                },
                max_fee: Amount::new(10 * PER_CALL),
                timeout_ms: 60_000,
                ..asked
            }),
        )?;
        Ok(call_id)
    }

    /// The call is settled, with an answer for which the miner was paid, and the miner has sent what it
    /// must, each once.
    fn check_end(&self, call: &Hash) -> anyhow::Result<()> {
        let settled = wait_for("the call to be settled", || {
            let record = self.node.call("ombra_getCall", &json!([call]))?;
            Ok((record["settled"] == json!(true)).then_some(record))
        });
        let settled = settled.map_err(|fault| self.home.explain(&fault))?;
        ensure!(text(&settled, "status") == "success", "{settled}");
        ensure!(text(&settled, "wages") == PER_CALL.to_string(), "{settled}");
        let account = wait_for("the miner to have nothing left", || {
            let account = self.node.call("ombra_getAccount", &json!([self.home.address()]))?;
            Ok((account["nonce"] == account["pendingNonce"]).then_some(account))
        })?;
        ensure!(account["nonce"] == json!(SENT), "it sent other things than it must: {account}");
        let told = self.home.told(&["assignments"])?;
        ensure!(told.to_string().contains(&call.to_string()), "the miner says {told}");
        let receipt = self.home.tell(&["receipt", &call.to_string()])?;
        let receipt: Value = serde_json::from_str(&receipt)?;
        ensure!(receipt["work"]["outcome"] == "success", "the receipt is {receipt}");
        Ok(())
    }
}

/// Publishes the program and the agent; answers the agent's id.
fn publish(author: &mut Requester) -> anyhow::Result<Hash> {
    fixtures::blob(BLOB, PROGRAM).iter().try_for_each(|body| author.send(body))?;
    let value: Value = serde_json::from_str(METADATA)?;
    let agent_id = ids::compute_agent_id(&author.address(), text(&value, "name"));
    let metadata = METADATA.to_owned();
    author.send_on(CHAIN, &Body::AgentRegister(AgentRegister { agent_id, metadata }))?;
    Ok(agent_id)
}

fn check(case: &Case, folder: &Path) -> anyhow::Result<()> {
    let mut stage = Stage::new(folder)?;
    let call = stage.kill_at(case)?;
    let miner = stage.home.start()?;
    let call = call.map_or_else(|| stage.ask(), Ok)?;
    stage.check_end(&call)?;
    miner.stop()
}

#[test]
fn a_miner_killed_around_each_transaction_of_the_market_goes_on_where_it_was() -> anyhow::Result<()>
{
    let folder = tempfile::tempdir()?;
    let check = |number: usize, case: &Case| check(case, &folder.path().join(number.to_string()));
    parallel::each(CASES, |case| case.name, check)
}

#[test]
fn a_miner_is_killed_in_each_purpose_of_the_market() {
    for signed in SIGNED {
        assert!(CASES.iter().any(|case| case.signed == signed), "{signed}");
    }
}
