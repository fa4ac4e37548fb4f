//! Envelopes: what is one, what is refused, and that what is written is read back.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::messages::{Message, Role};
use crate::methods::tests::{said, text_of, vectors_of};
use crate::methods::{
    ALLOWED_VALUE_BYTES_MAX, ALLOWED_VALUES_BYTES_MAX, ALLOWED_VALUES_MAX, Declaration, Integer,
    MCP_SERVER_URL_BYTES_MAX, MCP_SERVERS_MAX,
};

fn string_ask(prompt: &str, allowed_values: Vec<String>) -> Ask {
    Ask::InferString {
        prompt: prompt.to_owned(),
        system: String::new(),
        chain_of_thought: false,
        allowed_values,
    }
}

/// A question that is answered by yes or no.
fn yes_or_no() -> Ask {
    string_ask("good?", vec!["yes".to_owned(), "no".to_owned()])
}

fn tools_ask(mcp_server_urls: Vec<String>, max_iterations: u32) -> Ask {
    Ask::InferToolsChat {
        messages: vec![said(Role::User, "hi")],
        mcp_server_urls,
        onchain_tools: vec![Declaration {
            signature: "greet(string name)".to_owned(),
            description: "greets".to_owned(),
        }],
        max_iterations,
        chain_of_thought: true,
    }
}

fn refusal(prompt: &str) -> Refused {
    Request::parse(prompt, None).expect_err(prompt)
}

#[test]
fn what_is_not_an_object_with_the_key_is_plain_text() {
    let prompts = [
        "What is a nonce?",
        "",
        "{",
        "{}",
        "[]",
        "[{\"ombraAgent\":1}]",
        "\"ombraAgent\"",
        r#"{"method":"inferString"}"#,
        r#"{"ombraagent":1}"#,
        r#"{"a":{"ombraAgent":1}}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"ombraAgent":1,"method":"inferString""#,
        r#"{"ombraAgent":1,} "#,
        r#"{"ombraAgent":1} please"#,
        r#"{'ombraAgent':1}"#,
    ];
    for prompt in prompts {
        let parsed = Request::parse(prompt, None);
        assert_eq!(parsed, Ok(Parsed::PlainText(prompt.to_owned())), "{prompt}");
    }
    let long = Request::parse("In short", Some("at length"));
    assert_eq!(long, Ok(Parsed::PlainText("at length".to_owned())));
}

#[test]
fn an_envelope_may_have_white_space_and_any_order() {
    let prompt = " \n{\"args\" : {\"allowedValues\":[\"yes\",\"no\"],\"chainOfThought\":false,\"system\":\"\",
        \"prompt\":\"good\\u003f\"}, \"method\":\"inferString\", \"deterministic\":false,\"ombr\\u0061Agent\":1}\t";
    let request = Request::new(yes_or_no()).unwrap();
    assert_eq!(Request::parse(prompt, None), Ok(Parsed::Method(request)));
}

#[test]
fn an_envelope_that_breaks_a_rule_is_refused_with_the_field() {
    let cases = vectors_of("malformed");
    assert!(cases.len() >= 50, "the table is read: {}", cases.len());
    for case in &cases {
        let [field, got, prompt] = ["field", "got", "prompt"].map(|member| text_of(case, member));
        let refused = refusal(prompt);
        assert_eq!((refused.field.as_str(), refused.got.as_str()), (field, got), "{prompt}");
        assert!(!refused.expected.is_empty());
    }
}

#[test]
fn a_refusal_names_the_field_the_value_and_what_was_expected() {
    let prompt = r#"{"ombraAgent":1,"method":"inferNumber","args":{"prompt":"","system":"","minValue":"9","maxValue":"5","chainOfThought":false}}"#;
    let refused = refusal(prompt);
    assert_eq!(refused.to_string(), "args.minValue: expected at most maxValue, 5, got 9");
    assert_eq!(refused.method, Some(Method::InferNumber));
    assert_eq!(refusal(r#"{"ombraAgent":2}"#).method, None);
}

#[test]
fn what_a_refusal_shows_is_short_and_has_no_control_characters() {
    let method = format!("\\u001b[2J{}", "x".repeat(5_000));
    let refused = refusal(&format!(r#"{{"ombraAgent":1,"method":"{method}"}}"#));
    assert_eq!(refused.got.chars().count(), 81);
    assert!(refused.to_string().chars().all(|shown| !shown.is_control()), "{refused}");
    let key = "k".repeat(5_000);
    let refused =
        refusal(&format!(r#"{{"ombraAgent":1,"method":"inferString","args":{{}},"{key}":1}}"#));
    assert!(refused.field.chars().count() <= 81, "{}", refused.field);
}

#[test]
fn an_envelope_that_is_nested_as_deep_as_a_prompt_can_be_is_refused() {
    let deep = format!(r#"{{"ombraAgent":1,"x":{}{}}}"#, "[".repeat(8_000), "]".repeat(8_000));
    assert_eq!(refusal(&deep).expected, "at most 4 levels");
}

#[test]
fn limits_of_lists_are_held() {
    let allowed = |count: usize| {
        let values = (0..count).map(|number| format!("v{number}")).collect();
        Request::new(string_ask("", values))
    };
    assert!(allowed(ALLOWED_VALUES_MAX).is_ok());
    assert_eq!(allowed(ALLOWED_VALUES_MAX + 1).unwrap_err().expected, "at most 256 entries");

    let long = |bytes: usize| Request::new(string_ask("", vec!["x".repeat(bytes)]));
    assert!(long(ALLOWED_VALUE_BYTES_MAX).is_ok());
    assert_eq!(long(ALLOWED_VALUE_BYTES_MAX + 1).unwrap_err().expected, "at most 1024 bytes");
    let together = |last: usize| {
        let values = (0..8_u8).map(|it| char::from(b'a' + it).to_string().repeat(1_000));
        Request::new(string_ask("", values.chain(["x".repeat(last)]).collect()))
    };
    assert!(together(ALLOWED_VALUES_BYTES_MAX - 8_000).is_ok());
    let refused = together(ALLOWED_VALUES_BYTES_MAX - 7_999).unwrap_err();
    assert_eq!(refused.expected, "at most 8192 bytes in all values together");

    let servers = |urls: Vec<String>| Request::new(tools_ask(urls, 3));
    let urls = |count: usize| (0..count).map(|number| format!("http://{number}")).collect();
    assert!(servers(urls(MCP_SERVERS_MAX)).is_ok());
    assert_eq!(servers(urls(MCP_SERVERS_MAX + 1)).unwrap_err().expected, "at most 16 entries");
    let url = |bytes: usize| vec![format!("http://{}", "x".repeat(bytes - 7))];
    assert!(servers(url(MCP_SERVER_URL_BYTES_MAX)).is_ok());
    let refused = servers(url(MCP_SERVER_URL_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(refused.expected, "at most 2048 bytes");
}

#[test]
fn a_request_is_checked_however_it_is_made() {
    let chat = |messages| Request::new(Ask::InferChat { messages, chain_of_thought: false });
    let refused = chat(vec![said(Role::Tool, "x")]).unwrap_err();
    assert_eq!((&*refused.field, refused.method), ("args.messages[0]", Some(Method::InferChat)));
    assert!(chat(Vec::new()).is_err());
    let iterations = |max_iterations| Request::new(tools_ask(Vec::new(), max_iterations));
    assert!(iterations(1).is_ok() && iterations(200).is_ok());
    assert_eq!(iterations(0).unwrap_err().field, "args.maxIterations");
    assert_eq!(iterations(201).unwrap_err().field, "args.maxIterations");
}

/// A question of so many bytes in all.
fn of_bytes(bytes: usize) -> Result<Request, Refused> {
    let empty = Request::new(string_ask("", Vec::new()))?.envelope().len();
    Request::new(string_ask(&"x".repeat(bytes - empty), Vec::new()))
}

#[test]
fn an_envelope_of_more_than_16384_bytes_goes_into_a_blob() {
    let request = of_bytes(16_384).unwrap();
    let Written::Inline(prompt) = request.to_prompt() else { panic!("it fits") };
    assert_eq!(prompt.len(), 16_384);
    assert_eq!(Request::parse(&prompt, None), Ok(Parsed::Method(request)));

    let request = of_bytes(16_385).unwrap();
    let Written::Blob { prompt, blob } = request.to_prompt() else { panic!("it does not fit") };
    assert_eq!(prompt, r#"{"ombraAgent":1,"method":"inferString","blob":true}"#);
    assert_eq!(blob.len(), 16_385);
    let method = Method::InferString;
    assert_eq!(Request::parse(&prompt, None), Ok(Parsed::NeedsBlob { method }));
    assert_eq!(Request::parse(&prompt, Some(&blob)), Ok(Parsed::Method(request)));
}

#[test]
fn an_envelope_has_at_most_4194304_bytes() {
    // Room for the key `deterministic`, which may be asked for later.
    let room = r#""deterministic":true,"#.len();
    assert!(of_bytes(ENVELOPE_BYTES_MAX - room).is_ok());
    let refused = of_bytes(ENVELOPE_BYTES_MAX - room + 1).unwrap_err();
    assert_eq!(refused.to_string(), "args: expected at most 4194304 bytes, got 4194305 bytes");

    let prompt = r#"{"ombraAgent":1,"method":"inferString","blob":true}"#;
    let blob = " ".repeat(ENVELOPE_BYTES_MAX + 1);
    let refused = Request::parse(prompt, Some(&blob)).unwrap_err();
    assert_eq!((&*refused.field, &*refused.expected), ("promptBlobId", "at most 4194304 bytes"));
}

#[test]
fn a_blob_holds_the_envelope_that_the_prompt_announces() {
    let prompt = r#"{"ombraAgent":1,"method":"inferString","blob":true}"#;
    let Written::Inline(envelope) = Request::new(yes_or_no()).unwrap().to_prompt() else {
        panic!("it fits")
    };
    let chat = r#"{"ombraAgent":1,"method":"inferChat","blob":true}"#;
    let refused = Request::parse(chat, Some(&envelope)).unwrap_err().to_string();
    assert_eq!(refused, "method: expected inferChat, as in the prompt, got inferString");
    for blob in ["", "text", "{}", prompt] {
        let refused = Request::parse(prompt, Some(blob)).unwrap_err();
        assert_eq!(refused.method, Some(Method::InferString), "{blob}");
    }
    let refused = Request::parse(&envelope, Some(&envelope)).unwrap_err();
    assert_eq!(refused.field, "promptBlobId");
}

fn any_message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant)];
    (role, any::<String>()).prop_map(|(role, text)| said(role, &text))
}

fn any_ask() -> impl Strategy<Value = Ask> {
    let text = any::<String>;
    let values = proptest::collection::btree_set("[a-z]{1,8}( [\"\\\\é])?", 0..4);
    let string = (text(), text(), any::<bool>(), values).prop_map(
        |(prompt, system, chain_of_thought, values)| Ask::InferString {
            prompt,
            system,
            chain_of_thought,
            allowed_values: values.into_iter().collect(),
        },
    );
    let number = (text(), text(), any::<i64>(), any::<i128>(), any::<bool>()).prop_map(
        |(prompt, system, one, two, chain_of_thought)| {
            let one = Integer::parse(&one.to_string()).unwrap();
            let two = Integer::parse(&two.to_string()).unwrap();
            let (min_value, max_value) = (one.min(two), one.max(two));
            Ask::InferNumber { prompt, system, min_value, max_value, chain_of_thought }
        },
    );
    let chat = (vec(any_message(), 1..5), any::<bool>())
        .prop_map(|(messages, chain_of_thought)| Ask::InferChat { messages, chain_of_thought });
    let tools = (vec(any_message(), 1..5), option::of("[a-z]{1,9}"), "\\PC{0,9}", 1..=200_u32)
        .prop_map(|(messages, url, description, max_iterations)| Ask::InferToolsChat {
            messages,
            mcp_server_urls: url.map(|host| format!("https://{host}")).into_iter().collect(),
            onchain_tools: vec![Declaration { signature: "f(uint x)".to_owned(), description }],
            max_iterations,
            chain_of_thought: true,
        });
    prop_oneof![string, number, chat, tools]
}

proptest! {
    #[test]
    fn a_request_is_read_back_as_it_was_written(ask in any_ask(), is_deterministic: bool) {
        let request = Request::new(ask).unwrap();
        let request = if is_deterministic { request.deterministic() } else { request };
        let parsed = match request.to_prompt() {
            Written::Inline(prompt) => Request::parse(&prompt, None),
            Written::Blob { prompt, blob } => Request::parse(&prompt, Some(&blob)),
        };
        prop_assert_eq!(parsed, Ok(Parsed::Method(request)));
    }

    #[test]
    fn any_other_prompt_is_plain_text(prompt in any::<String>(), blob in option::of(any::<String>())) {
        let parsed = Request::parse(&prompt, blob.as_deref());
        prop_assert_eq!(parsed, Ok(Parsed::PlainText(blob.unwrap_or(prompt))));
    }

    #[test]
    fn an_envelope_with_a_changed_byte_is_understood_or_refused(at in 0..600_usize, byte in 0x20..0x7f_u8) {
        let ask = tools_ask(vec!["https://tools.example/mcp".to_owned()], 3);
        let Written::Inline(prompt) = Request::new(ask).unwrap().to_prompt() else {
            panic!("it fits")
        };
        let mut changed = prompt.into_bytes();
        let at = at % changed.len();
        changed[at] = byte;
        let changed = String::from_utf8(changed).unwrap();
        if let Ok(Parsed::Method(request)) = Request::parse(&changed, None) {
            let Written::Inline(again) = request.to_prompt() else { panic!("it fits") };
            prop_assert_eq!(Request::parse(&again, None), Ok(Parsed::Method(request)));
        }
    }
}
