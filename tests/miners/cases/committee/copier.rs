//! The copier: it waits until another member has committed, commits to the same, and tries to
//! reveal what the other one reveals. A commitment names its member, so that never opens it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::senders::Senders;
use types::tx::{CallCommit, CallReveal, HexBytes};
use types::{Body, Hash};

use super::LOOK;
use super::calls::{is_answer, member_of, members};
use super::stage::{COPIER, Stage, key};

/// Rejections of what comes a moment before or after its time.
const OUT_OF_TIME: [&str; 3] = ["CALL_NOT_FOUND", "NOT_MEMBER", "CALL_PHASE"];

/// What the copier did.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Copied {
    /// Commitments of others that the chain took from it.
    pub(super) commitments: usize,
    /// Reveals of others that were refused from it.
    pub(super) refused: usize,
}

/// How far it is with a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Whose commitment it has.
    Committed(types::Address),
    /// Its reveal was refused, or the call is over.
    Over,
}

/// Copies until it is told to stop.
pub(super) fn copy(stage: &Stage, stop: &AtomicBool) -> anyhow::Result<Copied> {
    let mut actor = key(COPIER)?;
    let mut senders = Senders::open(stage.rpc())?;
    let account = senders.call("ombra_getAccount", &json!([actor.address()]))?;
    actor.nonce = account["nonce"].as_u64().context("a nonce")?;
    let mut phases: BTreeMap<String, Phase> = BTreeMap::new();
    let mut copied = Copied::default();
    while !stop.load(Ordering::SeqCst) {
        for status in ["committing", "revealing"] {
            let filter = json!({ "member": actor.address(), "status": status, "limit": 100 });
            let listed = senders.call("ombra_listCalls", &filter)?;
            for call in listed["items"].as_array().into_iter().flatten() {
                let id = call["callId"].as_str().context("an id")?.to_owned();
                let record = senders.call("ombra_getCall", &json!([id]))?;
                match phases.get(&id) {
                    None if status == "committing" => {
                        if let Some(from) = commit(stage, &mut senders, &mut actor, &record)? {
                            phases.insert(id, Phase::Committed(from));
                            copied.commitments += 1;
                        }
                    }
                    Some(Phase::Committed(from)) => {
                        let other = member_of(&record, from).context("the other member")?;
                        if is_answer(other) && refused(stage, &mut senders, &actor, &record, other)?
                        {
                            phases.insert(id, Phase::Over);
                            copied.refused += 1;
                        }
                    }
                    Some(Phase::Over) | None => {}
                }
            }
        }
        // The chain is asked again and again; nothing tells of what a member may do.
        std::thread::sleep(LOOK);
    }
    Ok(copied)
}

/// Commits to what another member has committed to; answers to whose.
fn commit(
    stage: &Stage,
    senders: &mut Senders,
    actor: &mut Actor,
    record: &Value,
) -> anyhow::Result<Option<types::Address>> {
    let me = actor.address().to_string();
    let others = members(record).iter().filter(|it| it["address"] != me.as_str());
    let mut committed = others.filter(|it| it["commitment"]["hash"].is_string());
    let Some(other) = committed.next() else { return Ok(None) };
    let body = Body::CallCommit(CallCommit {
        call_id: hash(&record["callId"])?,
        round: 0,
        commitment: hash(&other["commitment"]["hash"])?,
    });
    let text = actor.draft_on(&stage.chain_id, &body);
    let answer = senders.send(std::slice::from_ref(&text))?.pop().context("no answer")?;
    let Some(sent) = answer.get("hash") else {
        let code = answer.pointer("/error/data/code").and_then(Value::as_str);
        ensure!(code.is_some_and(|code| OUT_OF_TIME.contains(&code)), "not taken: {answer}");
        return Ok(None);
    };
    senders.wait(sent)?;
    actor.nonce += 1;
    let from = other["address"].as_str().context("an address")?;
    Ok(Some(types::Address::parse(from)?))
}

/// Whether the chain refuses from the copier what the other member has revealed. It may be too late
/// for either of them.
fn refused(
    stage: &Stage,
    senders: &mut Senders,
    actor: &Actor,
    record: &Value,
    other: &Value,
) -> anyhow::Result<bool> {
    let (reveal, answer) = (&other["reveal"], &record["answer"]);
    if reveal["salt"].is_null() {
        // The call is decided: the node tells the salt of the answer only.
        return Ok(false);
    }
    let said = |member: &str| reveal[member].as_u64().with_context(|| format!("no {member}"));
    let result = if reveal["result"].is_null() { &answer["result"] } else { &reveal["result"] };
    let result = HexBytes::parse(result.as_str().unwrap_or("0x")).context("a result")?;
    let body = Body::CallReveal(CallReveal {
        call_id: hash(&record["callId"])?,
        round: 0,
        salt: hash(&reveal["salt"])?,
        outcome: reveal["outcome"].as_str().context("an outcome")?.to_owned(),
        result,
        input_tokens: said("inputTokens")?,
        output_tokens: said("outputTokens")?,
        fuel: said("fuel")?,
        receipt_hash: hash(&reveal["receiptHash"])?,
        reason: None,
    });
    let text = actor.draft_on(&stage.chain_id, &body);
    let answer = senders.send(&[text])?.pop().context("no answer")?;
    let code = answer.pointer("/error/data/code").and_then(Value::as_str);
    if code.is_some_and(|code| OUT_OF_TIME.contains(&code)) {
        return Ok(false);
    }
    ensure!(code == Some("REVEAL_MISMATCH"), "a copied reveal was not refused: {answer}");
    Ok(true)
}

fn hash(value: &Value) -> anyhow::Result<Hash> {
    let text = value.as_str().with_context(|| format!("no hash: {value}"))?;
    Ok(Hash::parse(text)?)
}
