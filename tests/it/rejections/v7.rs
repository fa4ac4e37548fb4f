//! What fork v7 refuses: bids, votes on rules, protected runs and bonds.

use std::slice::from_ref;

use fixtures::{bond, fork_vote, param_vote, refuse, sign_evidence, unbond};
use serde_json::{Value, json};
use testkit::actor::{Actor, conversation, finish, step, transfer, turn};
use testkit::node::wait_for;
use testkit::workload::envelope;
use types::build::{Envelope, Unsigned, build_tx};
use types::sign_bytes::Domain;
use types::tx::{Evidence, NIL, Protection, ValidatorVote};
use types::{Amount, Bid, Body, Code, Hash, Keypair, Late};

use super::case::{Case, begins, case, case_of_text};
use super::fork::{V7, VALIDATOR, quick};
use super::scene::Scene;

pub(super) const CODES: &[Code] = &[
    Code::Malformed,
    Code::InvalidField,
    Code::FeeAboveMax,
    Code::InsufficientBalance,
    Code::MinerNotAllowed,
    Code::BondTooSmall,
    Code::RefuseClosed,
    Code::EvidenceInvalid,
    Code::ValidatorSetLimit,
    Code::AcceptanceInvalid,
    Code::ForkUnknown,
    Code::ParamBounds,
];

fn begin() -> anyhow::Result<Scene> {
    Scene::of_chain("from-v7-on", V7, quick(), Vec::new())
}

/// A turn with these members of a bid, signed.
fn bidding(actor: &Actor, members: &str) -> String {
    let (from, key) = (actor.address().to_string(), actor.key.public_key());
    let plain = Unsigned::build(&turn("hello").into(), &from, &key, &envelope(actor.nonce));
    let payload = plain.payload().replace(r#","publicKey""#, &format!(r#"{members},"publicKey""#));
    let hash = Hash::digest(payload.as_bytes());
    let signature = actor.key.sign(hash.to_string().as_bytes());
    types::transaction::seal(&payload, &hash, &signature)
}

/// A request that only `miner` may claim, whose reward is held.
fn protected(submitter: &Actor, miner: &Actor) -> Body {
    let mut request = submitter.request("protect me", 1_000, 3);
    request.conversation_id = conversation();
    request.protection = Late::from(Protection {
        miners: Some(vec![miner.address().into()]),
        claim_bond: Some(Amount::new(100_000)),
        max_tokens_per_step: None,
        refuse_ms: Some(600_000),
    });
    Body::AgentRequest(request)
}

#[test]
fn what_is_wrong_from_v7_on_is_told_and_changes_nothing() -> anyhow::Result<()> {
    let mut scene = begin()?;
    let [mut alice, miner, other] = [0, 1, 2].map(|index| scene.actor(index));
    let validator = Actor::new(Keypair::from_seed(&VALIDATOR));
    let poor = Actor::new(Keypair::from_seed(&[77; 32]));
    let request = protected(&alice, &miner);
    let run = request.agent_run_id().expect("a request is about a run");
    let text = alice.sign(&request);
    scene.include(&[text])?;
    let info = scene.call("ombra_chainInfo", &json!([]))?;
    let genesis_hash = Hash::parse(info["genesisHash"].as_str().unwrap_or_default())?;
    let domain = Domain { chain_id: "from-v7-on".into(), genesis_hash, v7_from: Some(0) };
    let actors = Actors { alice, miner, other, validator, poor };
    let mut cases = cases(&actors, run);
    cases.extend(accusations(&actors, &domain));
    scene.refuse(CODES, &cases)
}

struct Actors {
    /// Has asked for a protected run.
    alice: Actor,
    /// The only one who may claim it; has no bond.
    miner: Actor,
    other: Actor,
    validator: Actor,
    /// Has no money.
    poor: Actor,
}

fn cases(actors: &Actors, run: Hash) -> Vec<Case> {
    let Actors { alice, miner, other, validator, poor } = actors;
    let mut cases = bids(alice, poor);
    cases.extend(votes(validator));
    cases.extend([
        case(Code::MinerNotAllowed, other, &Body::AgentClaim(other.claim(run)))
            .says("minerAddress", other.address(), "one of the 1 miners that the submitter named")
            .with("agentRunId", run),
        case(Code::BondTooSmall, miner, &Body::AgentClaim(miner.claim(run)))
            .says("claimBond", 100_000, "at most 0, the part of the bond that is not locked")
            .with("bonded", 0)
            .with("locked", 0),
        case(Code::BondTooSmall, other, &unbond(1))
            .says("amount", 1, "at most 0, the part of the bond that is not locked")
            .with("bonded", 0)
            .with("locked", 0),
        case(Code::RefuseClosed, alice, &refuse(run))
            .says("status", "pending", "a run that has ended and whose reward is held")
            .with("agentRunId", run),
        case(Code::InvalidField, other, &bond(0)).says("amount", 0, "more than 0"),
    ]);
    cases
}

fn bids(alice: &Actor, poor: &Actor) -> Vec<Case> {
    let text = |members| bidding(alice, members);
    let from = alice.address();
    let memo = format!(r#","memo":"{}""#, "x".repeat(300));
    let bid = Bid { max_base_fee: None, tip: Some(Amount::new(5)) };
    let tipped = Envelope { bid, ..envelope(alice.nonce) };
    let tipped = build_tx(&alice.key, &transfer(from, 1), &tipped);
    vec![
        case_of_text(Code::Malformed, from, text(r#","tip":5"#))
            .says("tip", "a number", "a string")
            .with("since", "v7"),
        case_of_text(Code::InvalidField, from, text(&memo))
            .says(
                "transaction",
                "310 bytes of members that CHAT_TURN does not have",
                "at most 256 bytes",
            )
            .with("since", "v7"),
        case_of_text(Code::InvalidField, from, tipped)
            .says("tip", 5, "no tip, because the member fee is the tip of a TRANSFER")
            .with("since", "v7"),
        case_of_text(Code::FeeAboveMax, from, text(r#","maxBaseFee":"9""#))
            .says("maxBaseFee", 9, "at least 10, the base fee")
            .with("baseFee", 10),
        case(Code::InsufficientBalance, poor, &transfer(from, 0))
            .says("amount", begins(""), "at most 0")
            .with_some("needed")
            .with("available", 0)
            .with_some("inclusionFee")
            .with("tip", 0),
    ]
}

/// A vote of power for a key that is no validator yet, and that has signed nothing.
fn vote_for_a_stranger() -> Body {
    let expires_at = envelope(0).timestamp + 1_000;
    let candidate = Keypair::from_seed(&[78; 32]).public_key();
    Body::ValidatorVote(ValidatorVote::new(candidate, 1, expires_at))
}

/// Evidence against the chain's only validator, who has signed neither of the two messages.
fn slander(validator: &Actor) -> Evidence {
    let values = [Hash::new([7; 32]).to_string(), NIL.to_owned()];
    fixtures::evidence(validator.key.public_key(), 1, "precommit", values)
}

fn accusations(actors: &Actors, domain: &Domain) -> Vec<Case> {
    let Actors { alice, other, poor, validator, .. } = actors;
    let of_nobody = Evidence { validator_key: alice.key.public_key(), ..slander(validator) };
    let signature = begins("00000");
    // It has signed them on this chain.
    let proved = sign_evidence(&validator.key, domain, slander(validator));
    vec![
        case(Code::EvidenceInvalid, poor, &Body::Evidence(slander(validator))).says(
            "firstSignature",
            signature,
            "the signature of validatorKey over its precommit of height 1 and round 0",
        ),
        case(Code::EvidenceInvalid, other, &Body::Evidence(of_nobody)).says(
            "validatorKey",
            alice.key.public_key(),
            "the key of a validator of one of the next two heights",
        ),
        // Nobody would be left.
        case(Code::ValidatorSetLimit, alice, &Body::Evidence(proved)).says(
            "height",
            1,
            "a height that more than one validator decides",
        ),
    ]
}

fn votes(validator: &Actor) -> Vec<Case> {
    let expected = "a fork from v8 to v99";
    vec![
        case(Code::AcceptanceInvalid, validator, &vote_for_a_stranger())
            .says(
                "acceptance",
                "missing",
                begins("the signature of candidateKey over ombra-validator|"),
            )
            .with("since", "v7"),
        case(Code::ForkUnknown, validator, &fork_vote("v7", 200_000)).says("fork", "v7", expected),
        case(Code::ForkUnknown, validator, &fork_vote("summer", 200_000))
            .says("fork", "summer", expected),
        case(Code::InvalidField, validator, &fork_vote("v8", 5))
            .says("height", 5, begins("100"))
            .with("since", "v7"),
        case(Code::ParamBounds, validator, &param_vote("maxBlockBytes", 1, 100_000)).says(
            "name",
            "maxBlockBytes",
            begins("one of baseFeeFloor, "),
        ),
        case(Code::ParamBounds, validator, &param_vote("baseFeeFloor", 0, 100_000)).says(
            "value",
            0,
            "1 to 1000000 for baseFeeFloor",
        ),
    ]
}

/// The record of the run, once it fits.
fn run_until(scene: &Scene, run: Hash, fits: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    wait_for("the run to be as expected", || {
        let record = scene.node.call("ombra_getAgentRun", &json!([run]))?;
        Ok(fits(&record).then_some(record))
    })
}

#[test]
fn a_reward_is_held_refused_and_burned_across_a_kill() -> anyhow::Result<()> {
    let mut scene = begin()?;
    let [mut alice, mut miner] = [0, 1].map(|index| scene.actor(index));
    let bond = miner.sign(&bond(1_000_000));
    scene.include(from_ref(&bond))?;
    let request = protected(&alice, &miner);
    let run = request.agent_run_id().expect("a request is about a run");
    let texts = [alice.sign(&request), miner.sign(&Body::AgentClaim(miner.claim(run)))];
    scene.include(&texts)?;
    let texts = [
        miner.sign(&step(run, 0, 300)),
        miner.sign(&Body::AgentFinish(finish(run, 300, [300, 600, 100]))),
    ];
    scene.include(&texts)?;
    let held = run_until(&scene, run, |record| record["heldUntil"].is_u64())?;
    let end = json!([held["status"], held["lockedBond"], held["endedBy"]]);
    assert_eq!(json!(["completed", "100000", "miner"]), end);
    scene.node.kill_and_restart()?;
    let mut scene = scene.reconnected()?;
    let supply = scene.call("ombra_getSupply", &json!([]))?;
    assert_eq!(json!(["300", "1000000"]), json!([supply["escrowed"], supply["bonded"]]));
    let refuse = alice.sign(&refuse(run));
    scene.include(from_ref(&refuse))?;
    let refused = run_until(&scene, run, |record| record["refused"] == true)?;
    assert!(refused["heldUntil"].is_null(), "{refused}");
    let supply = scene.call("ombra_getSupply", &json!([]))?;
    let left = 1_000_000 - 300 - 10_000;
    assert_eq!(json!(["0", left.to_string()]), json!([supply["escrowed"], supply["bonded"]]));
    scene.node.stop()
}
