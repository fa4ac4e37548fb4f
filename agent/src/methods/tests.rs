//! docs/agent-methods.md says what the code does, and the bytes of envelopes and answers stay.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::abi::FIXED_ELEMENTS_MAX;
use super::*;
use crate::messages::{End, Message, Output, Role, ToolCall};

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agent-methods.md");
    fs::read_to_string(path).expect("the document is there")
}

/// The text from a heading to the next.
fn section<'a>(document: &'a str, heading: &str) -> &'a str {
    let start = document.find(heading).expect("the section is there");
    let rest = &document[start + heading.len()..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

/// The cells of the rows of the tables in a text, headings not counted.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let mut rows = Vec::new();
    let mut is_in_body = false;
    for line in text.lines() {
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            is_in_body = line.starts_with("|---");
            continue;
        };
        if is_in_body {
            rows.push(cells.split(" | ").map(|cell| cell.trim_matches('`')).collect());
        }
    }
    rows
}

/// Reads an envelope or an answer, and writes it again.
fn again(text: &str) -> Result<String, Refused> {
    if text.contains("\"finishReason\"") {
        return Answer::parse(text).map(|answer| answer.to_json());
    }
    Ok(match Request::parse(text, None)? {
        Parsed::Method(request) => match request.to_prompt() {
            Written::Inline(prompt) => prompt,
            Written::Blob { blob, .. } => blob,
        },
        Parsed::NeedsBlob { method } => {
            format!(r#"{{"ombraAgent":1,"method":"{method}","blob":true}}"#)
        }
        Parsed::PlainText(text) => panic!("plain text: {text}"),
    })
}

#[test]
fn the_examples_of_the_document_are_written_as_programs_write_them() {
    let document = document();
    let examples: Vec<_> =
        document.split("```json\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    assert_eq!(examples.len(), 9, "the examples are fenced as json");
    for example in examples {
        assert_eq!(again(example).as_deref(), Ok(example));
    }
}

#[test]
fn the_example_of_an_answer_goes_on_in_the_example_of_a_request() {
    let document = document();
    let answers = section(&document, "## 8. ");
    let mut examples =
        answers.split("```json\n").skip(2).filter_map(|rest| rest.split("\n```").next());
    let answer = Answer::parse(examples.next().unwrap()).unwrap();
    let request = request_of(examples.next().unwrap());
    assert_eq!(answer.check_calls(request.functions()), Ok(()));
    let mut ask = request.ask().clone();
    let Ask::InferToolsChat { messages, .. } = &mut ask else { panic!("tools") };
    messages.truncate(1);
    let asked = Request::new(ask).unwrap();
    assert_eq!(asked.resume(&answer, &["done".to_owned()]), Ok(request));
}

#[test]
fn integers_are_found_as_the_document_says() {
    let document = document();
    let rows = rows(section(&document, "## 9. "));
    assert!(rows.len() >= 30, "section 9 has a table: {rows:?}");
    for row in rows {
        let [output, expected] = row[..] else { panic!("two cells: {row:?}") };
        let expected = (expected != "none").then(|| expected.to_owned());
        let found = Integer::first_in(output).map(|number| number.to_string());
        assert_eq!(found, expected, "{output}");
    }
}

#[test]
fn the_limits_of_the_document_are_those_of_the_code() {
    let limits = [
        vec![ENVELOPE_BYTES_MAX],
        vec![ALLOWED_VALUES_MAX, ALLOWED_VALUE_BYTES_MAX, ALLOWED_VALUES_BYTES_MAX],
        vec![MESSAGES_MAX],
        vec![CALL_ID_BYTES_MAX],
        vec![MCP_SERVERS_MAX, MCP_SERVER_URL_BYTES_MAX],
        vec![FUNCTIONS_MAX],
        vec![SIGNATURE_BYTES_MAX, DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX],
        vec![PARAMETERS_MAX],
        vec![FIXED_ELEMENTS_MAX],
        vec![CALLDATA_BYTES_MAX],
        vec![DECLARED_MAX],
        vec![SCHEMA_BYTES_MAX, SCHEMAS_BYTES_MAX],
        vec![SCHEMA_PARTS_MAX, SCHEMA_DEPTH_MAX],
        vec![SCHEMA_OPTIONAL_MAX],
        vec![SCHEMA_VALUES_MAX, SCHEMA_TEXT_BYTES_MAX],
        vec![SCHEMA_BRANCHES_MAX],
        vec![usize::try_from(SCHEMA_COUNT_MAX).unwrap()],
        vec![usize::try_from(OUTPUT_TOKENS_MAX).unwrap()],
        vec![STOPS_MAX, STOP_BYTES_MAX],
    ];
    let document = document();
    let table = section(&document, "## 3. ").split("| limit |").nth(1).unwrap();
    let rows = table.lines().skip(2).map_while(|line| line.strip_suffix(" |"));
    let described: Vec<Vec<usize>> = rows
        .map(|row| {
            let numbers = row.rsplit(" | ").next().unwrap_or_default();
            numbers.split(", ").map(|number| number.replace(',', "").parse().unwrap()).collect()
        })
        .collect();
    assert_eq!(described, limits);
}

#[test]
fn the_arguments_of_the_document_are_those_of_the_code() {
    let document = document();
    let rows = rows(section(&document, "## 3. "));
    let described: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((Method::parse(row[0])?, row[1].replace('`', ""))))
        .collect();
    assert_eq!(described, Method::ALL.map(|method| (method, method.arguments().join(", "))));
}

#[test]
fn the_reasons_and_selectors_of_the_document_are_those_of_the_code() {
    let document = document();
    let rows_of_answers = rows(section(&document, "## 8. "));
    let described: Vec<_> = rows_of_answers.iter().map(|row| (row[0], row[2])).collect();
    let reasons = Reason::ALL.map(|reason| (reason.name(), reason.status().as_str()));
    assert_eq!(described, reasons);

    let selectors: Vec<_> = rows(section(&document, "## 7. "))
        .into_iter()
        .filter(|row| row[0].ends_with(')') && row[1].starts_with("0x"))
        .map(|row| (row[0].to_owned(), row[1].to_owned()))
        .collect();
    assert_eq!(selectors.len(), 6);
    for (signature, selector) in selectors {
        let declaration = Declaration { signature: signature.clone(), description: String::new() };
        let functions = Functions::parse("f", &[declaration]).unwrap();
        assert_eq!(functions.selectors(), [selector], "{signature}");
    }
}

/// What this crate, the JavaScript library and the Python package agree on.
fn vectors() -> Value {
    serde_json::from_str(VECTORS).expect("the vectors are JSON")
}

const VECTORS: &str = include_str!("../../fixtures/agent-methods.json");

/// The request of a prompt.
pub(super) fn request_of(prompt: &str) -> Request {
    match Request::parse(prompt, None) {
        Ok(Parsed::Method(request)) => request,
        other => panic!("{prompt}: {other:?}"),
    }
}

/// An output of seven tokens.
pub(super) fn says(text: &str) -> Output {
    Output {
        text: text.to_owned(),
        thoughts: Some("hm".to_owned()),
        tool_calls: Vec::new(),
        output_tokens: 7,
        prompt_tokens: 9,
        end: End::Stop,
    }
}

pub(super) fn is_cut_off(text: &str) -> Output {
    Output { end: End::Length, ..says(text) }
}

/// An output that calls tools; every call has the same id, as some back ends have it.
pub(super) fn calls(text: &str, calls: &[(&str, Value)]) -> Output {
    let calls = calls.iter().map(|(name, arguments)| call("x", name, arguments));
    Output { tool_calls: calls.collect(), end: End::ToolCalls, ..says(text) }
}

pub(super) fn call(id: &str, name: &str, arguments: &Value) -> ToolCall {
    let arguments = arguments.as_object().expect("an object of arguments").clone();
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments }
}

/// One list of the vectors.
pub(super) fn vectors_of(list: &str) -> Vec<Value> {
    let vectors = vectors()[list].as_array().expect("a list").clone();
    assert!(!vectors.is_empty(), "{list} is empty");
    vectors
}

/// A member that is a text.
pub(super) fn text_of<'a>(vector: &'a Value, member: &str) -> &'a str {
    vector[member].as_str().expect("a text")
}

pub(super) fn said(role: Role, text: &str) -> Message {
    Message { role, text: text.to_owned(), tool_calls: Vec::new(), tool_call_id: None }
}

/// A conversation in which a call was answered.
fn conversation() -> Vec<Message> {
    let arguments = json!({ "to": "Ada", "at": [1, -2.5, null, true, { "é": "\u{1f}\"\\" }] });
    let call = call("call_0", "look", &arguments);
    vec![
        said(Role::System, "Be brief."),
        said(Role::User, "line one\nline two\u{2028}"),
        Message { tool_calls: vec![call], ..said(Role::Assistant, "I look.") },
        Message { tool_call_id: Some("call_0".to_owned()), ..said(Role::Tool, "{\"seen\":1}") },
        said(Role::Assistant, "{\"tool_calls\":\"none\"}"),
    ]
}

fn functions() -> Vec<Declaration> {
    let declare = |signature: &str, description: &str| Declaration {
        signature: signature.to_owned(),
        description: description.to_owned(),
    };
    vec![declare("swap(address token, uint256 amount)", "Swaps."), declare("ping()", "")]
}

fn tools_chat(messages: Vec<Message>, mcp_server_urls: &[&str]) -> Ask {
    Ask::InferToolsChat {
        messages,
        mcp_server_urls: mcp_server_urls.iter().map(|url| (*url).to_owned()).collect(),
        onchain_tools: functions(),
        max_iterations: 200,
        chain_of_thought: true,
    }
}

/// What the golden file has, made from values.
fn golden() -> Vec<(&'static str, String)> {
    let request = |ask| match Request::new(ask).unwrap().to_prompt() {
        Written::Inline(prompt) | Written::Blob { prompt, .. } => prompt,
    };
    let string = |prompt: &str, system: &str, allowed: &[&str]| Ask::InferString {
        prompt: prompt.to_owned(),
        system: system.to_owned(),
        chain_of_thought: !system.is_empty(),
        allowed_values: allowed.iter().map(|value| (*value).to_owned()).collect(),
    };
    let number = |min_value, max_value| Ask::InferNumber {
        prompt: "How many?".to_owned(),
        system: "Count.".to_owned(),
        min_value,
        max_value,
        chain_of_thought: false,
    };
    let chat = vec![said(Role::User, "hi"), said(Role::Assistant, "{\"tool_calls\":1}")];
    let deterministic = Request::new(string("p", "", &[])).unwrap().deterministic();
    let Written::Inline(deterministic) = deterministic.to_prompt() else { panic!("it fits") };
    vec![
        ("string", request(string("good?", "", &["yes", "no \"way\""]))),
        ("string, free, thinking", request(string("p", "s", &[]))),
        ("string, deterministic", deterministic),
        ("number", request(number(Integer::MIN, Integer::MAX))),
        ("number, unbounded", request(number(Integer::ZERO, Integer::ZERO))),
        ("chat", request(Ask::InferChat { messages: chat, chain_of_thought: false })),
        ("tools", request(tools_chat(conversation(), &["https://a.example", "http://b.example"]))),
        ("tools, begun", request(tools_chat(vec![said(Role::User, "hi")], &[]))),
        ("messages", request(Ask::InferMessages(messages(vec![said(Role::User, "hi")])))),
        ("messages, with everything", everything()),
        ("messages, forced", request(Ask::InferMessages(forced()))),
    ]
}

/// What is asked with no more than messages.
fn messages(messages: Vec<Message>) -> Messages {
    Messages {
        messages,
        functions: Vec::new(),
        choice: ToolChoice::Auto,
        response_schema: None,
        output_tokens_max: None,
        stops: Vec::new(),
    }
}

/// The functions of the golden file, and the schema of an answer.
fn declared() -> (Vec<Declared>, Schema) {
    let schemas = vectors_of("schemas");
    let declare = |name: &str, description: &str, at: usize| Declared {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: Schema::of_parameters("s", &schemas[at].to_string()).unwrap(),
    };
    let weather = declare("get_weather", "The weather of a place.", 0);
    let person = Schema::of("s", &schemas[2].to_string()).unwrap();
    (vec![weather, declare("set-alarm", "", 1)], person)
}

fn everything() -> String {
    let (functions, schema) = declared();
    let response_schema = Some(ResponseSchema { name: Some("Person".to_owned()), schema });
    let output_tokens_max = Some(256);
    let asked =
        Messages { functions, response_schema, output_tokens_max, ..messages(conversation()) };
    let request = Request::new(Ask::InferMessages(asked)).unwrap().deterministic();
    let Written::Inline(prompt) = request.to_prompt() else { panic!("it fits") };
    prompt
}

fn forced() -> Messages {
    Messages {
        functions: declared().0,
        choice: ToolChoice::Function("set-alarm".to_owned()),
        stops: vec!["END".to_owned(), "\n\n".to_owned()],
        ..messages(vec![said(Role::User, "Wake me at 7.")])
    }
}

/// The answers that the golden file has, made from values.
fn golden_answers() -> Vec<(&'static str, String)> {
    let plain = |method, reason, response: &str| Answer::plain(method, reason, response).to_json();
    let arguments = json!({ "token": format!("0x{}", "aB".repeat(20)), "amount": "1" });
    let swap = call("call_1", "swap", &arguments);
    let ping = call("call_2", "ping", &json!({}));
    let functions = Functions::parse("f", &functions()).unwrap();
    let pending = |call: &ToolCall| PendingCall {
        id: call.id.clone(),
        calldata: functions.encode(&call.name, &call.arguments).unwrap(),
    };
    let calls = vec![pending(&swap), pending(&ping)];
    let last = Message { tool_calls: vec![swap, ping], ..said(Role::Assistant, "") };
    let messages = conversation().into_iter().chain([last]).collect();
    let handing_back = Answer {
        method: Some(Method::InferToolsChat),
        reason: Reason::ToolCalls,
        response: String::new(),
        hand_back: HandBack { messages, calls },
        tool_calls: Vec::new(),
    };
    let refused = Request::parse(r#"{"ombraAgent":2}"#, None).unwrap_err();
    let at = json!({ "label": null, "at": { "minute": 0, "hour": 7 } });
    let alarm = call("call_1", "set-alarm", &at);
    vec![
        ("string", plain(Method::InferString, Reason::Stop, "yes\t\u{7f}é")),
        ("number", plain(Method::InferNumber, Reason::Stop, "-1")),
        ("chat, failed", plain(Method::InferChat, Reason::Error, "no model")),
        ("tools", plain(Method::InferToolsChat, Reason::Stop, "bye")),
        ("tools, used up", plain(Method::InferToolsChat, Reason::MaxIterations, "")),
        ("tools, handed back", handing_back.to_json()),
        ("refused", Answer::refusing(&refused).to_json()),
        ("messages", plain(Method::InferMessages, Reason::Stop, "Hello.")),
        ("messages, cut off", plain(Method::InferMessages, Reason::Length, "Once upon")),
        ("messages, calling", Answer::calling("I set it.", vec![alarm]).to_json()),
        ("messages, failed", plain(Method::InferMessages, Reason::Error, "no model")),
    ]
}

#[test]
fn the_bytes_of_envelopes_and_answers_stay() {
    for (list, member, made) in
        [("requests", "prompt", golden()), ("answers", "text", golden_answers())]
    {
        let expected = vectors_of(list);
        assert_eq!(expected.len(), made.len(), "{list}");
        for (expected, (name, text)) in expected.iter().zip(&made) {
            assert_eq!((text_of(expected, "name"), text_of(expected, member)), (*name, &**text));
            assert_eq!(again(text).as_deref(), Ok(&**text), "{name}");
        }
    }
}

/// The request of a name.
fn asked(name: &str) -> Request {
    let requests = vectors_of("requests");
    let vector = requests.iter().find(|vector| text_of(vector, "name") == name);
    request_of(text_of(vector.expect(name), "prompt"))
}

#[test]
fn calls_in_answers_are_decoded_as_the_vectors_say() {
    for vector in vectors_of("answers") {
        let answer = Answer::parse(text_of(&vector, "text")).unwrap();
        let request = asked(text_of(&vector, "request"));
        assert_eq!(answer.check_calls(request.functions()), Ok(()));
        let decode = |call: &PendingCall| {
            let DecodedCall { name, arguments } =
                request.functions().decode(&call.calldata).unwrap();
            json!({ "id": call.id, "name": name, "arguments": arguments })
        };
        assert_eq!(request.check_tool_calls(&answer), Ok(()));
        let plain = answer
            .tool_calls
            .iter()
            .map(|call| json!({ "id": call.id, "name": call.name, "arguments": call.arguments }));
        let calls: Vec<_> = answer.hand_back.calls.iter().map(decode).chain(plain).collect();
        assert_eq!(vector.get("calls").cloned().unwrap_or_else(|| json!([])), json!(calls));
    }
}

#[test]
fn an_answer_that_says_something_else_than_its_conversation_is_refused() {
    let request = asked("tools");
    for vector in vectors_of("wrongAnswers") {
        let text = text_of(&vector, "text");
        let judged = Answer::parse(text).and_then(|answer| answer.check_calls(request.functions()));
        assert_eq!(judged.unwrap_err().field, text_of(&vector, "field"), "{text}");
    }
}

#[test]
fn an_answer_with_other_calls_than_the_request_allows_is_refused() {
    let request = asked("messages, forced");
    for vector in vectors_of("wrongMessagesAnswers") {
        let text = text_of(&vector, "text");
        let judged = Answer::parse(text).and_then(|answer| request.check_tool_calls(&answer));
        assert_eq!(judged.unwrap_err().field, text_of(&vector, "field"), "{text}");
    }
}

#[test]
fn a_request_goes_on_as_the_vectors_say() {
    for vector in vectors_of("resumed") {
        let request = request_of(text_of(&vector, "request"));
        let answer = Answer::parse(text_of(&vector, "answer")).unwrap();
        let pending = answer.hand_back.calls.iter().map(|call| &call.id);
        let ids = pending.chain(answer.tool_calls.iter().map(|call| &call.id));
        let results: Vec<_> = ids.map(|id| text_of(&vector["results"], id).to_owned()).collect();
        let Written::Inline(prompt) = request.resume(&answer, &results).unwrap().to_prompt() else {
            panic!("it fits")
        };
        assert_eq!(prompt, text_of(&vector, "prompt"));
    }
}
