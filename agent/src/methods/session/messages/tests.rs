//! What follows from each output of a course for `inferMessages`.

use serde_json::{Value, json};

use super::super::tests::tool;
use super::*;
use crate::methods::Ending;
use crate::methods::messages::tests::request;
use crate::methods::tests::{calls, is_cut_off, says};
use types::RunStatus;

/// A course with the miner's tool `look`.
fn session(changes: &Value) -> AgentSession {
    AgentSession::of_request(&request(changes), &[tool("look")]).unwrap()
}

/// The functions `greet` and `book-it`.
fn functions() -> Value {
    let function = |name: &str, member: &str, of: &str| {
        json!({ "name": name, "description": "", "parameters": { "type": "object",
            "properties": { member: { "type": of } }, "required": [member] } })
    };
    json!([function("greet", "name", "string"), function("book-it", "seats", "integer")])
}

fn greet() -> (&'static str, Value) {
    ("greet", json!({ "name": "Ada" }))
}

/// The status and the answer of the end.
fn end(next: Move) -> (RunStatus, Answer) {
    let Move::Finish(Ending { status, answer }) = next else { panic!("no end: {next:?}") };
    (status, Answer::parse(&answer).unwrap())
}

fn ends(next: Move, reason: Reason, response: &str) {
    let (status, answer) = end(next);
    assert_eq!((answer.reason, &*answer.response), (reason, response));
    assert_eq!(status, reason.status());
}

fn last(session: &AgentSession) -> &Message {
    session.messages.last().unwrap()
}

#[test]
fn a_text_is_the_answer() {
    let session = &mut session(&json!({}));
    assert_eq!(session.iteration(5).tools, [tool("look")], "the run's own tools are there");
    assert_eq!(session.iteration(5).constraint, &Constraint::Free);
    ends(session.take(&says(" Hello. ")), Reason::Stop, " Hello. ");
}

#[test]
fn calls_of_functions_go_to_the_requester_with_what_was_said() {
    let session = &mut session(&json!({ "functions": functions() }));
    let (status, answer) =
        end(session.take(&calls("I greet.", &[greet(), ("book-it", json!({ "seats": 2 }))])));
    assert_eq!((status, answer.reason), (RunStatus::Completed, Reason::ToolCalls));
    assert_eq!(answer.response, "I greet.");
    let made: Vec<_> = answer.tool_calls.iter().map(|it| (&*it.id, &*it.name)).collect();
    assert_eq!(made, [("call_0", "greet"), ("call_1", "book-it")]);
    assert_eq!(answer.tool_calls[1].arguments["seats"], 2);
}

#[test]
fn a_call_has_an_id_that_is_new_in_the_conversation() {
    let messages = json!([
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": "",
            "toolCalls": [{ "id": "call_1", "name": "greet", "arguments": {} }] },
        { "role": "tool", "content": "done", "toolCallId": "call_1" }]);
    let session = &mut session(&json!({ "functions": functions(), "messages": messages }));
    let (_, answer) = end(session.take(&calls("", &[greet(), greet()])));
    let ids: Vec<_> = answer.tool_calls.iter().map(|it| &*it.id).collect();
    assert_eq!(ids, ["call_2", "call_3"]);
}

#[test]
fn the_miner_runs_its_tools_unless_the_requester_is_called_too() {
    let session = &mut session(&json!({ "functions": functions() }));
    let look = ("look", json!({}));
    let Move::Tools(run) = session.take(&calls("", &[look.clone(), ("nothing", json!({}))])) else {
        panic!("a tool runs")
    };
    assert_eq!((run.len(), &*run[0].name), (1, "look"));
    assert_eq!(session.results(&["seen".to_owned()]), Move::Again);
    let [.., seen, wrong] = &session.messages[..] else { panic!("results") };
    assert_eq!(seen.text, "seen");
    assert!(wrong.text.starts_with("error: there is no tool \"nothing\""), "{}", wrong.text);
    let (_, answer) = end(session.take(&calls("", &[look, greet()])));
    assert_eq!((answer.tool_calls.len(), &*answer.tool_calls[0].name), (1, "greet"));
}

#[test]
fn arguments_that_do_not_fit_are_told_to_the_model_and_end_the_run_at_last() {
    let session = &mut session(&json!({ "functions": functions() }));
    let wrong = calls("", &[("book-it", json!({ "seats": "two" }))]);
    for _ in 0..MISSES_MAX {
        assert_eq!(session.take(&wrong), Move::Again);
        let told = &last(session).text;
        assert!(told.starts_with("error: argument seats is \"two\""), "{told}");
    }
    let (status, answer) = end(session.take(&wrong));
    assert_eq!((status, answer.reason), (RunStatus::Failed, Reason::Error));
    assert!(answer.response.contains("argument seats is \"two\""), "{}", answer.response);
    // A right one beside a wrong one is enough.
    let session = &mut self::session(&json!({ "functions": functions() }));
    let (_, answer) = end(session.take(&calls("", &[("book-it", json!({})), greet()])));
    assert_eq!((answer.tool_calls.len(), &*answer.tool_calls[0].name), (1, "greet"));
}

#[test]
fn a_choice_that_forces_a_call_offers_only_what_it_forces() {
    for (choice, offered) in [
        (json!("required"), &["greet", "book-it"][..]),
        (json!({ "name": "book-it" }), &["book-it"][..]),
        (json!("none"), &[]),
    ] {
        let session = session(&json!({ "functions": functions(), "toolChoice": choice }));
        let names: Vec<_> = session.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, offered, "{choice}");
        assert_eq!(session.constraint == Constraint::Call, choice != "none");
    }
    let session =
        &mut session(&json!({ "functions": functions(), "toolChoice": { "name": "greet" } }));
    assert_eq!(session.take(&says("Hello.")), Move::Again);
    assert_eq!(last(session).text, "error: an answer without a call; call one of greet");
    assert_eq!(session.take(&calls("", &[("book-it", json!({ "seats": 1 }))])), Move::Again);
    let (_, answer) = end(session.take(&calls("", &[greet()])));
    assert_eq!(answer.reason, Reason::ToolCalls);
}

#[test]
fn a_function_with_the_name_of_a_tool_of_the_miner_is_refused() {
    let request = request(&json!({ "functions": functions() }));
    let refused = AgentSession::of_request(&request, &[tool("book-it")]).unwrap_err();
    assert_eq!((&*refused.field, &*refused.got), ("args.functions[1].name", "book-it"));
}

#[test]
fn an_answer_ends_before_the_first_of_the_texts_at_which_it_stops() {
    let asks = json!({ "stop": ["END", "##"] });
    let session = &mut session(&asks);
    assert_eq!(session.iteration(5).stops, ["END", "##"]);
    ends(session.take(&says("one ## two END")), Reason::Stop, "one ");
    // Also where it is cut, and where the text is in two steps.
    ends(session.take(&is_cut_off("END")), Reason::Stop, "");
    let session = &mut self::session(&asks);
    assert_eq!(session.take(&is_cut_off("one E")), Move::Again);
    ends(session.take(&says("ND two")), Reason::Stop, "one ");
}

#[test]
fn the_whole_answer_has_no_more_tokens_than_are_wanted() {
    let session = &mut session(&json!({ "maxOutputTokens": 15 }));
    assert_eq!(session.output_tokens_left(), Some(15));
    assert_eq!(session.take(&is_cut_off("Once upon ")), Move::Again);
    assert_eq!(session.output_tokens_left(), Some(8));
    assert_eq!(session.iteration(5).so_far, "Once upon ");
    assert_eq!(session.take(&is_cut_off("a time ")), Move::Again);
    ends(session.take(&is_cut_off("there")), Reason::Length, "Once upon a time there");
    // A call that is cut is no call, and a tool whose result nobody reads is not run.
    let asks = json!({ "maxOutputTokens": 7, "functions": functions() });
    let cut = Output { end: End::CallCut, ..says("<call") };
    ends(self::session(&asks).take(&cut), Reason::Length, "");
    let look = calls("I look.", &[("look", json!({}))]);
    ends(self::session(&asks).take(&look), Reason::Length, "I look.");
    let (_, answer) = end(self::session(&asks).take(&calls("", &[greet()])));
    assert_eq!(answer.reason, Reason::ToolCalls, "what is whole is whole");
}

#[test]
fn an_answer_that_the_run_cuts_off_is_told_without_a_word_about_it() {
    let session = &mut session(&json!({}));
    assert_eq!(session.take(&is_cut_off("Once upon")), Move::Again);
    let Ending { status: _, answer } = session.failure("no money");
    assert_eq!(Answer::parse(&answer).unwrap().response, "Once upon");
    let failed = Move::Finish(self::session(&json!({})).failure("no model"));
    ends(failed, Reason::Error, "no model");
}

fn city() -> Value {
    json!({ "responseSchema": { "schema": { "type": "object", "title": "City",
        "properties": { "city": { "type": "string", "description": "its name" } },
        "required": ["city"] } } })
}

#[test]
fn an_answer_with_a_schema_is_json_that_fits() {
    let request = request(&city());
    let session = &mut AgentSession::of_request(&request, &[]).unwrap();
    let Constraint::Json { schema, alone: true } = &session.constraint else { panic!("a schema") };
    assert_eq!(schema["properties"]["city"]["description"], "its name");
    assert!(session.messages[0].text.contains("\"its name\""), "{:?}", session.messages);
    ends(
        session.clone().take(&says(" {\"city\":\"Rome\"}\n")),
        Reason::Stop,
        "{\"city\":\"Rome\"}",
    );
    let fenced = says("```json\n{\"city\":\"Rome\"}\n```");
    ends(session.clone().take(&fenced), Reason::Stop, "{\"city\":\"Rome\"}");
    for (text, told) in [("Rome", "JSON"), ("{}", "city is missing"), ("{\"city\":1}", "city is 1")]
    {
        let mut session = session.clone();
        assert_eq!(session.take(&says(text)), Move::Again);
        assert!(last(&session).text.contains(told), "{}", last(&session).text);
        ends(session.take(&says("{\"city\":\"Rome\"}")), Reason::Stop, "{\"city\":\"Rome\"}");
    }
    for _ in 0..MISSES_MAX {
        assert_eq!(session.take(&says("Rome")), Move::Again);
    }
    assert_eq!(end(session.take(&says("Rome"))).0, RunStatus::Failed);
}

#[test]
fn any_object_may_be_asked_for_and_a_function_may_have_no_arguments() {
    let asks = json!({ "responseSchema": { "schema": { "type": "object" } } });
    let session = &mut AgentSession::of_request(&request(&asks), &[]).unwrap();
    assert_eq!(session.messages[0].text, "Answer with one JSON object, and with nothing else.");
    ends(session.take(&says("{\"a\":[1]}")), Reason::Stop, "{\"a\":[1]}");
    for parameters in [json!({}), json!({ "type": "object" }), json!({ "properties": {} })] {
        let function = json!({ "name": "ping", "description": "", "parameters": parameters });
        let session = &mut self::session(&json!({ "functions": [function] }));
        assert_eq!(session.tools[1].parameters["additionalProperties"], false, "{parameters}");
        assert_eq!(session.take(&calls("", &[("ping", json!({ "a": 1 }))])), Move::Again);
        let (_, answer) = end(session.take(&calls("", &[("ping", json!({}))])));
        assert_eq!(answer.reason, Reason::ToolCalls);
    }
}

#[test]
fn after_a_miss_no_tool_may_be_called_though_the_same_are_offered() {
    let session = &mut session(&city());
    let offered = session.iteration(5).tools.to_vec();
    let callable = |session: &AgentSession| session.constraint.callable(&session.tools).len();
    assert_eq!((offered.len(), callable(session)), (1, 1));
    assert_eq!(session.take(&says("Rome")), Move::Again);
    assert_eq!((session.iteration(5).tools, callable(session)), (&offered[..], 0));
    assert_eq!(session.take(&calls("", &[("look", json!({}))])), Move::Again);
    ends(session.take(&is_cut_off("{\"city\":")), Reason::Length, "{\"city\":");
}
