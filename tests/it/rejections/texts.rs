//! What is wrong with a text, a signature, a nonce, a balance or a time.

use serde_json::json;
use testkit::actor::{Actor, blob_chunk, register_miner, step, transfer, turn};
use testkit::node::wait_until;
use testkit::workload::envelope;
use types::build::{Envelope, Unsigned, build_tx};
use types::tx::{ToolCall, Transfer};
use types::{Amount, Body, Code, Hash, Keypair, text};

use super::case::{Case, begins, case, case_of_text};
use super::scene::{FUNDS, Scene, all_taken};
use crate::support::dev;

pub(super) const CODES: &[Code] = &[
    Code::Malformed,
    Code::UnsupportedType,
    Code::AddressMismatch,
    Code::HashMismatch,
    Code::BadSignature,
    Code::ChainIdMismatch,
    Code::InvalidField,
    Code::NonceStale,
    Code::NonceTooHigh,
    Code::NonceTaken,
    Code::InsufficientBalance,
    Code::ClockSkew,
];

/// The nonce that `alice` has already in the queue.
const QUEUED: u64 = 3;
const NOBODY: Hash = Hash::new([7; 32]);

#[test]
fn what_is_wrong_with_a_transaction_itself_is_told_and_changes_nothing() -> anyhow::Result<()> {
    let mut scene = Scene::of(dev(&[]))?;
    let (mut alice, bob) = (scene.actor(0), scene.actor(1));
    scene.include(&[alice.sign(&transfer(bob.address(), 1))])?;
    let ahead = alice.at(QUEUED).draft(&transfer(bob.address(), 1));
    scene.send_together(&[ahead])?;
    wait_until("the queued transaction", || {
        let pool = scene.call("txpool_status", &json!([]))?;
        Ok(pool["queued"] == 1)
    })?;

    let cases = [
        malformed(&alice, &bob),
        sealed_wrongly(&alice, &bob),
        invalid(&alice),
        nonces(&alice, &bob),
        balances(&alice, &bob),
        too_early(&alice, &bob),
    ];
    scene.refuse(CODES, &cases.concat())
}

/// Clients send again after a broken connection.
#[test]
fn what_is_known_is_answered_like_the_first_time() -> anyhow::Result<()> {
    let mut scene = Scene::of(dev(&[]))?;
    let alice = scene.actor(0);
    let [now, ahead] = [0, QUEUED].map(|nonce| alice.at(nonce).draft(&register_miner("miner")));
    let included = scene.include(std::slice::from_ref(&now))?;
    let queued = all_taken(scene.send_together(std::slice::from_ref(&ahead))?);
    let again = all_taken(scene.send_together(&[now, ahead])?);
    assert_eq!([included, queued].concat(), again);
    scene.node.stop()
}

/// What the node must see as it was sent; `types` tries every member of every kind.
fn malformed(alice: &Actor, bob: &Actor) -> Vec<Case> {
    const INTEGER: &str = "an integer from 0 to 9007199254740991 in plain digits";
    const OBJECT: &str = "one flat JSON object";
    let right = alice.draft(&transfer(bob.address(), 1));
    let of_alice = |code: Code, text: String| case_of_text(code, alice.address(), text);
    let change = |from: &str, to: &str| {
        let text = right.replacen(from, to, 1);
        assert_ne!(right, text, "nothing to change: {from}");
        of_alice(Code::Malformed, text)
    };
    let add = |member: &str| change("{", &format!("{{{member},"));
    let long = add(&format!(r#""pad":"{}""#, "x".repeat(131_072)));
    let bytes = format!("{} bytes", long.text.len());
    vec![
        change(r#""fee":"0""#, r#""fee":0"#).says("fee", "a number", "a string"),
        change(r#""nonce":1,"#, r#""nonce":1.0,"#).says("nonce", "1.0", INTEGER),
        add(r#""fee":"0""#).says("transaction", begins("duplicate key \"fee\""), OBJECT),
        add(r#""pad":[[[[[[[[]]]]]]]]"#).says(
            "transaction",
            begins("nesting deeper than 8 at byte"),
            OBJECT,
        ),
        add(r#""pad":"\ud83d""#).says("transaction", begins("unpaired surrogate escape"), OBJECT),
        long.says("transaction", bytes, "at most 131072 bytes"),
        of_alice(Code::Malformed, "7".to_owned()).says("transaction", "a number", "an object"),
        of_alice(Code::UnsupportedType, right.replace("TRANSFER", "BURN")).says(
            "type",
            "\"BURN\"",
            begins("one of CHAT_TURN, AGENT_REQUEST, "),
        ),
    ]
}

/// Another address, another hash, another signature, another chain.
fn sealed_wrongly(alice: &Actor, bob: &Actor) -> Vec<Case> {
    let (one, two) = (transfer(bob.address(), 1), transfer(bob.address(), 2));
    let unsigned = |body: &Body, from: &Actor| {
        let from = from.address().to_string();
        Unsigned::build(body, &from, &alice.key.public_key(), &envelope(alice.nonce))
    };
    let of_alice = |code: Code, text: String| case_of_text(code, alice.address(), text);
    let (stated, computed) = (unsigned(&one, alice).hash(), unsigned(&two, alice).hash());
    let changed = alice.draft(&one).replacen(r#""amount":"1""#, r#""amount":"2""#, 1);
    let foreign = bob.key.sign(unsigned(&one, alice).signing_message().as_bytes());
    let elsewhere = Envelope { chain_id: Some("elsewhere".to_owned()), ..envelope(alice.nonce) };
    let owner = format!("{}, the address of publicKey", alice.address());
    vec![
        case_of_text(Code::AddressMismatch, bob.address(), unsigned(&one, bob).sign(&alice.key))
            .says("from", bob.address(), owner),
        of_alice(Code::HashMismatch, changed)
            .says("hash", stated, computed)
            .with("computed", computed),
        of_alice(Code::BadSignature, unsigned(&one, alice).attach(&foreign)).says(
            "signature",
            text::shorten(&foreign.to_string()),
            "an Ed25519 signature by publicKey over the 64 characters of hash",
        ),
        of_alice(Code::ChainIdMismatch, build_tx(&alice.key, &one, &elsewhere)).says(
            "chainId",
            "elsewhere",
            "ombra-dev",
        ),
    ]
}

/// A limit of a member, and one of a member of a list; `types` tries those of all kinds.
fn invalid(alice: &Actor) -> Vec<Case> {
    let of_alice = |body: &Body| case(Code::InvalidField, alice, body);
    let steps = alice.request("prompt", 1_000, 201);
    let mut calls = step(NOBODY, 0, 1);
    if let Body::AgentStep(step) = &mut calls {
        let (name, args_hash, result_hash) = ("x".repeat(257), NOBODY, NOBODY);
        let call = ToolCall { name, args_hash, result_hash, duration_ms: 1, ok: true };
        step.tool_calls = Some(vec![call]);
    }
    vec![
        of_alice(&Body::AgentRequest(steps)).says("maxSteps", 201, "1 to 200"),
        of_alice(&calls).says("toolCalls[0].name", "257 bytes", "at most 256 bytes"),
    ]
}

/// `alice` has sent nonce 0, and nonce 3 waits.
fn nonces(alice: &Actor, bob: &Actor) -> Vec<Case> {
    let other = transfer(bob.address(), 9);
    let at = |code: Code, nonce: u64| case(code, &alice.at(nonce), &other).with("tx", nonce);
    let free = "a nonce that no pending transaction has, such as 1";
    vec![
        at(Code::NonceStale, 0).says("nonce", 0, 1).with("state", 1),
        at(Code::NonceTooHigh, 65).says("nonce", 65, 1).with("state", 1).with("window", 64),
        at(Code::NonceTaken, QUEUED).says("nonce", QUEUED, free).with("next", 1),
    ]
}

fn balances(alice: &Actor, bob: &Actor) -> Vec<Case> {
    const ALL: u64 = u64::MAX;
    let stranger = Actor::new(Keypair::from_seed(&[9; 32]));
    let left = FUNDS - 1;
    let most = format!("at most {left}");
    let too_much = Transfer::new(bob.address(), Amount::new(ALL), Amount::new(1));
    let poor = |actor: &Actor, body: &Body, needed: u64, available: u64| {
        case(Code::InsufficientBalance, actor, body)
            .with("needed", needed)
            .with("available", available)
    };
    vec![
        poor(alice, &transfer(bob.address(), FUNDS), FUNDS, left).says("amount", FUNDS, &most),
        case(Code::InsufficientBalance, alice, &Body::Transfer(too_much))
            .says("amount", format!("more than {ALL}"), &most)
            .with("available", left),
        poor(alice, &Body::AgentRequest(alice.request("prompt", FUNDS, 1)), FUNDS, left)
            .says("maxFee", FUNDS, &most),
        poor(&stranger, &Body::ChatTurn(turn("hello")), 100, 0).says("balance", 100, "at most 0"),
        poor(&stranger, &blob_chunk("blob", 0, b"bytes"), 100, 0).says("balance", 100, "at most 0"),
    ]
}

fn too_early(alice: &Actor, bob: &Actor) -> Vec<Case> {
    /// The last moment that a transaction can name.
    const TIMESTAMP: u64 = 9_007_199_254_740_991;
    let late = Envelope { timestamp: TIMESTAMP, ..envelope(alice.nonce) };
    let text = build_tx(&alice.key, &transfer(bob.address(), 1), &late);
    let case = case_of_text(Code::ClockSkew, alice.address(), text);
    vec![case.says("timestamp", TIMESTAMP, begins("at most ")).with_some("now")]
}
