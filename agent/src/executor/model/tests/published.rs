//! The four methods of docs/agent-methods.md. What is encoded here is decoded by another implementation.

use alloy_dyn_abi::{DynSolType, DynSolValue};
use serde_json::{Value, json};
use types::call::Outcome;

use super::scene::{Miner, agent, call, cut, published, text};
use crate::executor::{Executed, Form, Inference};
use crate::messages::Constraint;

fn ask(miner: &Miner, tools: &[&str], method: &str, arguments: &Value) -> Executed {
    let tools: Vec<_> = tools.iter().map(|tool| (*tool).to_owned()).collect();
    miner.call(&agent("llm-inference", &tools, &published()), method, arguments)
}

/// The values of a result, as another implementation reads them.
fn decoded(types: &str, executed: &Executed) -> Vec<DynSolValue> {
    assert_eq!(executed.answer.outcome, Outcome::Success, "{:?}", executed.reason);
    let of_type = DynSolType::parse(types).expect("types");
    let value = of_type.abi_decode_params(&executed.result).expect("an encoding");
    assert_eq!(value.abi_encode_params(), executed.result, "the one encoding");
    value.as_tuple().expect("several").to_vec()
}

fn failure(executed: &Executed) -> &str {
    assert_eq!(executed.answer.outcome, Outcome::Failure);
    executed.reason.as_deref().expect("a reason")
}

#[test]
fn the_methods_have_the_published_selectors() {
    let agent = agent("llm-inference", &[], &published());
    let selectors: Vec<_> =
        agent.metadata.methods.iter().map(|method| method.selector().to_string()).collect();
    assert_eq!(selectors, ["0xfe7ca098", "0xc6833c3d", "0xbee8d139", "0xd0683905"]);
    assert!(
        agent.metadata.methods.iter().all(|method| super::super::published::find(method).is_some())
    );
}

#[test]
fn a_text_is_one_of_the_allowed_ones_after_the_base_prompt_and_the_instructions() {
    let miner = Miner::saying([text(" negative\n", 2)]);
    let arguments = json!(["How?", "Judge.", false, ["positive", "negative"]]);
    let executed = ask(&miner, &[], "inferString", &arguments);
    assert_eq!(decoded("(string)", &executed), [DynSolValue::String("negative".to_owned())]);
    let asked = &miner.asked()[0];
    assert_eq!(asked.texts(), ["Be brief.\n\nJudge.", "How?"]);
    let labels = ["positive", "negative"].map(str::to_owned).to_vec();
    assert_eq!(asked.form, Form::Plain(Constraint::OneOf(labels)));
    let other = Miner::saying([text("maybe", 1)]);
    let executed = ask(&other, &[], "inferString", &arguments);
    assert_eq!(failure(&executed), "the model's output is none of allowedValues: \"maybe\"");
    let cut_off = Miner::saying([cut("posi", 16)]);
    let executed = ask(&cut_off, &[], "inferString", &arguments);
    let why = "posi\n\n[cut off: the model's output was cut off after 16 tokens]";
    assert_eq!(failure(&executed), why);
}

#[test]
fn a_free_text_ends_at_the_agent_s_most_tokens() {
    let miner = Miner::saying([cut("once upon a", 16)]);
    let executed = ask(&miner, &[], "inferString", &json!(["Tell.", "", false, []]));
    assert_eq!(decoded("(string)", &executed), [DynSolValue::String("once upon a".to_owned())]);
    assert_eq!(miner.asked()[0].texts(), ["Be brief.", "Tell."]);
}

#[test]
fn a_number_is_within_its_bounds() {
    for (says, bounds, expected) in
        [("-12", ["-5", "5"], -5_i64), ("it is 7", ["0", "0"], 7), ("3", ["1", "9"], 3)]
    {
        let miner = Miner::saying([text(says, 2)]);
        let [min, max] = bounds;
        let executed = ask(&miner, &[], "inferNumber", &json!(["?", "", min, max, false]));
        let value = decoded("(int256)", &executed).remove(0);
        assert_eq!(value.as_int().expect("a number").0.to_string(), expected.to_string());
    }
    let executed = ask(&Miner::saying([]), &[], "inferNumber", &json!(["?", "", "2", "1", false]));
    assert_eq!(failure(&executed), "args.minValue: expected at most maxValue, 1, got 2");
}

#[test]
fn a_model_that_thinks_first_is_asked_twice_and_its_thoughts_are_no_answer() {
    let miner = Miner::saying([cut("well, 4 or 5", 8), text("5", 1)]);
    let executed = ask(&miner, &[], "inferNumber", &json!(["?", "", "0", "9", true]));
    let value = decoded("(int256)", &executed).remove(0);
    assert_eq!(value.as_int().expect("a number").0.to_string(), "5");
    let asked = miner.asked();
    assert_eq!((asked[0].output_tokens_max, asked[1].output_tokens_max), (8, 8));
    assert_eq!(asked[0].form, Form::Plain(Constraint::Free));
    assert_eq!(asked[1].texts()[2..], ["well, 4 or 5", "Now give only the answer."]);
}

#[test]
fn a_conversation_goes_on_and_its_own_instructions_come_after_the_base_prompt() {
    let miner = Miner::saying([text("hello", 1)]);
    let arguments = json!([["system", "user"], ["Be kind.", "hi"], false]);
    let executed = ask(&miner, &[], "inferChat", &arguments);
    assert_eq!(decoded("(string)", &executed), [DynSolValue::String("hello".to_owned())]);
    assert_eq!(miner.asked()[0].texts(), ["Be brief.\n\nBe kind.", "hi"]);
    let executed = ask(&Miner::saying([]), &[], "inferChat", &json!([["judge"], ["x"], false]));
    let why = "args.roles[0]: expected system, user or assistant, got \"judge\"";
    assert_eq!(failure(&executed), why);
}

fn tools_chat(servers: &Value, iterations: &str) -> Value {
    let swap =
        json!({ "signature": "swap(address token, uint256 amount)", "description": "Swaps." });
    json!([["user"], ["Swap it."], servers, [swap], iterations, false])
}

const TOOLS_CHAT: &str = "(string,string,string[],string[],string[],bytes[])";

fn strings(value: &DynSolValue) -> Vec<&str> {
    value.as_array().expect("several").iter().filter_map(DynSolValue::as_str).collect()
}

#[test]
fn a_call_that_the_requester_executes_is_handed_back_with_the_conversation() {
    let token = "0x94bf804c9f7d1e0c7a9b8d0f2b3c4d5e6f708192";
    let miner = Miner::saying([
        call("math_eval", json!({ "expression": "6*7" })),
        call("swap", json!({ "token": token, "amount": "42" })),
    ]);
    let arguments = tools_chat(&json!([]), "5");
    let executed = ask(&miner, &["math_eval"], "inferToolsChat", &arguments);
    let values = decoded(TOOLS_CHAT, &executed);
    assert_eq!((values[0].as_str(), values[1].as_str()), (Some("tool_calls"), Some("")));
    assert_eq!(strings(&values[2]), ["user", "assistant", "tool", "assistant"]);
    let messages = strings(&values[3]);
    assert_eq!(messages[0], "Swap it.", "without the base prompt");
    assert_eq!(messages[2], r#"{"tool_call_id":"call_0","content":"42"}"#);
    assert_eq!(strings(&values[4]), ["call_1"]);
    let DynSolValue::Array(calls) = &values[5] else { panic!("calls") };
    let DynSolValue::Bytes(calldata) = &calls[0] else { panic!("bytes") };
    assert_eq!(const_hex::encode(&calldata[..4]), "d004f0f7");
    assert_eq!(calldata.len(), 68);
    assert_eq!(miner.asked()[0].texts(), ["Be brief.", "Swap it."]);
}

#[test]
fn a_conversation_with_tools_ends_by_a_text_or_by_its_round_trips() {
    let round = || call("math_eval", json!({ "expression": "1+1" }));
    let run = |says: Vec<Inference>, iterations: &str| {
        let miner = Miner::saying(says);
        let arguments = tools_chat(&json!([]), iterations);
        decoded(TOOLS_CHAT, &ask(&miner, &["math_eval"], "inferToolsChat", &arguments))
    };
    let stopped = run(vec![round(), text("2", 1)], "5");
    assert_eq!((stopped[0].as_str(), stopped[1].as_str()), (Some("stop"), Some("2")));
    let used_up = run(vec![round(), round()], "1");
    assert_eq!(used_up[0].as_str(), Some("max_iterations"));
    let agent_s = run(vec![round(), round(), round()], "200");
    assert_eq!(agent_s[0].as_str(), Some("max_iterations"), "the agent allows two");
}

#[test]
fn servers_and_impossible_round_trips_are_refused() {
    let servers = tools_chat(&json!(["https://example.org"]), "5");
    let executed = ask(&Miner::saying([]), &[], "inferToolsChat", &servers);
    let why = "args.mcpServerUrls: expected no servers, agents reach none";
    assert_eq!(failure(&executed), why);
    for iterations in ["0", "201", "99999999999999999999999"] {
        let arguments = tools_chat(&json!([]), iterations);
        let executed = ask(&Miner::saying([]), &[], "inferToolsChat", &arguments);
        let reason = failure(&executed);
        assert!(
            reason.starts_with("args.maxIterations: expected an integer from 1 to 200"),
            "{reason}"
        );
    }
}
