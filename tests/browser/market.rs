//! The agent market on a scene: an agent that can be called, miners that offer for it, and members that
//! answer as they are told.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tests::actor::Actor;
use tests::node::wait_for;
use types::agent::ExecutorId;
use types::ids::{self, Committer, compute_commitment};
use types::tx::{AgentRegister, CallCommit, CallReveal, HexBytes, MinerBond, MinerOffer};
use types::{Amount, Body, Hash};

use crate::scene::Scene;

/// The chain of `ombra dev`.
const CHAIN: &str = "ombra-dev";
const BOND: u64 = 20_000_000;
const PER_CALL: u64 = 1_000;
const MANIFEST: Hash = Hash::new([0xee; 32]);
/// What strangers may write.
pub(crate) const DESCRIPTION: &str =
    "Says whether a review is good. <img src=x onerror=\"alert(1)\"> <script>alert(2)</script>";
/// The bytes of a word of Solidity's interface.
const WORD: usize = 32;

/// What a member answers: the verdict, and whether the review is good.
pub(crate) type Said = (&'static str, bool);

/// Publishes an agent of the first person, and has these people offer for it; answers the agent's id.
pub(crate) fn open(
    scene: &mut Scene,
    name: &str,
    miners: std::ops::Range<usize>,
) -> anyhow::Result<String> {
    let owner = &mut scene.people[0];
    let metadata = json!({
        "name": name, "description": DESCRIPTION, "version": "1.0.0",
        "container_image": format!("ombra-model:{MANIFEST}"), "tags": ["reviews"], "royalty": "500",
        "executor": { "kind": "model", "model": MANIFEST, "basePrompt": "", "tools": ["math_eval"],
            "maxIterations": 1, "maxOutputTokens": 9 },
        "abi": [{ "type": "function", "name": "judge",
            "inputs": [{ "name": "review", "type": "string" }, { "name": "stars", "type": "uint8" },
                { "name": "lines", "type": "string[]" }],
            "outputs": [{ "name": "verdict", "type": "string" }, { "name": "good", "type": "bool" }] }],
    });
    let agent_id = ids::compute_agent_id(&owner.address(), name);
    let register = AgentRegister { agent_id, metadata: metadata.to_string() };
    let mut texts = vec![owner.sign_on(CHAIN, &Body::AgentRegister(register))];
    for miner in &mut scene.people[miners] {
        let bond = Body::MinerBond(MinerBond { amount: Amount::new(BOND) });
        texts.extend([miner.sign(&bond), miner.sign_on(CHAIN, &Body::MinerOffer(offer()))]);
    }
    scene.include(&texts)?;
    Ok(agent_id.to_string())
}

fn offer() -> MinerOffer {
    MinerOffer {
        executor: ExecutorId::Model { manifest: MANIFEST }.to_string(),
        capacity: 9,
        per_call: Amount::new(PER_CALL),
        prompt_per_m: Amount::ZERO,
        completion_per_m: Amount::ZERO,
        fuel_per_g: Amount::ZERO,
    }
}

/// The members of a round in the order of the draw, once they are drawn.
pub(crate) fn members(scene: &Scene, call_id: &str, round: usize) -> anyhow::Result<Vec<usize>> {
    let drawn = wait_for(&format!("round {round} of call {call_id}"), || {
        let found = scene.node.call("ombra_getCall", &json!([call_id]))?;
        Ok(found["rounds"][round]["members"].as_array().cloned())
    })?;
    let place = |member: &Value| {
        let is = |one: &Actor| member["address"] == one.address().to_string().as_str();
        scene.people.iter().position(is).with_context(|| member.to_string())
    };
    drawn.iter().map(place).collect()
}

/// A member's transactions for one answer.
struct Speech {
    call_id: Hash,
    round: u64,
    said: Said,
}

impl Speech {
    fn reveal(&self) -> CallReveal {
        CallReveal {
            call_id: self.call_id,
            round: self.round,
            salt: Hash::new([5; 32]),
            outcome: "success".to_owned(),
            result: HexBytes(result(self.said)),
            input_tokens: 12,
            output_tokens: 3,
            fuel: 0,
            receipt_hash: Hash::new([7; 32]),
            reason: None,
        }
    }

    fn commit(&self, member: &Actor) -> anyhow::Result<CallCommit> {
        let Self { call_id, round, .. } = *self;
        let by = Committer { call_id, round, member: member.address() };
        let reveal = self.reveal();
        let answer = reveal.answer().context("an outcome that there is")?;
        let commitment = compute_commitment(&by, &reveal.salt, &answer);
        Ok(CallCommit { call_id, round, commitment })
    }
}

/// Members commit to what they say; `speak` then reveals it.
pub(crate) fn commit(
    scene: &mut Scene,
    call_id: &str,
    round: u64,
    said: &[(usize, Said)],
) -> anyhow::Result<()> {
    let mut texts = Vec::new();
    for (person, said) in said {
        let speech = Speech { call_id: Hash::parse(call_id)?, round, said: *said };
        let member = &mut scene.people[*person];
        let commit = speech.commit(member)?;
        texts.push(member.sign_on(CHAIN, &Body::CallCommit(commit)));
    }
    scene.include(&texts).map(drop)
}

/// Members show what they have committed to.
pub(crate) fn speak(
    scene: &mut Scene,
    call_id: &str,
    round: u64,
    said: &[(usize, Said)],
) -> anyhow::Result<()> {
    let mut texts = Vec::new();
    for (person, said) in said {
        let speech = Speech { call_id: Hash::parse(call_id)?, round, said: *said };
        let member = &mut scene.people[*person];
        texts.push(member.sign_on(CHAIN, &Body::CallReveal(speech.reveal())));
    }
    scene.include(&texts).map(drop)
}

/// `(string, bool)` as Solidity encodes it; the text has at most 32 bytes.
fn result((verdict, is_good): Said) -> Vec<u8> {
    let number = |value: usize| [vec![0; WORD - 1], vec![u8::try_from(value).unwrap_or_default()]];
    let mut text = verdict.as_bytes().to_vec();
    text.resize(WORD, 0);
    let words = [number(2 * WORD), number(usize::from(is_good)), number(verdict.len())];
    words.into_iter().flatten().flatten().chain(text).collect()
}

/// Waits until a call is settled, and answers it.
pub(crate) fn settled(scene: &Scene, call_id: &str) -> anyhow::Result<Value> {
    let options = json!([call_id, { "until": "settled", "timeoutMs": 60_000 }]);
    let found = scene.node.call("ombra_waitForCall", &options)?;
    ensure!(found["settled"] == true, "{found}");
    Ok(found)
}
