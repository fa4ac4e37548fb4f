//! What the attacks with blobs have in common: an attacker's texts, and the way they take.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};
use testkit::actor::{Actor, blob_chunk, blob_init};
use testkit::http::{self, Connection};
use testkit::net::Member;
use testkit::node::wait_for;
use types::tx::BlobInit;
use types::{Body, Keypair};

/// The bytes of every chunk but the last.
const CHUNK_BYTES: usize = 400_000;
/// So many texts go together.
const BATCH: usize = 50;
/// The most chunks of a blob by the default parameters: 16 MiB.
pub(super) const LARGE_CHUNKS: u64 = 42;

/// An attacker with an account and a connection.
pub(super) struct Attacker {
    pub(super) actor: Actor,
    node: SocketAddr,
    connection: Connection,
}

impl Attacker {
    pub(super) fn new(key: Keypair, node: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self { actor: Actor::new(key), node, connection: Connection::open(node)? })
    }

    /// An attacker who may have sent something before.
    pub(super) fn at(key: &Keypair, node: &Member) -> anyhow::Result<Self> {
        let mut attacker = Self::new(key.clone(), node.rpc)?;
        let address = attacker.actor.address().to_string();
        attacker.actor.nonce = http::account_nonce(&mut attacker.connection, &address)?;
        Ok(attacker)
    }

    /// Sends texts; answers how many were accepted.
    pub(super) fn send(&mut self, texts: &[String]) -> anyhow::Result<usize> {
        let mut accepted = 0;
        for batch in texts.chunks(BATCH) {
            let answer: Value = serde_json::from_str(&self.post(&http::send_body(batch))?)?;
            let each =
                answer.as_array().map_or_else(|| std::slice::from_ref(&answer), Vec::as_slice);
            accepted += each.iter().filter(|it| it.pointer("/result/hash").is_some()).count();
        }
        Ok(accepted)
    }

    /// Posts; a node that has closed the connection is asked on another one.
    pub(super) fn post(&mut self, body: &str) -> anyhow::Result<String> {
        if let Ok(answer) = self.connection.post(body) {
            return Ok(answer);
        }
        self.connection = Connection::open(self.node)?;
        self.connection.post(body).context("the attacked node does not answer")
    }
}

/// The announcement of a blob of so many chunks, of which the last has one byte.
pub(super) fn announce(id: &str, chunks: u64) -> anyhow::Result<Body> {
    let whole = u64::try_from(CHUNK_BYTES)?;
    let (total_bytes, total_chunks) = ((chunks - 1) * whole + 1, chunks);
    Ok(Body::BlobInit(BlobInit { total_bytes, total_chunks, ..blob_init(id, &[]) }))
}

/// One of its chunks.
pub(super) fn chunk(id: &str, index: u64, chunks: u64) -> Body {
    let bytes = if index + 1 == chunks { 1 } else { CHUNK_BYTES };
    blob_chunk(id, index, &vec![7; bytes])
}

/// A call that asks what a transaction would do.
pub(super) fn simulation(text: &str) -> String {
    let method = "ombra_simulateTransaction";
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{text}]}}"#)
}

/// Stores a blob of 16 MiB but for its last chunk; answers a question what that one would do.
pub(super) fn store_large(
    attacker: &mut Attacker,
    node: &Member,
    id: &str,
) -> anyhow::Result<String> {
    let init = attacker.actor.sign(&announce(id, LARGE_CHUNKS)?);
    attacker.send(&[init])?;
    let mut last = Value::Null;
    for index in 0..LARGE_CHUNKS - 1 {
        let text = attacker.actor.sign(&chunk(id, index, LARGE_CHUNKS));
        let answer: Value = serde_json::from_str(&attacker.post(&http::send_body(&[text]))?)?;
        last = answer.pointer("/result/hash").context("a chunk was refused")?.clone();
    }
    wait_for("the last chunk to be in a block", || {
        let seen = node.call("ombra_waitForTransaction", &json!([last, { "timeoutMs": 1_000 }]))?;
        Ok(seen.get("blockIndex").filter(|it| it.is_u64()).map(drop))
    })?;
    Ok(simulation(&attacker.actor.draft(&chunk(id, LARGE_CHUNKS - 1, LARGE_CHUNKS))))
}

/// What somebody asks, in turn and again and again, and until when.
#[derive(Clone, Copy)]
pub(super) struct Questions<'a> {
    pub(super) texts: &'a [String],
    /// After each answer.
    pub(super) pause: Duration,
    pub(super) end: Instant,
}

/// Asks questions; counts the answers.
pub(super) fn ask(
    mut asker: Attacker,
    questions: Questions<'_>,
    asked: &AtomicU64,
) -> anyhow::Result<()> {
    let Questions { texts, pause, end } = questions;
    for text in texts.iter().cycle().take_while(|_| Instant::now() < end) {
        asker.post(text)?;
        asked.fetch_add(1, Ordering::Relaxed);
        // The rate of the questions is the attack's.
        std::thread::sleep(pause);
    }
    Ok(())
}
