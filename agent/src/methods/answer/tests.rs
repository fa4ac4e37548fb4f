//! Answers: one written form, strict reading, and going on from one.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::messages::Role;
use crate::methods::tests::calls;
use crate::methods::{AgentSession, Declaration, Move};

fn request() -> Request {
    Request::new(Ask::InferToolsChat {
        messages: vec![conversation::message(Role::User, "Say hello to Ada.".to_owned())],
        mcp_server_urls: Vec::new(),
        onchain_tools: vec![Declaration {
            signature: "greet(string name)".to_owned(),
            description: "Greets somebody.".to_owned(),
        }],
        max_iterations: 8,
        chain_of_thought: false,
    })
    .unwrap()
}

/// An answer that hands back one call for each name.
fn handing_back(names: &[&str]) -> Answer {
    let greetings: Vec<_> = names.iter().map(|name| ("greet", json!({ "name": name }))).collect();
    let mut session = AgentSession::of_request(&request(), &[]).unwrap();
    let Move::Finish(ending) = session.take(&calls("", &greetings)) else {
        panic!("it hands back")
    };
    Answer::parse(&ending.answer).unwrap()
}

/// The answer with one member changed, as text.
fn changed(answer: &Answer, key: &str, value: Value) -> String {
    let mut members: Value = serde_json::from_str(&answer.to_json()).unwrap();
    members[key] = value;
    members.to_string()
}

fn refusal(text: &str) -> String {
    Answer::parse(text).expect_err(text).to_string()
}

#[test]
fn a_request_that_is_refused_after_the_claim_has_an_answer() {
    let refused = Request::parse(r#"{"ombraAgent":1,"method":"inferChat","args":1}"#, None);
    let answer = Answer::refusing(&refused.unwrap_err()).to_json();
    assert_eq!(
        answer,
        r#"{"ombraAgent":1,"method":"inferChat","finishReason":"error","response":"args: expected an object, got a number"}"#
    );
    let refused = Request::parse(r#"{"ombraAgent":2}"#, None).unwrap_err();
    let answer = Answer::refusing(&refused);
    assert_eq!(answer.method, None);
    assert_eq!(Answer::parse(&answer.to_json()), Ok(answer));
}

#[test]
fn a_malformed_answer_is_refused_with_the_member() {
    let plain = Answer::plain(Method::InferString, Reason::Stop, "yes");
    let tools = handing_back(&["Ada"]);
    let ended = Answer::plain(Method::InferToolsChat, Reason::Stop, "bye");
    let cases = [
        ("yes".to_owned(), "finalAnswer: expected JSON, got"),
        ("[]".to_owned(), "ombraAgent: expected an object, got an array"),
        (changed(&plain, "ombraAgent", json!(2)), "ombraAgent: expected the number 1, got 2"),
        (
            changed(&plain, "method", json!("infer")),
            "method: expected one of inferString, inferNumber, inferChat, inferToolsChat, inferMessages, got infer",
        ),
        (changed(&plain, "response", json!(1)), "response: expected a string, got a number"),
        (
            changed(&plain, "updatedRoles", json!([])),
            "updatedRoles: expected only ombraAgent, method, finishReason, response, got an unknown key",
        ),
        (
            changed(&plain, "method", json!("inferToolsChat")),
            "updatedRoles: expected an array of strings, got nothing",
        ),
        (
            changed(&tools, "updatedRoles", json!(["user"])),
            "updatedMessages: expected 1 entries, as updatedRoles has, got 2 entries",
        ),
        (
            changed(&tools, "pendingToolCallIds", json!([])),
            "pendingToolCalls: expected 0 entries, as pendingToolCallIds has, got 1 entries",
        ),
        (
            changed(&tools, "pendingToolCallIds", json!(["call_1"])),
            r#"pendingToolCallIds: expected the calls that wait in updatedMessages, and at least one: ["call_0"], got ["call_1"]"#,
        ),
        (
            changed(&tools, "finishReason", json!("stop")),
            "updatedMessages: expected no messages and no calls with finishReason stop, got 2 entries",
        ),
        (
            changed(&ended, "finishReason", json!("tool_calls")),
            "updatedMessages: expected at least one, got no messages",
        ),
    ];
    for (text, expected) in cases {
        let refusal = refusal(&text);
        assert!(refusal.starts_with(expected), "{refusal}\n{expected}");
    }
    for reason in ["length", "max_iterations", "tool_calls"] {
        let told = refusal(&changed(&plain, "finishReason", json!(reason)));
        let expected = format!("finishReason: expected stop or error, got {reason}");
        assert!(told.starts_with(&expected), "{told}\n{expected}");
    }
    for calldata in ["00", "0x0", "0x0x00"] {
        let told = refusal(&changed(&tools, "pendingToolCalls", json!([calldata])));
        let expected = format!("pendingToolCalls[0]: expected 0x and hex, got {calldata}");
        assert!(told.starts_with(&expected), "{told}\n{expected}");
    }
}

#[test]
fn an_answer_has_at_most_4194304_bytes() {
    let of_bytes = |bytes: usize| {
        let empty = Answer::plain(Method::InferChat, Reason::Stop, "").to_json().len();
        Answer::plain(Method::InferChat, Reason::Stop, "x".repeat(bytes - empty)).to_json()
    };
    assert!(Answer::parse(&of_bytes(ANSWER_BYTES_MAX)).is_ok());
    let refused = refusal(&of_bytes(ANSWER_BYTES_MAX + 1));
    assert_eq!(refused, "finalAnswer: expected at most 4194304 bytes, got 4194305 bytes");
}

#[test]
fn an_answer_with_a_key_twice_is_refused() {
    let plain = Answer::plain(Method::InferString, Reason::Stop, "yes");
    let twice = plain.to_json().replace("\"response\"", "\"method\":\"inferChat\",\"response\"");
    assert!(refusal(&twice).contains("duplicate key"), "{twice}");
}

/// The vectors have calldata that says something else than the conversation.
#[test]
fn a_call_of_a_function_that_was_not_declared_is_found() {
    let unknown = handing_back(&["Ada"]).check_calls(&Functions::default()).unwrap_err();
    assert_eq!(unknown.got, "there is no function \"greet\"");
    let ended = Answer::plain(Method::InferToolsChat, Reason::Stop, "bye");
    assert_eq!(ended.check_calls(request().functions()), Ok(()));
}

#[test]
fn a_miner_that_changed_what_the_requester_said_is_found() {
    let mut answer = handing_back(&["Ada"]);
    assert_eq!(request().check_beginning(&answer), Ok(()));
    answer.hand_back.messages[0].text.push_str(" And say it always.");
    let refused = request().check_beginning(&answer).unwrap_err();
    assert_eq!("updatedMessages[0]", refused.field);
    assert_eq!(refused, request().resume(&answer, &["hi".to_owned()]).unwrap_err());
    answer.hand_back.messages.remove(0);
    assert_eq!("updatedMessages[0]", request().check_beginning(&answer).unwrap_err().field);
}

#[test]
fn a_requester_goes_on_with_the_results_of_his_calls() {
    let answer = handing_back(&["Ada", "Bob"]);
    let asked = request().deterministic();
    let resumed = asked.resume(&answer, &["hi Ada".to_owned(), "hi Bob".to_owned()]).unwrap();
    assert!(resumed.is_deterministic());
    let Ask::InferToolsChat { messages, max_iterations: 8, .. } = resumed.ask() else {
        panic!("the rest is asked as before")
    };
    let said: Vec<_> =
        messages.iter().map(|message| (message.role, message.text.as_str())).collect();
    let asked_and_called = [(Role::User, "Say hello to Ada."), (Role::Assistant, "")];
    assert_eq!(said[..2], asked_and_called);
    assert_eq!(said[2..], [(Role::Tool, "hi Ada"), (Role::Tool, "hi Bob")]);
    assert_eq!(messages[3].tool_call_id.as_deref(), Some("call_1"));

    let refused = asked.resume(&answer, &["hi".to_owned()]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "pendingToolCallIds: expected one for each of 2 pending calls, got 1 results"
    );
    let ended = Answer::plain(Method::InferToolsChat, Reason::Stop, "bye");
    assert!(asked.resume(&ended, &[]).is_err());
    let chat = Ask::InferChat { messages: messages[..1].to_vec(), chain_of_thought: false };
    let other = Request::new(chat).unwrap().resume(&answer, &["a".to_owned(), "b".to_owned()]);
    assert_eq!(
        other.unwrap_err().to_string(),
        "method: expected inferToolsChat or inferMessages, got inferChat"
    );
}

proptest! {
    #[test]
    fn an_answer_is_read_back_as_it_was_written(response: String, which in 0..4_usize, is_error: bool) {
        let reason = if is_error { Reason::Error } else { Reason::Stop };
        let answer = Answer::plain(Method::ALL[which], reason, response);
        prop_assert_eq!(Answer::parse(&answer.to_json()), Ok(answer));
    }

    #[test]
    fn what_is_handed_back_is_read_back(names in proptest::collection::vec(any::<String>(), 1..4)) {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let answer = handing_back(&names);
        prop_assert_eq!(Answer::parse(&answer.to_json()), Ok(answer.clone()));
        prop_assert_eq!(answer.check_calls(request().functions()), Ok(()));
    }

    #[test]
    fn any_text_is_an_answer_or_refused(text in "\\PC{0,40}|\\{\"ombraAgent\":1,\"method\":\"(inferChat)?\",\"finishReason\":\"(stop|error|x)\",\"response\":\"[a-z]{0,3}\"\\}") {
        if let Ok(answer) = Answer::parse(&text) {
            prop_assert_eq!(answer.to_json(), text);
        }
    }
}
