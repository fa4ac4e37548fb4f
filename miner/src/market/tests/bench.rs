//! A miner of the market for tests: a fake chain, and an executor that does what the call says.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent::executor::{
    Agent, Context, Execute, Executed, Executors, Halt, Library, Scope, Stop, Task, Verdict, Work,
};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use types::call::{Answer, CallLimits, Outcome};
use types::ids::{Committer, compute_commitment, compute_result_hash};
use types::tx::{AgentCall, CallCommit, CallReveal};
use types::{Address, Body, Hash, Keypair, Usage};

use crate::chain::Calls as _;
use crate::chain::fake::market::{EXECUTOR, FakeCallWatch, MIN_BOND, PER_CALL, payload};
use crate::chain::fake::{FakeChain, FakeWatch, State};
use crate::engine::Engine;
use crate::engine::tests::support;
use crate::journal::Journal;
use crate::journal::call::{CallEntry, Said};
use crate::market::{
    AgentCache, Fitness, MarketConfig, MarketParts, OfferConfig, Receipts, assigned,
};
use crate::testing::comes;

const AGENT: &str = "echo";

pub(super) fn me() -> Address {
    support::key().address()
}

/// Another miner.
pub(super) fn helper(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

/// The agent that all calls are to.
pub(super) fn agent() -> Hash {
    types::ids::compute_agent_id(&crate::chain::fake::submitter().address(), AGENT)
}

pub(super) fn limits() -> CallLimits {
    let usage = Usage { input_tokens: 100, output_tokens: 100, fuel: 1_000_000_000 };
    CallLimits { usage, result_bytes: 1_024 }
}

pub(super) fn said() -> Said {
    let answer = Answer {
        outcome: Outcome::Success,
        result_hash: compute_result_hash(b"other"),
        usage: Usage::default(),
        receipt_hash: Hash::digest(b"receipt"),
    };
    Said {
        answer,
        result: "0x6f74686572".into(),
        reason: None,
        salt: Hash::digest(b"salt"),
        said_ms: 1,
    }
}

/// Does what the text of the call says.
#[derive(Debug, Default)]
pub(super) struct Echo {
    pub(super) runs: AtomicU64,
    now: AtomicU64,
    /// The most executions at once.
    pub(super) most: AtomicU64,
}

impl Execute for Echo {
    fn execute(&self, _: &Agent, payload: &[u8], scope: &mut Scope<'_>) -> Result<Verdict, Halt> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let together = || self.most.load(Ordering::SeqCst) >= 2;
        let outcome = obey(payload, scope, together);
        self.now.fetch_sub(1, Ordering::SeqCst);
        outcome
    }
}

/// `together` says whether two were executed at once.
fn obey(
    payload: &[u8],
    scope: &mut Scope<'_>,
    together: impl Fn() -> bool,
) -> Result<Verdict, Halt> {
    let says = |word: &[u8]| payload.windows(word.len()).any(|it| it == word);
    scope.burn(1_000)?;
    if says(b"panic") {
        panic!("as the call says");
    }
    if says(b"unable") {
        return Err(Halt::Unable("as the call says".into()));
    }
    if says(b"fail") {
        return Ok(Verdict::Failure("as the call says".into()));
    }
    while says(b"spin") {
        scope.stop().check()?;
        std::thread::yield_now();
    }
    while says(b"slow") && !together() {
        scope.stop().check()?;
        std::thread::yield_now();
    }
    Ok(Verdict::Success(payload.get(4..).unwrap_or_default().to_vec()))
}

fn executors(echo: &Arc<Echo>) -> Executors {
    let mut executors = Executors::default();
    executors.add(EXECUTOR, Arc::<Echo>::clone(echo));
    executors
}

fn metadata() -> Arc<Agent> {
    let text = crate::chain::fake::market::metadata(AGENT, &[]);
    Arc::new(Agent::read(agent(), text.as_bytes()).unwrap())
}

/// What every honest member of a call answers.
pub(super) fn honest(call: Hash, text: &str) -> Executed {
    let requester = crate::chain::fake::submitter().address();
    executors(&Arc::default()).run(&Task {
        context: Context { call_id: call, requester },
        agent: &metadata(),
        payload: &payload(text),
        limits: limits(),
        library: &Library::default(),
        stop: Stop::new(CancellationToken::new(), None),
    })
}

pub(super) fn work() -> Work {
    honest(Hash::ZERO, "hello").work.unwrap()
}

/// A member's commitment to an answer, with a salt that a test knows.
pub(super) fn commit(call_id: Hash, member: &Keypair, answer: &Answer) -> Body {
    let by = Committer { call_id, round: 0, member: member.address() };
    let commitment = compute_commitment(&by, &Hash::digest(b"salt"), answer);
    Body::CallCommit(CallCommit { call_id, round: 0, commitment })
}

/// What opens it.
pub(super) fn reveal(call_id: Hash, answer: &Answer, result: &[u8]) -> Body {
    let Usage { input_tokens, output_tokens, fuel } = answer.usage;
    Body::CallReveal(CallReveal {
        salt: Hash::digest(b"salt"),
        outcome: answer.outcome.as_str().to_owned(),
        input_tokens,
        output_tokens,
        fuel,
        receipt_hash: answer.receipt_hash,
        ..fixtures::reveal(call_id, result)
    })
}

/// An offer of so many executions at once.
pub(super) fn offer(capacity: u64) -> OfferConfig {
    OfferConfig {
        executor: EXECUTOR,
        capacity,
        per_call_micro: PER_CALL,
        prompt_per_m_micro: 0,
        completion_per_m_micro: 0,
        fuel_per_g_micro: 0,
    }
}

/// A miner and what it stands on.
pub(super) struct Bench {
    pub(super) chain: Arc<FakeChain>,
    pub(super) journal: Arc<Journal>,
    pub(super) executor: Arc<Echo>,
    pub(super) clock: Arc<AtomicU64>,
    fitness: Fitness,
    executors: Arc<Executors>,
    config: MarketConfig,
    folder: PathBuf,
    runs: support::Bench,
    _folder: Option<tempfile::TempDir>,
}

/// A chain with the agent, on which this miner has money.
pub(super) fn chain() -> FakeChain {
    let chain = FakeChain::new().with_v8();
    chain.add_agent(AGENT, &[]);
    chain.fund(me(), 10 * MIN_BOND);
    chain
}

impl Bench {
    pub(super) fn new() -> Self {
        let folder = support::folder();
        let bench = Self::at(folder.path(), chain());
        Self { _folder: Some(folder), ..bench }
    }

    /// With bond and offer on the chain.
    pub(super) fn with_miner() -> Self {
        let bench = Self::new();
        bench.chain.add_miner(&support::key());
        bench
    }

    pub(super) fn at(folder: &Path, chain: FakeChain) -> Self {
        let runs = support::Bench::at(folder, chain, None);
        let executor = Arc::default();
        let executors = Arc::new(executors(&executor));
        Self {
            chain: Arc::clone(&runs.chain),
            journal: Arc::clone(&runs.journal),
            fitness: Fitness::new(Arc::clone(&executors)),
            executors,
            executor,
            clock: Arc::clone(&runs.clock.0),
            config: MarketConfig { offers: vec![offer(4)], ..MarketConfig::default() },
            folder: folder.to_owned(),
            runs,
            _folder: None,
        }
    }

    pub(super) fn configure(&mut self, change: impl FnOnce(&mut MarketConfig)) {
        change(&mut self.config);
    }

    /// Other executors, of which none is tested.
    pub(super) fn execute_with(&mut self, executors: Executors) {
        self.executors = Arc::new(executors);
        self.fitness = Fitness::new(Arc::clone(&self.executors));
    }

    /// The model of the tests fails its test.
    pub(super) fn fail_test(&self) {
        self.fitness.fail(EXECUTOR, "another receipt");
    }

    pub(super) fn call(&self, text: &str, change: impl FnOnce(&mut AgentCall)) -> Hash {
        self.chain.add_call(agent(), text, change)
    }

    pub(super) fn receipts(&self) -> Receipts {
        Receipts::of(&self.folder)
    }

    pub(super) fn entry(&self, call: &Hash) -> CallEntry {
        self.journal.call(call, 0).unwrap().unwrap()
    }

    pub(super) fn outcome(&self, call: &Hash) -> Outcome {
        self.entry(call).said.unwrap().outcome()
    }

    /// Writes down that the miner was drawn, as if it had died then.
    pub(super) async fn take_on(&self, call: &Hash) {
        let view = self.chain.call(call).await.unwrap().unwrap();
        self.journal.put_call(&assigned(&view, 0, 1)).await.unwrap();
    }

    /// Runs the miner while something else happens, then stops it.
    pub(super) async fn during<F: Future>(&self, what: F) -> F::Output {
        let stop = CancellationToken::new();
        let engine = Engine::new(self.runs.parts(), stop.clone());
        let (_config, config) = watch::channel(Some(Arc::new(self.config.clone())));
        let parts = MarketParts {
            config,
            executors: Arc::clone(&self.executors),
            fitness: self.fitness.clone(),
            calls: self.chain.clone(),
            agents: Arc::new(AgentCache::new(self.chain.clone())),
            receipts: self.receipts(),
            resumed: Arc::new(Notify::new()),
        };
        let market = engine.market(parts);
        let (_runs, runs) = mpsc::channel(1);
        let (_calls, calls) = mpsc::channel(1);
        let working = tokio::spawn(engine.run(Box::new(FakeWatch(runs))));
        let serving = tokio::spawn(market.run(Box::new(FakeCallWatch(calls))));
        let output = what.await;
        stop.cancel();
        for task in [working, serving] {
            let ended = tokio::time::timeout(Duration::from_secs(10), task).await;
            ended.expect("it stops soon").unwrap().unwrap();
        }
        output
    }

    /// Waits until the journal has what it should have.
    async fn until_written(&self, holds: impl Fn() -> bool) {
        let came = comes(holds).await;
        assert!(came, "{:#?}", (self.journal.calls().unwrap(), self.sent()));
    }

    /// Waits until the journal has a call as it should be.
    pub(super) async fn until_journal(&self, holds: impl Fn(&CallEntry) -> bool) {
        self.until_written(|| self.journal.calls().unwrap().iter().any(&holds)).await;
    }

    /// Runs the miner until a call is over.
    pub(super) async fn serve(&self, call: &Hash) {
        self.serve_all(&[*call]).await;
    }

    /// Runs the miner until calls are over.
    pub(super) async fn serve_all(&self, calls: &[Hash]) {
        let is_over =
            |call: &Hash| self.journal.call(call, 0).unwrap().is_some_and(|entry| entry.is_over());
        self.during(self.until_written(|| calls.iter().all(is_over))).await;
    }

    /// Until the miner has looked at its offers twice: then it has done all that it wants to.
    pub(super) async fn tidied(&self) {
        let end = self.chain.state.lock().offers_read + 3;
        self.chain.until(|state| state.offers_read >= end).await;
    }

    /// The kinds of this wallet's transactions, in order.
    pub(super) fn sent(&self) -> Vec<&'static str> {
        self.runs.sent()
    }

    pub(super) fn sent_for_calls(&self) -> Vec<&'static str> {
        self.sent().into_iter().filter(|kind| kind.starts_with("CALL_")).collect()
    }
}

impl State {
    /// Whether a miner has an offer.
    pub(super) fn offers(&self, miner: &Address) -> bool {
        self.offers_of(miner) > 0
    }
}
