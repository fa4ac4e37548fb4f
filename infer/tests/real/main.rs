//! Tests with the real model. They are run only when asked for by name, and then the variable
//! `OMBRA_MODEL` has to name the model's file:
//! `OMBRA_MODEL=… ./run cargo test --release --locked --workspace --test real`.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the assertion")]

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use infer::{
    End, Flow, Grammars, Limits, Model, Prompt, Role, SMOLLM2_135M, SMOLLM2_135M_MANIFEST, Session,
    Threads, Token, Tool, Turn, Verified, verify,
};
use serde_json::{Value, json};

#[path = "../golden/mod.rs"]
#[expect(dead_code, reason = "the digests of the small model")]
mod golden;

use self::golden::{REAL, SYSTEM};

fn path() -> PathBuf {
    let path = std::env::var_os("OMBRA_MODEL");
    path.expect("OMBRA_MODEL names the file of the real model").into()
}

fn model() -> &'static Arc<Model> {
    static MODEL: OnceLock<Arc<Model>> = OnceLock::new();
    MODEL.get_or_init(|| {
        Arc::new(Model::open_pinned(&path(), &SMOLLM2_135M).unwrap_or_else(|e| panic!("{e}")))
    })
}

fn session(threads: usize) -> Session {
    let threads = Threads::new(threads.try_into().unwrap()).unwrap();
    Session::new(Arc::clone(model()), threads, NonZeroUsize::new(1_024).unwrap())
}

fn ask(text: &str) -> Prompt {
    let system = Turn { role: Role::System, text: SYSTEM };
    model().prompt(&[system, Turn { role: Role::User, text }])
}

#[test]
fn scores_and_answers_are_the_golden_ones() {
    let grammars = Grammars::new(Arc::clone(model())).unwrap();
    for case in REAL {
        let (text, prompt) = (case.text, golden::prompt(model(), &case));
        for (threads, chunk) in [(1, 64), (1, 1), (2, 7), (3, 512)] {
            let mut session = session(threads);
            session.read_at_once(NonZeroUsize::new(chunk).unwrap());
            let found = golden::scores(&mut session, &prompt, case.steps);
            assert_eq!(found, case.scores, "{text} {threads} threads, {chunk} at once");
        }
        let mut plain = session(1);
        plain.compute_plainly();
        assert_eq!(golden::scores(&mut plain, &prompt, case.steps), case.scores, "{text} plainly");
        for mut session in [session(2), plain] {
            let found = golden::answers(&mut session, &grammars, &prompt, case.output_tokens_max);
            assert_eq!(found, case.answers, "{text}");
        }
    }
}

#[test]
fn the_file_is_what_is_pinned() {
    let (path, pinned) = (path(), SMOLLM2_135M);
    pinned.check(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), pinned.bytes);
    let manifest = model().manifest();
    assert_eq!(manifest.sha256, pinned.sha256);
    assert_eq!((manifest.context_tokens_max, manifest.template), (8_192, "chatml"));
}

/// Made with the Python package `tokenizers` 0.23.3 from the file's own vocabulary and merges.
#[test]
fn tokens_are_those_of_another_implementation() {
    let vectors: Vec<(String, Vec<u32>)> =
        serde_json::from_str(include_str!("tokens.json")).unwrap();
    assert!(vectors.len() >= 400, "{} vectors", vectors.len());
    for (text, expected) in vectors {
        let tokens = model().tokenizer().encode(&text);
        let found: Vec<u32> = tokens.into_iter().map(Token::number).collect();
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn sentiments_are_told_by_choice() {
    let cases = [
        ("I love this phone, it is wonderful.", 0),
        ("This is the worst meal I ever had.", 1),
        ("Absolutely fantastic service!", 0),
        ("I hate waiting in line for hours.", 1),
        ("What a beautiful sunny day, I am so happy.", 0),
        ("The movie was boring and terrible.", 1),
        ("Great value, works perfectly.", 0),
        ("It broke after one day, very disappointed.", 1),
    ];
    let labels = ["The sentiment is positive.", "The sentiment is negative."];
    let mut session = session(1);
    for (text, expected) in cases {
        let prompt = ask(&format!("What is the sentiment of this text: \"{text}\""));
        let choice = session.choose(&prompt, &labels, &mut |_| Flow::Continue).unwrap().unwrap();
        assert_eq!(choice.index, expected, "{text} {:?}", choice.scores);
    }
}

#[test]
fn answers_have_the_form_that_was_asked_for() {
    let grammars = Grammars::new(Arc::clone(model())).unwrap();
    let mut session = session(1);
    let limits = Limits { output_tokens_max: 160 };
    let mut answer = |text: &str, grammar: &infer::Grammar| {
        let answer = session.generate(&ask(text), &limits, Some(grammar), &mut |_| Flow::Continue);
        let answer = answer.unwrap();
        assert_eq!(answer.end, End::Stop, "{answer:?}");
        answer.text
    };
    let questions =
        ["How many legs has a dog?", "Tell me of Bob.", "What is 17 * 23?", "\u{1f98a}"];
    let labels = ["yes", "no", "perhaps not"];
    let address = json!({ "type": "object", "properties": { "address": { "type": "string", "pattern": "^0x[0-9a-f]{40}$" } }, "required": ["address"] });
    let tool = Tool { name: "balance", arguments: &address };
    for question in questions {
        let text = answer(question, &grammars.one_of(&labels).unwrap());
        assert!(labels.contains(&text.as_str()), "{text}");
        let text = answer(question, &grammars.integer(Some("-5"), Some("999999")).unwrap());
        assert!((-5..=999_999).contains(&text.parse::<i64>().unwrap()), "{text}");
        let text = answer(question, &grammars.tool_call(&tool).unwrap());
        let call = text.strip_prefix(infer::CALL_START).unwrap();
        let call: Value =
            serde_json::from_str(call.strip_suffix(infer::CALL_END).unwrap()).unwrap();
        let address = call["arguments"]["address"].as_str().unwrap();
        assert!(address.len() == 42 && address.starts_with("0x"), "{text}");
    }
}

#[test]
fn what_the_model_answers_follows_by_reading_and_its_manifest_is_the_one_in_the_documents() {
    assert_eq!(model().manifest().hash(), SMOLLM2_135M_MANIFEST);
    let mut own = session(2);
    own.record(u64::MAX);
    let limits = Limits { output_tokens_max: 32 };
    own.generate(&golden::prompt(model(), &REAL[1]), &limits, None, &mut |_| Flow::Continue)
        .unwrap();
    let reading = own.recorded().remove(0);
    let verified = verify(&mut session(1), &reading, None, &mut |_| Flow::Continue).unwrap();
    assert_eq!(verified, Verified::Follows);
}
