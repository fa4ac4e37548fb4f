//! Any bytes as the parameters of a method, or as a whole body, are answered in the form of JSON-RPC
//! by the code that the network port runs.
//!
//! An input is the name of a method, a line end, and parameters; anything else is a body.
#![no_main]

use std::sync::{Arc, LazyLock};

use fixtures::{claim, register_miner, request, step, turn};
use libfuzzer_sys::fuzz_target;
use rpc::registry::Registry;
use rpc::{Limits, Local};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use types::build::{Envelope, build_tx};
use types::tx::ChatTurn;
use world::{NOW, World, key};

#[allow(dead_code, unreachable_pub, reason = "the test suite of the crate rpc uses all of it")]
#[path = "../../rpc/tests/it/world.rs"]
mod world;

struct Stage {
    runtime: Runtime,
    local: Local,
    world: Arc<World>,
    registry: Registry,
}

static STAGE: LazyLock<Stage> = LazyLock::new(|| {
    let world = World::new(world::V7);
    act(&world);
    let local = Local::new(world::facts(world::V7), &world.ports(), &Limits::default());
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    Stage { runtime, local, world, registry: Registry::public() }
});

/// The number that JSON-RPC gives to a fault of ours.
const INTERNAL_ERROR: i64 = -32_603;

fuzz_target!(|bytes: &[u8]| {
    let Stage { runtime, local, world, registry } = &*STAGE;
    let (status, answer) = runtime.block_on(local.post(body(bytes, registry)));
    // 400 is for what is neither an object nor an array; nothing is said to notifications.
    assert!(matches!(status, 200 | 204 | 400), "{status}");
    assert_eq!(status == 204, answer.is_empty());
    if !answer.is_empty() {
        match serde_json::from_slice(&answer).expect("an answer is JSON") {
            Value::Array(answers) => {
                assert!(!answers.is_empty());
                answers.iter().for_each(assert_answer);
            }
            answer => assert_answer(&answer),
        }
    }
    let mut state = world.state();
    state.submissions.clear();
    state.pending.clear();
});

fn body(bytes: &[u8], registry: &Registry) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (name, params) = bytes.split_at(end);
    match std::str::from_utf8(name).ok().and_then(|name| registry.method(name)) {
        Some(method) => {
            let head = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}","params":"#, method.name);
            [head.as_bytes(), params, b"}"].concat()
        }
        None => bytes.to_vec(),
    }
}

fn assert_answer(answer: &Value) {
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    assert!(answer.get("id").is_some(), "{answer}");
    assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{answer}");
    if let Some(error) = answer.get("error") {
        let code = error["code"].as_i64();
        assert!(code.is_some_and(|code| code != INTERNAL_ERROR), "{answer}");
        assert!(error["message"].is_string(), "{answer}");
    }
}

/// Something to ask about: a run with a step, a turn, a miner, each in a block.
fn act(world: &World) {
    let request = request(key(1).address(), 0, "prompt", 1_000, 3);
    let run = request.agent_run_id;
    let turn = ChatTurn { agent_run_id: Some(run), ..turn("hello") };
    let acts = [
        (1, 0, request.into()),
        (1, 1, turn.into()),
        (2, 0, register_miner("miner")),
        (2, 1, claim(key(2).address(), run).into()),
        (2, 2, step(run, 0, 5)),
    ];
    for (seed, nonce, body) in acts {
        let envelope = Envelope::new(nonce, NOW, None);
        world.accept(&build_tx(&key(seed), &body, &envelope));
        world.commit();
    }
}
