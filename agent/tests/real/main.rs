//! The back end inside the process, with the real model and the built-in tools. These tests are run
//! only when asked for by name, and then the variable `OMBRA_MODEL` names the model's file:
//! `OMBRA_MODEL=… ./run cargo test --release --locked --workspace --test real`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test, a panic is the assertion"
)]

mod messages;

use std::sync::Arc;

use agent::backend::{Embedded, EmbeddedConfig};
use agent::clock::Clock;
use agent::executor::{Executors, selftest};
use agent::messages::{Constraint, End, Message, Output, Role, ToolCall, ToolSpec};
use agent::tools::ports::SystemNames;
use agent::tools::{BUILT_IN, Config, Grant, Surroundings, Toolbox};
use tokio_util::sync::CancellationToken;

const ADDRESS: &str = "94bf804c9f7d1e0c7a9b8d0f2b3c4d5e6f708192";
const HASH: &str = "5f2b5f2b5f2b5f2b5f2b5f2b5f2b5f2b5f2b5f2b5f2b5f2b5f2b5f2b5f2b5f2b";

/// Questions that were not used to find the wording; the tool that suits them, and none where the
/// answer needs none.
const QUESTIONS: [(&str, &str); 12] = [
    ("How rich is the account {address}?", "chain_get_balance"),
    ("Tell me the balance of {address}.", "chain_get_balance"),
    ("What is the current block height?", "chain_get_height"),
    ("Which transactions does block 12 contain?", "chain_get_block"),
    ("Show me the transaction {hash}.", "chain_get_tx"),
    ("List the newest blocks.", "chain_recent_blocks"),
    ("Which validators does the chain have?", "chain_list_validators"),
    ("What is the time now?", "now"),
    ("How many days lie between 2025-12-24 and 2026-02-01?", "date_diff"),
    ("Calculate 1234 * 5678.", "math_eval"),
    ("What is the capital of Italy?", ""),
    ("Tell me a joke about cats.", ""),
];
/// How many of them must be right. docs/model.md section 2 has what was counted.
const RIGHT_MIN: usize = 9;

/// Results of tools, and what an answer from them must have.
const RESULTS: [(&str, &str, &str, &str); 6] = [
    (
        "What is the balance of the account {address}?",
        "chain_get_balance",
        r#"{"address":"{address}","balanceMicro":"999990000","nonce":1}"#,
        "999990000",
    ),
    (
        "How high is the chain?",
        "chain_get_height",
        r#"{"chainId":"ombra-dev","hash":"{hash}","height":17,"timestamp":1795368900123}"#,
        "17",
    ),
    ("How much is 17 * 23?", "math_eval", "391", "391"),
    (
        "Which weekday is 2026-11-22?",
        "date_parse",
        r#"{"dayOfYear":326,"unixMs":1795305600000,"utc":"2026-11-22T00:00:00Z","weekday":"Sunday"}"#,
        "Sunday",
    ),
    (
        "How many days lie between 2025-12-24 and 2026-02-01?",
        "date_diff",
        r#"{"days":39,"monthDays":8,"months":1,"seconds":3369600,"years":0}"#,
        "39",
    ),
    (
        "How many transactions has block 12?",
        "chain_get_block",
        r#"{"hash":"{hash}","index":12,"txCount":4}"#,
        "4",
    ),
];
const FACTS_MIN: usize = 3;

#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now_ms(&self) -> u64 {
        1_795_368_900_123
    }
}

fn filled(text: &str) -> String {
    text.replace("{address}", ADDRESS).replace("{hash}", HASH)
}

fn tools() -> Vec<ToolSpec> {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = Surroundings {
        node: wallet::Client::new("http://127.0.0.1:1").unwrap(),
        clock: Arc::new(Stopped),
        names: Arc::new(SystemNames),
        folder: folder.path().to_owned(),
        wrapper: None,
        stop: CancellationToken::new(),
    };
    let toolbox = Toolbox::open(&Config::default(), &surroundings).unwrap();
    let tools = BUILT_IN.iter().map(|name| (*name).to_owned()).collect();
    toolbox.specs(&Grant { tools, ..Grant::default() })
}

fn model() -> Embedded {
    assert!(std::env::var_os("OMBRA_MODEL").is_some(), "OMBRA_MODEL names the real model's file");
    Embedded::open(&EmbeddedConfig::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn said(role: Role, text: String) -> Message {
    Message { role, text, tool_calls: Vec::new(), tool_call_id: None }
}

async fn ask(model: &Embedded, messages: &[Message], tools: &[ToolSpec]) -> Output {
    messages::asked(model, messages, tools, &Constraint::Free, (&[], 64)).await.unwrap()
}

#[tokio::test]
async fn the_model_chooses_the_tool_that_suits_a_question() {
    let (model, tools) = (model(), tools());
    let mut right = 0;
    for (question, expected) in QUESTIONS {
        let output = ask(&model, &[said(Role::User, filled(question))], &tools).await;
        let chosen = output.tool_calls.first().map_or("", |call| call.name.as_str());
        println!("{question} -> {chosen:?}, wanted {expected:?}");
        right += usize::from(chosen == expected);
        if let Some(call) = output.tool_calls.first() {
            let arguments = serde_json::Value::Object(call.arguments.clone()).to_string();
            let invents = arguments.contains("address") && !arguments.contains(ADDRESS);
            assert!(!invents, "{arguments}");
        }
    }
    println!("{right} of {} tools are right", QUESTIONS.len());
    assert!(right >= RIGHT_MIN, "{right}");
}

#[tokio::test]
async fn the_answer_has_the_fact_of_the_result() {
    let (model, tools) = (model(), tools());
    let mut right = 0;
    for (question, tool, result, fact) in RESULTS {
        let question = filled(question);
        let given = serde_json::json!({ "given": question.trim_end_matches('?') });
        let arguments = given.as_object().unwrap().clone();
        let call = ToolCall { id: "c".into(), name: tool.into(), arguments };
        let messages = [
            said(Role::User, question.clone()),
            Message { tool_calls: vec![call], ..said(Role::Assistant, String::new()) },
            Message { tool_call_id: Some("c".into()), ..said(Role::Tool, filled(result)) },
        ];
        let output = ask(&model, &messages, &tools).await;
        println!("{question} -> {:?}", output.text);
        assert!(output.tool_calls.is_empty(), "a second call: {output:?}");
        let known = format!("{question} {result}");
        let numbers = output.text.split(|letter: char| !letter.is_ascii_alphanumeric());
        let is_number =
            |word: &&str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit());
        for number in numbers.filter(is_number) {
            assert!(known.contains(number), "{number} is invented: {}", output.text);
        }
        // One that does not come to an end is no answer.
        right += usize::from(output.end == End::Stop && output.text.contains(fact));
    }
    println!("{right} of {} answers have the fact", RESULTS.len());
    assert!(right >= FACTS_MIN, "{right}");
}

#[tokio::test]
async fn the_same_question_gives_the_same_bytes_whatever_was_asked_before() {
    let (first, second, tools) = (model(), model(), tools());
    let other = [said(Role::User, "Tell me of the sea.".into())];
    drop(ask(&second, &other, &[]).await);
    for question in ["What is the balance of the account {address}?", "Who are you?"] {
        let messages = [said(Role::User, filled(question))];
        assert_eq!(ask(&first, &messages, &tools).await, ask(&second, &messages, &tools).await);
    }
}

#[test]
fn the_model_computes_what_the_selftest_expects() {
    let file = std::env::var_os("OMBRA_MODEL").expect("the variable OMBRA_MODEL");
    let config = EmbeddedConfig { file: Some(file.into()), ..EmbeddedConfig::default() };
    let model = Embedded::open(&config).unwrap().for_market();
    let tested = selftest(&Executors::of(Some(Arc::new(model))));
    assert_eq!(tested.len(), 2, "programs, and agents of the model");
    for it in tested {
        assert_eq!(it.faults, [], "{}", it.executor);
    }
}
