//! What is done without the model: what may be an argument, what a result says, short names.

use serde_json::json;

use super::arguments::{Dates, narrowed};
use super::facts::Facts;
use super::names::Names;
use crate::messages::{Message, Role, ToolCall, ToolSpec};
use crate::text::is_of_word;
use crate::tools::tests::support::toolbox;

const ADDRESS: &str = "94bf804c9f7d1e0c7a9b8d0f2b3c4d5e6f708192";

fn hash() -> String {
    "5f2b".repeat(16)
}

fn said(role: Role, text: &str) -> Message {
    Message { role, text: text.to_owned(), tool_calls: Vec::new(), tool_call_id: None }
}

/// A built-in tool.
fn tool(name: &str) -> ToolSpec {
    let grant =
        crate::tools::Grant { tools: [name.to_owned()].into(), ..crate::tools::Grant::default() };
    toolbox("").specs(&grant).remove(0)
}

/// The properties of a built-in tool's schema after a question.
fn properties(name: &str, question: &str) -> Option<serde_json::Value> {
    let narrow = narrowed(&tool(name), &[said(Role::User, question)], Dates::Letters)?;
    Some(narrow.parameters["properties"].clone())
}

#[tokio::test]
async fn arguments_are_copied_from_the_question() {
    let (address, transaction) = (format!("What has {ADDRESS}?"), format!("Where is {}?", hash()));
    let dates = "From 2026-01-01 to 2026-03-01T12:00:00Z?";
    // (tool, question, what each argument must be)
    let cases = [
        ("chain_get_balance", &*address, json!({ "address": ADDRESS })),
        ("chain_get_tx", &*transaction, json!({ "hash": hash() })),
        ("chain_get_block", "What is in block 3?", json!({ "block": "3" })),
        ("chain_get_block", "Show the latest.", json!({ "block": "latest" })),
        ("math_eval", "How much is (3 + 4) * 2?", json!({ "expression": "(3 + 4) * 2" })),
        ("date_parse", "Which day is 2026-11-22?", json!({ "text": "2026-11-22" })),
        ("date_diff", dates, json!({ "from": "2026-01-01", "to": "2026-03-01T12:00:00Z" })),
        ("chain_recent_blocks", "The last 3 of 99 blocks?", json!({ "count": 3 })),
        ("chain_recent_blocks", "The newest blocks?", json!({})),
    ];
    for (name, question, copied) in cases {
        let copied = copied.as_object().unwrap().iter();
        let expected = copied.map(|(name, value)| (name.clone(), json!({ "enum": [value] })));
        let expected = serde_json::Value::Object(expected.collect());
        assert_eq!(Some(expected), properties(name, question), "{name}: {question}");
    }
}

#[tokio::test]
async fn a_tool_whose_argument_nobody_has_written_is_not_called() {
    for name in ["chain_get_balance", "chain_get_tx", "chain_get_block", "math_eval", "date_diff"] {
        assert_eq!(None, properties(name, "What do I have?"), "{name}");
    }
    // An address is no hash.
    assert_eq!(None, properties("chain_get_tx", ADDRESS));
    assert!(properties("now", "What time is it?").is_some());
    // What a schema does not tell more of is left to the model.
    assert!(properties("regex_match", "Find x.").is_some());
}

#[tokio::test]
async fn an_earlier_message_is_asked_when_the_last_has_nothing() {
    let messages = [said(Role::User, ADDRESS), said(Role::User, "What does it have?")];
    let narrow = narrowed(&tool("chain_get_balance"), &messages, Dates::Letters).unwrap();
    assert_eq!(json!([ADDRESS]), narrow.parameters["properties"]["address"]["enum"]);
}

/// A call, and its result.
fn called(argument: &str, result: &str) -> [Message; 2] {
    let arguments = json!({ "a": argument }).as_object().unwrap().clone();
    let call = ToolCall { id: "c".into(), name: "t".into(), arguments };
    let answer = Message { tool_call_id: Some("c".into()), ..said(Role::Tool, result) };
    [Message { tool_calls: vec![call], ..said(Role::Assistant, "") }, answer]
}

#[test]
fn facts_are_the_values_of_results_without_what_was_given() {
    let facts =
        Facts::of(&called("x", r#"{"a":"x","b":[{"c":1,"d":"two\n words"},{"c":true}],"n":null}"#));
    assert_eq!("c: 1\nd: two words\nc: true", facts.lines());
    assert_eq!(vec!["1", "two words", "true"], facts.values());
    assert_eq!("17 * 23: 391", Facts::of(&called("17 * 23", "391")).lines());
}

#[test]
fn a_failed_call_gives_no_facts() {
    for failure in ["failed: division by zero", "bad_arguments: x", "error: there is no tool"] {
        assert!(Facts::of(&called("x", failure)).is_empty(), "{failure}");
    }
}

#[test]
fn long_numbers_have_short_names_and_come_back() {
    let mut names = Names::default();
    let text = format!("{ADDRESS}, {} and {ADDRESS}; {}", "0".repeat(40), hash());
    let hidden = names.hide(&text);
    assert_eq!("ADDRESS, ADDRESSX and ADDRESS; HASH", hidden);
    assert_eq!(text, names.show(&hidden));
    let own = format!("my ADDRESS is {ADDRESS}");
    assert_eq!(own, Names::default().hide(&own));
}

#[test]
fn what_updates_something_is_no_date_in_runs() {
    let update = ToolSpec {
        name: "set_status".into(),
        description: "Says what one does.".into(),
        parameters: json!({ "type": "object", "required": ["text"],
            "properties": { "text": { "type": "string", "description": "the update" } } }),
    };
    let messages = [said(Role::User, "Say that I am out.")];
    assert_eq!(narrowed(&update, &messages, Dates::Letters), None);
    let narrow = narrowed(&update, &messages, Dates::Words).unwrap();
    assert_eq!(narrow.parameters["properties"], update.parameters["properties"]);
}

#[test]
fn words_are_the_same_with_every_compiler() {
    for letter in ['a', 'Z', '0', 'é', 'я', '中', '½', '٣', '\u{345}'] {
        assert!(is_of_word(letter), "{letter:?}");
    }
    // The last is a letter from Unicode 17 on, which the table that is used does not know.
    for other in ['_', '-', ' ', '。', '\u{301}', '\u{e000}', '\u{11de0}'] {
        assert!(!is_of_word(other), "{other:?}");
    }
    let messages = [said(Role::User, "\u{11de0}7 and 8")];
    let narrow = narrowed(&tool("chain_recent_blocks"), &messages, Dates::Letters).unwrap();
    assert_eq!(narrow.parameters["properties"]["count"]["enum"], json!([7, 8]));
}
