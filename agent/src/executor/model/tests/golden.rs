//! Answers, usage and receipts that never change: a small model with random weights, a fixed agent, fixed
//! calls. A change of `golden.json` is a change of what all members of committees answer, and needs an
//! executor of another name.

use std::num::NonZeroUsize;
use std::sync::Arc;

use infer::Threads;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use types::Usage;
use types::call::{CallLimits, Outcome};

use super::scene::{LIMITS, Miner, agent_with, method, parameter, payload, published};
use crate::backend::MarketModel;
use crate::executor::{Agent, Form, Model as _, ModelAsk, ModelFault, Stop};
use crate::messages::{Constraint, Message, Role};

#[path = "../../../../../infer/tests/support/mod.rs"]
#[expect(dead_code, reason = "what only the tests of `infer` use")]
mod support;

const GOLDEN: &str = include_str!("golden.json");

/// A model on so many threads.
fn model(threads: usize) -> MarketModel {
    let threads = NonZeroUsize::new(threads).expect("not 0");
    let threads = Threads::new(threads).expect("threads start");
    MarketModel::new(&support::model(), threads).expect("grammars")
}

fn judge(manifest: types::Hash) -> Arc<Agent> {
    let outputs =
        [parameter("ok", "bool"), parameter("score", "int16"), parameter("code", "bytes2")];
    let mut abi = published();
    abi.extend([
        method("say", &[parameter("text", "string")], &[parameter("said", "string")]),
        method("judge", &[parameter("size", "uint8"), parameter("", "bool[2]")], &outputs),
    ]);
    agent_with(72, "golden", manifest, &["math_eval".to_owned()], &abi)
}

/// The calls, each with its limits.
fn calls() -> Vec<(&'static str, Value, Usage)> {
    let plenty = LIMITS.usage;
    let few = Usage { output_tokens: 3, ..plenty };
    let little = Usage { input_tokens: 20, ..plenty };
    vec![
        ("inferString", json!(["How was it?", "Judge.", false, ["good", "bad"]]), plenty),
        ("inferString", json!(["How was it?", "Judge.", true, ["good", "bad"]]), plenty),
        ("inferNumber", json!(["How many?", "", "-20", "3000", false]), plenty),
        ("inferChat", json!([["user"], ["go on"], false]), plenty),
        ("inferChat", json!([["user"], ["go on"], false]), few),
        ("inferChat", json!([["user"], ["go on"], false]), little),
        ("say", json!(["Why?"]), plenty),
        ("say", json!(["2+3?"]), plenty),
        ("judge", json!(["7", [true, false]]), plenty),
    ]
}

/// What one member answers to all calls.
fn answers(model: MarketModel) -> Value {
    let model = Arc::new(model);
    let agent = judge(model.manifest());
    let miner = Miner::with(model);
    let answer = |(name, arguments, usage): (&str, Value, Usage)| {
        let limits = CallLimits { usage, ..LIMITS };
        let executed = miner.run(&agent, &payload(&agent, name, &arguments), limits);
        let answer = executed.answer;
        let Usage { input_tokens, output_tokens, fuel } = answer.usage;
        json!({
            "call": [name, arguments],
            "outcome": answer.outcome.as_str(),
            "result": const_hex::encode_prefixed(&executed.result),
            "reason": executed.reason,
            "usage": [input_tokens, output_tokens, fuel],
            "receiptHash": answer.receipt_hash,
        })
    };
    calls().into_iter().map(answer).collect()
}

#[test]
fn every_member_answers_the_golden_answers() {
    let golden: Value = serde_json::from_str(GOLDEN).expect("JSON");
    let plain = model(1);
    plain.compute_plainly();
    for (which, model) in [("1 thread", model(1)), ("3 threads", model(3)), ("plainly", plain)] {
        let found = answers(model);
        assert_eq!(found, golden, "{which}; found:\n{found:#}");
    }
    let outcomes = golden.as_array().expect("several").iter();
    let successes = outcomes.filter(|it| it["outcome"] == Outcome::Success.as_str()).count();
    assert!(successes >= 5, "{successes} successes");
}

fn question() -> [Message; 1] {
    let (role, text) = (Role::User, "go on".to_owned());
    [Message { role, text, tool_calls: Vec::new(), tool_call_id: None }]
}

#[test]
fn a_model_reads_no_more_than_it_may_and_hears_when_to_stop() {
    let model = model(1);
    let (messages, form) = (question(), Form::Plain(Constraint::Free));
    let ask = |input_tokens_max| ModelAsk {
        messages: &messages,
        form: &form,
        input_tokens_max,
        output_tokens_max: 4,
    };
    let stop = Stop::new(CancellationToken::new(), None);
    let inference = model.infer(&ask(u64::MAX), &stop).expect("an answer");
    let tokens = inference.readings[0].input_tokens();
    assert_eq!(inference.readings[0].output_tokens(), 4);
    assert_eq!(model.infer(&ask(tokens), &stop), Ok(inference), "all that it may");
    assert_eq!(model.infer(&ask(tokens - 1), &stop), Err(ModelFault::InputTokens));
    let token = CancellationToken::new();
    token.cancel();
    let stopped = model.infer(&ask(u64::MAX), &Stop::new(token, None));
    assert_eq!(stopped, Err(ModelFault::Unable("the miner stops".to_owned())));
    let long = Message { text: "on and on ".repeat(200), ..messages[0].clone() };
    let long = [long];
    let ask = ModelAsk { messages: &long, ..ask(u64::MAX) };
    let refused = model.infer(&ask, &stop).expect_err("too long");
    assert!(matches!(refused, ModelFault::Question(_)), "{refused:?}");
}

#[test]
fn what_a_receipt_tells_follows_by_reading() {
    let model = model(1);
    let form = Form::Plain(Constraint::Free);
    let ask = ModelAsk {
        messages: &question(),
        form: &form,
        input_tokens_max: u64::MAX,
        output_tokens_max: 8,
    };
    let inference = model.infer(&ask, &Stop::new(CancellationToken::new(), None)).expect("one");
    let [told] = inference.readings.as_slice() else { panic!("one reading") };
    let mut session = support::session_with(&support::model(), 2);
    let tokenizer = session.model().clone();
    let token = |number: u32| tokenizer.tokenizer().token(number).expect("a token");
    let chosen = |it: &crate::executor::Chosen| infer::Chosen {
        token: token(it.token),
        scores: it.scores.map(|hash| *hash.as_bytes()),
    };
    let reading = infer::Reading::Answer {
        prompt: told.prompt.iter().copied().map(token).collect(),
        chosen: told.chosen.iter().map(chosen).collect(),
        end: told.end.as_ref().map(chosen),
    };
    let verified = infer::verify(&mut session, &reading, None, &mut |_| infer::Flow::Continue);
    assert_eq!(verified, Ok(infer::Verified::Follows));
}
