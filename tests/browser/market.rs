//! The agent market on a scene: an agent that can be called, miners that offer for it, and members that
//! answer as they are told.

use anyhow::{Context, ensure};
use fixtures::{EXECUTOR, MANIFEST, PER_CALL};
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::metadata::{method, of_model};
use testkit::node::wait_for;
use types::ids;
use types::tx::{AgentCall, AgentRegister, CallReveal, HexBytes, WorkLimits};
use types::{Amount, Body, Hash};

use crate::scene::Scene;

/// The chain of `ombra dev`.
const CHAIN: &str = "ombra-dev";
const BOND: u64 = 20_000_000;
/// More than a call of three members costs.
const MAX_FEE: u64 = 10_000;
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
    let inputs = [("review", "string"), ("stars", "uint8"), ("lines", "string[]")];
    let judge = method("judge", &inputs, &[("verdict", "string"), ("good", "bool")]);
    let mut metadata = of_model(name, &MANIFEST.to_string(), &[judge]);
    metadata["description"] = json!(DESCRIPTION);
    metadata["executor"]["tools"] = json!(["math_eval"]);
    metadata["tags"] = json!(["reviews"]);
    metadata["royalty"] = json!("500");
    let agent_id = ids::compute_agent_id(&owner.address(), name);
    let register = AgentRegister { agent_id, metadata: metadata.to_string() };
    let mut texts = vec![owner.sign_on(CHAIN, &Body::AgentRegister(register))];
    for miner in &mut scene.people[miners] {
        let offer = fixtures::offer(EXECUTOR, 9, [PER_CALL, 0, 0, 0]).into();
        texts.extend([miner.sign(&fixtures::bond(BOND)), miner.sign_on(CHAIN, &offer)]);
    }
    scene.include(&texts)?;
    Ok(agent_id.to_string())
}

/// A person asks three members of an agent that judges reviews; answers the call's id.
pub(crate) fn call(scene: &mut Scene, person: usize, agent_id: &str) -> anyhow::Result<String> {
    let requester = &mut scene.people[person];
    let plain = requester.call(CHAIN, Hash::parse(agent_id)?);
    let arguments =
        json!({ "agentId": agent_id, "method": "judge", "args": ["What a book", 5, []] });
    let encoded = scene.node.call("ombra_encodeCall", &arguments)?;
    let payload = encoded["payload"].as_str().with_context(|| encoded.to_string())?;
    let payload = HexBytes::parse(payload).context("the payload is hex")?;
    let limits = WorkLimits { input_tokens: 100, output_tokens: 100, fuel: 0, result_bytes: 1_000 };
    let max_fee = Amount::new(MAX_FEE);
    let body = AgentCall { payload, max_fee, limits, ..plain };
    let call_id = body.call_id.to_string();
    let text = requester.sign_on(CHAIN, &Body::AgentCall(body));
    scene.include(&[text])?;
    Ok(call_id)
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

/// Members commit to what they say; `speak` then reveals it.
pub(crate) fn commit(
    scene: &mut Scene,
    call_id: &str,
    round: u64,
    said: &[(usize, Said)],
) -> anyhow::Result<()> {
    include(scene, call_id, round, said, |member, reveal| {
        fixtures::commit(member.address(), &reveal).into()
    })
}

/// Members show what they have committed to.
pub(crate) fn speak(
    scene: &mut Scene,
    call_id: &str,
    round: u64,
    said: &[(usize, Said)],
) -> anyhow::Result<()> {
    include(scene, call_id, round, said, |_, reveal| Body::CallReveal(reveal))
}

/// Members commit to what they say, and show it.
pub(crate) fn answer(
    scene: &mut Scene,
    call_id: &str,
    round: u64,
    said: &[(usize, Said)],
) -> anyhow::Result<()> {
    commit(scene, call_id, round, said)?;
    speak(scene, call_id, round, said)
}

/// Has each member send what `body` makes of its answer.
fn include(
    scene: &mut Scene,
    call_id: &str,
    round: u64,
    said: &[(usize, Said)],
    body: impl Fn(&Actor, CallReveal) -> Body,
) -> anyhow::Result<()> {
    let mut texts = Vec::new();
    for (person, said) in said {
        let member = &mut scene.people[*person];
        let reveal = CallReveal {
            round,
            input_tokens: 12,
            output_tokens: 3,
            receipt_hash: Hash::new([7; 32]),
            ..fixtures::reveal(Hash::parse(call_id)?, &result(*said))
        };
        let body = body(member, reveal);
        texts.push(member.sign_on(CHAIN, &body));
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
