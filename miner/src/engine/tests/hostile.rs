//! What requesters, models and pages may do to a miner: a list, in `hostile.json`, and what holds for
//! each of its cases.
//!
//! The model is a real server that says what the case says, the tools are the real ones, and one page
//! may be fetched. In texts `«x*9»` is `x` nine times, `{page}` the page, `{port}` its port.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::backend::Backend;
use agent::backend::config::{Config, GoOn, Interface, ToolForm};
use agent::backend::openai::OpenAi;
use agent::messages::ToolCall;
use agent::tools::Grant;
use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use types::tx::AgentRequest;
use types::{Hash, RunStatus};

use super::support::{Bench, key};
use crate::adapters::{ToolRunner, Understanding};
use crate::chain::{ChainError, RunView, Runs};
use crate::engine::receipt::receipt;
use crate::ports::{ToolResult, Tools};
use crate::testing::toolbox;

/// Steps of each run.
const STEPS_MAX: u64 = 5;
/// Cases at a time; some wait.
const AT_ONCE: usize = 4;
/// How long a case may take on a machine that does other things.
const CASE_TIMEOUT: Duration = Duration::from_secs(60);
/// The most bytes of a result.
const RESULT_BYTES_MAX: usize = 16_384;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    prompt: String,
    /// The run's whitelist.
    #[serde(default)]
    tools: Vec<String>,
    /// What is at the page that may be fetched.
    #[serde(default)]
    page: String,
    /// What the model says, one after the other.
    outputs: Vec<Said>,
    /// How the run ends.
    ends: String,
    /// How the results of the calls begin.
    #[serde(default)]
    results: Vec<String>,
    /// How the results are judged.
    #[serde(default)]
    judged: Judged,
    /// The answer is in a blob.
    #[serde(default)]
    blob: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Judged {
    /// There are as many as are listed, and they begin like that.
    #[default]
    Listed,
    /// Whatever they say will do.
    Any,
    /// The one call is refused or malformed, and nobody was asked.
    Refused,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Said {
    text: String,
    calls: Vec<Called>,
    /// The whole body instead.
    raw: String,
    /// The same as bytes.
    hex: String,
    /// Again and again.
    forever: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    name: String,
    /// As the model writes them.
    arguments: String,
}

/// A text with its repetitions.
fn expanded(text: &str) -> String {
    let mut out = String::new();
    for part in text.split('«') {
        match part.split_once('»') {
            None => out.push_str(part),
            Some((inside, after)) => {
                let (what, times) = inside.rsplit_once('*').unwrap();
                out.push_str(&what.repeat(times.parse().unwrap()));
                out.push_str(after);
            }
        }
    }
    out
}

/// The model and the page.
#[derive(Debug, Default)]
struct World {
    outputs: Mutex<VecDeque<Said>>,
    page: Mutex<String>,
    fetched: Mutex<usize>,
    port: Mutex<u16>,
}

impl World {
    async fn start() -> Arc<Self> {
        let world = Arc::new(Self::default());
        let app = Router::new().fallback(serve).with_state(Arc::clone(&world));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        *world.port.lock() = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, app).await });
        world
    }

    fn filled(&self, text: &str) -> String {
        let port = self.port.lock().to_string();
        let text = text.replace("{page}", "http://127.0.0.1:{port}/page");
        expanded(&text.replace("{port}", &port))
    }

    fn next_output(&self) -> Vec<u8> {
        let mut outputs = self.outputs.lock();
        let said = match outputs.front() {
            Some(said) if said.forever => said.clone(),
            Some(_) => outputs.pop_front().unwrap(),
            None => Said { text: "nothing more".into(), ..Said::default() },
        };
        drop(outputs);
        if !said.hex.is_empty() {
            return const_hex::decode(&said.hex).unwrap();
        }
        if !said.raw.is_empty() {
            return expanded(&said.raw).into_bytes();
        }
        let call = |(index, call): (usize, &Called)| {
            let function = json!({
                "name": self.filled(&call.name), "arguments": self.filled(&call.arguments),
            });
            json!({ "index": index, "id": "x", "function": function })
        };
        let calls: Vec<Value> = said.calls.iter().enumerate().map(call).collect();
        let (mut delta, finish) = (json!({ "content": expanded(&said.text) }), "stop");
        if !calls.is_empty() {
            delta["tool_calls"] = json!(calls);
        }
        let usage = json!({ "completion_tokens": 3, "prompt_tokens": 500_000 });
        let parts = [
            json!({ "choices": [{ "delta": delta, "finish_reason": finish }] }),
            json!({ "choices": [], "usage": usage }),
        ];
        parts.iter().map(|part| format!("data: {part}\n\n")).collect::<String>().into_bytes()
    }
}

async fn serve(
    State(world): State<Arc<World>>,
    method: Method,
    uri: Uri,
    _body: Bytes,
) -> Response {
    if uri.path() == "/chat/completions" {
        return world.next_output().into_response();
    }
    if method == Method::GET && uri.path() == "/page" {
        *world.fetched.lock() += 1;
        let page = world.page.lock().clone();
        return ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], page).into_response();
    }
    "[]".into_response()
}

/// The real tools, and what was called.
#[derive(Debug)]
struct Watched {
    tool_runner: ToolRunner,
    called: Mutex<Vec<(String, ToolResult)>>,
}

#[async_trait]
impl Tools for Watched {
    async fn fetch(&self, run: &RunView) -> Result<(), ChainError> {
        self.tool_runner.fetch(run).await
    }

    fn missing(&self, grant: &Grant) -> Vec<String> {
        self.tool_runner.missing(grant)
    }

    fn offered(&self, grant: &Grant) -> Vec<String> {
        self.tool_runner.offered(grant)
    }

    fn is_idempotent(&self, grant: &Grant, name: &str) -> bool {
        self.tool_runner.is_idempotent(grant, name)
    }

    async fn call(&self, grant: &Grant, call: &ToolCall, stop: &CancellationToken) -> ToolResult {
        let result = self.tool_runner.call(grant, call, stop).await;
        self.called.lock().push((call.name.clone(), result.clone()));
        result
    }
}

async fn model(world: &World) -> Arc<dyn Backend> {
    let url = format!("http://127.0.0.1:{}", *world.port.lock());
    let config = Config {
        tool_form: ToolForm::Native,
        go_on: GoOn::Asked,
        tokenize: false,
        context_tokens_max: 2_000_000,
        ..Config::new(Interface::OpenAi, &url, "hostile")
    };
    Arc::new(OpenAi::connect(config, &CancellationToken::new()).await.unwrap())
}

/// Plays a case, and checks what holds for all of them.
async fn play(case: &Case) {
    let Case { name, prompt, tools, page, outputs, .. } = case;
    let world = World::start().await;
    *world.page.lock() = expanded(page);
    let mut bench = Bench::new();
    bench.backend = model(&world).await;
    world.outputs.lock().extend(outputs.iter().cloned());
    let settings = format!(
        "allow = ['math_eval', 'regex_match', 'date_parse', 'now', 'fetch_url']\n\
         [fetch]\nhosts_allow = ['127.0.0.1:{}']\nnetworks_allow = ['127.0.0.1/32']",
        *world.port.lock()
    );
    let toolbox = toolbox(&settings);
    let watched = Arc::new(Watched {
        tool_runner: ToolRunner::new(toolbox.clone(), None),
        called: Mutex::default(),
    });
    bench.tool_runner = watched.clone();
    bench.courses = Arc::new(Understanding::new(toolbox, bench.backend.manifest().clone()));
    let grant = |request: &mut AgentRequest| request.tools_whitelist.clone_from(tools);
    let run = bench.chain.add_run_with(&expanded(prompt), 100_000, STEPS_MAX, grant);

    let begun = Instant::now();
    let finished = tokio::time::timeout(CASE_TIMEOUT, bench.finish(1)).await;
    assert!(finished.is_ok(), "{name}: it does not end");
    assert!(begun.elapsed() < CASE_TIMEOUT, "{name}: {:?}", begun.elapsed());

    let view = bench.chain.run_of(&run);
    assert_eq!(Some(view.status), RunStatus::parse(&case.ends), "{name}");
    assert_eq!(Some(view.tokens), view.reward_micro, "{name}: what was done is paid");
    let called = watched.called.lock().clone();
    for (tool, result) in &called {
        assert!(tools.contains(tool), "{name}: {tool} is not granted");
        assert!(result.text.len() <= RESULT_BYTES_MAX, "{name}: {} bytes", result.text.len());
    }
    check_results(case, &called, *world.fetched.lock());
    check_texts(case, &bench, &run).await;
}

fn check_results(case: &Case, called: &[(String, ToolResult)], fetched: usize) {
    let Case { name, results, judged, .. } = case;
    let texts: Vec<&str> = called.iter().map(|(_, result)| result.text.as_str()).collect();
    match judged {
        Judged::Any => (),
        Judged::Refused => {
            let is_refused = |text: &str| text.starts_with("refused: ") || text.starts_with("bad_");
            assert!(texts.len() == 1 && is_refused(texts[0]), "{name}: {texts:?}");
            assert_eq!(0, fetched, "{name}: it was fetched");
        }
        Judged::Listed => {
            assert_eq!(results.len(), texts.len(), "{name}: {texts:?}");
            for (expected, text) in results.iter().zip(&texts) {
                assert!(text.starts_with(expected), "{name}: {:?}", types::text::shorten(text));
            }
        }
    }
}

/// Every step hashes to what the chain has, and nothing of the machine is in any text.
async fn check_texts(case: &Case, bench: &Bench, run: &Hash) {
    let name = &case.name;
    let receipt = receipt(&bench.journal, run).unwrap().unwrap();
    let steps = bench.chain.steps(run).await.unwrap();
    assert!(receipt.differences(&steps).is_empty(), "{name}");
    let state = bench.chain.state.lock();
    let answer = state.answer(run);
    assert_eq!(case.blob, answer.final_answer_blob_id.is_some(), "{name}");
    let mut told = serde_json::to_string(&receipt).unwrap();
    told.push_str(answer.final_answer_inline.as_deref().unwrap_or_default());
    let secrets = [
        const_hex::encode([9; 32]),
        key().public_key().to_string(),
        std::env::var("PATH").unwrap(),
        env!("CARGO_MANIFEST_DIR").to_owned(),
        "root:x:0:0".to_owned(),
    ];
    for secret in secrets {
        assert!(!told.contains(&secret), "{name}: it tells {secret}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_on_the_list_makes_a_miner_do_what_it_must_not() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("hostile.json")).unwrap();
    assert!(cases.len() >= 100, "{}", cases.len());
    let wanted = std::env::var("MINER_HOSTILE").unwrap_or_default();
    let wanted = cases.iter().filter(|case| case.name.contains(&wanted));
    futures::stream::iter(wanted).for_each_concurrent(AT_ONCE, play).await;
}
