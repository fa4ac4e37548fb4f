//! Subscribers that do not read: what they miss they are told, what they hold up is nobody, and the
//! node keeps nothing for them.

use std::thread::JoinHandle;

use serde_json::{Value, json};
use testkit::actor::{Actor, blob_chunk, blob_init, transfer};
use testkit::http::Connection;
use testkit::node::{DevOptions, Node, wait_for};
use testkit::parallel::joined;
use testkit::websocket::WebSocket;
use testkit::workload::key;
use types::params::BLOB_CHUNK_BYTES;
use types::tx::BlobInit;

use crate::support::include;

/// Chunks of a blob: more than the system buffers for one connection that nobody reads from.
const CHUNKS: u64 = 40;
/// A chunk in base64.
const EVENT_BYTES: u64 = BLOB_CHUNK_BYTES * 4 / 3;
const LAG_BLOCKS_MAX: u64 = 5;
const POOL_EVENTS_MAX: u64 = 16;

/// A reader in a thread of its own, and the hashes that it saw.
type Reading = JoinHandle<anyhow::Result<Vec<String>>>;

struct Scene {
    node: Node,
    connection: Connection,
    sender: Actor,
}

impl Scene {
    fn start(settings: &[(&'static str, u64)]) -> anyhow::Result<Self> {
        let few = [("OMBRA__RPC__LIMITS__WEBSOCKET_QUEUE_MAX", 4)];
        let settings = settings.iter().chain(&few);
        let settings = settings.map(|(name, value)| (*name, value.to_string())).collect();
        let node = Node::start(DevOptions { settings, ..DevOptions::from_environment() })?;
        let connection = Connection::open(node.rpc)?;
        let sender = Actor::new(key(0)?);
        Ok(Self { node, connection, sender })
    }

    fn subscribe(&self, kind: &str) -> anyhow::Result<WebSocket> {
        let mut socket = WebSocket::open(self.node.rpc)?;
        socket.subscribe(kind, &json!({}))?;
        Ok(socket)
    }

    /// A quick reader of so many transactions.
    fn follow(&self, count: u64) -> anyhow::Result<Reading> {
        let mut socket = self.subscribe("transactions")?;
        let count = usize::try_from(count)?;
        Ok(std::thread::spawn(move || read(&mut socket, count)))
    }

    /// Puts a large blob into the chain; answers the hashes of all transactions in order.
    fn upload(&mut self, id: &str) -> anyhow::Result<Vec<String>> {
        let total_bytes = CHUNKS * BLOB_CHUNK_BYTES;
        let init = BlobInit { total_bytes, total_chunks: CHUNKS, ..blob_init(id, b"") };
        let init = self.sender.sign(&init.into());
        let mut hashes = include(&mut self.connection, &[init])?;
        let bytes = vec![b'x'; usize::try_from(BLOB_CHUNK_BYTES)?];
        for at in 0..CHUNKS / 4 {
            let chunks = (at * 4..at * 4 + 4).map(|index| blob_chunk(id, index, &bytes));
            let texts: Vec<String> = chunks.map(|chunk| self.sender.sign(&chunk)).collect();
            hashes.extend(include(&mut self.connection, &texts)?);
        }
        Ok(hashes)
    }

    /// So many blocks with one small transaction each.
    fn blocks(&mut self, count: u64) -> anyhow::Result<Vec<String>> {
        let mut hashes = Vec::new();
        for _ in 0..count {
            let text = self.sender.sign(&transfer(self.sender.address(), 1));
            hashes.extend(include(&mut self.connection, &[text])?);
        }
        Ok(hashes)
    }
}

/// What a notification brings: an event, or why the subscription ends.
fn event(message: &Value) -> Result<&Value, &Value> {
    let params = &message["params"];
    params.get("result").ok_or_else(|| &params["error"])
}

fn all_of(reading: Reading) -> anyhow::Result<Vec<String>> {
    joined(reading.join(), "the reader")
}

fn hash_of(event: &Value) -> String {
    event["hash"].as_str().unwrap_or_else(|| panic!("no hash: {event}")).to_owned()
}

/// Reads events until there are as many as `count`; answers their hashes.
fn read(socket: &mut WebSocket, count: usize) -> anyhow::Result<Vec<String>> {
    let mut hashes = Vec::new();
    while hashes.len() < count {
        let message = socket.next()?.expect("an open socket");
        hashes.push(hash_of(event(&message).unwrap_or_else(|e| panic!("closed: {e}"))));
    }
    Ok(hashes)
}

#[test]
fn a_slow_reader_is_told_where_to_go_on_and_holds_nothing_and_nobody_up() -> anyhow::Result<()> {
    const SLOW: usize = 16;
    let mut scene = Scene::start(&[
        ("OMBRA__RPC__LIMITS__SUBSCRIPTION_LAG_BLOCKS_MAX", LAG_BLOCKS_MAX),
        ("OMBRA__RPC__LIMITS__WRITE_TIMEOUT_MS", 600_000),
    ])?;
    // What the chain itself costs, with one who listens.
    let quick = scene.follow(3 * (1 + CHUNKS))?;
    let mut sent = Vec::new();
    for id in ["one", "two", "three"] {
        sent.extend(scene.upload(id)?);
    }
    assert_eq!(sent, all_of(quick)?);
    let before_kb = scene.node.peak_rss_kb()?;

    let mut slow: Vec<WebSocket> =
        (0..SLOW).map(|_| scene.subscribe("transactions")).collect::<Result<_, _>>()?;
    let quick = scene.follow(2 * (1 + CHUNKS) + 2 * LAG_BLOCKS_MAX)?;
    let mut sent = scene.upload("four")?;
    sent.extend(scene.upload("five")?);
    sent.extend(scene.blocks(2 * LAG_BLOCKS_MAX)?);
    assert_eq!(sent, all_of(quick)?, "who reads is told everything");

    let unread_kb = u64::try_from(SLOW)? * 2 * CHUNKS * EVENT_BYTES / 1024;
    let grown_kb = scene.node.peak_rss_kb()?.saturating_sub(before_kb);
    // Kept for each, it would be nearly all of it; the chain itself grows by a part.
    assert!(grown_kb < unread_kb / 2, "{grown_kb} KB more, {unread_kb} KB unread");

    let mut late = slow.remove(0);
    let mut seen = Vec::new();
    let error = loop {
        let message = late.next()?.expect("an open socket");
        match event(&message) {
            Ok(event) => seen.push(hash_of(event)),
            Err(error) => break error.clone(),
        }
    };
    assert_eq!(json!([-32053, "TOO_SLOW"]), json!([error["code"], error["data"]["code"]]));
    assert!(seen.len() < sent.len() && sent.starts_with(&seen), "{seen:?}");
    let message = error["message"].as_str().expect("a message");
    let from: u64 = message.rsplit('=').next().expect("never empty").parse()?;
    late.subscribe("transactions", &json!({ "fromBlock": from }))?;
    seen.extend(read(&mut late, sent.len() - seen.len())?);
    assert_eq!(sent, seen, "no gap and nothing twice");
    scene.node.stop()
}

#[test]
fn who_takes_nothing_for_too_long_loses_the_connection() -> anyhow::Result<()> {
    let mut scene = Scene::start(&[
        ("OMBRA__RPC__LIMITS__WRITE_TIMEOUT_MS", 300),
        ("OMBRA__RPC__LIMITS__WEBSOCKETS_MAX", 1),
    ])?;
    let mut stuck = scene.subscribe("transactions")?;
    let refused = scene.subscribe("transactions").expect_err("there is one place");
    assert!(refused.to_string().contains(" 429 "), "{refused:#}");
    let sent = scene.upload("blob")?;
    let mut next = wait_for("the place to be free", || Ok(scene.subscribe("transactions").ok()))?;
    let mut seen = 0;
    while let Some(message) = stuck.next()? {
        assert!(event(&message).is_ok(), "{message}");
        seen += 1;
    }
    assert!(seen < sent.len(), "{seen} events were taken");
    let more = scene.blocks(1)?;
    assert_eq!(more, read(&mut next, 1)?);
    scene.node.stop()
}

#[test]
fn a_slow_reader_of_the_pool_is_told_how_many_events_it_lost() -> anyhow::Result<()> {
    let mut scene = Scene::start(&[("OMBRA__RPC__LIMITS__POOL_EVENTS_MAX", POOL_EVENTS_MAX)])?;
    let mut slow = scene.subscribe("pool")?;
    let mut sent = scene.upload("blob")?;
    sent.extend(scene.upload("again")?);

    let (mut seen, mut lost) = (Vec::new(), 0);
    while seen.len() + lost < sent.len() {
        let message = slow.next()?.expect("an open socket");
        let event = event(&message).unwrap_or_else(|e| panic!("closed: {e}"));
        match event["lagged"].as_u64() {
            Some(count) => lost += usize::try_from(count)?,
            None => {
                assert_eq!("accepted", event["event"]);
                assert_eq!(sent[seen.len() + lost], hash_of(event));
                seen.push(hash_of(event));
            }
        }
    }
    assert!(lost > 0, "nothing was lost");
    scene.node.stop()
}
