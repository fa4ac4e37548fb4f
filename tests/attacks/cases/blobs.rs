//! What the attacks with blobs have in common: an attacker's texts, and the way they take.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use serde_json::Value;
use tests::actor::Actor;
use tests::http::{self, Connection};
use types::tx::{BlobChunk, BlobInit};
use types::{Body, Hash, Keypair};

/// The bytes of every chunk but the last.
const CHUNK_BYTES: usize = 400_000;
/// So many texts go together.
const BATCH: usize = 50;

/// Where honest users are: no attacker has this address.
pub(super) const USER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 99));

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

    /// Sends texts; answers how many were accepted.
    pub(super) fn send(&mut self, texts: &[String]) -> anyhow::Result<usize> {
        let mut accepted = 0;
        for batch in texts.chunks(BATCH) {
            let answer: Value = serde_json::from_str(&self.post(&http::send_body(batch))?)?;
            let each = match answer {
                Value::Array(each) => each,
                single @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_)) => vec![single],
            };
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
    Ok(Body::BlobInit(BlobInit {
        blob_id: id.to_owned(),
        content_type: "text/plain".to_owned(),
        total_bytes: (chunks - 1) * whole + 1,
        total_chunks: chunks,
        content_hash: Hash::ZERO,
    }))
}

/// One of its chunks.
pub(super) fn chunk(id: &str, index: u64, chunks: u64) -> Body {
    let bytes = if index + 1 == chunks { 1 } else { CHUNK_BYTES };
    Body::BlobChunk(BlobChunk {
        blob_id: id.to_owned(),
        chunk_index: index,
        chunk_data: vec![7; bytes],
    })
}

/// A call that asks what a transaction would do.
pub(super) fn simulation(text: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ombra_simulateTransaction\",\"params\":[{text}]}}"
    )
}
