//! Server-sent events, and the limits on what clients may have open and ask.

use std::time::{Duration, Instant};

use rpc::{Config, Limits, RateLimits};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{PATIENCE, TestServer, eventually, transfer, turn};

/// An open stream of events.
pub struct Stream {
    socket: TcpStream,
    text: String,
}

impl Stream {
    pub async fn open(server: &TestServer, path: &str, header: &str) -> Self {
        Self::open_over(server.connect().await, path, header).await
    }

    pub async fn open_over(mut socket: TcpStream, path: &str, header: &str) -> Self {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{header}\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut stream = Self { socket, text: String::new() };
        let head = stream.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("text/event-stream"), "{head}");
        stream
    }

    /// The text up to and with `end`.
    pub async fn until(&mut self, end: &str) -> String {
        // Large events come in many pieces: what was looked through has no end.
        let mut looked_at = 0;
        loop {
            if let Some(at) = self.text[looked_at..].find(end) {
                return self.text.drain(..looked_at + at + end.len()).collect();
            }
            looked_at = self.text.len().saturating_sub(end.len());
            let mut bytes = vec![0; 64 * 1_024];
            let read = tokio::time::timeout(PATIENCE, self.socket.read(&mut bytes)).await;
            let count = read.expect("in time").unwrap();
            assert!(count > 0, "the stream ended after {:?}", self.text);
            self.text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
    }

    /// The next event that is no ping: its id, name and data.
    pub async fn event(&mut self) -> (Option<u64>, String, Value) {
        tokio::time::timeout(PATIENCE, self.next_event()).await.expect("an event in time")
    }

    async fn next_event(&mut self) -> (Option<u64>, String, Value) {
        loop {
            let text = self.until("\n\n").await;
            let field = |name: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name));
                line.map(|value| value.trim().to_owned())
            };
            assert!(text.is_ascii(), "{text}");
            let name = field("event:").unwrap();
            if name != "ping" {
                let data = serde_json::from_str(&field("data:").unwrap()).unwrap();
                return (field("id:").map(|id| id.parse().unwrap()), name, data);
            }
        }
    }
}

#[tokio::test]
async fn a_listener_hears_of_every_block_with_its_transactions_in_ascii() {
    let server = TestServer::start().await;
    let mut stream = Stream::open(&server, "/api/chain/events", "").await;
    let (_, name, data) = stream.event().await;
    assert_eq!(("hello", &json!(0)), (name.as_str(), &data["height"]));

    let content = "one\u{2028}two\u{2029}three\u{85}four 😀";
    server.world.accept(&turn(1, 0, content));
    server.world.commit();
    let (id, name, data) = stream.event().await;
    assert_eq!((Some(1), "block", &json!(1)), (id, name.as_str(), &data["index"]));
    assert_eq!(json!(content), data["transactions"][0]["content"]);
    let block = &data["block"];
    assert_eq!((&data["transactions"], &data["hash"]), (&block["txs"], &block["hash"]));
    assert!(data.get("type").is_none(), "it would take the place of the event's name");
}

#[tokio::test]
async fn a_listener_that_comes_back_gets_what_it_missed() {
    let server = TestServer::start().await;
    server.world.commit_many(3);
    let mut stream = Stream::open(&server, "/api/chain/events", "last-event-id: 1\r\n").await;
    assert_eq!("hello", stream.event().await.1);
    assert_eq!(Some(2), stream.event().await.0);
    assert_eq!(Some(3), stream.event().await.0);
    server.world.commit();
    assert_eq!(Some(4), stream.event().await.0);
}

#[tokio::test]
async fn a_listener_that_missed_blocks_which_the_node_does_not_have_is_told_so_and_not_to_come_again()
 {
    let server = TestServer::start().await;
    server.world.commit_many(4);
    server.world.state().earliest = 3;
    server.world.state().events_from = 4;
    let call = format!("/api/calls/{}/events", "7".repeat(64));
    // A browser opens a stream again after anything but a 204, or an error like this.
    for (path, seen, member, from) in [
        ("/api/chain/events", 1, "earliestBlock", 3),
        (&call, 1, "earliestBlock", 3),
        (&call, 2, "eventsFrom", 4),
    ] {
        let answer = server.get_whole(path, &format!("last-event-id: {seen}\r\n")).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert!(answer.contains("HISTORY_UNAVAILABLE"), "{answer}");
        assert!(answer.contains(&format!(r#""{member}":{from}"#)), "{answer}");
    }
    let mut stream = Stream::open(&server, "/api/chain/events", "last-event-id: 2\r\n").await;
    assert_eq!("hello", stream.event().await.1);
    assert_eq!(Some(3), stream.event().await.0);
}

#[tokio::test]
async fn a_listener_that_stops_reading_goes_on_at_the_tip_and_holds_nobody_up() {
    const BLOCKS: u64 = 30;
    const TURNS: u64 = 20;
    let limits =
        Limits { subscription_lag_blocks_max: 5, write_timeout_ms: 600_000, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    let mut slow = Stream::open(&server, "/api/chain/events", "").await;
    let mut quick = Stream::open(&server, "/api/chain/events", "").await;
    assert_eq!("hello", quick.event().await.1);
    // Twice as long in ASCII, and three times in an event.
    let content = "\u{2028}".repeat(5_000);
    for block in 0..BLOCKS {
        for place in 0..TURNS {
            server.world.accept(&turn(1, block * TURNS + place, &content));
        }
        server.world.commit();
        let (id, name, _) = quick.event().await;
        assert_eq!((Some(block + 1), "block"), (id, name.as_str()));
    }

    assert_eq!("hello", slow.event().await.1);
    let (mut seen, mut lagged) = (0, Value::Null);
    while lagged.is_null() {
        match slow.event().await {
            (Some(id), _, _) => {
                assert_eq!(seen + 1, id);
                seen = id;
            }
            (None, name, data) => {
                assert_eq!("lagged", name);
                lagged = data;
            }
        }
    }
    let lost = BLOCKS - 1 - seen;
    assert!(lost > 5, "{lost} blocks");
    assert_eq!(json!({ "lagged": lost, "height": BLOCKS }), lagged);
    assert_eq!(Some(BLOCKS), slow.event().await.0);
    server.world.commit();
    assert_eq!(Some(BLOCKS + 1), slow.event().await.0);
    assert_eq!(Some(BLOCKS + 1), quick.event().await.0);
}

#[tokio::test]
async fn a_listener_hears_how_full_the_pool_is() {
    let server = TestServer::start().await;
    server.world.accept(&transfer(1, 0));
    let mut stream = Stream::open(&server, "/api/mempool/events", "").await;
    let (_, name, data) = stream.event().await;
    assert_eq!(("hello", json!({ "total": 1 })), (name.as_str(), data));
    server.world.accept(&transfer(1, 1));
    let (_, name, data) = stream.event().await;
    assert_eq!(("snapshot", &json!(2)), (name.as_str(), &data["total"]));
}

#[tokio::test]
async fn streams_have_a_limit_and_their_places_are_free_again_when_they_end() {
    let limits = Limits { streams_max: 1, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    let stream = Stream::open(&server, "/api/chain/events", "").await;
    let listeners = server.world.listeners();
    let (status, refused) = server.get_json("/api/chain/events").await;
    assert_eq!((503, &json!("TOO_MANY_STREAMS")), (status, &refused["code"]));
    drop(stream);
    server.world.commit();
    eventually("the stream has ended", || server.world.listeners() < listeners).await;
    Stream::open(&server, "/api/chain/events", "").await;
}

#[tokio::test]
async fn streams_end_with_the_node() {
    // Nobody cuts them off meanwhile.
    let limits = Limits { shutdown_timeout_ms: 600_000, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    let mut streams = Vec::new();
    for path in ["/api/chain/events", "/api/mempool/events"] {
        let mut stream = Stream::open(&server, path, "").await;
        assert_eq!("hello", stream.event().await.1);
        streams.push(stream);
    }
    server.shutdown.cancel();
    let ended = tokio::time::timeout(PATIENCE, server.finished).await;
    ended.expect("in time").unwrap().unwrap();
    for mut stream in streams {
        // The last chunk: nothing was lost.
        stream.until("0\r\n\r\n").await;
    }
}

#[tokio::test]
async fn who_asks_too_fast_is_told_when_to_come_back() {
    let rate = RateLimits {
        requests_per_second: 1,
        burst: 3,
        keys: vec!["key".to_owned()],
        key_requests_per_second: 1_000,
        ..RateLimits::default()
    };
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "ombra_getSupply", "params": [] });
    let batch = Value::Array(vec![call.clone(), call]).to_string();
    let (server, answers, third, refused, last_answers) = loop {
        let config = Config { rate: rate.clone(), ..Config::default() };
        let server = TestServer::start_as(config).await;
        let started = Instant::now();
        let (_, answers) = server.post(&batch).await;
        let (third, _) = server.get("/api/chain/height").await;
        let refused = answer(&server, "x-api-key: another\r\n").await;
        let (_, last_answers) = server.post(&batch).await;
        // A busy machine may take longer; then one more is allowed.
        if started.elapsed() < Duration::from_secs(1) {
            break (server, answers, third, refused, last_answers);
        }
    };
    assert!(!answers.contains("RATE_LIMITED"), "each call of two counts: {answers}");
    assert_eq!(200, third);
    assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("RATE_LIMITED"), "{refused}");
    assert!(refused.contains("retryAfterMs"), "{refused}");
    let standing =
        ["limit: 3", "remaining: 0", "reset: 3"].map(|it| format!("x-ratelimit-{it}\r\n"));
    for line in standing.iter().map(String::as_str).chain(["retry-after: 1\r\n"]) {
        assert!(refused.contains(line), "{line}{refused}");
    }
    for told in ["RATE_LIMITED", "retryAfterMs"] {
        assert!(last_answers.contains(told), "{last_answers}");
    }
    assert_eq!(200, server.get("/healthz").await.0, "health is free");
    for _ in 0..50 {
        let answered = answer(&server, "x-api-key: key\r\n").await;
        assert!(answered.starts_with("HTTP/1.1 200 "), "who has a key: {answered}");
    }
}

#[tokio::test]
async fn nobody_hears_of_a_limit_where_there_is_none() {
    let server = TestServer::start().await;
    for header in ["", "x-api-key: key\r\n"] {
        let answered = answer(&server, header).await;
        assert!(answered.starts_with("HTTP/1.1 200 "), "{header}: {answered}");
        assert!(!answered.contains("x-ratelimit"), "{header}: {answered}");
    }
}

/// The whole answer to a question for the height with this header.
async fn answer(server: &TestServer, header: &str) -> String {
    String::from_utf8(server.get_whole("/api/chain/height", header).await).unwrap()
}

#[tokio::test]
async fn large_answers_are_compressed_for_who_asks_for_it() {
    let server = TestServer::start().await;
    let mut sizes = Vec::new();
    for encoding in ["", "accept-encoding: gzip\r\n"] {
        let bytes = server.get_whole("/api/openapi.json", encoding).await;
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(!encoding.is_empty(), text.contains("content-encoding: gzip"), "{encoding}");
        sizes.push(bytes.len());
    }
    assert!(sizes[1] * 3 < sizes[0], "{sizes:?}");
}
