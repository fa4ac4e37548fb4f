//! What is understood of requests, what is refused, and what answers look like.

use agent::methods::{DECLARED_MAX, MESSAGES_MAX};
use serde_json::{Value, json};

use super::chunks::Head;
use super::{ApiFault, ChatRequest, Completion, Reply, Spent, completion, parse};

fn ask(body: &Value) -> Result<ChatRequest, ApiFault> {
    parse(body.to_string().as_bytes())
}

fn with(name: &str, value: Value) -> Value {
    let mut body = json!({ "model": "ombra", "messages": [{ "role": "user", "content": "Hi" }] });
    body[name] = value;
    body
}

#[test]
fn a_plain_request_becomes_the_arguments_of_the_method() {
    let asked = ask(&with("max_tokens", json!(7))).unwrap();
    assert_eq!(("ombra", Some(7)), (asked.model.as_str(), asked.output_tokens_max));
    let expected = json!({
        "messages": [{ "role": "user", "content": "Hi" }],
        "functions": [],
        "toolChoice": "auto",
    });
    assert_eq!(expected, Value::Object(asked.args));
    assert_eq!((false, false, 0), (asked.is_stream, asked.includes_usage, asked.ignored.len()));
}

#[test]
fn a_conversation_with_calls_keeps_them() {
    let body = json!({
        "model": "ombra",
        "messages": [
            { "role": "developer", "content": [{ "type": "text", "text": "Be " }, { "type": "text", "text": "brief." }] },
            { "role": "assistant", "content": null, "refusal": null, "tool_calls": [
                { "id": "c0", "type": "function", "function": { "name": "add", "arguments": "{\"a\":1}" } },
            ] },
            { "role": "tool", "tool_call_id": "c0", "content": "2" },
        ],
        "tools": [{ "type": "function", "function": { "name": "add", "strict": true } }],
        "tool_choice": "auto",
        "response_format": { "type": "json_schema", "json_schema": { "name": "n", "strict": true, "schema": { "type": "object" } } },
        "max_completion_tokens": 9,
        "max_tokens": 8,
        "temperature": 0.5,
        "user": null,
    });
    let asked = ask(&body).unwrap();
    let expected = json!({
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "assistant", "content": "", "toolCalls": [{ "id": "c0", "name": "add", "arguments": { "a": 1 } }] },
            { "role": "tool", "content": "2", "toolCallId": "c0" },
        ],
        "functions": [{ "name": "add", "description": "", "parameters": { "type": "object", "properties": {} } }],
        "toolChoice": "auto",
        "responseSchema": { "name": "n", "schema": { "type": "object" } },
    });
    assert_eq!(expected, Value::Object(asked.args));
    assert_eq!((Some(9), vec!["temperature"]), (asked.output_tokens_max, asked.ignored));
}

#[test]
fn what_cannot_be_honoured_is_refused_by_its_name() {
    let image = json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": {} }] }]);
    let sound = json!([{ "role": "assistant", "content": "a", "audio": { "id": "x" } }]);
    let wild = json!([{ "role": "user", "content": "a", "wild": 1 }]);
    let broken = json!([{ "role": "assistant", "tool_calls": [
        { "id": "a", "function": { "name": "f", "arguments": "{" } },
    ] }]);
    let call = json!({ "role": "assistant", "tool_calls": [
        { "id": "a", "function": { "name": "f", "arguments": "{}" } },
    ] });
    let robot = json!([{ "role": "robot", "content": "a" }]);
    let nameless = json!([{ "role": "tool", "content": "a" }]);
    let orphan = json!([{ "role": "tool", "tool_call_id": "a", "content": "b" }]);
    let (open, between) = (json!([call]), json!([call, { "role": "user", "content": "b" }]));
    let odd = json!([{ "type": "function", "function": { "name": "a b" } }]);
    let named = json!({ "type": "function", "function": { "name": "f" } });
    let tool = json!([{ "type": "retrieval" }]);
    let cases = [
        ("messages", json!([]), "messages", "invalid_value"),
        ("messages", robot, "messages[0].role", "invalid_value"),
        ("messages", json!([{ "role": "user" }]), "messages[0].content", "invalid_value"),
        ("messages", image, "messages[0].content[0].type", "unsupported_parameter"),
        ("messages", sound, "messages[0].audio", "invalid_value"),
        ("messages", wild, "messages[0].wild", "invalid_value"),
        ("messages", broken, "messages[0].tool_calls[0].function.arguments", "invalid_value"),
        ("messages", nameless, "messages[0].tool_call_id", "invalid_value"),
        ("messages", orphan, "messages[0].tool_call_id", "invalid_value"),
        ("messages", open, "messages", "invalid_value"),
        ("messages", between, "messages[1]", "invalid_value"),
        ("model", json!(7), "model", "invalid_value"),
        ("n", json!(2), "n", "unsupported_parameter"),
        ("logprobs", json!(true), "logprobs", "unsupported_parameter"),
        ("audio", json!({}), "audio", "unsupported_parameter"),
        ("functions", json!([]), "functions", "unsupported_parameter"),
        ("tools", tool, "tools[0].type", "unsupported_parameter"),
        ("tools", odd, "tools[0].function.name", "invalid_value"),
        ("tools", json!([named, named]), "tools[1].function.name", "invalid_value"),
        ("tools", json!([{ "type": "function" }]), "tools[0].function", "invalid_value"),
        ("tool_choice", json!("required"), "tool_choice", "invalid_value"),
        ("tool_choice", json!("sometimes"), "tool_choice", "invalid_value"),
        ("response_format", json!({ "type": "xml" }), "response_format.type", "invalid_value"),
        ("max_tokens", json!(0), "max_tokens", "invalid_value"),
        ("max_completion_tokens", json!(-1), "max_completion_tokens", "invalid_value"),
        ("stop", json!(["a", "b", "c", "d", "e"]), "stop", "invalid_value"),
        ("stop", json!([""]), "stop", "invalid_value"),
        ("stream", json!("yes"), "stream", "invalid_value"),
        ("stream_options", json!({ "include_usage": true }), "stream_options", "invalid_value"),
        ("temprature", json!(1), "temprature", "unknown_parameter"),
    ];
    for (name, value, param, code) in cases {
        let fault = ask(&with(name, value.clone())).unwrap_err();
        let expected = (400, Some(param), code);
        assert_eq!(expected, (fault.status, fault.param.as_deref(), fault.code), "{name}: {value}");
    }
}

#[test]
fn too_many_functions_or_messages_are_refused_before_any_is_read() {
    // Each of them is wrong in itself.
    let many = |count: usize| json!(vec![Value::Null; count]);
    for (name, most) in [("tools", DECLARED_MAX), ("messages", MESSAGES_MAX)] {
        let too_many = ask(&with(name, many(most + 1))).unwrap_err();
        assert_eq!((400, Some(name)), (too_many.status, too_many.param.as_deref()));
        let expected = format!("{name}: expected at most {most} ");
        assert!(too_many.message.starts_with(&expected), "{}", too_many.message);
        let first = ask(&with(name, many(most))).unwrap_err();
        assert_eq!(Some(format!("{name}[0]")), first.param);
    }
}

#[test]
fn as_many_functions_as_miners_take_are_read() {
    let tool = |number| json!({ "type": "function", "function": { "name": format!("f{number}") } });
    let tools: Vec<Value> = (0..DECLARED_MAX).map(tool).collect();
    let asked = ask(&with("tools", json!(tools))).unwrap();
    assert_eq!(Some(DECLARED_MAX), asked.args["functions"].as_array().map(Vec::len));
}

#[test]
fn a_form_of_the_answer_stands_alone() {
    let named = json!({ "type": "function", "function": { "name": "f" } });
    let mut both = with("response_format", json!({ "type": "json_object" }));
    both["stop"] = json!("END");
    assert_eq!(Some("response_format".to_owned()), ask(&both).unwrap_err().param);
    let mut forced = with("tools", json!([named]));
    forced["tool_choice"] = named;
    forced["stop"] = json!("END");
    let args = ask(&forced).unwrap().args;
    assert_eq!(json!({ "name": "f" }), args["toolChoice"]);
    assert_eq!(json!(["END"]), args["stop"]);
}

#[test]
fn what_changes_nothing_is_taken() {
    for (name, value) in [("n", json!(1)), ("logprobs", json!(false)), ("audio", Value::Null)] {
        assert!(ask(&with(name, value)).is_ok(), "{name}");
    }
}

#[test]
fn a_body_that_is_no_object_is_malformed() {
    for body in ["", "{", "[]", "7", "{\"model\":\"ombra\"}}"] {
        assert_eq!("malformed_json", parse(body.as_bytes()).unwrap_err().code, "{body}");
    }
    assert_eq!(Some("model".to_owned()), ask(&json!({ "messages": [] })).unwrap_err().param);
    let none = ask(&json!({ "model": "ombra" })).unwrap_err();
    assert_eq!(Some("messages".to_owned()), none.param);
}

fn answered(answer: &Value, status: &str) -> Completion {
    Completion {
        id: "chatcmpl-1".to_owned(),
        created: 5,
        model: "ombra".to_owned(),
        reply: Reply::parse(&answer.to_string(), status).unwrap(),
        spent: Spent { completion_tokens: 3, cost_micro: 103 },
        ombra: json!({ "runId": "1" }),
    }
}

fn answer(reason: &str, response: &str) -> Value {
    json!({ "ombraAgent": 1, "method": "inferMessages", "finishReason": reason, "response": response, "toolCalls": [] })
}

#[test]
fn an_answer_is_one_object_or_chunks_that_say_the_same() {
    let said = answered(&answer("stop", "Hello"), "completed");
    let whole = completion(&said);
    assert_eq!("Hello", whole["choices"][0]["message"]["content"]);
    assert_eq!("stop", whole["choices"][0]["finish_reason"]);
    let usage =
        json!({ "prompt_tokens": 0, "completion_tokens": 3, "total_tokens": 3, "cost_micro": 103 });
    assert_eq!(usage, whole["usage"]);
    let head = Head {
        id: "chatcmpl-1".to_owned(),
        created: 5,
        model: "ombra".to_owned(),
        includes_usage: true,
    };
    assert_eq!("assistant", head.first()["choices"][0]["delta"]["role"]);
    let rest = head.rest(&said);
    assert_eq!(3, rest.len());
    assert_eq!("Hello", rest[0]["choices"][0]["delta"]["content"]);
    assert_eq!("stop", rest[1]["choices"][0]["finish_reason"]);
    assert_eq!("1", rest[1]["ombra"]["runId"]);
    assert_eq!((&json!([]), &usage), (&rest[2]["choices"], &rest[2]["usage"]));
}

#[test]
fn calls_keep_the_text_of_their_arguments() {
    let text = r#"{"finishReason":"tool_calls","response":"","toolCalls":[{"id":"call_0","name":"add","arguments":{"b":1,"a":2}}]}"#;
    let reply = Reply::parse(text, "completed").unwrap();
    let said = Completion { reply, ..answered(&answer("stop", ""), "completed") };
    let message = &completion(&said)["choices"][0]["message"];
    assert_eq!(Value::Null, message["content"]);
    assert_eq!(r#"{"b":1,"a":2}"#, message["tool_calls"][0]["function"]["arguments"]);
    let head = Head { id: String::new(), created: 0, model: String::new(), includes_usage: false };
    let rest = head.rest(&said);
    assert_eq!(2, rest.len());
    assert_eq!(json!(0), rest[0]["choices"][0]["delta"]["tool_calls"][0]["index"]);
}

#[test]
fn what_is_no_answer_says_why() {
    let why = |answer: &Value, status| Reply::parse(&answer.to_string(), status).unwrap_err();
    assert_eq!("no time", why(&answer("error", "no time"), "failed"));
    assert!(why(&answer("tool_calls", ""), "completed").contains("but contains none"));
    assert!(why(&json!({ "text": "hello" }), "completed").contains("inferMessages"));
    let cut = answer("error", "Half of\n\n[cut off: the escrow is used up]");
    let reply = Reply::parse(&cut.to_string(), "insufficient_funds").unwrap();
    assert_eq!((Some("Half of"), "length"), (reply.content(), reply.finish));
    assert!(Reply::parse(&cut.to_string(), "failed").is_err());
    let nothing = answer("error", "\n\n[cut off: the escrow is used up]");
    assert!(Reply::parse(&nothing.to_string(), "insufficient_funds").is_err());
}
