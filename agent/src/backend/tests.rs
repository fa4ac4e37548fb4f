//! The back ends against scripted servers: what is paid for, what is tried again, what is refused.

mod forms;
mod https;
mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::breaker::{Guarded, Record};
use super::config::{Config, Constrain, GoOn, Interface, ToolForm};
use super::ollama::Ollama;
use super::openai::OpenAi;
use super::{Backend, BackendError, Health, Manifest, SetupError};
use crate::clock::Clock;
use crate::messages::{Constraint, End, Iteration, Message, Output, Role, ToolCall, ToolSpec};
use script::{Reply, Script, events, says, usage};

fn config(url: &str) -> Config {
    Config {
        tool_form: ToolForm::Native,
        go_on: GoOn::Asked,
        tokenize: false,
        first_token_timeout_ms: 400,
        token_timeout_ms: 400,
        ..Config::new(Interface::OpenAi, url, "tiny")
    }
}

fn user(text: &str) -> Message {
    Message { role: Role::User, text: text.into(), tool_calls: vec![], tool_call_id: None }
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: "now".into(),
        description: "the time".into(),
        parameters: json!({"type": "object", "properties": {}}),
    }
}

/// A server that answers its probes so, with its settings changed.
async fn probed(
    probes: impl IntoIterator<Item = Reply>,
    change: fn(&mut Config),
) -> (Script, Result<OpenAi, SetupError>) {
    let script = Script::start(probes).await;
    let mut config = config(&script.url);
    change(&mut config);
    let server = OpenAi::connect(config, &CancellationToken::new()).await;
    (script, server)
}

/// A server that has passed its probe, with its settings changed.
async fn connected(replies: Vec<Reply>, change: fn(&mut Config)) -> (Script, OpenAi) {
    let (script, server) = probed([Reply::Whole(says("H", 1, 9))], change).await;
    replies.into_iter().for_each(|reply| script.then(reply));
    (script, server.unwrap())
}

/// A question for any text of at most 100 tokens.
fn question(messages: &[Message]) -> Iteration<'_> {
    Iteration {
        messages,
        tools: &[],
        constraint: &Constraint::Free,
        thinks: false,
        so_far: "",
        stops: &[],
        output_tokens_max: 100,
    }
}

async fn ask(
    server: &dyn Backend,
    messages: &[Message],
    tools: &[ToolSpec],
) -> Result<Output, BackendError> {
    let iteration = Iteration { tools, ..question(messages) };
    server.infer(&iteration, &CancellationToken::new()).await
}

async fn outcome(replies: Vec<Reply>) -> (Script, Result<Output, BackendError>) {
    let (script, server) = connected(replies, |_| ()).await;
    let outcome = ask(&server, &[user("hello")], &[]).await;
    (script, outcome)
}

#[tokio::test]
async fn an_answer_has_the_servers_own_counts() {
    let (script, outcome) = outcome(vec![Reply::Whole(says("Hi there", 7, 11))]).await;
    let output = outcome.unwrap();
    assert_eq!(("Hi there", 7, 11), (&*output.text, output.output_tokens, output.prompt_tokens));
    assert_eq!(End::Stop, output.end);
    let body = script.last();
    assert_eq!((json!(100), json!(0)), (body["max_tokens"].clone(), body["temperature"].clone()));
    assert_eq!(json!(true), body["stream_options"]["include_usage"]);
}

#[tokio::test]
async fn failures_that_may_pass_are_tried_again() {
    let begun = events(&[json!({"choices": [{"delta": {"content": "Hal"}}]})]);
    let failures = [
        Reply::Status(429, "", "slow down"),
        Reply::Status(500, "", "oops"),
        Reply::Status(503, "", "loading"),
        Reply::Cut(begun.clone()),
        Reply::Stall(begun.clone()),
        Reply::Silence,
        Reply::Whole(begun),
        Reply::Whole("data: {broken\n\n".into()),
    ];
    for failure in failures {
        let shown = format!("{failure:?}");
        let (script, outcome) = outcome(vec![failure, Reply::Whole(says("Hi", 2, 9))]).await;
        assert_eq!("Hi", outcome.expect(&shown).text, "{shown}");
        assert_eq!(3, script.requests().len(), "{shown}");
    }
}

#[tokio::test]
async fn a_failure_that_stays_is_told_after_the_last_attempt() {
    let (script, outcome) = outcome(vec![Reply::Status(500, "", "oops"); 9]).await;
    let error = outcome.unwrap_err();
    assert!(matches!(&error, BackendError::Failed { status: 500, body, .. } if body == "oops"));
    assert_eq!(5, script.requests().len(), "one probe and four attempts");
}

#[tokio::test]
async fn a_refused_request_is_not_tried_again() {
    let (script, outcome) = outcome(vec![Reply::Status(400, "", "no such model")]).await;
    assert!(matches!(outcome, Err(BackendError::Refused { status: 400, .. })), "{outcome:?}");
    assert_eq!(2, script.requests().len());
}

#[tokio::test]
async fn a_server_is_left_alone_as_long_as_it_asks() {
    let begun = std::time::Instant::now();
    let replies = vec![Reply::Status(429, "1", "later"), Reply::Whole(says("Hi", 2, 9))];
    assert!(outcome(replies).await.1.is_ok());
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn silence_has_a_bound_that_the_error_names() {
    let (_, server) = connected(vec![Reply::Silence], |config| config.attempts_max = 1).await;
    let outcome = ask(&server, &[user("hello")], &[]).await;
    assert!(matches!(outcome, Err(BackendError::Stalled { silent_ms: 400, .. })), "{outcome:?}");
}

/// A whole answer that does not say how many tokens it has.
fn uncounted() -> String {
    events(&[json!({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]})])
}

#[tokio::test]
async fn an_answer_without_counts_makes_the_server_unfit() {
    let (_, answered) = outcome(vec![Reply::Whole(uncounted())]).await;
    let error = answered.unwrap_err();
    assert!(matches!(error, BackendError::NoUsage { field: "usage", .. }), "{error:?}");
    assert!(error.is_unfit() && !error.is_passing());
    let half = json!({"choices": [], "usage": {"completion_tokens": 3}});
    let (_, answered) = outcome(vec![Reply::Whole(uncounted() + &events(&[half]))]).await;
    let missing = "usage.prompt_tokens";
    assert!(matches!(answered, Err(BackendError::NoUsage { field, .. }) if field == missing));
}

#[tokio::test]
async fn a_server_that_does_not_count_is_refused_at_the_start() {
    let (_, refused) = probed([Reply::Whole(uncounted())], |_| ()).await;
    assert!(matches!(refused, Err(SetupError::Server(BackendError::NoUsage { .. }))));
}

#[tokio::test]
async fn counts_that_cannot_be_true_are_refused() {
    for (tokens, prompt_tokens) in [(101, 9), (0, 9), (5, 0)] {
        let (_, outcome) = outcome(vec![Reply::Whole(says("Hi", tokens, prompt_tokens))]).await;
        let wrong = matches!(outcome, Err(BackendError::WrongUsage { .. }));
        assert!(wrong, "{tokens} {prompt_tokens}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_prompt_that_was_cut_is_a_loud_failure() {
    let replies = vec![Reply::Whole(says("Hi", 2, 511)), Reply::Whole(says("Hi", 2, 512))];
    let (_, server) = connected(replies, |_| ()).await;
    let long = [user(&"x".repeat(4_096))];
    let cut = ask(&server, &long, &[]).await;
    let expected =
        BackendError::Truncated { prompt_bytes: 4_096, prompt_tokens: 511, tokens_min: 512 };
    assert_eq!(Err(expected), cut);
    assert!(ask(&server, &long, &[]).await.is_ok());
}

#[tokio::test]
async fn a_prompt_that_cannot_fit_is_not_sent() {
    let (script, server) = connected(vec![], |_| ()).await;
    let outcome = ask(&server, &[user(&"x".repeat(32_768))], &[]).await;
    assert!(matches!(outcome, Err(BackendError::TooLong { tokens_min: 4_096, .. })), "{outcome:?}");
    assert_eq!(1, script.requests().len());
}

#[tokio::test]
async fn an_output_is_asked_for_that_has_room() {
    let (script, server) = connected(vec![Reply::Whole(says("Hi", 2, 4_050))], |_| ()).await;
    ask(&server, &[user(&"x".repeat(32_400))], &[]).await.unwrap();
    assert_eq!(json!(46), script.last()["max_tokens"]);
}

/// Whether a prompt of so many bytes has room beside 100 tokens of output, and its tokens.
async fn has_room(server: &OpenAi, bytes: usize) -> Result<u64, BackendError> {
    server.fits(&question(&[user(&"x".repeat(bytes))])).await
}

#[tokio::test]
async fn before_a_claim_a_prompt_that_cannot_be_counted_is_taken_for_long() {
    let (script, server) = connected(vec![], |_| ()).await;
    // No token has less than a byte; then two bytes are taken for one. 48 are for the template.
    for bytes in [3_900, 7_890] {
        assert!(has_room(&server, bytes).await.is_ok(), "{bytes}");
    }
    let outcome = has_room(&server, 7_900).await;
    assert!(matches!(outcome, Err(BackendError::TooLong { tokens_min: 3_999, .. })), "{outcome:?}");
    assert_eq!(1, script.requests().len());
}

/// A server that splits texts.
async fn splitting(replies: Vec<Reply>) -> (Script, OpenAi) {
    let probes = [Reply::Whole(says("H", 1, 9)), listed(2)];
    let (script, server) = probed(probes, |config| {
        config.tokenize = true;
        config.url.push_str("/v1");
    })
    .await;
    replies.into_iter().for_each(|reply| script.then(reply));
    (script, server.unwrap())
}

/// The tokens of a text.
fn listed(count: usize) -> Reply {
    Reply::Whole(json!({ "tokens": vec![7; count] }).to_string())
}

#[tokio::test]
async fn before_a_claim_the_server_counts_the_prompt_where_it_can() {
    let counted = Reply::Whole(r#"{"count":3949,"max_model_len":4096}"#.into());
    let replies = vec![listed(3_948), listed(3_949), counted, Reply::Status(404, "", "gone")];
    let (script, server) = splitting(replies).await;
    // What the template adds is 48.
    assert_eq!(Ok(3_996), has_room(&server, 12_000).await);
    let (path, body) = script.requests().pop().unwrap();
    assert_eq!("/tokenize", path, "beside /v1");
    let text = body["content"].as_str().unwrap();
    assert_eq!((12_002, body["prompt"].as_str()), (text.len(), Some(text)));
    for _ in 0..3 {
        let outcome = has_room(&server, 12_000).await;
        assert!(matches!(outcome, Err(BackendError::TooLong { .. })), "{outcome:?}");
    }
    // A prompt that has room whatever it is counted as is not counted.
    let asked = script.requests().len();
    assert_eq!(Ok(751), has_room(&server, 3_000).await);
    assert_eq!(asked, script.requests().len());
}

#[tokio::test]
async fn a_prompt_that_was_cut_a_little_is_found_where_the_server_counts() {
    let said = |tokens| Reply::Whole(says("Hi", 2, tokens));
    // 1000 tokens, of which a template may leave out 62 and 32.
    let replies = vec![said(905), listed(1_000), said(906), listed(1_000)];
    let (_, server) = splitting(replies).await;
    let long = [user(&"x".repeat(3_000))];
    let expected =
        BackendError::Truncated { prompt_bytes: 3_000, prompt_tokens: 905, tokens_min: 906 };
    assert_eq!(Err(expected), ask(&server, &long, &[]).await);
    assert!(ask(&server, &long, &[]).await.is_ok());
}

#[tokio::test]
async fn a_prompt_of_few_tokens_for_its_bytes_is_answered_where_the_server_counts() {
    let said = || Reply::Whole(says("Hi", 2, 100));
    let spaces = [user(&" ".repeat(4_096))];
    let (_, server) = splitting(vec![listed(90), said(), listed(90)]).await;
    assert!(ask(&server, &spaces, &[]).await.is_ok());
    // Of more bytes than the context could have otherwise.
    let (_, server) = splitting(vec![listed(600), listed(600), said(), listed(110)]).await;
    assert!(has_room(&server, 40_000).await.is_ok());
    assert!(ask(&server, &[user(&" ".repeat(40_000))], &[]).await.is_ok());

    let (_, server) = connected(vec![said()], |_| ()).await;
    let outcome = ask(&server, &spaces, &[]).await;
    assert!(matches!(outcome, Err(BackendError::Truncated { .. })), "{outcome:?}");
    // A count that fails is none.
    let replies = vec![listed(90), said(), Reply::Status(404, "", "gone")];
    let (_, server) = splitting(replies).await;
    let outcome = ask(&server, &spaces, &[]).await;
    assert!(matches!(outcome, Err(BackendError::Truncated { .. })), "{outcome:?}");
}

#[tokio::test]
async fn a_count_that_never_ends_is_none() {
    let stalled = || Reply::Stall(r#"{"tokens":[1,2"#.into());
    let (_, server) = splitting(vec![stalled()]).await;
    let waited = tokio::time::timeout(Duration::from_secs(30), has_room(&server, 12_000));
    let outcome = waited.await.expect("an end");
    assert!(matches!(outcome, Err(BackendError::TooLong { .. })), "{outcome:?}");

    // Before the question, and after the answer.
    for (replies, bytes) in
        [(vec![stalled()], 5_000), (vec![Reply::Whole(says("Hi", 2, 900)), stalled()], 3_000)]
    {
        let count = replies.len();
        let (script, server) = splitting(replies).await;
        let (messages, stop) = ([user(&"x".repeat(bytes))], CancellationToken::new());
        let iteration = question(&messages);
        let cancelling = async {
            // Two requests are of the start.
            while script.requests().len() < count + 2 {
                tokio::task::yield_now().await;
            }
            stop.cancel();
        };
        let both = async { tokio::join!(server.infer(&iteration, &stop), cancelling) };
        let (outcome, ()) =
            tokio::time::timeout(Duration::from_secs(30), both).await.expect("an end");
        assert_eq!(Err(BackendError::Cancelled), outcome);
    }
}

/// Asks for the rest of a text.
async fn go_on(server: &dyn Backend, so_far: &str) -> Result<Output, BackendError> {
    let messages = [user("a tale")];
    let iteration = Iteration { so_far, ..question(&messages) };
    server.infer(&iteration, &CancellationToken::new()).await
}

#[tokio::test]
async fn a_server_that_writes_on_in_a_message_is_found_by_its_counts() {
    // (tokens of the prompt with one word more, whether that is the word alone)
    for (tokens, is_prefix) in [(10, true), (9, false), (11, false), (15, false)] {
        let probes = [Reply::Whole(says("H", 1, 9)), Reply::Whole(says("H", 1, tokens))];
        let (script, server) = probed(probes, |config| config.go_on = GoOn::Probe).await;
        script.then(Reply::Whole(says("time.", 2, 20)));
        go_on(&server.unwrap(), "Once upon a ").await.unwrap();
        let body = script.last();
        assert_eq!(json!({"role": "assistant", "content": "Once upon a "}), body["messages"][1]);
        let asks = body["messages"][2]["content"].as_str().is_some_and(|it| it.contains("Go on"));
        assert_eq!((!is_prefix, is_prefix), (asks, body["continue_final_message"] == json!(true)));
    }
    let probes = [Reply::Whole(says("H", 1, 9)), Reply::Status(400, "", "no such message")];
    assert!(probed(probes, |config| config.go_on = GoOn::Probe).await.1.is_ok());
}

fn call_parts(arguments: [&str; 2], finish: &str) -> String {
    let [first, second] = arguments;
    let head = json!({"index": 0, "id": "a", "function": {"name": "now", "arguments": first}});
    let tail = json!({"index": 0, "function": {"arguments": second}});
    events(&[
        json!({"choices": [{"delta": {"tool_calls": [head]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [tail]}, "finish_reason": finish}]}),
        usage(5, 20),
    ])
}

#[tokio::test]
async fn a_call_is_put_together_from_its_parts() {
    let replies = vec![Reply::Whole(call_parts(["{\"zone\":", "\"UTC\"}"], "tool_calls"))];
    let (script, server) = connected(replies, |_| ()).await;
    let output = ask(&server, &[user("what time is it")], &[tool()]).await.unwrap();
    let arguments = json!({"zone": "UTC"}).as_object().unwrap().clone();
    let call = ToolCall { id: "a".into(), name: "now".into(), arguments };
    assert_eq!((vec![call], End::ToolCalls), (output.tool_calls, output.end));
    assert_eq!("now", script.last()["tools"][0]["function"]["name"]);
}

#[tokio::test]
async fn calls_and_results_go_back_as_the_server_knows_them() {
    let (script, server) = connected(vec![Reply::Whole(says("noon", 2, 30))], |_| ()).await;
    let call = ToolCall { id: "a".into(), name: "now".into(), arguments: Default::default() };
    let asked = Message { role: Role::Assistant, tool_calls: vec![call], ..user("") };
    let result = Message { role: Role::Tool, tool_call_id: Some("a".into()), ..user("12:00") };
    ask(&server, &[user("time?"), asked, result], &[tool()]).await.unwrap();
    let messages = script.last()["messages"].clone();
    assert_eq!("{}", messages[1]["tool_calls"][0]["function"]["arguments"]);
    assert_eq!("a", messages[2]["tool_call_id"]);
    assert_eq!("tool", messages[2]["role"]);
}

#[tokio::test]
async fn a_call_that_cannot_be_read_or_was_cut_off_is_text_for_the_model_to_be_told() {
    let cases = [
        ("{\"zone\":", "tool_calls", End::ToolCalls),
        ("[1]", "tool_calls", End::ToolCalls),
        ("\"x\"", "tool_calls", End::ToolCalls),
        ("{}", "length", End::CallCut),
    ];
    for (arguments, finish, end) in cases {
        let replies = vec![Reply::Whole(call_parts([arguments, ""], finish))];
        let (_, server) = connected(replies, |_| ()).await;
        let output = ask(&server, &[user("time?")], &[tool()]).await.unwrap();
        assert_eq!((end, 0), (output.end, output.tool_calls.len()), "{arguments}");
        assert_eq!(format!("now{arguments}"), output.text);
        assert_eq!(5, output.output_tokens, "{arguments}");
    }
}

#[tokio::test]
async fn double_and_missing_ids_are_made_up() {
    let part = |index: u32, id: &str| json!({"index": index, "id": id, "function": {"name": "now", "arguments": ""}});
    let calls = json!([part(0, "a"), part(1, "a"), part(2, "")]);
    let text = events(&[
        json!({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}),
        usage(5, 20),
    ]);
    let (_, server) = connected(vec![Reply::Whole(text)], |_| ()).await;
    let output = ask(&server, &[user("time?")], &[tool()]).await.unwrap();
    let ids: Vec<_> = output.tool_calls.into_iter().map(|call| call.id).collect();
    assert_eq!(vec!["a", "call_1_1", "call_1_2"], ids);
}

#[tokio::test]
async fn thoughts_are_apart_from_the_text() {
    for member in ["reasoning_content", "reasoning"] {
        let text = events(&[
            json!({"choices": [{"delta": {member: "hm"}}]}),
            json!({"choices": [{"delta": {"content": "4"}, "finish_reason": "stop"}]}),
            usage(5, 20),
        ]);
        let (_, outcome) = outcome(vec![Reply::Whole(text)]).await;
        let output = outcome.unwrap();
        assert_eq!((Some("hm"), "4"), (output.thoughts.as_deref(), &*output.text));
    }
}

#[tokio::test]
async fn tools_that_do_not_reach_the_prompt_or_are_refused_are_described_in_it() {
    let refuses = Reply::Status(400, "", "no tools here");
    let counts = |tokens| Reply::Whole(says("H", 1, tokens));
    for (with_tool, native) in [(counts(9), false), (counts(40), true), (refuses, false)] {
        let probes = [counts(9), with_tool];
        let (script, server) = probed(probes, |config| config.tool_form = ToolForm::Probe).await;
        let server = server.unwrap();
        assert_eq!(native, server.has_native_tools());
        script.then(Reply::Whole(says("ok", 1, 40)));
        ask(&server, &[user("time?")], &[tool()]).await.unwrap();
        let body = script.last();
        assert_eq!(native, body.get("tools").is_some());
        let described = body["messages"][0]["content"].as_str().unwrap().contains("the time");
        assert_eq!(!native, described);
    }
}

#[tokio::test]
async fn a_described_call_is_read_alone_and_in_a_fence() {
    let call = r#"{"tool_calls":[{"name":"now","arguments":{"zone":"UTC"}}]}"#;
    let cases = [
        (call.to_owned(), 1, End::ToolCalls),
        (format!("```json\n{call}\n```"), 1, End::ToolCalls),
        (format!("I would call {call}"), 0, End::Stop),
        (r#"{"tool_calls":[{"name":"now","arguments":7}]}"#.to_owned(), 0, End::ToolCalls),
        (r#"{"tool_calls":[{"name":"no"#.to_owned(), 0, End::ToolCalls),
        (r#"{"answer":1}"#.to_owned(), 0, End::Stop),
    ];
    for (text, calls, end) in cases {
        let replies = vec![Reply::Whole(says(&text, 9, 60))];
        let (_, server) = connected(replies, |config| config.tool_form = ToolForm::Prompted).await;
        let output = ask(&server, &[user("time?")], &[tool()]).await.unwrap();
        assert_eq!((calls, end), (output.tool_calls.len(), output.end), "{text}");
        assert_eq!(calls == 1, output.text.is_empty(), "{text}: {:?}", output.text);
    }
}

#[tokio::test]
async fn without_tools_a_json_answer_is_an_answer() {
    let text = r#"{"tool_calls":[{"name":"now","arguments":{}}]}"#;
    let replies = vec![Reply::Whole(says(text, 9, 60))];
    let (_, server) = connected(replies, |config| config.tool_form = ToolForm::Prompted).await;
    let output = ask(&server, &[user("write json")], &[]).await.unwrap();
    assert_eq!((End::Stop, text), (output.end, &*output.text));
}

#[tokio::test]
async fn a_form_is_asked_for_and_unwrapped() {
    let replies = vec![Reply::Whole(says(r#"{"answer":"positive"}"#, 5, 20))];
    let (script, server) =
        connected(replies, |config| config.constrain = Constrain::JsonSchema).await;
    let constraint = Constraint::OneOf(vec!["positive".into(), "negative".into()]);
    let messages = [user("good?")];
    let iteration = Iteration { constraint: &constraint, ..question(&messages) };
    let output = server.infer(&iteration, &CancellationToken::new()).await.unwrap();
    assert_eq!("positive", output.text);
    let schema = &script.last()["response_format"]["json_schema"]["schema"];
    assert_eq!(json!(["positive", "negative"]), schema["properties"]["answer"]["enum"]);
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_wait() {
    let (_, server) = connected(vec![Reply::Silence], |c| c.first_token_timeout_ms = 600_000).await;
    let stop = CancellationToken::new();
    let messages = [user("hello")];
    let iteration = question(&messages);
    let (outcome, ()) = tokio::join!(server.infer(&iteration, &stop), async { stop.cancel() });
    assert_eq!(Err(BackendError::Cancelled), outcome);
}

fn ollama_lines(parts: &[Value]) -> String {
    parts.iter().map(|part| format!("{part}\n")).collect()
}

/// A line with this message, after which nothing comes: 12 tokens were read, and 3 put out.
fn ollama_done(message: &Value) -> Value {
    json!({ "message": message, "done": true, "prompt_eval_count": 12, "eval_count": 3 })
}

async fn ollama(capabilities: Value, reply: Reply) -> (Script, Ollama) {
    let shown = json!({ "capabilities": capabilities }).to_string();
    let script = Script::start([Reply::Whole(shown), reply]).await;
    let config = Config {
        interface: Interface::Ollama,
        tool_form: ToolForm::Probe,
        go_on: GoOn::Probe,
        context_tokens_max: 8_192,
        ..config(&script.url)
    };
    let server = Ollama::connect(config, &CancellationToken::new()).await.unwrap();
    (script, server)
}

#[tokio::test]
async fn ollama_is_told_the_size_of_the_context() {
    let mut done = ollama_done(&json!({"content": ""}));
    done["done_reason"] = json!("length");
    let begun = json!({"message": {"content": "Hi", "thinking": "hm"}, "done": false});
    let text = ollama_lines(&[begun, done]);
    let (script, server) = ollama(json!(["completion"]), Reply::Whole(text)).await;
    let output = ask(&server, &[user("hello")], &[]).await.unwrap();
    assert_eq!(("Hi", Some("hm")), (&*output.text, output.thoughts.as_deref()));
    assert_eq!((End::Length, 3, 12), (output.end, output.output_tokens, output.prompt_tokens));
    assert_eq!(json!(8_192), script.last()["options"]["num_ctx"]);
    assert_eq!(json!(100), script.last()["options"]["num_predict"]);
}

#[tokio::test]
async fn ollama_writes_on_in_a_last_message() {
    let done = ollama_done(&json!({"content": "time."}));
    let (script, server) = ollama(json!([]), Reply::Whole(ollama_lines(&[done]))).await;
    go_on(&server, "Once upon a ").await.unwrap();
    let messages = script.last()["messages"].clone();
    assert_eq!(json!({"role": "assistant", "content": "Once upon a "}), messages[1]);
    assert_eq!(2, messages.as_array().unwrap().len());
}

#[tokio::test]
async fn ollama_calls_tools_where_the_model_can() {
    let call = json!({"function": {"name": "now", "arguments": {"zone": "UTC"}}});
    let text = ollama_lines(&[ollama_done(&json!({"tool_calls": [call]}))]);
    let (script, server) = ollama(json!(["tools"]), Reply::Whole(text)).await;
    let output = ask(&server, &[user("time?")], &[tool()]).await.unwrap();
    assert_eq!("UTC", output.tool_calls[0].arguments["zone"]);
    assert!(script.last().get("tools").is_some());
}

#[tokio::test]
async fn ollama_is_told_to_think_only_where_the_model_can() {
    for (capabilities, think) in [(json!(["completion"]), None), (json!(["thinking"]), Some(true))]
    {
        let reply = Reply::Whole(ollama_lines(&[ollama_done(&json!({"content": "4"}))]));
        let (script, server) = ollama(capabilities, reply).await;
        let messages = [user("2 + 2?")];
        let iteration = Iteration { thinks: true, ..question(&messages) };
        let stop = CancellationToken::new();
        assert_eq!("4", server.infer(&iteration, &stop).await.unwrap().text);
        assert_eq!(think, script.last().get("think").and_then(Value::as_bool));
    }
}

#[tokio::test]
async fn ollama_without_counts_is_unfit() {
    let text =
        ollama_lines(&[json!({"message": {"content": "Hi"}, "done": true, "eval_count": 3})]);
    let (_, server) = ollama(json!([]), Reply::Whole(text)).await;
    let outcome = ask(&server, &[user("hello")], &[]).await;
    let missing = "prompt_eval_count";
    assert!(matches!(outcome, Err(BackendError::NoUsage { field, .. }) if field == missing));
}

#[tokio::test]
async fn what_ollama_says_of_a_model_is_bounded_in_time_and_size() {
    let cases = [
        (Reply::Stall("{\"capab".into()), "was silent for 400 ms"),
        (Reply::Whole("x".repeat(17 << 20)), "it has more than 16777216 bytes"),
    ];
    for (reply, expected) in cases {
        let script = Script::start([reply]).await;
        let interface = Interface::Ollama;
        let config = Config { interface, attempts_max: 1, ..config(&script.url) };
        let stop = CancellationToken::new();
        let connecting = Ollama::connect(config, &stop);
        let waited = tokio::time::timeout(Duration::from_secs(30), connecting).await;
        let error = waited.expect("an end").unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

fn failed<T>() -> Result<T, BackendError> {
    Err(BackendError::Failed { url: "u".into(), status: 500, body: "oops".into() })
}

fn answered() -> Output {
    Output {
        text: "x".into(),
        thoughts: None,
        tool_calls: vec![],
        output_tokens: 1,
        prompt_tokens: 1,
        end: End::Stop,
    }
}

#[test]
fn a_back_end_that_fails_thrice_is_left_alone_for_longer_and_longer() {
    let mut record = Record::default();
    assert_eq!(Health::Ready, record.health(0));
    record.note(&failed(), 0);
    record.note(&failed(), 0);
    assert!(matches!(record.health(4_999), Health::Degraded(_)));
    assert_eq!(Health::Ready, record.health(5_000), "it is tried again");
    assert!(record.allow(0).is_ok(), "runs that were claimed go on");
    record.note(&failed(), 0);
    assert!(matches!(record.health(4_999), Health::Down(_)));
    assert!(matches!(record.allow(4_999), Err(BackendError::Open { left_ms: 1, .. })));
    assert!(record.allow(5_000).is_ok());
    record.note(&failed(), 5_000);
    assert!(record.allow(14_999).is_err());
    assert!(record.allow(15_000).is_ok());
    assert_eq!(Health::Ready, record.health(15_000), "it is tried again");
    record.note(&Ok(()), 15_000);
    assert_eq!(Health::Ready, record.health(15_000));
}

#[test]
fn a_back_end_that_failed_is_tried_again_by_the_next_run_after_the_rest() {
    let mut record = Record::default();
    record.note(&failed(), 1_000);
    assert!(matches!(record.health(5_999), Health::Degraded(_)));
    assert_eq!(Health::Ready, record.health(6_000));
    record.note(&failed(), 7_000);
    assert!(matches!(record.health(11_999), Health::Degraded(_)));
    assert_eq!(Health::Ready, record.health(12_000));
    // The failures before count although nothing was asked for a day.
    let day_ms = 86_400_000;
    record.note(&failed(), day_ms);
    assert!(matches!(record.health(day_ms + 4_999), Health::Down(_)));
    assert_eq!(Health::Ready, record.health(day_ms + 5_000));
    record.note(&failed(), day_ms + 5_000);
    assert!(matches!(record.health(day_ms + 14_999), Health::Down(_)));
    assert_eq!(Health::Ready, record.health(day_ms + 15_000));
}

#[test]
fn what_is_not_the_back_ends_fault_is_not_counted() {
    let mut record = Record::default();
    for _ in 0..9 {
        record.note(&Err(BackendError::Cancelled), 0);
        let refused = BackendError::Refused { url: "u".into(), status: 400, body: "b".into() };
        record.note(&Err(refused), 0);
    }
    assert_eq!(Health::Ready, record.health(0));
}

#[test]
fn an_unfit_back_end_stays_down() {
    let mut record = Record::default();
    record.note(&Err(BackendError::NoUsage { url: "u".into(), field: "usage" }), 0);
    record.note(&Ok(()), 0);
    assert!(matches!(record.health(u64::MAX), Health::Down(_)));
}

/// Fails on everything, or on everything but what a question says.
#[derive(Debug)]
struct Failing(Manifest, AtomicU64, Option<&'static str>);

#[async_trait]
impl Backend for Failing {
    fn manifest(&self) -> &Manifest {
        &self.0
    }
    async fn health(&self) -> Health {
        Health::Ready
    }
    async fn fits(&self, _: &Iteration<'_>) -> Result<u64, BackendError> {
        Ok(1)
    }
    async fn infer(
        &self,
        iteration: &Iteration<'_>,
        _: &CancellationToken,
    ) -> Result<Output, BackendError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let asked = iteration.messages[0].text.as_str();
        if self.2.is_some_and(|hated| hated != asked) { Ok(answered()) } else { failed() }
    }
}

#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now_ms(&self) -> u64 {
        7
    }
}

fn failing(hated: Option<&'static str>) -> (Arc<Failing>, Guarded) {
    let manifest = Manifest {
        name: "f".into(),
        model: "f".into(),
        deterministic: false,
        context_tokens_max: 1,
        constrains: false,
    };
    let failing = Arc::new(Failing(manifest, AtomicU64::new(0), hated));
    let inner: Arc<dyn Backend> = failing.clone();
    (failing, Guarded::new(inner, Arc::new(Stopped)))
}

#[tokio::test]
async fn a_back_end_that_is_left_alone_is_not_asked() {
    let (failing, guarded) = failing(None);
    for _ in 0..5 {
        ask(&guarded, &[user("hello")], &[]).await.unwrap_err();
    }
    // Three questions, and after each the harmless one.
    assert_eq!(6, failing.1.load(Ordering::SeqCst));
    assert!(matches!(guarded.health().await, Health::Down(_)));
}

#[tokio::test]
async fn a_question_that_fails_alone_rests_the_back_end_for_nobody() {
    let (failing, guarded) = failing(Some("poison"));
    for _ in 0..9 {
        ask(&guarded, &[user("poison")], &[]).await.unwrap_err();
        assert_eq!(Health::Ready, guarded.health().await);
        ask(&guarded, &[user("hello")], &[]).await.unwrap();
    }
    assert_eq!(27, failing.1.load(Ordering::SeqCst));
}

#[test]
fn all_faults_of_a_back_ends_settings_are_told_at_once() {
    let mut config = Config::new(Interface::OpenAi, "localhost", " ");
    (config.attempts_max, config.context_tokens_max) = (0, 255);
    let expected = [
        "backend.context_tokens_max is 255; expected at least 256",
        "backend.attempts_max is 0; expected at least 1",
        "backend.model is empty; expected the name of a model",
        "backend.url is \"localhost\"; expected http://… or https://…",
    ];
    assert_eq!(expected.as_slice(), config.faults());
}
