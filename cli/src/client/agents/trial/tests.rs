//! The example agents, tried as their authors would.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{TryArgs, run};
use crate::client::CliError;
use crate::testing::parsed;

fn example(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/agents");
    root.join(file).display().to_string()
}

fn tried(words: &[&str]) -> (String, Result<(), CliError>) {
    let args: TryArgs = parsed(words);
    let mut out = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let outcome = runtime.block_on(run(&args, &mut out));
    (String::from_utf8(out).expect("text"), outcome)
}

fn keywords(words: &[&str]) -> (String, Result<(), CliError>) {
    let (file, program) = (example("keywords/agent.json"), example("built/keywords.wasm"));
    let mut all = vec![file.as_str(), "--program", &program];
    all.extend(words);
    tried(&all)
}

#[test]
fn an_agent_answers_and_its_price_is_told() {
    let (out, outcome) =
        keywords(&["classify", "Works great.", "--price", "fuelPerG=1000000ombra"]);
    outcome.expect("an answer");
    assert!(out.starts_with("label = \"positive\"\nscore = \"2\"\n"), "{out}");
    let (json, _) = keywords(&["classify", "text=Works great.", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["answer"][0]["value"], "positive");
    let fuel = json["usage"]["fuel"].as_u64().expect("fuel");
    assert!(fuel > 50_000, "{fuel}");
    // 1,000 for each 10^9, rounded up, and 1,000 for the call.
    assert_eq!(json["memberPaid"], "1001");
    assert!(out.contains(&format!("{fuel}")), "the same fuel each time: {out}");
}

#[test]
fn the_receipt_is_written_as_the_answer_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("receipt.json");
    let (json, _) =
        keywords(&["classify", "bad", "--json", "--receipt", &file.display().to_string()]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let receipt: Value =
        serde_json::from_str(&fs::read_to_string(&file).expect("a file")).expect("JSON");
    let work = agent::tools::canonical_json(&receipt["work"]);
    assert_eq!(json["receiptHash"], json!(types::Hash::digest(work.as_bytes())));
}

#[test]
fn an_agent_that_calls_another_has_it_from_the_command_line() {
    let files = ["tally/agent.json", "built/tally.wasm", "keywords/agent.json"].map(example);
    let blob = format!("example-keywords-1={}", example("built/keywords.wasm"));
    let [file, program, with] = files.each_ref().map(String::as_str);
    let reviews = "[\"good\",\"bad\",\"good\"]";
    let words = [file, "count", reviews, "--program", program, "--with", with, "--blob", &blob];
    let (out, outcome) = tried(&words);
    outcome.expect("an answer");
    assert!(out.starts_with("positive = \"2\"\nneutral = \"0\"\nnegative = \"1\"\n"), "{out}");
    let (_, outcome) = tried(&words[..7]);
    let error = outcome.expect_err("no program of the nested agent");
    assert_eq!(error.to_string(), "unable: the program example-keywords-1 is not here");
    assert_eq!(error.exit_code(), 1);
}

#[test]
fn an_agent_that_does_not_answer_ends_with_one_and_says_why() {
    let (out, outcome) = keywords(&["classify", "bad", "--limit", "fuel=1000"]);
    let error = outcome.expect_err("too little fuel");
    assert_eq!(error.to_string(), "failure: the limit fuel of the call is reached");
    assert_eq!(error.exit_code(), 1);
    assert!(out.contains("failure"), "{out}");
}

#[test]
fn an_agent_that_asks_a_model_needs_its_file() {
    let (file, program) = (example("jury/agent.json"), example("built/jury.wasm"));
    let words = [&file, "decide", "Water is wet.", "--program", &program, "--model", "no.gguf"];
    let (_, outcome) = tried(&words);
    let error = outcome.expect_err("no model");
    assert!(error.to_string().starts_with("there is no model file at no.gguf"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn what_is_not_in_order_ends_with_two() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = |name: &str, bytes: &[u8]| -> PathBuf {
        let file = folder.path().join(name);
        fs::write(&file, bytes).expect("a file");
        file
    };
    let file = example("keywords/agent.json");
    let module = broken("module.wasm", b"not a module").display().to_string();
    let metadata = broken("agent.json", b"{}").display().to_string();
    for (words, why) in [
        (vec![file.as_str(), "classify"], "classify(string text): 0 arguments, expected 1"),
        (vec![file.as_str(), "judge", "a"], "\"judge\" is not a method of Keywords"),
        (vec![file.as_str(), "classify", "a", "--program", &module], "no module of wasm-1"),
        (vec![metadata.as_str(), "classify", "a"], "rule"),
    ] {
        let (_, outcome) = tried(&words);
        let error = outcome.expect_err(why);
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.exit_code(), 2, "{why}");
    }
}
