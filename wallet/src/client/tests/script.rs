//! A JSON-RPC server that says what a test tells it to say.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jsonrpsee::server::{RpcModule, Server, ServerHandle, SubscriptionMessage};
use jsonrpsee::types::{ErrorObjectOwned, Params};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use types::Hash;

use crate::Client;

/// Two events in each block: number `n` is in block `5 + n / 2`.
const FIRST_BLOCK: u64 = 5;
const EVENTS: u64 = 20;
/// A stream without `fromBlock` is lost before its first event.
const LIVE: u64 = 0;
const NEVER: u64 = u64::MAX;

type Reply = Result<Box<RawValue>, ErrorObjectOwned>;

#[derive(Debug)]
struct Lines {
    reply: Mutex<Reply>,
    received: Mutex<String>,
    lying: AtomicBool,
    refused_place: AtomicU64,
    sends: AtomicU64,
    /// The error that so many calls of `ombra_sendTransaction` and then of waiting get first.
    disturbances: Mutex<Vec<ErrorObjectOwned>>,
    waits: AtomicU64,
    included_at: AtomicU64,
    stream_length: AtomicU64,
    streams: AtomicU64,
}

/// The server; it stops when it is dropped.
pub(super) struct Script {
    url: String,
    lines: Arc<Lines>,
    _server: ServerHandle,
}

/// A JSON-RPC error.
pub(super) fn rejection(code: i32, message: &str, data: Value) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(code, message, Some(data))
}

impl Script {
    pub(super) async fn start() -> Self {
        let lines = Arc::new(Lines {
            reply: Mutex::new(Ok(raw(&json!({})))),
            received: Mutex::default(),
            lying: AtomicBool::new(false),
            refused_place: AtomicU64::new(NEVER),
            sends: AtomicU64::new(0),
            disturbances: Mutex::default(),
            waits: AtomicU64::new(0),
            included_at: AtomicU64::new(0),
            stream_length: AtomicU64::new(NEVER),
            streams: AtomicU64::new(0),
        });
        let server = Server::builder().build("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", server.local_addr().unwrap());
        let _server = server.start(module(Arc::clone(&lines)));
        Self { url, lines, _server }
    }

    pub(super) fn client(&self) -> Client {
        Client::new(&self.url).unwrap()
    }

    pub(super) fn answer_error(&self, object: ErrorObjectOwned) {
        *self.lines.reply.lock().unwrap() = Err(object);
    }

    pub(super) fn answer_text(&self, text: &str) {
        *self.lines.reply.lock().unwrap() = Ok(RawValue::from_string(text.into()).unwrap());
    }

    pub(super) fn received(&self) -> String {
        self.lines.received.lock().unwrap().clone()
    }

    pub(super) fn lie_about_hashes(&self) {
        self.lines.lying.store(true, Ordering::SeqCst);
    }

    /// The next calls of sending and waiting fail with these errors, the last one first.
    pub(super) fn disturb(&self, errors: Vec<ErrorObjectOwned>) {
        *self.lines.disturbances.lock().unwrap() = errors;
    }

    /// How often a transaction came in.
    pub(super) fn sends(&self) -> u64 {
        self.lines.sends.load(Ordering::SeqCst)
    }

    pub(super) fn refuse_place(&self, place: u64) {
        self.lines.refused_place.store(place, Ordering::SeqCst);
    }

    pub(super) fn include_at_call(&self, call: u64) {
        self.lines.included_at.store(call, Ordering::SeqCst);
    }

    /// Each stream ends by itself after so many events.
    pub(super) fn drop_streams_after(&self, events: u64) {
        self.lines.stream_length.store(events, Ordering::SeqCst);
    }

    pub(super) fn streams_opened(&self) -> u64 {
        self.lines.streams.load(Ordering::SeqCst)
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn module(lines: Arc<Lines>) -> RpcModule<Arc<Lines>> {
    let mut module = RpcModule::new(lines);
    module.register_method("scripted", |_, lines, _| lines.reply.lock().unwrap().clone()).unwrap();
    module
        .register_method("ombra_getBlocks", |params, lines, _| {
            *lines.received.lock().unwrap() = params.as_str().unwrap().to_owned();
            json!({"items": [], "nextCursor": null})
        })
        .unwrap();
    module
        .register_method("ombra_chainInfo", |_, _, _| {
            json!({"chainId": "test", "genesisHash": Hash::ZERO, "height": FIRST_BLOCK,
                "latestBlockHash": Hash::ZERO, "latestBlockTime": 0})
        })
        .unwrap();
    module
        .register_method("ombra_sendTransaction", |params, lines, _| {
            let hash = send(&params, lines);
            lines.disturbance().map_or(Ok(hash), Err)
        })
        .unwrap();
    module
        .register_method("ombra_sendTransactions", |params, lines, _| send_many(&params, lines))
        .unwrap();
    module
        .register_method("ombra_waitForTransaction", |_, lines, _| {
            lines.disturbance().map_or_else(|| Ok(wait(lines)), Err)
        })
        .unwrap();
    module
        .register_subscription(
            "ombra_subscribe",
            "ombra_subscription",
            "ombra_unsubscribe",
            |params, pending, lines, _| async move {
                let (kind, from) = wanted(&params);
                let is_of_pool = kind == "pool";
                if is_of_pool && from != LIVE {
                    pending.reject(rejection(-32602, "fromBlock: given", Value::Null)).await;
                    return Ok(());
                }
                let sink = pending.accept().await?;
                lines.streams.fetch_add(1, Ordering::SeqCst);
                let length = lines.stream_length.load(Ordering::SeqCst);
                let first = match from {
                    // The pool has no past: the stream begins with what happens now.
                    LIVE if is_of_pool && length != NEVER => 0,
                    LIVE => EVENTS,
                    block => block.saturating_sub(FIRST_BLOCK) * 2,
                };
                for number in (first..EVENTS).take(usize::try_from(length).unwrap()) {
                    let event = json!({"blockIndex": FIRST_BLOCK + number / 2, "number": number});
                    sink.send(SubscriptionMessage::from(raw(&event))).await?;
                }
                Err("this stream is over".into())
            },
        )
        .unwrap();
    module
}

/// What is subscribed to, and from which block.
fn wanted(params: &Params<'_>) -> (String, u64) {
    let (kind, filter): (String, Value) = params.parse().unwrap();
    (kind, filter["fromBlock"].as_u64().unwrap_or(LIVE))
}

impl Lines {
    fn disturbance(&self) -> Option<ErrorObjectOwned> {
        self.disturbances.lock().unwrap().pop()
    }
}

/// Reads the transaction as text, as the node must.
fn send(params: &Params<'_>, lines: &Lines) -> Value {
    let [tx]: [Box<RawValue>; 1] = params.parse().unwrap();
    *lines.received.lock().unwrap() = tx.get().to_owned();
    lines.sends.fetch_add(1, Ordering::SeqCst);
    let tx: Value = serde_json::from_str(tx.get()).unwrap();
    if lines.lying.load(Ordering::SeqCst) {
        return json!({"hash": Hash::ZERO});
    }
    json!({"hash": tx["hash"]})
}

fn send_many(params: &Params<'_>, lines: &Lines) -> Value {
    let [txs]: [Vec<Value>; 1] = params.parse().unwrap();
    let refused = lines.refused_place.load(Ordering::SeqCst);
    let outcome = |(place, tx): (usize, &Value)| {
        if u64::try_from(place).unwrap() == refused {
            let error = json!({"code": -32050, "message": "full", "data": {"code": "POOL_FULL"}});
            return json!({"error": error});
        }
        json!({"hash": tx["hash"]})
    };
    txs.iter().enumerate().map(outcome).collect()
}

fn wait(lines: &Lines) -> Value {
    let call = lines.waits.fetch_add(1, Ordering::SeqCst) + 1;
    if call < lines.included_at.load(Ordering::SeqCst) {
        return json!({"hash": Hash::ZERO, "status": "pending", "tx": {}});
    }
    json!({"hash": Hash::ZERO, "status": "included", "tx": {}, "blockIndex": 12})
}
