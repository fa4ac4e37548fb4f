//! What is refused about runs and turns.

use serde_json::json;
use testkit::actor::{Actor, cancel, conversation, finish, step, transfer, turn};
use testkit::node::wait_until;
use types::tx::{AgentFinish, AgentRequest, ChatTurn};
use types::{Body, Code, Hash};

use super::case::{Case, case};
use super::scene::Scene;
use crate::support::dev;

pub(super) const CODES: &[Code] = &[
    Code::RunIdMismatch,
    Code::RunExists,
    Code::RunNotFound,
    Code::RunNotPending,
    Code::RunNotActive,
    Code::NotRunMiner,
    Code::NotSubmitter,
    Code::MinerExcluded,
    Code::StepOutOfOrder,
    Code::StepLimit,
    Code::TokensLimit,
    Code::EscrowExhausted,
    Code::SettlementMismatch,
    Code::TurnNotFound,
];

const NOBODY: Hash = Hash::new([7; 32]);

/// Who is who, and a run in each state of its life.
struct Runs {
    submitter: Actor,
    miner: Actor,
    other: Actor,
    /// Has asked for a run with a prompt that collides with the one of its next nonce.
    collider: Actor,
    open: Hash,
    /// With maxFee 350, maxSteps 5, and steps 0, 2, 3 of 10 tokens each.
    running: Hash,
    ended: Hash,
    /// `miner` has claimed it and let the claim lapse.
    lapsed: Hash,
    /// The hash of a turn in another conversation.
    elsewhere: Hash,
}

#[test]
fn what_is_wrong_about_runs_is_told_and_changes_nothing() -> anyhow::Result<()> {
    let mut scene = Scene::of(dev(&["--param", "claimTtlMs=1"]))?;
    let runs = prepare(&mut scene)?;
    let cases =
        [requests(&runs), unknown(&runs), wrong_moment(&runs), steps(&runs), settlements(&runs)];
    scene.refuse(CODES, &cases.concat())
}

fn prepare(scene: &mut Scene) -> anyhow::Result<Runs> {
    let [mut submitter, mut miner, other, mut collider] = [0, 1, 2, 3].map(|at| scene.actor(at));
    let mut texts = Vec::new();
    let mut ask = |max_fee, max_steps| {
        let request = submitter.request("prompt", max_fee, max_steps);
        let id = request.agent_run_id;
        texts.push(submitter.sign(&Body::AgentRequest(request)));
        id
    };
    let (open, running, ended, lapsed) = (ask(300, 3), ask(350, 5), ask(300, 3), ask(300, 3));
    let away = ChatTurn { conversation_id: NOBODY, ..turn("hello") };
    texts.push(submitter.sign(&away.into()));
    // Nothing separates nonce and prompt: 1 and "0x" are 10 and "x".
    while collider.nonce < 10 {
        let body = match collider.nonce {
            1 => Body::AgentRequest(collider.request("0x", 300, 3)),
            _ => transfer(other.address(), 1),
        };
        texts.push(collider.sign(&body));
    }
    let sent = scene.include(&texts)?;
    let elsewhere = Hash::parse(&sent[4])?;

    // All in one block, so that only one claim has no step until its time is over.
    let failed = AgentFinish { status: "failed".to_owned(), ..finish(ended, 0, [0, 300, 0]) };
    let work = [
        Body::AgentClaim(miner.claim(running)),
        step(running, 0, 10),
        step(running, 2, 10),
        step(running, 3, 10),
        Body::AgentClaim(miner.claim(ended)),
        Body::AgentFinish(failed),
        Body::AgentClaim(miner.claim(lapsed)),
    ];
    let work: Vec<String> = work.iter().map(|body| miner.sign(body)).collect();
    scene.include(&work)?;
    wait_until("the claim to lapse", || {
        let run = scene.call("ombra_getAgentRun", &json!([lapsed]))?;
        Ok(run["status"] == "pending" && run["reopens"] == 1)
    })?;
    Ok(Runs { submitter, miner, other, collider, open, running, ended, lapsed, elsewhere })
}

fn requests(runs: &Runs) -> Vec<Case> {
    let Runs { submitter, collider, elsewhere, .. } = runs;
    let right = submitter.request("prompt", 300, 3);
    let computed = right.agent_run_id;
    let wrong = AgentRequest { agent_run_id: NOBODY, ..right }.into();
    let same = collider.request("x", 300, 3);
    let (taken, same) = (same.agent_run_id, same.into());
    let turn_after = |parent: Hash| {
        let turn = ChatTurn { parent_turn_hash: Some(parent), ..turn("hello") };
        let expected = format!("a turn of the conversation {}", conversation());
        let case = case(Code::TurnNotFound, submitter, &turn.into());
        case.says("parentTurnHash", parent, expected)
    };
    vec![
        case(Code::RunIdMismatch, submitter, &wrong).says("agentRunId", NOBODY, computed),
        case(Code::RunExists, collider, &same).says("agentRunId", taken, "a new id"),
        turn_after(NOBODY),
        turn_after(*elsewhere),
    ]
}

/// Of each kind that names a run, one that names none.
fn unknown(runs: &Runs) -> Vec<Case> {
    let Runs { submitter, miner, .. } = runs;
    let about = ChatTurn { agent_run_id: Some(NOBODY), ..turn("hello") };
    let bodies = [
        (miner, Body::AgentClaim(miner.claim(NOBODY))),
        (miner, step(NOBODY, 0, 1)),
        (miner, Body::AgentFinish(finish(NOBODY, 0, [0, 0, 0]))),
        (submitter, cancel(NOBODY)),
        (submitter, Body::ChatTurn(about)),
    ];
    let not_found = |(actor, body): &(&Actor, Body)| {
        let case = case(Code::RunNotFound, actor, body);
        case.says("agentRunId", NOBODY, "the id of a requested run")
    };
    bodies.iter().map(not_found).collect()
}

/// Acts of somebody else, or before or after their time.
fn wrong_moment(runs: &Runs) -> Vec<Case> {
    let Runs { submitter, miner, other, open, running, ended, lapsed, .. } = runs;
    let of = |code: Code, actor: &Actor, body: &Body, run: &Hash| {
        case(code, actor, body).with("agentRunId", run)
    };
    let foreign = |code: Code, body: &Body, run: &Hash, owner: &Actor| {
        of(code, other, body, run).says("from", other.address(), owner.address())
    };
    let claim = |actor: &Actor, run: &Hash| Body::AgentClaim(actor.claim(*run));
    let end = Body::AgentFinish(finish(*running, 30, [30, 20, 300]));
    let excluded = "a miner that has not let a claim of this run lapse or given it up";
    let worked = "claimed or running";
    vec![
        of(Code::RunNotPending, other, &claim(other, running), running)
            .says("status", "running", "pending"),
        of(Code::RunNotPending, submitter, &cancel(*ended), ended)
            .says("status", "failed", "pending"),
        of(Code::RunNotActive, miner, &step(*open, 0, 1), open).says("status", "pending", worked),
        of(Code::RunNotActive, miner, &step(*ended, 0, 1), ended).says("status", "failed", worked),
        foreign(Code::NotRunMiner, &step(*running, 4, 1), running, miner),
        foreign(Code::NotRunMiner, &end, running, miner),
        foreign(Code::NotSubmitter, &cancel(*open), open, submitter),
        of(Code::MinerExcluded, miner, &claim(miner, lapsed), lapsed).says(
            "minerAddress",
            miner.address(),
            excluded,
        ),
    ]
}

fn steps(runs: &Runs) -> Vec<Case> {
    let Runs { miner, running, .. } = runs;
    let of =
        |code: Code, index: u64, tokens: u64| case(code, miner, &step(*running, index, tokens));
    let last = "more than 3, the last one";
    vec![
        of(Code::StepOutOfOrder, 1, 1).says("stepIndex", 1, last),
        of(Code::StepOutOfOrder, 3, 1).says("stepIndex", 3, last),
        of(Code::StepLimit, 5, 1).says("stepIndex", 5, "less than 5, the run's maxSteps"),
        of(Code::TokensLimit, 4, 131_073).says("outputTokens", 131_073, "at most 131072"),
        of(Code::EscrowExhausted, 4, 1)
            .says("networkFee", 400, "at most 350, the run's maxFee")
            .with("stepCount", 4),
    ]
}

/// Three steps and 30 tokens of a maxFee of 350 are 30 / 20 / 300.
fn settlements(runs: &Runs) -> Vec<Case> {
    let Runs { miner, running, .. } = runs;
    let of = |tokens: u64, parts: [u64; 3]| {
        let body = Body::AgentFinish(finish(*running, tokens, parts));
        case(Code::SettlementMismatch, miner, &body)
            .with("totalTokensOut", 30)
            .with("stepCount", 3)
            .with("minerReward", 30)
            .with("userRefund", 20)
            .with("networkFee", 300)
    };
    let sum = "minerReward + userRefund + networkFee";
    let overflow = format!("more than {}", u64::MAX);
    vec![
        of(30, [31, 20, 300]).says(sum, 351, 350),
        of(30, [u64::MAX, 20, 300]).says(sum, overflow, 350),
        of(31, [31, 19, 300]).says("totalTokensOut", 31, 30),
        of(30, [30, 120, 200]).says("networkFee", 200, 300),
        of(30, [50, 0, 300]).says("minerReward", 50, 30),
    ]
}
