//! AGENT_REQUEST, AGENT_CLAIM, AGENT_STEP, AGENT_FINISH, AGENT_CANCEL.

use types::tx::{AgentFinish, AgentRequest};
use types::{Amount, Body, Hash};

use crate::world::{
    ALICE, BOB, FUNDS, MINER, OTHER_MINER, World, blob_init, cancel, claim, finish_body,
    request_body, step,
};

const NOBODY: Hash = Hash::new([7; 32]);

/// A world with a run in each state of its life.
struct Runs {
    world: World,
    pending: Hash,
    running: Hash,
    ended: Hash,
}

/// `running` has a maxFee of 350, maxSteps of 5, and steps 0 and 2 with 10 tokens each.
fn runs() -> Runs {
    let mut world = World::new();
    let running = world.request(ALICE, 350, 5);
    let ended = world.request(ALICE, 300, 3);
    let pending = world.request(ALICE, 300, 3);
    world.must(MINER, &claim(MINER, running));
    world.must(MINER, &step(running, 0, 10));
    world.must(MINER, &step(running, 2, 10));
    world.must(MINER, &claim(MINER, ended));
    world.finish(MINER, ended, "failed");
    world.must(ALICE, &blob_init("unfinished", b"abc"));
    world.next_block();
    Runs { world, pending, running, ended }
}

fn request_with(world: &World, change: impl FnOnce(&mut AgentRequest)) -> Body {
    let Body::AgentRequest(mut body) = world.request_body(ALICE, 300, 3) else {
        panic!("another kind")
    };
    change(&mut body);
    Body::AgentRequest(body)
}

#[test]
fn a_request_is_refused_in_order() {
    let Runs { mut world, pending, .. } = runs();
    let poor = request_with(&world, |body| {
        body.max_fee = Amount::new(FUNDS);
        body.agent_run_id = NOBODY;
    });
    assert_eq!(world.code(ALICE, &poor), "INSUFFICIENT_BALANCE");
    let other_id = request_with(&world, |body| {
        body.agent_run_id = pending;
        body.prompt_blob_id = Some("missing".to_owned());
    });
    assert_eq!(world.code(ALICE, &other_id), "RUN_ID_MISMATCH");
    let other_nonce = request_body(ALICE, world.account(ALICE).nonce + 1, 300, 3);
    assert_eq!(world.code(ALICE, &other_nonce), "RUN_ID_MISMATCH");
    for (blob, code) in [("missing", "BLOB_NOT_FOUND"), ("unfinished", "BLOB_NOT_FINAL")] {
        let body = request_with(&world, |body| body.prompt_blob_id = Some(blob.to_owned()));
        assert_eq!(world.code(ALICE, &body), code);
    }
    world.blob(BOB, "finished", b"prompt");
    world.next_block();
    let body = request_with(&world, |body| body.prompt_blob_id = Some("finished".to_owned()));
    world.must(ALICE, &body);
    world.next_block();
}

/// Nothing separates nonce and prompt, so nonce 1 with the prompt "1x" and nonce 11 with the
/// prompt "x" are one id.
#[test]
fn a_colliding_run_id_is_refused() {
    let mut world = World::new();
    let prompt = |world: &World, nonce: u64, prompt: &str, blob: Option<&str>| {
        let from = ALICE.address().to_string();
        let prompt = prompt.to_owned();
        request_with(world, |body| {
            body.agent_run_id = types::ids::compute_agent_run_id(&from, nonce, &prompt);
            body.prompt = prompt;
            body.prompt_blob_id = blob.map(str::to_owned);
        })
    };
    for nonce in 0..11 {
        let body = prompt(&world, nonce, "1x", None);
        world.must(ALICE, &body);
    }
    world.next_block();
    let colliding = prompt(&world, 11, "x", Some("missing"));
    assert_eq!(world.code(ALICE, &colliding), "RUN_EXISTS");
}

#[test]
fn a_claim_is_refused_in_order() {
    let Runs { world, running, ended, .. } = runs();
    assert_eq!(world.code(BOB, &claim(BOB, NOBODY)), "RUN_NOT_FOUND");
    for run in [running, ended] {
        assert_eq!(world.code(BOB, &claim(BOB, run)), "RUN_NOT_PENDING");
    }
    let refused = world.rejection(BOB, 0, &claim(BOB, running));
    assert_eq!(refused.message(), "Run not pending: status is running, expected pending");
    let id = running.to_string();
    assert_eq!(refused.extra().next(), Some(("agentRunId", id.as_str())));
}

#[test]
fn an_excluded_miner_is_refused_only_while_the_run_is_pending() {
    let Runs { mut world, pending, .. } = runs();
    world.must(MINER, &claim(MINER, pending));
    world.wait(120_001);
    assert_eq!(world.code(MINER, &claim(MINER, pending)), "MINER_EXCLUDED");
    world.must(OTHER_MINER, &claim(OTHER_MINER, pending));
    world.next_block();
    assert_eq!(world.code(MINER, &claim(MINER, pending)), "RUN_NOT_PENDING");
}

#[test]
fn a_step_is_refused_in_order() {
    let Runs { mut world, pending, running, ended } = runs();
    let huge = u64::from(u32::MAX);
    let cases = [
        ("RUN_NOT_FOUND", BOB, step(NOBODY, 9, huge)),
        ("RUN_NOT_ACTIVE", BOB, step(pending, 9, huge)),
        ("RUN_NOT_ACTIVE", BOB, step(ended, 9, huge)),
        ("NOT_RUN_MINER", BOB, step(running, 0, huge)),
        ("STEP_OUT_OF_ORDER", MINER, step(running, 0, huge)),
        ("STEP_OUT_OF_ORDER", MINER, step(running, 2, huge)),
        ("STEP_LIMIT", MINER, step(running, 5, huge)),
        ("TOKENS_LIMIT", MINER, step(running, 3, 131_073)),
    ];
    for (code, who, body) in cases {
        assert_eq!(world.code(who, &body), code, "{body:?}");
    }
    // Three steps cost 300 of 350; a fourth would cost 400.
    world.must(MINER, &step(running, 3, 131_072));
    world.next_block();
    assert_eq!(world.code(MINER, &step(running, 4, huge)), "TOKENS_LIMIT");
    let refused = world.rejection(MINER, world.account(MINER).nonce, &step(running, 4, 1));
    assert_eq!(refused.code().as_str(), "ESCROW_EXHAUSTED");
    let expected = "Escrow exhausted: networkFee is 400, expected at most 350, the run's maxFee";
    assert_eq!(refused.message(), expected);
}

fn finish_with(world: &World, run: Hash, change: impl FnOnce(&mut AgentFinish)) -> Body {
    let Body::AgentFinish(mut body) = finish_body(&world.run(run), "completed") else {
        panic!("another kind")
    };
    change(&mut body);
    Body::AgentFinish(body)
}

#[test]
fn a_finish_is_refused_in_order() {
    let Runs { world, pending, running, ended } = runs();
    let wrong = |run: Hash| {
        finish_with(&world, running, |body| {
            body.agent_run_id = run;
            body.user_refund = Amount::new(1);
            body.final_answer_blob_id = Some("missing".to_owned());
        })
    };
    assert_eq!(world.code(BOB, &wrong(NOBODY)), "RUN_NOT_FOUND");
    for run in [pending, ended] {
        assert_eq!(world.code(BOB, &wrong(run)), "RUN_NOT_ACTIVE");
    }
    assert_eq!(world.code(BOB, &wrong(running)), "NOT_RUN_MINER");
    assert_eq!(world.code(MINER, &wrong(running)), "SETTLEMENT_MISMATCH");
    for (blob, code) in [("missing", "BLOB_NOT_FOUND"), ("unfinished", "BLOB_NOT_FINAL")] {
        let body =
            finish_with(&world, running, |body| body.final_answer_blob_id = Some(blob.to_owned()));
        assert_eq!(world.code(MINER, &body), code);
    }
}

/// The run has two steps and 20 tokens of a maxFee of 350: 20 / 200 / 130.
#[test]
fn a_settlement_is_exact_and_the_rejection_says_what_it_must_be() {
    let Runs { mut world, running, .. } = runs();
    for (field, tokens, amounts) in [
        ("minerReward + userRefund + networkFee", 20, [21, 130, 200]),
        ("minerReward + userRefund + networkFee", 20, [u64::MAX, u64::MAX, 200]),
        ("totalTokensOut", 21, [21, 129, 200]),
        ("networkFee", 20, [20, 230, 100]),
        ("minerReward", 20, [10, 140, 200]),
        ("networkFee", 20, [350, 0, 0]),
    ] {
        let body = finish_with(&world, running, |body| {
            body.total_tokens_out = tokens;
            [body.miner_reward, body.user_refund, body.network_fee] = amounts.map(Amount::new);
        });
        let refused = world.rejection(MINER, world.account(MINER).nonce, &body);
        assert_eq!((refused.code().as_str(), refused.field()), ("SETTLEMENT_MISMATCH", field));
        let expected = [
            ("totalTokensOut", "20"),
            ("stepCount", "2"),
            ("minerReward", "20"),
            ("userRefund", "130"),
            ("networkFee", "200"),
        ];
        assert!(refused.extra().eq(expected), "{refused:?}");
    }
    world.must(MINER, &finish_with(&world, running, |_| {}));
    world.next_block();
}

#[test]
fn a_cancellation_is_refused_in_order() {
    let Runs { mut world, pending, running, ended } = runs();
    assert_eq!(world.code(BOB, &cancel(NOBODY)), "RUN_NOT_FOUND");
    assert_eq!(world.code(BOB, &cancel(running)), "RUN_NOT_PENDING");
    assert_eq!(world.code(ALICE, &cancel(ended)), "RUN_NOT_PENDING");
    assert_eq!(world.code(BOB, &cancel(pending)), "NOT_SUBMITTER");
    world.must(ALICE, &cancel(pending));
    world.next_block();
    assert_eq!(world.code(ALICE, &cancel(pending)), "RUN_NOT_PENDING");
}
