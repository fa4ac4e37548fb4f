//! Arguments of `inferMessages`: what is refused, and that what is written is read back.

mod hostile;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use self::hostile::{envelope, nested};
use super::*;
use crate::methods::tests::request_of;
use crate::methods::{Answer, Ask, Method, Parsed, Reason, Request, Written};

/// A request for `inferMessages` with these arguments changed.
pub(in crate::methods) fn request(changes: &Value) -> Request {
    request_of(&envelope(changes))
}

fn function(name: &str) -> Value {
    json!({ "name": name, "description": "does it", "parameters": { "type": "object",
        "properties": { "city": { "type": "string" } }, "required": ["city"] } })
}

/// Checks that a request with these changes is refused for a field.
fn is_refused(changes: &Value, field: &str) {
    let prompt = envelope(changes);
    let refused = Request::parse(&prompt, None).expect_err(&prompt);
    let told = (&*refused.field, refused.method);
    assert_eq!(told, (field, Some(Method::InferMessages)), "{changes}");
}

/// More rules are broken in the vectors, which other programs read too.
#[test]
fn a_message_that_breaks_a_rule_is_refused_with_its_field() {
    let of = |role: &str| json!({ "role": role, "content": "x" });
    let with = |role: &str, key: &str, value: Value| {
        let mut message = of(role);
        message[key] = value;
        json!([message])
    };
    let call = |id: &str, name: &str, arguments: Value| json!({ "id": id, "name": name, "arguments": arguments });
    let calling = |calls: &[Value]| with("assistant", "toolCalls", json!(calls));
    let right = call("c", "f", json!({}));
    for (messages, part) in [
        (json!({}), ""),
        (json!([1]), "[0]"),
        (json!([{ "role": "user" }]), "[0].content"),
        (with("user", "toolCalls", json!([])), "[0].toolCalls"),
        (with("assistant", "toolCallId", json!("x")), "[0].toolCallId"),
        (json!([of("tool")]), "[0].toolCallId"),
        (calling(&[right.clone(), right]), "[0]"),
        (calling(&[call("", "f", json!({}))]), "[0].toolCalls[0].id"),
        (calling(&[call("c", "f f", json!({}))]), "[0].toolCalls[0].name"),
    ] {
        is_refused(&json!({ "messages": messages }), &format!("args.messages{part}"));
    }
}

#[test]
fn what_else_breaks_a_rule_is_refused_with_its_field() {
    let schema = json!({ "schema": { "type": "object" } });
    let many: Vec<_> = (0..129).map(|it| function(&format!("f{it}"))).collect();
    let [mut bare, mut described] = [function("f"), function("f")];
    bare.as_object_mut().unwrap().remove("parameters");
    described["description"] = json!("x".repeat(4_097));
    for (functions, part) in [
        (json!(many), ""),
        (json!([function("")]), "[0].name"),
        (json!([function(&"x".repeat(65))]), "[0].name"),
        (json!([bare]), "[0].parameters"),
        (json!([described]), "[0].description"),
    ] {
        is_refused(&json!({ "functions": functions }), &format!("args.functions{part}"));
    }
    let one = json!([function("f")]);
    for (changes, field) in [
        (json!({ "toolChoice": 1 }), "toolChoice"),
        (json!({ "toolChoice": { "name": "g" }, "functions": one }), "toolChoice.name"),
        (json!({ "toolChoice": { "type": "function" } }), "toolChoice.type"),
        (json!({ "responseSchema": { "type": "object" } }), "responseSchema.type"),
        (json!({ "responseSchema": {} }), "responseSchema.schema"),
        (json!({ "responseSchema": { "name": "a b", "schema": {} } }), "responseSchema.name"),
        (
            json!({ "responseSchema": schema, "toolChoice": "required", "functions": one }),
            "responseSchema",
        ),
        (json!({ "maxOutputTokens": 100_000_001 }), "maxOutputTokens"),
        (json!({ "maxOutputTokens": null }), "maxOutputTokens"),
        (json!({ "stop": ["a", "b", "c", "d", "e"] }), "stop"),
        (json!({ "stop": [""] }), "stop[0]"),
        (json!({ "stop": ["x".repeat(257)] }), "stop[0]"),
        (json!({ "stop": "a" }), "stop"),
    ] {
        is_refused(&changes, &format!("args.{field}"));
    }
}

#[test]
fn what_a_program_asks_keeps_the_limits_for_all_schemas_together() {
    let members: serde_json::Map<_, _> = (0..250).map(|at| (format!("p{at}"), json!({}))).collect();
    let text = json!({ "properties": members }).to_string();
    let declare = |at: usize| Declared {
        name: format!("f{at}"),
        description: String::new(),
        parameters: Schema::of_parameters("s", &text).unwrap(),
    };
    let asked = |count: usize| Messages {
        messages: vec![conversation::message(Role::User, "hi".to_owned())],
        functions: (0..count).map(declare).collect(),
        choice: ToolChoice::Auto,
        response_schema: None,
        output_tokens_max: None,
        stops: Vec::new(),
    };
    assert!(Request::new(Ask::InferMessages(asked(2))).is_ok());
    let refused = Request::new(Ask::InferMessages(asked(3))).unwrap_err();
    assert_eq!(refused.field, "args.functions");
}

#[test]
fn arguments_may_be_nested_where_those_of_other_methods_may_not() {
    let prompt = |levels: usize| {
        let call = json!({ "id": "c", "name": "f", "arguments": nested(levels) });
        let messages = json!([{ "role": "assistant", "content": "", "toolCalls": [call] },
            { "role": "tool", "content": "done", "toolCallId": "c" }]);
        envelope(&json!({ "messages": messages }))
    };
    drop(request_of(&prompt(100)));
    let other = prompt(100).replace("inferMessages", "inferChat");
    let refused = Request::parse(&other, None).unwrap_err();
    assert_eq!((&*refused.field, &*refused.expected), ("prompt", "at most 4 levels"));
    assert_eq!(Request::parse(&prompt(160), None).unwrap_err().field, "prompt");
}

fn schema() -> impl Strategy<Value = Schema> {
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": "integer", "minimum": -3, "maximum": 900 })),
        Just(json!({ "enum": ["a", 1, null] })),
        Just(json!({ "type": ["boolean", "null"], "description": "é\u{1f}\"" })),
    ];
    let any = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..4).prop_map(|all| json!({ "anyOf": all })),
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            vec(("[a-z]{1,4}", inner), 0..4).prop_map(|all| {
                let properties: serde_json::Map<_, _> = all.into_iter().collect();
                json!({ "type": "object", "properties": properties })
            }),
        ]
    });
    any.prop_map(|any| {
        let schema = json!({ "type": "object", "properties": { "a": any } });
        Schema::of("s", &schema.to_string()).unwrap()
    })
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let turn = (".{0,8}", ".{0,8}", option::of("[a-zA-Z0-9_-]{1,9}"));
    vec(turn, 1..5).prop_map(|turns| {
        let mut all = Vec::new();
        for (index, (asked, said, calls)) in turns.into_iter().enumerate() {
            all.push(conversation::message(Role::User, asked));
            let id = format!("call {index}");
            let arguments = json!({ "b": [1, null], "a": said }).as_object().unwrap().clone();
            let call = calls.map(|name| ToolCall { id: id.clone(), name, arguments });
            let calls: Vec<_> = call.into_iter().collect();
            let results =
                calls.iter().map(|call| conversation::result(call.id.clone(), "1".into()));
            let results: Vec<_> = results.collect();
            all.push(Message { tool_calls: calls, ..conversation::message(Role::Assistant, said) });
            all.extend(results);
        }
        all
    })
}

prop_compose! {
    fn asked()(
        messages in messages(),
        schemas in vec(schema(), 0..4),
        response in option::of((option::of("[a-z]{1,4}"), schema())),
        choice in 0..4_usize,
        output_tokens_max in option::of(1..=OUTPUT_TOKENS_MAX),
        stops in vec("[a-z]{1,3}", 0..4),
    ) -> Messages {
        let functions: Vec<_> = schemas.into_iter().enumerate().map(|(index, parameters)| {
            Declared { name: format!("f-{index}"), description: "d\n".to_owned(), parameters }
        }).collect();
        let choice = match (choice, functions.is_empty()) {
            (1, _) => ToolChoice::None,
            (2, false) => ToolChoice::Required,
            (3, false) => ToolChoice::Function("f-0".to_owned()),
            _ => ToolChoice::Auto,
        };
        let response_schema = response.filter(|_| !choice.is_forced())
            .map(|(name, schema)| ResponseSchema { name, schema });
        let mut stops: Vec<_> = if response_schema.is_some() { Vec::new() } else { stops };
        stops.sort();
        stops.dedup();
        Messages { messages, functions, choice, response_schema, output_tokens_max, stops }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(asked in asked(), deterministic: bool) {
        let request = Request::new(Ask::InferMessages(asked)).unwrap();
        let request = if deterministic { request.deterministic() } else { request };
        let (prompt, blob) = match request.to_prompt() {
            Written::Inline(prompt) => (prompt, None),
            Written::Blob { prompt, blob } => (prompt, Some(blob)),
        };
        let read = Request::parse(&prompt, blob.as_deref());
        prop_assert_eq!(read, Ok(Parsed::Method(request)));
    }
}

#[test]
fn what_is_as_much_work_as_the_limits_allow_fits_into_a_prompt() {
    for (name, prompt) in hostile::requests() {
        assert!(prompt.len() <= 16_384, "{name}: {} bytes", prompt.len());
    }
}

/// An answer with calls, as text.
fn answer(reason: &str, calls: &Value) -> String {
    let answer = json!({ "ombraAgent": 1, "method": "inferMessages", "finishReason": reason,
        "response": "", "toolCalls": calls });
    answer.to_string()
}

#[test]
fn an_answer_whose_calls_are_no_calls_of_the_request_is_refused() {
    let before = json!([{ "role": "user", "content": "x" },
        { "role": "assistant", "content": "", "toolCalls": [{ "id": "c", "name": "f", "arguments": {} }] },
        { "role": "tool", "content": "1", "toolCallId": "c" }]);
    let asked = request(&json!({ "messages": before, "toolChoice": { "name": "f" },
        "functions": [function("f"), function("g")] }));
    let call = |id: &str, name: &str, arguments: Value| {
        let calls = json!([{ "id": id, "name": name, "arguments": arguments }]);
        Answer::parse(&answer("tool_calls", &calls)).unwrap()
    };
    let fits = json!({ "city": "Rome" });
    assert_eq!(asked.check_tool_calls(&call("d", "f", fits.clone())), Ok(()));
    for (answer, field) in [
        (call("c", "f", fits.clone()), "toolCalls[0].id"),
        (call("d", "g", fits.clone()), "toolCalls[0].name"),
        (call("d", "h", fits.clone()), "toolCalls[0].name"),
        (call("d", "f", json!({})), "toolCalls[0].arguments"),
        (call("d", "f", json!({ "city": 1 })), "toolCalls[0].arguments"),
    ] {
        assert_eq!(asked.check_tool_calls(&answer).unwrap_err().field, field);
        assert_eq!(asked.resume(&answer, &["1".into()]).unwrap_err().field, field);
    }
    let next = asked.resume(&call("d", "f", fits), &["sunny".to_owned()]).unwrap();
    let Ask::InferMessages(next) = next.ask() else { panic!("messages") };
    assert_eq!((next.messages.len(), &*next.messages[4].text), (5, "sunny"));
    assert_eq!(next.messages[3].tool_calls[0].id, "d");
}

#[test]
fn an_answer_has_calls_exactly_if_it_says_so() {
    let call = json!([{ "id": "c", "name": "f", "arguments": {} }]);
    for (reason, calls, field) in [
        ("stop", call.clone(), "toolCalls"),
        ("length", call.clone(), "toolCalls"),
        ("tool_calls", json!([]), "toolCalls"),
        ("max_iterations", json!([]), "finishReason"),
        ("tool_calls", json!([call[0], call[0]]), "toolCalls[1].id"),
        (
            "tool_calls",
            json!([{ "id": "c", "name": "f", "arguments": [] }]),
            "toolCalls[0].arguments",
        ),
        (
            "tool_calls",
            json!([{ "id": "c", "name": "f", "arguments": {}, "more": 1 }]),
            "toolCalls[0].more",
        ),
    ] {
        let text = answer(reason, &calls);
        assert_eq!(Answer::parse(&text).unwrap_err().field, field, "{text}");
    }
    let chat = r#"{"ombraAgent":1,"method":"inferChat","finishReason":"length","response":""}"#;
    assert_eq!(Answer::parse(chat).unwrap_err().field, "finishReason");
    assert_eq!(Reason::Length.status(), types::RunStatus::Completed);
}
