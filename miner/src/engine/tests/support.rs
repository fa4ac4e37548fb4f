//! A miner for tests: a fake chain, a model whose answers follow from the prompt, two tools.
//!
//! A prompt is made of words: `tools=2` wants two rounds of the tool `pure`, `once=1` adds the tool
//! `once` to the first, `think` has thoughts, `long=20000` is the length of the answer, `tokens=2000` has
//! so many tokens more, `stall` never answers, `tale=9` is an answer of nine tokens that is gone on with,
//! `shrink` counts ever fewer tokens of prompt, `garbled` first makes a call that cannot be read, `silent`
//! has no answer and no token.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use agent::backend::{Backend, BackendError, Health, Manifest};
use agent::clock::Clock;
use agent::messages::{Constraint, End, Iteration, Message, Output, Role, ToolCall, ToolSpec};
use agent::tools::Grant;
use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, json};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use types::{Hash, Keypair, RunStatus};
use wallet::ChainIdentity;

use crate::adapters::Understanding;
use crate::chain::fake::{FakeChain, FakeWatch};
use crate::chain::{ChainError, Notice, RunView};
use crate::engine::{Config, Engine, Parts};
use crate::journal::Journal;
use crate::journal::entry::Entry;
use crate::policy::{Decision, Policy};
use crate::ports::{AgentSession, Ask, Counters, Courses, Ending, Event, Move, ToolResult, Tools};
use crate::testing::{comes, toolbox};

pub(crate) fn key() -> Keypair {
    Keypair::from_seed(&[9; 32])
}

/// The number after `word=` in a prompt.
fn number(prompt: &str, word: &str) -> u64 {
    let value = prompt.split(' ').find_map(|part| part.strip_prefix(word)?.strip_prefix('='));
    value.map_or(0, |value| value.parse().unwrap())
}

/// A folder in memory where there is one: what these tests write need not outlive the machine.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[derive(Debug)]
pub(crate) struct TestClock(pub(crate) Arc<AtomicU64>);

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Offers these tools.
#[derive(Debug, Default)]
pub(crate) struct TestCourses(Arc<Mutex<Vec<ToolSpec>>>);

#[derive(Debug)]
struct TestCourse {
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    grant: Grant,
}

fn message(role: Role, text: &str) -> Message {
    Message { role, text: text.into(), tool_calls: vec![], tool_call_id: None }
}

impl Courses for TestCourses {
    fn begin(
        &self,
        run: &RunView,
        blob: Option<&str>,
        before: &[ToolSpec],
    ) -> Result<Box<dyn AgentSession>, String> {
        if run.prompt.contains("nonsense") {
            return Err("the request is nonsense".into());
        }
        let mut messages = vec![message(Role::User, &run.prompt)];
        messages.extend(blob.map(|text| message(Role::User, text)));
        let grant = Grant { tools: run.tools.iter().cloned().collect(), ..Grant::default() };
        let mut tools = self.0.lock().clone();
        let is_known = |name: &str| tools.iter().any(|tool| tool.name == name);
        let gone: Vec<_> = before.iter().filter(|it| !is_known(&it.name)).cloned().collect();
        tools.extend(gone);
        Ok(Box::new(TestCourse { messages, tools, grant }))
    }
}

impl AgentSession for TestCourse {
    fn grant(&self) -> Grant {
        self.grant.clone()
    }

    fn ask(&self) -> Ask<'_> {
        Ask {
            messages: &self.messages,
            tools: &self.tools,
            constraint: &Constraint::Free,
            thinks: false,
            so_far: "",
            stops: &[],
            output_tokens_left: None,
            unasked: None,
        }
    }

    fn take(&mut self, output: &Output) -> Move {
        let tool_calls = output.tool_calls.clone();
        self.messages.push(Message { tool_calls, ..message(Role::Assistant, &output.text) });
        match output.end {
            End::ToolCalls if output.tool_calls.is_empty() => {
                self.messages.push(message(Role::User, "that call cannot be read"));
                Move::Again
            }
            End::ToolCalls => Move::Tools(output.tool_calls.clone()),
            End::Length | End::CallCut => {
                Move::Finish(Ending::without_answer(RunStatus::Failed, "cut off"))
            }
            End::Stop => {
                let answer = Some(output.text.clone());
                Move::Finish(Ending { status: RunStatus::Completed, answer })
            }
        }
    }

    fn results(&mut self, results: &[ToolResult]) -> Move {
        for result in results {
            let tool_call_id = Some(result.call_id.clone());
            self.messages.push(Message { tool_call_id, ..message(Role::Tool, &result.text) });
        }
        Move::Again
    }

    fn reason(&self, why: &str) -> String {
        why.to_owned()
    }
}

/// The model.
#[derive(Debug)]
pub(crate) struct Model {
    manifest: Manifest,
    /// The next failures, the last one first.
    pub(crate) failures: Mutex<Vec<BackendError>>,
    pub(crate) health: Mutex<Health>,
    /// Prompts of more bytes have no room.
    pub(crate) room_bytes: AtomicUsize,
    pub(crate) asked: AtomicU64,
}

impl Model {
    fn new() -> Self {
        let manifest = Manifest {
            name: "scripted".into(),
            model: "tiny".into(),
            deterministic: true,
            context_tokens_max: 100_000,
            constrains: false,
        };
        let health = Mutex::new(Health::Ready);
        let (room_bytes, asked) = (AtomicUsize::new(usize::MAX), AtomicU64::new(0));
        Self { manifest, failures: Mutex::default(), health, room_bytes, asked }
    }
}

#[async_trait]
impl Backend for Model {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    async fn health(&self) -> Health {
        self.health.lock().clone()
    }

    async fn fits(&self, iteration: &Iteration<'_>) -> Result<u64, BackendError> {
        let bytes = iteration.messages[0].text.len();
        let tokens_min = u64::try_from(bytes).unwrap();
        let output_tokens = iteration.output_tokens_max;
        let room = self.room_bytes.load(Ordering::SeqCst);
        let context_tokens_max = u32::try_from(room).unwrap_or(u32::MAX);
        let too_long = BackendError::TooLong { tokens_min, output_tokens, context_tokens_max };
        if bytes > room { Err(too_long) } else { Ok(tokens_min / 4) }
    }

    async fn infer(
        &self,
        iteration: &Iteration<'_>,
        stop: &CancellationToken,
    ) -> Result<Output, BackendError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let failure = self.failures.lock().pop();
        if let Some(failure) = failure {
            return Err(failure);
        }
        let prompt = iteration.messages[0].text.as_str();
        let said = iteration.messages.iter().filter(|it| it.role == Role::Assistant).count();
        let round = u64::try_from(said).unwrap();
        if prompt.contains("stall") {
            stop.cancelled().await;
            return Err(BackendError::Cancelled);
        }
        if prompt.contains("silent") {
            return Ok(silence());
        }
        if number(prompt, "tale") > 0 {
            return Ok(tale(number(prompt, "tale"), iteration));
        }
        Ok(answer(prompt, round, iteration))
    }
}

/// A model that ends its answer at once.
fn silence() -> Output {
    let (text, tool_calls) = (String::new(), Vec::new());
    Output { text, thoughts: None, tool_calls, output_tokens: 0, prompt_tokens: 10, end: End::Stop }
}

/// A tale of so many words, each a token, from where it was cut off.
fn tale(words: u64, iteration: &Iteration<'_>) -> Output {
    let told = iteration.so_far.split_whitespace().count();
    let most = usize::try_from(iteration.output_tokens_max).unwrap();
    let all = (0..usize::try_from(words).unwrap()).skip(told);
    let said: Vec<String> = all.take(most).map(|word| format!("w{word} ")).collect();
    let is_over = told + said.len() == usize::try_from(words).unwrap();
    let prompt_tokens = u32::try_from(20 + told).unwrap();
    let output_tokens = u32::try_from(said.len()).unwrap();
    let (thoughts, tool_calls) = (None, vec![]);
    let end = if is_over { End::Stop } else { End::Length };
    Output { text: said.concat(), thoughts, tool_calls, output_tokens, prompt_tokens, end }
}

fn answer(prompt: &str, round: u64, iteration: &Iteration<'_>) -> Output {
    let call = |name: &str| {
        let arguments = Map::from_iter([("round".to_owned(), json!(round))]);
        ToolCall { id: format!("{name}{round}"), name: name.into(), arguments }
    };
    let is_garbled = prompt.contains("garbled") && round == 0;
    let mut tool_calls = Vec::new();
    if round < number(prompt, "tools") {
        tool_calls.push(call("pure"));
        if round < number(prompt, "once") {
            tool_calls.push(call("once"));
        }
    }
    let wants_tools = is_garbled || !tool_calls.is_empty();
    let long = usize::try_from(number(prompt, "long")).unwrap();
    let text =
        if wants_tools { format!("round {round}") } else { format!("done{}", "!".repeat(long)) };
    let wanted = 10 + u32::try_from(round + number(prompt, "tokens")).unwrap();
    let output_tokens = wanted.min(iteration.output_tokens_max);
    let grown = 10 * u32::try_from(iteration.messages.len()).unwrap();
    let end = match (output_tokens < wanted, wants_tools) {
        (true, _) => End::Length,
        (false, true) => End::ToolCalls,
        (false, false) => End::Stop,
    };
    Output {
        text,
        thoughts: prompt.contains("think").then(|| format!("thought {round}")),
        tool_calls: if end == End::ToolCalls { tool_calls } else { vec![] },
        output_tokens,
        prompt_tokens: if prompt.contains("shrink") { 10_000 - 10 * grown } else { grown },
        end,
    }
}

/// The tools `pure` and `once`, whose effects are written down, in a file if there is one.
#[derive(Debug, Default)]
pub(crate) struct TestTools {
    pub(crate) calls: Mutex<Vec<String>>,
    pub(crate) missing: Mutex<Vec<String>>,
    /// What every run is offered, as far as the policy is told.
    pub(crate) offered: Mutex<Vec<String>>,
    /// How often it was asked what is missing.
    pub(crate) looked: AtomicU64,
    file: Option<PathBuf>,
}

impl TestTools {
    /// Waits until it was asked so often what is missing.
    pub(crate) async fn asked_for_missing(&self, times: u64) {
        let end = self.looked.load(Ordering::SeqCst) + times;
        assert!(comes(|| self.looked.load(Ordering::SeqCst) >= end).await);
    }
}

#[async_trait]
impl Tools for TestTools {
    async fn fetch(&self, _: &RunView) -> Result<(), ChainError> {
        Ok(())
    }

    fn missing(&self, _: &Grant) -> Vec<String> {
        self.looked.fetch_add(1, Ordering::SeqCst);
        self.missing.lock().clone()
    }

    fn offered(&self, _: &Grant) -> Vec<String> {
        self.offered.lock().clone()
    }

    fn is_idempotent(&self, _: &Grant, name: &str) -> bool {
        name == "pure"
    }

    async fn call(&self, _: &Grant, call: &ToolCall, _: &CancellationToken) -> ToolResult {
        crate::testing::crash_point();
        self.calls.lock().push(call.id.clone());
        if let Some(path) = &self.file {
            let mut file =
                std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(format!("{}\n", call.id).as_bytes()).unwrap();
        }
        crate::testing::crash_point();
        let text = format!("result of {}", call.id);
        ToolResult { call_id: call.id.clone(), ok: true, text, duration_ms: 5, tokens: 0 }
    }
}

/// Counts, and tells who waits for them.
#[derive(Debug, Default)]
pub(crate) struct TestCounters {
    pub(crate) events: Mutex<Vec<Event>>,
    moved: Notify,
}

impl Counters for TestCounters {
    fn count(&self, event: Event) {
        self.events.lock().push(event);
        self.moved.notify_waiters();
    }
}

impl TestCounters {
    pub(crate) async fn until(&self, holds: impl Fn(&[Event]) -> bool) {
        let wait = async {
            loop {
                let moved = self.moved.notified();
                tokio::pin!(moved);
                moved.as_mut().enable();
                if holds(&self.events.lock()) {
                    return;
                }
                moved.await;
            }
        };
        let outcome = tokio::time::timeout(Duration::from_secs(60), wait).await;
        assert!(outcome.is_ok(), "it did not come to that: {:#?}", self.events.lock());
    }

    /// Waits until it was decided so about a run.
    pub(crate) async fn until_decided(&self, code: &'static str) {
        self.until(|events| events.contains(&Event::Decided(code))).await;
    }

    pub(crate) async fn until_finished(&self, runs: usize) {
        let finished = |event: &&Event| matches!(event, Event::Finished { .. });
        self.until(|events| events.iter().filter(finished).count() >= runs).await;
    }
}

/// A miner and what it stands on.
pub(crate) struct Bench {
    pub(crate) chain: Arc<FakeChain>,
    pub(crate) model: Arc<Model>,
    pub(crate) tools: Arc<TestTools>,
    pub(crate) courses: Arc<dyn Courses>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) tool_runner: Arc<dyn Tools>,
    /// What models are offered.
    pub(crate) offer: Arc<Mutex<Vec<ToolSpec>>>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) counters: Arc<TestCounters>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) policy: watch::Sender<Arc<Policy>>,
    pub(crate) config: Config,
    _folder: Option<tempfile::TempDir>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = folder();
        let bench = Self::at(folder.path(), FakeChain::new(), None);
        Self { _folder: Some(folder), ..bench }
    }

    /// With courses by the rules of docs/agent-methods.md.
    pub(crate) fn understanding() -> Self {
        let mut bench = Self::new();
        let manifest = bench.model.manifest().clone();
        bench.courses = Arc::new(Understanding::new(toolbox(""), manifest));
        bench
    }

    /// With the journal in a folder.
    pub(crate) fn at(folder: &Path, chain: FakeChain, calls: Option<PathBuf>) -> Self {
        let owner = ChainIdentity { chain_id: "test".into(), genesis_hash: Hash::ZERO };
        let journal = Journal::open(&folder.join("journal"), key().address(), &owner).unwrap();
        let policy = Policy {
            claim_jitter_ms: 0,
            min_max_fee_micro: 100,
            min_margin_micro: -9_999,
            runs_max: 4,
            ..Policy::default()
        };
        let offer = Arc::default();
        let model = Arc::new(Model::new());
        let tools = Arc::new(TestTools { file: calls, ..TestTools::default() });
        Self {
            chain: Arc::new(chain),
            backend: model.clone(),
            model,
            tool_runner: tools.clone(),
            tools,
            courses: Arc::new(TestCourses(Arc::clone(&offer))),
            offer,
            clock: Arc::new(TestClock(Arc::new(AtomicU64::new(1_000_000)))),
            counters: Arc::default(),
            journal: Arc::new(journal),
            policy: watch::Sender::new(Arc::new(policy)),
            config: Config { poll_ms: 20, pause_ms: 1, ..Config::default() },
            _folder: None,
        }
    }

    pub(crate) fn change_policy(&self, change: impl FnOnce(&mut Policy)) {
        self.policy.send_modify(|policy| change(Arc::make_mut(policy)));
    }

    pub(crate) fn parts(&self) -> Parts {
        Parts {
            config: self.config.clone(),
            key: key(),
            policy: self.policy.subscribe(),
            clock: self.clock.clone(),
            runs: self.chain.clone(),
            ledger: self.chain.clone(),
            courses: self.courses.clone(),
            tools: self.tool_runner.clone(),
            backend: self.backend.clone(),
            journal: self.journal.clone(),
            counters: self.counters.clone(),
        }
    }

    /// Runs the miner while something else happens, then stops it.
    pub(crate) async fn during<F: Future>(&self, what: F) -> F::Output {
        let (_notices, receiver) = mpsc::channel(1);
        self.during_with(receiver, what).await
    }

    /// The same with notices.
    pub(crate) async fn during_with<F: Future>(
        &self,
        notices: mpsc::Receiver<Notice>,
        what: F,
    ) -> F::Output {
        let stop = CancellationToken::new();
        let engine = Engine::new(self.parts(), stop.clone());
        let task = tokio::spawn(engine.run(Box::new(FakeWatch(notices))));
        let output = what.await;
        stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(10), task).await;
        ended.expect("the engine stops soon").unwrap().unwrap();
        output
    }

    /// Runs the miner until so many runs are settled.
    pub(crate) async fn finish(&self, runs: usize) {
        self.during(self.counters.until_finished(runs)).await;
    }

    /// Runs the miner until this is decided about a run.
    pub(crate) async fn until_decided(&self, code: &'static str) {
        self.during(self.counters.until_decided(code)).await;
    }

    /// Runs the miner until its first run, which somebody asks for now, is settled.
    pub(crate) async fn settle(&self, prompt: &str, escrow: u64, steps_max: u64) -> RunView {
        let run = self.chain.add_run(prompt, escrow, steps_max);
        self.finish(1).await;
        self.chain.run_of(&run)
    }

    /// From now on the chain makes blocks by itself, beginning with one now.
    pub(crate) fn make_blocks_again(&self) {
        self.chain.state.lock().is_halted = false;
        self.chain.make_block();
    }

    pub(crate) fn status(&self, run: &Hash) -> RunStatus {
        self.chain.run_of(run).status
    }

    /// The answer of a run that is over, if it is not in a blob.
    pub(crate) fn answer(&self, run: &Hash) -> Option<String> {
        self.chain.state.lock().answer(run).final_answer_inline
    }

    /// What was decided first about a run.
    pub(crate) fn decision(&self, run: &Hash) -> Decision {
        self.journal.why(run).unwrap().decisions[0].decision.clone()
    }

    pub(crate) fn entry(&self, run: &Hash) -> Entry {
        self.journal.entry(run).unwrap().unwrap()
    }

    /// The nonces of this wallet's transactions, in the order of the blocks.
    pub(crate) fn nonces(&self) -> Vec<u64> {
        let me = key().address();
        let state = self.chain.state.lock();
        state.log().filter(|(from, _, _)| *from == me).map(|(_, _, nonce)| nonce).collect()
    }

    /// Checks that no nonce is left out, and that none is there twice.
    pub(crate) fn check_nonces(&self) {
        let nonces = self.nonces();
        assert_eq!((0..u64::try_from(nonces.len()).unwrap()).collect::<Vec<_>>(), nonces);
    }

    /// When this wallet's transactions say that they were signed.
    pub(crate) fn signed_ms(&self) -> Vec<u64> {
        self.chain.state.lock().signed_ms(&key().address())
    }

    /// The kinds of this wallet's transactions, in order.
    pub(crate) fn sent(&self) -> Vec<&'static str> {
        let me = key().address();
        let state = self.chain.state.lock();
        let mine = state.log().filter(|(from, _, _)| *from == me);
        let short = |kind: &'static str| kind.strip_prefix("AGENT_").unwrap_or(kind);
        mine.map(|(_, kind, _)| short(kind)).collect()
    }
}
