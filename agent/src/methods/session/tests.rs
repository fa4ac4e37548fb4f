//! What follows from each output, step by step.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::methods::tests::{calls, is_cut_off, request_of, says};
use crate::methods::{Declaration, Functions};

pub(super) fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "does it".to_owned(),
        parameters: json!({ "type": "object" }),
    }
}

fn look() -> (&'static str, Value) {
    ("look", json!({ "at": "it" }))
}

fn greet(name: &str) -> (&'static str, Value) {
    ("greet", json!({ "name": name }))
}

fn request(method: &str, args: Value) -> Request {
    request_of(&json!({ "ombraAgent": 1, "method": method, "args": args }).to_string())
}

fn string(allowed: Value) -> AgentSession {
    let args = json!({ "prompt": "good?", "system": "Be brief.", "chainOfThought": true, "allowedValues": allowed });
    AgentSession::of_request(&request("inferString", args), &[tool("look")]).unwrap()
}

fn number(min: &str, max: &str) -> AgentSession {
    let args = json!({ "prompt": "how many?", "system": "", "chainOfThought": false, "minValue": min, "maxValue": max });
    AgentSession::of_request(&request("inferNumber", args), &[tool("look")]).unwrap()
}

/// A conversation in which the model thinks first.
fn chat(tools: &[ToolSpec]) -> AgentSession {
    let args = json!({ "roles": ["user"], "messages": ["hi"], "chainOfThought": true });
    AgentSession::of_request(&request("inferChat", args), tools).unwrap()
}

/// A conversation with the miner's tool `look` and the requester's `greet`.
fn tools(max_iterations: u32) -> AgentSession {
    tools_after(json!(["user"]), json!(["hi"]), max_iterations)
}

fn tools_after(roles: Value, messages: Value, max_iterations: u32) -> AgentSession {
    let request = greeting(roles, messages, max_iterations);
    AgentSession::of_request(&request, &[tool("look")]).unwrap()
}

/// A request that has the function `greet`.
fn greeting(roles: Value, messages: Value, max_iterations: u32) -> Request {
    let args = json!({
        "roles": roles, "messages": messages, "mcpServerUrls": [], "chainOfThought": false,
        "onchainTools": [{ "signature": "greet(string name)", "description": "greets" }],
        "maxIterations": max_iterations,
    });
    request("inferToolsChat", args)
}

fn finish(session: &mut AgentSession, output: &Output) -> Answer {
    ended(&session.take(output))
}

/// The answer that a course ends with.
fn ended(next: &Move) -> Answer {
    let Move::Finish(ending) = next else { panic!("it ends: {next:?}") };
    answer(ending)
}

/// The end of a course that has plain text for an answer.
fn completed(answer: &str) -> Move {
    Move::Finish(Ending { status: RunStatus::Completed, answer: answer.to_owned() })
}

fn answer(ending: &Ending) -> Answer {
    let answer = Answer::parse(&ending.answer).unwrap();
    assert_eq!(ending.status, answer.reason.status());
    answer
}

fn ends(session: &mut AgentSession, output: &Output) -> (Reason, String) {
    let answer = finish(session, output);
    assert_eq!(answer.hand_back, HandBack::default());
    (answer.reason, answer.response)
}

fn stop(response: &str) -> (Reason, String) {
    (Reason::Stop, response.to_owned())
}

fn error(response: &str) -> (Reason, String) {
    (Reason::Error, response.to_owned())
}

/// Who said what, since the request.
fn said(session: &AgentSession) -> Vec<(Role, &str)> {
    let messages = session.iteration(1).messages;
    messages.iter().map(|message| (message.role, message.text.as_str())).collect()
}

/// The ids of the calls that the miner is to run.
fn runs(session: &mut AgentSession, output: &Output) -> Vec<String> {
    match session.take(output) {
        Move::Tools(calls) => calls.into_iter().map(|call| call.id).collect(),
        other @ (Move::Finish(_) | Move::Again) => panic!("{other:?}"),
    }
}

#[test]
fn a_question_is_asked_after_its_instructions() {
    let session = string(json!(["yes", "no"]));
    assert_eq!(said(&session), [(Role::System, "Be brief."), (Role::User, "good?")]);
    let asked = session.iteration(5);
    assert_eq!(*asked.constraint, Constraint::OneOf(vec!["yes".to_owned(), "no".to_owned()]));
    assert!(asked.thinks && asked.tools.is_empty() && asked.output_tokens_max == 5);
    assert_eq!(*string(json!([])).iteration(1).constraint, Constraint::Free);

    let session = number("-5", "9");
    assert_eq!(said(&session), [(Role::User, "how many?")]);
    let bound = |text: &str| Some(text.to_owned());
    let constraint = Constraint::Integer { min: bound("-5"), max: bound("9") };
    assert_eq!(*session.iteration(1).constraint, constraint);
    assert!(!session.iteration(1).thinks);
    let unbounded = Constraint::Integer { min: None, max: None };
    assert_eq!(*number("0", "-00").iteration(1).constraint, unbounded);
    let half = Constraint::Integer { min: bound("0"), max: bound("9") };
    assert_eq!(*number("0", "9").iteration(1).constraint, half);
}

#[test]
fn plain_text_has_the_tools_of_the_whitelist_and_a_plain_answer() {
    let mut session = AgentSession::of_text("hi", &[tool("look")]);
    assert_eq!(said(&session), [(Role::User, "hi")]);
    assert_eq!(session.iteration(1).tools, [tool("look")]);
    assert_eq!(*session.iteration(1).constraint, Constraint::Free);
    for round in 0..300 {
        assert_eq!(runs(&mut session, &calls("", &[look()])), [format!("call_{round}")]);
        assert_eq!(session.results(&["seen".to_owned()]), Move::Again);
    }
    assert_eq!(session.take(&says(" it is so ")), completed(" it is so "));

    let ending = session.failure("no model");
    assert_eq!(ending, Ending { status: RunStatus::Failed, answer: "no model".to_owned() });
}

#[test]
fn a_text_that_is_cut_off_is_gone_on_with_and_is_one_answer() {
    let mut session = AgentSession::of_text("a tale", &[]);
    assert_eq!(session.take(&is_cut_off("Once upon")), Move::Again);
    assert_eq!(session.iteration(1).so_far, "Once upon");
    // Half of a character: the model writes it anew.
    assert_eq!(session.take(&is_cut_off(" a t\u{fffd}")), Move::Again);
    assert_eq!(session.iteration(1).so_far, "Once upon a t");
    assert_eq!(said(&session), [(Role::User, "a tale")], "it is no message yet");
    assert_eq!(session.take(&says("ime.")), completed("Once upon a time."));
}

#[test]
fn what_there_is_of_an_answer_is_told_with_the_reason_why_there_is_no_more() {
    let mut session = AgentSession::of_text("a tale", &[]);
    assert_eq!(session.failure("no model").answer, "no model");
    assert_eq!(session.take(&is_cut_off("Once upon")), Move::Again);
    assert_eq!(session.failure("no money").answer, "Once upon\n\n[cut off: no money]");
    let mut session = string(json!([]));
    assert_eq!(session.take(&is_cut_off("Once")), Move::Again);
    assert_eq!(answer(&session.failure("no time")).response, "Once\n\n[cut off: no time]");
}

#[test]
fn a_model_that_begins_anew_is_not_written_down_twice() {
    let beginning = "It was a dark and stormy night, and the rain fell in torrents, but".to_owned();
    let mut session = AgentSession::of_text("a tale", &[]);
    session.take(&is_cut_off(&beginning));
    assert_eq!(session.take(&is_cut_off(&format!("{beginning} not here"))), Move::Again);
    assert_eq!(session.iteration(1).so_far, format!("{beginning} not here"));
    // Short texts may begin alike.
    let mut session = AgentSession::of_text("count", &[]);
    session.take(&is_cut_off("1"));
    session.take(&is_cut_off("1"));
    assert_eq!(session.iteration(1).so_far, "11");
}

#[test]
fn a_text_that_does_not_grow_or_gets_too_long_ends_the_run() {
    let mut session = AgentSession::of_text("a tale", &[]);
    let cut = "the model's output was cut off after 7 tokens".to_owned();
    let ends = |answer: String| Move::Finish(Ending { status: RunStatus::Failed, answer });
    assert_eq!(session.take(&is_cut_off("")), ends(cut.clone()));
    assert_eq!(session.take(&is_cut_off("x")), Move::Again);
    assert_eq!(session.take(&is_cut_off("\u{fffd}")), ends(format!("x\n\n[cut off: {cut}]")));
    let long = "x".repeat(CUT_BYTES_MAX - 1);
    let Move::Finish(ending) = session.take(&is_cut_off(&long)) else { panic!("it ends") };
    assert_eq!(ending.answer.len(), CUT_BYTES_MAX + "\n\n[cut off: ]".len() + cut.len());
}

#[test]
fn a_model_thinks_only_before_the_beginning_of_its_message() {
    let mut session = chat(&[]);
    assert!(session.iteration(1).thinks);
    session.take(&is_cut_off("Hello"));
    assert!(!session.iteration(1).thinks);
}

#[test]
fn an_output_is_one_of_the_allowed_values_or_the_run_fails() {
    let mut session = string(json!(["yes", "No way"]));
    assert_eq!(ends(&mut session, &says("yes")), stop("yes"));
    assert_eq!(ends(&mut session, &says("\u{a0}\n No way \t")), stop("No way"));
    for text in ["Yes", "yes.", "no way", "\"yes\"", "yes yes", ""] {
        let miss = format!("the model's output is none of allowedValues: {text:?}");
        assert_eq!(ends(&mut session, &says(text)), error(&miss));
    }
    let cut = "yes\n\n[cut off: the model's output was cut off after 7 tokens]";
    assert_eq!(ends(&mut session, &is_cut_off("yes")), error(cut));
    assert_eq!(ends(&mut string(json!([])), &says("  as it is\n")), stop("  as it is\n"));
}

#[test]
fn a_number_is_the_first_integer_within_the_bounds() {
    let cases = [
        ("0", "10", "about 7.", stop("7")),
        ("0", "10", "11", stop("10")),
        ("0", "10", "-3", stop("0")),
        ("-5", "5", "-3", stop("-3")),
        ("0", "0", "-12", stop("-12")),
        ("-1", "0", "7", stop("0")),
        ("0", "10", "none", error("there is no integer in the model's output: \"none\"")),
        ("0", "10", "3.5", error("there is no integer in the model's output: \"3.5\"")),
    ];
    for (min, max, text, expected) in cases {
        assert_eq!(ends(&mut number(min, max), &says(text)), expected, "{text}");
    }
    let nines = "9".repeat(90);
    let max = Integer::MAX.to_string();
    assert_eq!(ends(&mut number("0", "0"), &says(&nines)), stop(&max));
    assert_eq!(ends(&mut number("0", &max), &says(&format!("-{nines}"))), stop("0"));
    let cut = "12\n\n[cut off: the model's output was cut off after 7 tokens]";
    assert_eq!(ends(&mut number("0", "0"), &is_cut_off("12")), error(cut));
}

#[test]
fn methods_without_tools_have_none() {
    let chat = chat(&[tool("look")]);
    assert!(chat.iteration(1).thinks);
    let unreadable = Output { end: End::ToolCalls, ..says("<call>") };
    for session in [chat, string(json!([])), number("0", "0")] {
        assert!(session.iteration(1).tools.is_empty());
        for output in [calls("", &[look()]), unreadable.clone()] {
            let expected = error("the model called a tool, and it has none");
            assert_eq!(ends(&mut session.clone(), &output), expected);
        }
    }
}

#[test]
fn the_tools_of_both_sides_are_offered() {
    let session = tools(1);
    let asked = session.iteration(1);
    let names: Vec<_> = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["look", "greet"]);
    assert_eq!(*asked.constraint, Constraint::Free);

    let args = json!({
        "roles": ["user"], "messages": ["hi"], "mcpServerUrls": [], "chainOfThought": false,
        "onchainTools": [
            { "signature": "greet()", "description": "" },
            { "signature": "look(string at)", "description": "" },
        ],
        "maxIterations": 1,
    });
    let refused =
        AgentSession::of_request(&request("inferToolsChat", args), &[tool("look")]).unwrap_err();
    assert_eq!(refused.field, "args.onchainTools[1].signature");
    assert_eq!((refused.got.as_str(), refused.method), ("look", Some(Method::InferToolsChat)));
}

#[test]
fn results_of_the_miners_tools_go_back_to_the_model() {
    let mut session = tools(2);
    assert_eq!(runs(&mut session, &calls("I look.", &[look(), look()])), ["call_0", "call_1"]);
    assert_eq!(session.results(&["one".to_owned(), "two".to_owned()]), Move::Again);
    let expected = [(Role::Assistant, "I look."), (Role::Tool, "one"), (Role::Tool, "two")];
    assert_eq!(said(&session)[1..], expected);
    let messages = session.iteration(1).messages;
    assert_eq!(messages[1].tool_calls.len(), 2);
    assert_eq!(messages[3].tool_call_id.as_deref(), Some("call_1"));
    assert_eq!(ends(&mut session, &says("seen")), stop("seen"));
}

#[test]
fn a_result_that_is_missing_is_told_to_the_model() {
    let mut session = tools(2);
    assert_eq!(runs(&mut session, &calls("", &[look(), look()])).len(), 2);
    assert_eq!(session.results(&["one".to_owned()]), Move::Again);
    assert_eq!(said(&session)[3], (Role::Tool, "error: the tool gave no result"));
}

#[test]
fn calls_of_the_requester_are_handed_back_with_the_conversation() {
    let mut session = tools(1);
    let answer = finish(&mut session, &calls("Hello!", &[greet("Ada"), greet("Bob")]));
    assert_eq!((answer.reason, answer.response.as_str()), (Reason::ToolCalls, ""));
    let HandBack { messages, calls } = answer.hand_back;
    assert_eq!(messages, session.iteration(1).messages);
    assert_eq!(messages[1].text, "Hello!");
    let ids: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_0", "call_1"]);
    let declared =
        Declaration { signature: "greet(string)".to_owned(), description: String::new() };
    let functions = Functions::parse("f", &[declared]).unwrap();
    let call = functions.decode(&calls[1].calldata).unwrap();
    assert_eq!(call.arguments["arg0"], "Bob");
}

#[test]
fn a_conversation_that_is_too_long_to_hand_back_ends_the_run() {
    let mut session = tools(1);
    assert_eq!(runs(&mut session, &calls("", &[look(), greet("Ada")])).len(), 1);
    let answer = ended(&session.results(&["x".repeat(ANSWER_BYTES_MAX)]));
    assert_eq!(answer.reason, Reason::Error);
    assert!(answer.response.ends_with("bytes; expected at most 4194304"), "{}", answer.response);
}

#[test]
fn one_output_may_call_the_tools_of_both_sides() {
    let mut session = tools(1);
    let output = calls("", &[greet("Ada"), look(), ("fly", json!({})), greet("Bob")]);
    assert_eq!(runs(&mut session, &output), ["call_1"]);
    let answer = ended(&session.results(&["seen".to_owned()]));
    assert_eq!(answer.reason, Reason::ToolCalls);
    let ids: Vec<_> = answer.hand_back.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_0", "call_3"]);
    let said: Vec<_> = answer.hand_back.messages[2..]
        .iter()
        .map(|message| (message.tool_call_id.as_deref().unwrap(), message.text.as_str()))
        .collect();
    let unknown = "error: there is no tool \"fly\"; there are look, greet";
    assert_eq!(said, [("call_1", "seen"), ("call_2", unknown)]);
}

#[test]
fn a_call_that_does_not_encode_goes_back_to_the_model() {
    let mut session = tools(2);
    assert_eq!(session.take(&calls("", &[("greet", json!({ "name": 5 }))])), Move::Again);
    let told = "error: name is 5; expected a string";
    assert_eq!(said(&session)[1..], [(Role::Assistant, ""), (Role::Tool, told)]);
    assert_eq!(finish(&mut session, &calls("", &[greet("Ada")])).reason, Reason::ToolCalls);
}

#[test]
fn round_trips_are_counted_when_the_model_is_asked_again() {
    let max_iterations = (Reason::MaxIterations, "again".to_owned());
    let wrong = calls("again", &[("greet", json!({}))]);
    let unreadable = Output { end: End::ToolCalls, ..says("again") };
    for last in [calls("again", &[look()]), wrong, unreadable] {
        for trips in 1..4 {
            let mut session = tools(trips);
            for _ in 0..trips {
                assert_eq!(runs(&mut session, &calls("", &[look()])).len(), 1);
                assert_eq!(session.results(&["seen".to_owned()]), Move::Again);
            }
            assert_eq!(ends(&mut session.clone(), &says("done")), stop("done"));
            assert_eq!(ends(&mut session.clone(), &last), max_iterations);
            // Handing back needs no round trip, with results of the miner's tools or without.
            let handed = finish(&mut session.clone(), &calls("", &[greet("Ada")]));
            assert_eq!(handed.reason, Reason::ToolCalls);
            assert_eq!(runs(&mut session, &calls("", &[look(), greet("Ada")])).len(), 1);
            let handed = ended(&session.results(&["seen".to_owned()]));
            assert_eq!(handed.reason, Reason::ToolCalls);
        }
    }
}

#[test]
fn wrong_and_unreadable_calls_use_up_round_trips_too() {
    let wrong = calls("", &[("fly", json!({}))]);
    let unreadable = Output { end: End::ToolCalls, ..says("<call>") };
    for output in [wrong, unreadable] {
        let mut session = tools(2);
        assert_eq!(session.take(&output), Move::Again);
        assert_eq!(session.take(&output), Move::Again);
        assert_eq!(finish(&mut session, &output).reason, Reason::MaxIterations);
    }
}

#[test]
fn calls_that_cannot_be_read_are_told_to_the_model() {
    let mut session = tools(1);
    assert_eq!(session.take(&Output { end: End::ToolCalls, ..says("<call>") }), Move::Again);
    let told = "error: the calls of tools in your last message cannot be read";
    assert_eq!(said(&session)[1..], [(Role::Assistant, "<call>"), (Role::User, told)]);
}

#[test]
fn at_most_64_tools_are_run_for_one_output() {
    let mut session = tools(1);
    let many = vec![look(); 66];
    assert_eq!(runs(&mut session, &calls("", &many)).len(), 64);
    assert_eq!(session.results(&vec!["seen".to_owned(); 64]), Move::Again);
    let said = said(&session);
    assert_eq!(said[65], (Role::Tool, "seen"));
    assert_eq!(said[66..], [(Role::Tool, "error: more than 64 calls at once"); 2]);
}

#[test]
fn a_call_that_is_cut_off_is_told_to_the_model_and_is_a_round_trip() {
    let cut = || Output { end: End::CallCut, ..says("look{\"at\":\"i") };
    let mut session = tools(1);
    assert_eq!(session.take(&is_cut_off("I will ")), Move::Again, "that is none");
    assert_eq!(session.take(&cut()), Move::Again);
    let why = "error: the calls of tools in your last message were cut off after 7 tokens; make \
               shorter ones";
    let expected = [(Role::Assistant, "I will look{\"at\":\"i"), (Role::User, why)];
    assert_eq!(said(&session)[1..], expected);
    let (reason, _) = ends(&mut session, &cut());
    assert_eq!(reason, Reason::MaxIterations);
}

#[test]
fn calls_after_a_text_that_was_cut_off_are_made() {
    let mut session = tools(3);
    assert_eq!(session.take(&is_cut_off("I will ")), Move::Again);
    assert_eq!(runs(&mut session, &calls("look.", &[look()])), ["call_0"]);
    assert_eq!(said(&session)[1], (Role::Assistant, "I will look."));
    assert!(session.iteration(1).so_far.is_empty());
}

#[test]
fn ids_that_a_conversation_has_are_not_given_again() {
    let roles = json!(["assistant", "tool", "tool", "user"]);
    let look = |id: &str| json!({ "id": id, "name": "look", "arguments": {} });
    let calls_before = json!({ "content": "", "tool_calls": [look("call_2"), look("z")] });
    let result = |id: &str| json!({ "tool_call_id": id, "content": "" }).to_string();
    let messages = json!([calls_before.to_string(), result("call_2"), result("z"), "go on"]);
    let mut session = tools_after(roles, messages, 3);
    let output = calls("", &[("look", json!({})), ("look", json!({}))]);
    assert_eq!(runs(&mut session, &output), ["call_3", "call_4"]);
}

#[test]
fn a_miner_that_gives_up_says_why() {
    let ending = tools(1).failure("the model's server does not answer");
    let answer = answer(&ending);
    assert_eq!(answer.reason, Reason::Error);
    assert_eq!(answer.response, "the model's server does not answer");
    assert_eq!(ending.status, RunStatus::Failed);
}

/// Outputs of every kind that a model may have.
fn any_output() -> impl Strategy<Value = Output> {
    let call = prop_oneof![
        Just(look()),
        Just(greet("Ada")),
        Just(("greet", json!({ "name": 1 }))),
        Just(("fly", json!({}))),
    ];
    let end = prop_oneof![8 => Just(End::ToolCalls), 1 => Just(End::Stop), 1 => Just(End::CallCut)];
    ("\\PC{0,5}", vec(call, 0..4), end)
        .prop_map(|(text, made, end)| Output { end, ..calls(&text, &made) })
}

/// Tells a course outputs until it ends; the moves that it made.
fn play(session: &mut AgentSession, outputs: &[Output]) -> Vec<Move> {
    let mut moves = Vec::new();
    for output in outputs {
        let mut next = session.take(output);
        moves.push(next.clone());
        if let Move::Tools(calls) = &next {
            let results: Vec<_> =
                calls.iter().map(|call| format!("result of {}", call.id)).collect();
            next = session.results(&results);
            moves.push(next.clone());
        }
        if let Move::Finish(_) = next {
            break;
        }
    }
    moves
}

proptest! {
    #[test]
    fn a_course_is_a_function_of_what_it_was_told(outputs in vec(any_output(), 0..8), trips in 1..4_u32) {
        let mut first = tools(trips);
        let mut second = tools(trips);
        prop_assert_eq!(play(&mut first, &outputs), play(&mut second, &outputs));
        prop_assert_eq!(said(&first), said(&second));
    }

    #[test]
    fn every_course_ends_within_its_round_trips_with_an_answer_to_go_on_from(outputs in vec(any_output(), 8), trips in 1..4_u32) {
        let mut session = tools(trips);
        let moves = play(&mut session, &outputs);
        let asked_again = moves.iter().filter(|next| **next == Move::Again).count();
        prop_assert!(asked_again <= trips as usize);
        let answer = ended(moves.last().unwrap());
        if answer.reason == Reason::ToolCalls {
            let results = vec!["done".to_owned(); answer.hand_back.calls.len()];
            let asked = greeting(json!(["user"]), json!(["hi"]), trips);
            prop_assert_eq!(answer.check_calls(asked.functions()), Ok(()));
            let resumed = asked.resume(&answer, &results).unwrap();
            prop_assert!(AgentSession::of_request(&resumed, &[tool("look")]).is_ok());
        }
    }
}
