//! Methods that an agent has defined itself, and its tools.

use serde_json::{Value, json};
use types::Usage;
use types::abi::Method;
use types::call::{CallLimits, Outcome};

use super::scene::{LIMITS, Miner, agent, call, cut, method, parameter, payload, text, tool_of};
use crate::executor::{Agent, Form};
use crate::messages::{Constraint, Role};

fn described(mut method: Value, description: &str) -> Value {
    method["description"] = json!(description);
    method
}

/// An agent with a method for a text, one for a verdict, and one for what has no names.
fn judge(tools: &[String]) -> std::sync::Arc<Agent> {
    let string = |name| parameter(name, "string");
    let verdict =
        [parameter("ok", "bool"), parameter("score", "uint8"), parameter("code", "bytes4")];
    let mixed = [parameter("", "int256"), parameter("arg0", "bytes"), parameter("", "address")];
    agent(
        "Text judge",
        tools,
        &[
            described(method("say", &[string("text")], &[string("said")]), "Says it again."),
            method("judge", &[string("text")], &verdict),
            method("mixed", &mixed, &[string("")]),
            method("grid", &[], &[parameter("all", "uint8[100][100]")]),
        ],
    )
}

fn of<'a>(agent: &'a Agent, name: &str) -> &'a Method {
    agent.metadata.methods.iter().find(|method| method.name == name).expect("the method")
}

#[test]
fn the_model_reads_the_base_prompt_the_method_and_the_text_and_its_text_is_the_answer() {
    let agent = judge(&[]);
    let miner = Miner::saying([text("as it is ", 3)]);
    let executed = miner.call(&agent, "say", &json!(["<b>hello</b>"]));
    assert_eq!(executed.answer.outcome, Outcome::Success, "{:?}", executed.reason);
    let said = of(&agent, "say").decode_answer(&executed.result).expect("an answer");
    assert_eq!(said, r#"[{"name":"said","type":"string","value":"as it is "}]"#);
    assert_eq!(executed.answer.usage, Usage { input_tokens: 3, output_tokens: 3, fuel: 0 });
    let asked = miner.asked();
    assert_eq!(asked[0].texts(), ["Be brief.\n\nMethod say: Says it again.", "<b>hello</b>"]);
    let roles: Vec<_> = asked[0].messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User]);
    assert_eq!(asked[0].form, Form::Plain(Constraint::Free));
    assert_eq!(asked[0].output_tokens_max, 16);
}

#[test]
fn other_inputs_are_read_as_json_by_name_and_a_cut_text_is_an_answer() {
    let agent = judge(&[]);
    let miner = Miner::saying([cut("goes on and", 16)]);
    let address = "94bf804c9f7d1e0c7a9b8d0f2b3c4d5e6f708192";
    let executed = miner.call(&agent, "mixed", &json!(["-7", "0xAB", address]));
    assert_eq!(executed.answer.outcome, Outcome::Success, "{:?}", executed.reason);
    let object = format!(r#"{{"arg0":"0xab","arg0_":"-7","arg2":"{address}"}}"#);
    assert_eq!(miner.asked()[0].texts(), ["Be brief.", object.as_str()]);
}

#[test]
fn other_outputs_are_held_to_their_schema_and_encoded() {
    let agent = judge(&[]);
    let miner = Miner::saying([text(r#"{"ok":true,"score":"250","code":"0x01020304"}"#, 9)]);
    let executed = miner.call(&agent, "judge", &json!(["good?"]));
    assert_eq!(executed.answer.outcome, Outcome::Success, "{:?}", executed.reason);
    assert_eq!(executed.result.len(), 96);
    assert_eq!((executed.result[31], executed.result[63]), (1, 250));
    assert_eq!(executed.result[64..69], [1, 2, 3, 4, 0]);
    let Form::Schema(schema) = &miner.asked()[0].form else { panic!("a schema") };
    assert_eq!(schema["required"], json!(["ok", "score", "code"]));
    let score = regex::Regex::new(schema["properties"]["score"]["pattern"].as_str().expect("one"));
    let score = score.expect("a pattern");
    assert!(score.is_match("0") && score.is_match("255"));
    assert!(!score.is_match("256") && !score.is_match("-1") && !score.is_match("07"));
}

#[test]
fn an_answer_that_is_none_of_the_outputs_is_a_failure() {
    let agent = judge(&[]);
    for (says, why) in [
        (
            text(r#"{"ok":true,"score":"256","code":"0x01020304"}"#, 1),
            "the model's answer is not the method's: /score: expected an integer",
        ),
        (cut(r#"{"ok":tr"#, 16), "the model's answer was cut off after 16 tokens"),
        (text("", 0), "the model's answer is not the method's: "),
    ] {
        let executed = Miner::saying([says]).call(&agent, "judge", &json!([""]));
        assert_eq!(executed.answer.outcome, Outcome::Failure);
        let reason = executed.reason.expect("a reason");
        assert!(reason.starts_with(why), "{reason}");
    }
    let executed = Miner::saying([]).call(&agent, "say", &json!([""]));
    assert_eq!(executed.reason.as_deref(), Some("nothing more to say"), "the model cannot");
    let executed = Miner::saying([]).call(&agent, "grid", &json!([]));
    let why = "the outputs have more values than an answer has tokens";
    assert_eq!(executed.reason.as_deref(), Some(why));
}

#[test]
fn a_payload_that_is_no_call_is_a_failure_for_everybody() {
    let agent = judge(&[]);
    let mut cut_off = payload(&agent, "say", &json!(["hello"]));
    cut_off.pop();
    for (payload, why) in [
        (vec![1, 2, 3, 4], "the payload calls no method of the agent"),
        (Vec::new(), "the payload calls no method of the agent"),
        (cut_off, "the arguments: /0: expected at least 64 bytes, found 63 bytes"),
    ] {
        let executed = Miner::saying([]).run(&agent, &payload, LIMITS);
        assert_eq!(executed.answer.outcome, Outcome::Failure);
        assert_eq!(executed.reason.as_deref(), Some(why));
    }
}

#[test]
fn a_limit_of_the_call_that_cuts_an_answer_is_a_failure_with_the_limits_as_usage() {
    let agent = judge(&[]);
    let usage = Usage { output_tokens: 3, ..LIMITS.usage };
    let miner = Miner::saying([cut("on and on", 3)]);
    let limits = CallLimits { usage, ..LIMITS };
    let executed = miner.run(&agent, &payload(&agent, "say", &json!(["go on"])), limits);
    assert_eq!(miner.asked()[0].output_tokens_max, 3);
    let limit = "the limit outputTokens of the call is reached";
    assert_eq!(executed.reason.as_deref(), Some(limit));
    assert_eq!(executed.answer.usage, usage);
}

#[test]
fn tools_are_called_and_their_results_are_read() {
    let agent = judge(&["math_eval".to_owned()]);
    let miner = Miner::saying([
        call("math_eval", json!({ "expression": "6*7" })),
        call("shell", json!({})),
        text("It is 42.", 5),
    ]);
    let executed = miner.call(&agent, "say", &json!(["6*7?"]));
    assert_eq!(executed.answer.outcome, Outcome::Success, "{:?}", executed.reason);
    let asked = miner.asked();
    let Form::Tools(specs) = &asked[0].form else { panic!("tools") };
    assert_eq!(specs[0].name, "math_eval");
    let last = &asked[2].messages;
    assert_eq!(last[3].text, "42");
    assert_eq!(last[2].tool_calls[0].id, last[3].tool_call_id.clone().expect("an id"));
    assert!(last[5].text.starts_with("not_granted: "), "{}", last[5].text);
    assert_ne!(last[3].tool_call_id, last[5].tool_call_id);
    let steps = executed.work.expect("work").as_json()["steps"].clone();
    assert_eq!(steps[1]["tool"]["content"], "42");
}

#[test]
fn after_the_last_round_the_model_answers_without_tools() {
    let agent = judge(&["math_eval".to_owned()]);
    let round = || call("math_eval", json!({ "expression": "1+1" }));
    let verdict = r#"{"ok":false,"score":"0","code":"0x00000000"}"#;
    let miner = Miner::saying([round(), round(), round(), text(verdict, 5)]);
    let executed = miner.call(&agent, "judge", &json!(["?"]));
    assert_eq!(executed.answer.outcome, Outcome::Success, "{:?}", executed.reason);
    let asked = miner.asked();
    assert!(asked[..3].iter().all(|asked| matches!(asked.form, Form::Call(_))));
    assert!(matches!(asked[3].form, Form::Schema(_)));
    assert_eq!(asked[3].messages.len(), 6, "two rounds");
    let miner = Miner::saying([cut("<tool_call>{\"name\":\"ma", 16), text("so", 1)]);
    let executed = miner.call(&agent, "say", &json!(["?"]));
    assert_eq!(executed.answer.outcome, Outcome::Success);
    assert_eq!(miner.asked()[1].form, Form::Plain(Constraint::Free), "a call is no answer");
}

/// An agent that has another one for a tool.
fn asker(inner: &Agent, inputs: &[Value]) -> std::sync::Arc<Agent> {
    let ask = method("ask", inputs, &[parameter("a", "string")]);
    agent("Asker", &[tool_of(inner)], &[ask])
}

#[test]
fn another_agent_is_a_tool_named_by_itself_and_its_method() {
    let inner = judge(&[]);
    let outer = asker(&inner, &[parameter("q", "string")]);
    let tool = "Text_judge_judge";
    let mut miner = Miner::saying([
        call(tool, json!({ "text": "is it?" })),
        text(r#"{"ok":true,"score":"7","code":"0x00000000"}"#, 5),
        call(tool, json!({ "text": 5 })),
        text("done", 1),
    ]);
    miner.member.library.add_agent(inner.clone());
    let executed = miner.call(&outer, "ask", &json!(["?"]));
    assert_eq!(executed.answer.outcome, Outcome::Success, "{:?}", executed.reason);
    let asked = miner.asked();
    let Form::Tools(specs) = &asked[0].form else { panic!("tools") };
    let spec = specs.iter().find(|spec| spec.name == "Text_judge_say").expect("the tool");
    assert_eq!(spec.description, "Judges texts.\nSays it again.");
    assert_eq!(spec.parameters["properties"], json!({ "text": { "type": "string" } }));
    let results = &asked[3].messages;
    assert_eq!(results[3].text, r#"{"code":"0x00000000","ok":true,"score":"7"}"#);
    assert!(results[5].text.starts_with("error: /text: expected a string"), "{}", results[5].text);
    assert_eq!(executed.answer.usage.input_tokens, 12, "of both agents");
    let steps = executed.work.expect("work").as_json()["steps"].clone();
    assert_eq!(steps[1]["agent"]["agentId"], json!(inner.id));
}

#[test]
fn a_nested_failure_is_told_to_the_model_as_an_error() {
    let inner = judge(&[]);
    let outer = asker(&inner, &[]);
    let mut miner = Miner::saying([
        call("Text_judge_judge", json!({ "text": "" })),
        text("no object", 2),
        text("it failed", 2),
    ]);
    miner.member.library.add_agent(inner);
    let executed = miner.call(&outer, "ask", &json!([]));
    assert_eq!(executed.answer.outcome, Outcome::Success, "{:?}", executed.reason);
    let told = miner.asked()[2].messages.last().expect("a result").text.clone();
    assert!(told.starts_with("error: the model's answer is not the method's"), "{told}");
    let executed = Miner::saying([]).call(&outer, "ask", &json!([]));
    assert_eq!(executed.answer.outcome, Outcome::Unable, "the nested agent is not here");
}
