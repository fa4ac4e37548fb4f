//! What this crate costs per submitted transaction: bytes from a socket to the port `Submit` and
//! answers back, without the chain's own checks.
//!
//! `./run cargo bench -p rpc --bench submit`. The server runs on a thread of its own, whose time on
//! the processor is what is printed, the kernel's work for its sockets included.

#![expect(clippy::unwrap_used, reason = "a benchmark ends at the first surprise")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(unreachable_pub, reason = "of the tests' world")]

#[path = "../tests/it/world.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod world;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use prometheus_client::registry::Registry;
use rpc::ports::{Ports, Submit, SubmitError};
use rpc::{Config, Limits};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use types::build::{self, Envelope};
use types::tx::{AgentStep, ToolCall};
use types::{Body, Hash};
use world::{FORKS, NOW, World, facts, key};

const TRANSACTIONS: usize = 50_000;

/// Takes everything and looks at nothing.
struct Sink;

#[async_trait]
impl Submit for Sink {
    async fn submit(&self, texts: Vec<Box<RawValue>>) -> Vec<Result<Hash, SubmitError>> {
        texts.iter().map(|_| Ok(Hash::ZERO)).collect()
    }
}

fn main() {
    let server = Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::new(FORKS);
    let ports = Ports { submit: Arc::new(Sink), ..world.ports() };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let limits = Limits::default();
    let config = Config { listen: any, metrics: false, limits, ..Config::default() };
    let (facts, stop) = (facts(FORKS), CancellationToken::new());
    let started =
        rpc::start(config, facts, ports, Registry::default(), None::<PathBuf>, stop.clone());
    let started = server.block_on(started).unwrap();
    let address = started.endpoints().rpc;
    let handle = server.handle().clone();
    let thread = std::thread::spawn(move || server.block_on(started.finished()));

    let tx = step();
    println!("transaction of {} bytes", tx.len());
    let client = Builder::new_current_thread().enable_all().build().unwrap();
    for (name, per_request, body) in [
        ("array of sendTransaction", 50, array(&tx, 50)),
        ("array of sendTransaction", 500, array(&tx, 500)),
        ("sendTransactions", 50, list(&tx, 50)),
        ("sendTransaction alone", 1, call(&tx, 1)),
    ] {
        let requests = (TRANSACTIONS / per_request).min(20_000);
        let before = busy_ns(&client, &handle);
        client.block_on(post(address, &body, requests));
        let busy = busy_ns(&client, &handle) - before;
        let per_tx = busy as f64 / 1_000.0 / (requests * per_request) as f64;
        println!("{name:>25} x {per_request:>3}: {per_tx:>6.2} µs per transaction");
    }
    stop.cancel();
    thread.join().unwrap().unwrap();
}

/// A step with one tool call: the most frequent transaction of a run.
fn step() -> String {
    let call = ToolCall { duration_ms: 345, ..fixtures::tool_call("web_search") };
    let step = fixtures::plain_step(Hash::digest(b"run"), 3, 200);
    let body = AgentStep { tool_calls: Some(vec![call]), ..step };
    let envelope = Envelope::new(7, NOW, None);
    build::build_tx(&key(1), &Body::AgentStep(body), &envelope)
}

fn call(tx: &str, id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ombra_sendTransaction","params":[{tx}]}}"#)
}

fn array(tx: &str, calls: usize) -> String {
    let calls: Vec<String> = (0..calls).map(|id| call(tx, id)).collect();
    format!("[{}]", calls.join(","))
}

fn list(tx: &str, txs: usize) -> String {
    let txs = vec![tx; txs].join(",");
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ombra_sendTransactions","params":[[{txs}]]}}"#)
}

/// Posts the body again and again on one connection.
async fn post(address: SocketAddr, body: &str, requests: usize) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let mut response = Vec::new();
    for _ in 0..requests {
        stream.write_all(request.as_bytes()).await.unwrap();
        response.clear();
        while !is_whole(&response) {
            assert!(stream.read_buf(&mut response).await.unwrap() > 0, "cut off");
        }
    }
    let text = String::from_utf8(response).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && !text.contains("error"), "{text}");
}

fn is_whole(response: &[u8]) -> bool {
    let text = std::str::from_utf8(response).unwrap_or_default();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_some_and(|length| body.len() >= length.parse().unwrap())
}

/// How long the server's thread has run.
fn busy_ns(client: &Runtime, server: &tokio::runtime::Handle) -> u64 {
    let read = server.spawn(async { std::fs::read_to_string("/proc/thread-self/schedstat") });
    let text = client.block_on(read).unwrap().unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}
