//! Conversations are read back as they were written, and hang together.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn call(id: &str) -> ToolCall {
    let arguments = json!({ "b": [1, "x"], "a": { "z": null, "y": true } });
    let arguments = arguments.as_object().unwrap().clone();
    ToolCall { id: id.to_owned(), name: "look".to_owned(), arguments }
}

fn calling(ids: &[&str]) -> Message {
    Message {
        tool_calls: ids.iter().map(|id| call(id)).collect(),
        ..message(Role::Assistant, "let me see".to_owned())
    }
}

fn user(text: &str) -> Message {
    message(Role::User, text.to_owned())
}

fn answer(id: &str) -> Message {
    result(id.to_owned(), "done".to_owned())
}

/// Reads the two lists as the members of an object.
fn read_lists(roles: &[&str], texts: &[&str], dialect: Dialect) -> Result<Vec<Message>, Refused> {
    let text = json!({ "roles": roles, "messages": texts }).to_string();
    let value = members::read("test", &text, 4)?;
    read(&Members::of(&value, "args")?, "roles", "messages", dialect)
}

fn read_one(role: &str, text: &str, dialect: Dialect) -> Result<Message, Refused> {
    read_lists(&[role], &[text], dialect).map(|mut messages| messages.remove(0))
}

#[test]
fn calls_and_results_have_one_written_form() {
    let (roles, texts) = write(&[calling(&["c1"]), answer("c1")], Dialect::Tools);
    assert_eq!(roles, ["assistant", "tool"]);
    assert_eq!(
        texts,
        [
            r#"{"content":"let me see","tool_calls":[{"id":"c1","name":"look","arguments":{"a":{"y":true,"z":null},"b":[1,"x"]}}]}"#,
            r#"{"tool_call_id":"c1","content":"done"}"#,
        ]
    );
}

#[test]
fn a_text_that_looks_like_calls_comes_back_as_the_text() {
    for text in [r#"{"tool_calls":[]}"#, r#" {"tool_calls": 1, "tool_calls": 2} "#] {
        let said = message(Role::Assistant, text.to_owned());
        let (_, texts) = write(std::slice::from_ref(&said), Dialect::Tools);
        assert_ne!(texts, [text]);
        assert_eq!(read_one("assistant", &texts[0], Dialect::Tools), Ok(said));
    }
}

#[test]
fn a_plain_conversation_takes_texts_as_they_are() {
    let text = r#"{"tool_calls":"anything"}"#;
    let said = message(Role::Assistant, text.to_owned());
    assert_eq!(read_one("assistant", text, Dialect::Chat), Ok(said.clone()));
    assert_eq!(write(&[said], Dialect::Chat).1, [text]);
    let refused = read_one("tool", r#"{"tool_call_id":"a","content":""}"#, Dialect::Chat);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "args.roles[0]: expected system, user or assistant, got \"tool\""
    );
}

/// Checks texts of a role that are refused: the text, the part that the refusal names, what it
/// expects.
fn assert_refused(role: &str, cases: &[(&str, &str, &str)]) {
    for (text, part, expected) in cases {
        let refused = read_one(role, text, Dialect::Tools).unwrap_err();
        let field = format!("args.messages[0]{part}");
        assert_eq!((&*refused.field, &*refused.expected), (&*field, *expected), "{text}");
        assert!(refused.got.chars().count() <= 81, "{refused}");
    }
}

#[test]
fn a_malformed_result_is_refused_with_its_place() {
    let long = format!(r#"{{"tool_call_id":"{}","content":""}}"#, "x".repeat(129));
    let cases = [
        ("done", "", "JSON"),
        ("[]", "", "an object"),
        (r#"["a","b"]"#, "", "an object"),
        (r#"{"tool_call_id":"a"}"#, ".content", "a string"),
        (r#"{"tool_call_id":1,"content":""}"#, ".tool_call_id", "a string"),
        (r#"{"tool_call_id":"","content":""}"#, ".tool_call_id", "1 to 128 bytes"),
        (&long, ".tool_call_id", "1 to 128 bytes"),
        (r#"{"tool_call_id":"a","content":"","x":1}"#, ".x", "only tool_call_id, content"),
        (r#"{"tool_call_id":"a","content":"","content":""}"#, "", "every key once"),
    ];
    assert_refused("tool", &cases);
}

#[test]
fn malformed_calls_are_refused_with_their_place() {
    let deep = format!(r#"{{"tool_calls":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let cases = [
        (r#"{"tool_calls":[]}"#, ".content", "a string"),
        (r#"{"content":"","tool_calls":{}}"#, ".tool_calls", "an array"),
        (r#"{"content":"","tool_calls":[["a","b",{}]]}"#, ".tool_calls[0]", "an object"),
        (
            r#"{"content":"","tool_calls":[{"id":"a","name":"b","arguments":[]}]}"#,
            ".tool_calls[0].arguments",
            "an object",
        ),
        (
            r#"{"content":"","tool_calls":[{"id":"a","name":"b","arguments":{"n":1e999}}]}"#,
            ".tool_calls[0].arguments",
            "numbers of ordinary size",
        ),
        (
            r#"{"content":"","tool_calls":[{"id":"a","name":"b","arguments":{"n":{"m":1,"m":2}}}]}"#,
            "",
            "every key once",
        ),
        (r#"{"content":"","tool_calls":[],"x":1}"#, ".x", "only content, tool_calls"),
        (
            r#"{"content":"","tool_calls":[{"id":"a","name":"b","arguments":{},"type":"function"}]}"#,
            ".tool_calls[0].type",
            "only id, name, arguments",
        ),
        (&deep, "", "at most 160 levels"),
    ];
    assert_refused("assistant", &cases);
    let refused = read_one("model", "x", Dialect::Tools).unwrap_err();
    let expected = ("args.roles[0]", "system, user, assistant or tool");
    assert_eq!((&*refused.field, &*refused.expected), expected);
    assert!(refused.got.chars().count() <= 81, "{refused}");
}

#[test]
fn two_lists_of_different_lengths_are_refused() {
    let refused = read_lists(&["user", "user"], &["a"], Dialect::Chat).unwrap_err().to_string();
    assert_eq!(refused, "args.messages: expected 2 entries, as roles has, got 1 entries");
}

#[test]
fn a_conversation_hangs_together() {
    let open = |messages: &[Message]| {
        open_calls("m", messages)
            .map(|calls| calls.iter().map(|call| call.id.clone()).collect::<Vec<_>>())
            .map_err(|refused| refused.to_string())
    };
    let good = [user("hi"), calling(&["a", "b"]), answer("b")];
    assert_eq!(open(&good), Ok(vec!["a".to_owned()]));
    assert_eq!(open(&[calling(&["a", "b", "c"])]), Ok(["a", "b", "c"].map(str::to_owned).to_vec()));
    assert_eq!(open(&[]), Err("m: expected at least one, got no messages".to_owned()));

    let call = calling(&["a"]);
    let cases: [(&[Message], &str); 6] = [
        (&[answer("a")], r#"m[0]: expected a call that waits for a result, got a result for "a""#),
        (&[call.clone(), answer("b")], r#"m[1]: expected a result for "a", got a result for "b""#),
        (&[call.clone(), user("x")], r#"m[1]: expected a result for "a", got role user"#),
        (
            &[call.clone(), calling(&["b"])],
            r#"m[1]: expected a result for "a", got role assistant"#,
        ),
        (
            &[call.clone(), answer("a"), answer("a")],
            r#"m[2]: expected a call that waits for a result, got a result for "a""#,
        ),
        (
            &[call.clone(), answer("a"), call],
            r#"m[2]: expected ids of calls that are all different, got "a" twice"#,
        ),
    ];
    for (messages, refusal) in cases {
        assert_eq!(open(messages), Err(refusal.to_owned()));
    }
    let many = vec![user("x"); MESSAGES_MAX];
    assert_eq!(open(&many), Ok(Vec::new()));
    let refused = open(&[many, vec![user("x")]].concat()).unwrap_err();
    assert_eq!(refused, "m: expected at most 1024 entries, got 1025 entries");
}

#[test]
fn a_call_without_a_result_is_refused_at_the_end_of_a_request() {
    let refused = check_answered("m", &[calling(&["a", "b"]), answer("a")]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        r#"m: expected a result for "b", got an end before every call has its result"#
    );
    assert_eq!(check_answered("m", &[calling(&["a"]), answer("a")]), Ok(()));
}

#[test]
fn parts_that_do_not_fit_a_role_are_refused() {
    let checked = |message: Message, dialect| {
        check_parts("m", &[message], dialect).map_err(|refused| refused.to_string())
    };
    let misplaced = |role: &str| {
        Err(format!(
            "m[0]: expected calls only from an assistant, and a call's id only with a result, got role {role}"
        ))
    };
    for (message, refusal) in [
        (Message { tool_calls: vec![call("a")], ..user("x") }, misplaced("user")),
        (Message { tool_call_id: Some("a".to_owned()), ..user("x") }, misplaced("user")),
        (Message { tool_calls: vec![call("a")], ..answer("b") }, misplaced("tool")),
        (Message { tool_call_id: Some("a".to_owned()), ..calling(&["b"]) }, misplaced("assistant")),
        (
            Message { tool_call_id: None, ..answer("b") },
            Err("m[0].tool_call_id: expected 1 to 128 bytes, got 0 bytes".to_owned()),
        ),
    ] {
        assert_eq!(checked(message.clone(), Dialect::Tools), refusal, "{message:?}");
    }
    assert_eq!(checked(calling(&["a"]), Dialect::Chat), misplaced("assistant"));
    let right = [user("x"), calling(&["a"]), answer("a")];
    assert_eq!(check_parts("m", &right, Dialect::Tools), Ok(()));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("\\PC{0,4}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let arguments = vec(("\\PC{0,4}", any_value()), 0..3)
        .prop_map(|members| members.into_iter().collect::<Map<_, _>>());
    let call = ("\\PC{1,8}", "\\PC{0,8}", arguments).prop_map(|(id, name, arguments)| ToolCall {
        id,
        name,
        arguments,
    });
    let text = || {
        prop_oneof![
            any::<String>(),
            Just(r#"{"tool_calls":[],"content":""}"#.to_owned()),
            Just(r#"{"tool_call_id":"a","content":""}"#.to_owned()),
        ]
    };
    prop_oneof![
        text().prop_map(|text| message(Role::System, text)),
        text().prop_map(|text| message(Role::User, text)),
        (text(), vec(call, 0..3)).prop_map(|(text, tool_calls)| Message {
            tool_calls,
            ..message(Role::Assistant, text)
        }),
        ("\\PC{1,8}", text()).prop_map(|(id, text)| result(id, text)),
    ]
}

proptest! {
    #[test]
    fn messages_are_read_back_as_they_were_written(messages in vec(any_message(), 0..6)) {
        let (roles, texts) = write(&messages, Dialect::Tools);
        let roles: Vec<_> = roles.iter().map(String::as_str).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        prop_assert_eq!(read_lists(&roles, &texts, Dialect::Tools), Ok(messages));
    }

    #[test]
    fn any_two_texts_are_a_message_or_refused(
        role in "system|user|assistant|tool|[a-z]{0,9}",
        text in prop_oneof![
            any::<String>(),
            "\\{\"tool_call_id\":\"[a-z]{0,2}\",\"content\":(\"[a-z]?\"|1)\\}",
            "\\{\"content\":\"[a-z]?\",\"tool_calls\":\\[(\\{\"id\":\"a\",\"name\":\"b\",\"arguments\":(\\{\\}|1)\\})?\\]\\}",
        ],
    ) {
        if let Ok(message) = read_one(&role, &text, Dialect::Tools) {
            prop_assert!(check_parts("m", &[message], Dialect::Tools).is_ok());
        }
    }
}
