//! What a program asks the host for, and what comes back.

use serde_json::Map;
use types::Address;

use super::*;
use crate::executor::Form;

/// A member with one program that asks an import for this, and what it was told.
fn told(import: &str, ask: &Value, tools: &[String]) -> Result<Value, String> {
    told_text(import, &ask.to_string(), tools)
}

fn told_text(import: &str, ask: &str, tools: &[String]) -> Result<Value, String> {
    let agent = agent("asking", "string", tools);
    said(&member().with_program(&agent, &asking(import, ask)), &agent)
}

#[test]
fn a_model_is_asked_and_its_tokens_are_told() {
    let ask = json!({"system": "Be brief.", "prompt": "Hello", "maxOutputTokens": 5});
    let expected = json!({
        "text": "Be brief.+Hello as Plain(Free)", "inputTokens": 15, "outputTokens": 1,
        "finish": "stop",
    });
    assert_eq!(told("infer", &ask, &[]), Ok(expected));
    let ask = json!({"prompt": "Hello", "maxOutputTokens": 5, "choices": ["a", "b"]});
    let answer = told("infer", &ask, &[]).expect("an answer");
    assert_eq!(answer["text"], "Hello as Plain(OneOf([\"a\", \"b\"]))");
    let ask = json!({"prompt": "Hello", "maxOutputTokens": 5, "schema": {"type": "null"}});
    let answer = told("infer", &ask, &[]).expect("an answer");
    assert_eq!(answer["text"], "Hello as Schema(Object {\"type\": String(\"null\")})");
}

#[test]
fn questions_that_nobody_can_ask_are_a_failure() {
    let no_form = "what is asked is no JSON of its form";
    for (ask, reason) in [
        (json!({"prompt": "a"}), no_form),
        (json!({"prompt": "a", "maxOutputTokens": 0}), "maxOutputTokens is none of 1 to 4096"),
        (
            json!({"prompt": "a", "maxOutputTokens": 1, "choices": []}),
            "choices are none of 1 to 64",
        ),
        (
            json!({"prompt": "a", "maxOutputTokens": 1, "choices": ["a"], "schema": {}}),
            "both schema and choices",
        ),
        (json!({"prompt": "a", "maxOutputTokens": 1, "temperature": 1}), no_form),
        (json!({"prompt": "nonsense", "maxOutputTokens": 1}), "nobody can say that"),
    ] {
        assert_eq!(told("infer", &ask, &[]), Err(format!("infer: {reason}")));
    }
    let reason = format!("tool: {no_form}");
    assert_eq!(told_text("tool", "{\"name\":\"\u{0}", &[]), Err(reason.clone()));
    let agent = agent("asking", "string", &[]);
    let import = "(import \"ombra\" \"tool\" (func $ask (param i32 i32) (result i64)))
                  (data (i32.const 8192) \"\\ff\\fe\")";
    let program = module(import, "(call $ask (i32.const 8192) (i32.const 2))");
    assert_eq!(said(&member().with_program(&agent, &program), &agent), Err(reason));
}

/// What a program is told that asks with this schema.
fn told_of(schema: &Value) -> Result<Value, String> {
    told("infer", &json!({"prompt": "a", "maxOutputTokens": 1, "schema": schema}), &[])
}

#[test]
fn a_model_is_not_held_to_a_schema_that_is_too_much_for_it() {
    let names: Vec<_> = (0..1_000).map(|it| format!("p{it}")).collect();
    let null = json!({"type": "null"});
    let properties: Map<_, _> = names.iter().map(|name| (name.clone(), null.clone())).collect();
    let mut chain: Map<_, _> = (0..1_000)
        .map(|it| (format!("a{it}"), json!({"$ref": format!("#/$defs/a{}", it + 1)})))
        .collect();
    chain.insert("a1000".to_owned(), null);
    let any = json!({"anyOf": vec![json!({"type": "object"}); 100]});
    let multiple = |of: u64| json!({"type": "integer", "multipleOf": of});
    for schema in [
        json!({"$ref": "#/$defs/a0", "$defs": chain}),
        json!({"type": "object", "properties": properties, "required": names}),
        any.clone(),
        json!({"allOf": [any, {"type": "object", "required": names}]}),
        json!({"type": "object", "required": names}),
        json!({"enum": names.iter().chain([&"p".repeat(257)]).collect::<Vec<_>>()}),
        json!({"enum": (0..1_025).collect::<Vec<_>>()}),
        json!({"enum": [i64::MIN]}),
        json!({"allOf": [multiple(4_294_967_291), multiple(4_294_967_279)]}),
        json!({"type": "integer", "minimum": -9.3e18, "maximum": -9.25e18}),
        json!({"type": "string", "minLength": 4_097}),
        json!({"type": "string", "pattern": "a"}),
        json!({"type": "null", "not": {}}),
        json!(true),
    ] {
        let reason = "infer: the schema breaks a rule for schemas".to_owned();
        let shown: String = schema.to_string().chars().take(80).collect();
        assert_eq!(told_of(&schema), Err(reason), "{shown}");
    }
}

#[test]
fn a_model_is_held_to_the_one_form_of_a_schema() {
    let long = json!({"type": "array", "items": {"$ref": "#/$defs/pair"}, "maxItems": 3,
        "$defs": {"pair": {"oneOf": [{"const": 1}, {"type": "boolean", "title": "b"}]}}});
    let form = json!({"type": "array", "maxItems": 3,
        "items": {"anyOf": [{"enum": [1]}, {"type": "boolean"}]}});
    for schema in [long, form.clone()] {
        let answer = told_of(&schema).expect("an answer");
        assert_eq!(answer["text"], format!("a as {:?}", Form::Schema(form.clone())));
    }
}

#[test]
fn choices_have_so_many_bytes_at_most() {
    let choose = |choices: Vec<String>| {
        told("infer", &json!({"prompt": "a", "maxOutputTokens": 1, "choices": choices}), &[])
    };
    let of = |bytes: usize| "7".repeat(bytes);
    assert!(choose(vec![of(1_024), of(1)]).is_ok());
    for (choices, reason) in [
        (vec![of(1_025)], "a choice is empty or longer than 1024 bytes"),
        (vec![of(1), String::new()], "a choice is empty or longer than 1024 bytes"),
        ([vec![of(1_024); 8], vec![of(1)]].concat(), "choices have more than 8192 bytes"),
    ] {
        assert_eq!(choose(choices), Err(format!("infer: {reason}")));
    }
}

#[test]
fn a_member_that_cannot_ask_its_model_is_unable_whatever_the_program_does() {
    let ask = json!({"prompt": "machine", "maxOutputTokens": 1});
    assert_eq!(told("infer", &ask, &[]), Err("unable: the machine is too small".to_owned()));
}

#[test]
fn a_limit_that_the_model_reaches_ends_the_program() {
    let ask = json!({"prompt": "x".repeat(1_001), "maxOutputTokens": 1});
    let agent = agent("asking", "string", &[]);
    let program = asking("infer", &ask.to_string());
    let executed = member().with_program(&agent, &program).call(&agent, LIMITS);
    assert_eq!(executed.reason.as_deref(), Some("the limit inputTokens of the call is reached"));
    assert_eq!(executed.answer.usage, LIMITS.usage);
}

#[test]
fn tools_are_called_and_refused_as_the_metadata_say() {
    let ask = json!({"name": "math_eval", "arguments": {"expression": "6*7"}});
    let granted = told("tool", &ask, &["math_eval".to_owned()]);
    assert_eq!(granted, Ok(json!({"ok": true, "content": "42"})));
    let refused = told("tool", &ask, &[]).expect("told that it has none");
    assert_eq!(refused["ok"], false);
}

#[test]
fn an_agent_answers_or_says_why_not() {
    let (inner, outer) = nested();
    let payload = inner.metadata.methods[0].encode_arguments("[1]").expect("arguments");
    let answered = |payload: &[u8]| {
        let member = member().with_program(&inner, &module("", "i64.const 32"));
        said(&member.with_program(&outer, &asking_agent(&inner, payload)), &outer)
    };
    let zero = const_hex::encode_prefixed([0_u8; 32]);
    assert_eq!(answered(&payload), Ok(json!({"outcome": "success", "result": zero})));
    let reason = "the payload calls none of the agent's methods";
    let failure = json!({"outcome": "failure", "result": "0x", "reason": reason});
    assert_eq!(answered(b"none"), Ok(failure));
    let stranger = agent("stranger", "string", &[]);
    let asks = asking_agent(&inner, &payload);
    let reason = format!("agent: agent:{}@1.0.0 is not among the agent's tools", inner.id);
    assert_eq!(said(&member().with_program(&stranger, &asks), &stranger), Err(reason));
}

#[test]
fn an_agent_that_a_member_has_not_makes_it_unable() {
    let (inner, outer) = nested();
    let member = member().with_program(&outer, &asking_agent(&inner, &[0]));
    let reason = format!("unable: the agent {} 1.0.0 is not here", inner.id);
    assert_eq!(said(&member, &outer), Err(reason));
}

#[test]
fn a_program_knows_whose_call_it_answers() {
    let agent = agent("asking", "string", &[]);
    let import = "(import \"ombra\" \"context\" (func $context (result i64)))";
    let member = member().with_program(&agent, &telling(import, "(call $context)"));
    let expected = json!({
        "callId": Hash::ZERO, "agentId": agent.id, "version": "1.0.0",
        "requester": Address::new([1; 20]),
    });
    assert_eq!(said(&member, &agent), Ok(expected));
}

#[test]
fn a_program_says_why_it_fails() {
    let import =
        format!("(import \"ombra\" \"fail\" (func $fail (param i32 i32))) {}", says(8192, "No é."));
    let fail =
        |bytes: u32| format!("(call $fail (i32.const 8192) (i32.const {bytes})) (i64.const 32)");
    fails(&module(&import, &fail(6)), "No é.");
    fails(&module(&import, &fail(4)), "fail: no UTF-8");
    fails(&module(&import, &fail(1_025)), "fail: more than 1024 bytes");
}

#[test]
fn a_program_asks_for_only_so_much_work() {
    let import = "(import \"ombra\" \"tool\" (func $tool (param i32 i32) (result i64)))";
    let ask = json!({"name": "none", "arguments": {}}).to_string();
    let imports = format!("{import} {}", says(8192, &ask));
    let length = ask.len();
    let call = format!("(drop (call $tool (i32.const 8192) (i32.const {length})))");
    let body = repeated(1_001, &call);
    let executed = run_within(&module(&imports, &body), fuelled(1_000_000_000));
    assert_eq!(executed.reason.as_deref(), Some("more than 1000 calls of infer, tool and agent"));
    let executed = run(&module(&imports, &body));
    assert_eq!(executed.reason.as_deref(), Some("the limit fuel of the call is reached"));
}
