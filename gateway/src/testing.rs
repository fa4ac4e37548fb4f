//! What the tests of this crate share: a clock, somebody who counts, a node, and requests with their
//! records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent::clock::Clock;
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use types::Hash;

use crate::keys::{Key, KeyId, hash_of};
use crate::operate::{Counters, Event};
use crate::record::{Bill, Delivery, Phase, Record, RequestId, Work};
use crate::store::NewRequest;

/// What the clock says when a test begins.
pub(crate) const NOW_MS: u64 = 1_800_000_000_000;

/// A clock that tests set.
#[derive(Debug)]
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(NOW_MS)))
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Everything that was counted.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<Vec<Event>>);

impl Counters for Told {
    fn count(&self, event: Event) {
        self.0.lock().push(event);
    }
}

impl Told {
    /// What was counted since this was asked last.
    pub(crate) fn news(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// What is waited for happens within this time, or not at all.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A node that answers what a test tells it to. Whoever calls another method waits until the test says what
/// it answers.
#[derive(Debug)]
pub(crate) struct FakeNode {
    url: String,
    /// The answers by their methods.
    answers: watch::Sender<BTreeMap<&'static str, Value>>,
    /// The methods that were called.
    asked: watch::Sender<Vec<String>>,
}

impl FakeNode {
    pub(crate) async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (answers, asked) = (watch::Sender::default(), watch::Sender::default());
        let node = Arc::new(Self { url, answers, asked });
        let routes = Router::new().route("/", post(answered)).with_state(Arc::clone(&node));
        tokio::spawn(axum::serve(listener, routes).into_future());
        node
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// From now on the method has this result.
    pub(crate) fn answers(&self, method: &'static str, result: Value) {
        let answer = json!({ "result": result });
        self.answers.send_modify(|it| drop(it.insert(method, answer)));
    }

    /// From now on the method has this error of docs/rpc.md, with this code in its data.
    pub(crate) fn refuses(&self, method: &'static str, number: i32, code: &str) {
        let data = json!({ "code": code });
        let answer = json!({ "error": { "code": number, "message": code, "data": data } });
        self.answers.send_modify(|it| drop(it.insert(method, answer)));
    }

    /// How often the method was called.
    pub(crate) fn times(&self, method: &str) -> usize {
        self.asked.borrow().iter().filter(|it| *it == method).count()
    }

    /// Waits until the method is called, or was called before.
    pub(crate) async fn is_asked(&self, method: &str) {
        let mut asked = self.asked.subscribe();
        let is_asked = asked.wait_for(|all| all.iter().any(|it| it == method));
        drop(tokio::time::timeout(SOON, is_asked).await.expect("the node is asked"));
    }
}

async fn answered(State(node): State<Arc<FakeNode>>, Json(call): Json<Value>) -> Json<Value> {
    let method = call["method"].as_str().unwrap_or_default().to_owned();
    node.asked.send_modify(|all| all.push(method.clone()));
    let mut answers = node.answers.subscribe();
    let mut answer = {
        let known = answers.wait_for(|it| it.contains_key(&*method)).await.unwrap();
        known.get(&*method).cloned().unwrap_or_default()
    };
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = call["id"].clone();
    Json(answer)
}

/// A request for a run that may cost so much.
pub(crate) fn wants(key: &Key, body: &str, micro: u64) -> NewRequest {
    NewRequest {
        key: key.clone(),
        body: hash_of(body),
        name: None,
        is_retry: false,
        model: "ombra".to_owned(),
        work: Work::Run,
        max_fee_micro: micro - 10,
        micro,
        balance_micro: 1_000_000,
    }
}

/// What is written down of a request for a run, of which nothing is in a block.
pub(crate) fn record(phase: Phase) -> Record {
    Record {
        id: RequestId(1),
        key: KeyId(1),
        body: Hash::ZERO,
        name: None,
        created_ms: 5,
        model: "ombra".to_owned(),
        work: Work::Run,
        max_fee_micro: 1_000,
        reserved_micro: 1_100,
        phase,
        included: Vec::new(),
        delivery: Delivery::Waiting,
    }
}

/// What an answered run cost.
pub(crate) fn bill(run: Hash) -> Bill {
    Bill {
        run,
        status: "completed".to_owned(),
        reward_micro: 20,
        network_fee_micro: 100,
        fees_micro: 30,
        settlement_tx: None,
        block: None,
    }
}
