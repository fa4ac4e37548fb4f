//! The WebSocket of the public clients.

use futures::{SinkExt, StreamExt};
use rpc::{Config, Limits, RateLimits};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::client::{PATIENCE, TestServer, eventually, request, transfer, turn};
use crate::world::{POOL_EVENTS, key};

struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    async fn open(server: &TestServer) -> Self {
        let url = format!("ws://{}/api/ws", server.endpoints.rpc);
        Self(client_async(url, server.connect().await).await.unwrap().0)
    }

    async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// What the node says next, pings apart.
    async fn hear(&mut self) -> Message {
        let next = async {
            loop {
                match self.0.next().await.expect("no end without a close").unwrap() {
                    Message::Ping(_) => {}
                    message => return message,
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.expect("in time")
    }

    async fn hear_json(&mut self) -> Value {
        serde_json::from_str(self.hear().await.to_text().unwrap()).unwrap()
    }

    async fn subscribe(&mut self, topic: Value) {
        let mut message = topic.clone();
        message["action"] = json!("subscribe");
        self.say(message).await;
        let expected = json!({ "type": "subscribed", "channel": topic["channel"] });
        assert_eq!(expected, self.hear_json().await);
    }
}

#[tokio::test]
async fn a_client_hears_of_the_pool_only_while_it_wants_to() {
    let server = TestServer::start().await;
    let mut socket = Socket::open(&server).await;
    server.world.accept(&transfer(1, 0));
    socket.subscribe(json!({ "channel": "mempool" })).await;
    let hash = server.world.accept(&transfer(1, 1));
    let notice = socket.hear_json().await;
    assert_eq!((&json!("mempool"), &json!(hash)), (&notice["type"], &notice["data"]["hash"]));
    socket.say(json!({ "action": "unsubscribe", "channel": "mempool" })).await;
    assert_eq!(json!("unsubscribed"), socket.hear_json().await["type"]);
    server.world.accept(&transfer(1, 2));
    socket.say(json!({ "action": "ping" })).await;
    assert_eq!(json!({ "type": "pong" }), socket.hear_json().await);
}

#[tokio::test]
async fn a_client_follows_the_runs_of_an_account() {
    let server = TestServer::start().await;
    let mut socket = Socket::open(&server).await;
    socket.subscribe(json!({ "channel": "agent", "address": key(2).address() })).await;
    for seed in [1, 2] {
        server.world.accept(&request(seed, 0).1);
    }
    server.world.commit();
    let created = socket.hear_json().await;
    assert_eq!((&json!("agent"), &json!("created")), (&created["type"], &created["data"]["event"]));
    assert_eq!(json!(key(2).address()), created["data"]["submitter"]);
}

#[tokio::test]
async fn what_is_wrong_with_a_message_is_told_and_the_socket_stays_open() {
    let server = TestServer::start().await;
    let mut socket = Socket::open(&server).await;
    let of = |message: Value| Message::text(message.to_string());
    let wrong = [
        Message::text(""),
        Message::text("{"),
        Message::text("[]"),
        Message::text("{}"),
        Message::binary(br#"{"action":"ping"}"#.to_vec()),
        of(json!("what?")),
        of(json!({ "action": "dance" })),
        of(json!({ "action": "subscribe" })),
        of(json!({ "action": "subscribe", "channel": "weather" })),
        of(json!({ "action": "subscribe", "channel": "txs", "address": "me" })),
        of(json!({ "action": "subscribe", "channel": "blocks", "address": key(1).address() })),
    ];
    let absent = [
        of(json!({ "action": "subscribe", "channel": "agent", "minerId": "ab".repeat(32) })),
        of(json!({ "action": "unsubscribe", "channel": "txs" })),
    ];
    let wrong = wrong.into_iter().map(|message| (message, "INVALID_PARAMS"));
    for (message, code) in wrong.chain(absent.into_iter().map(|message| (message, "NOT_FOUND"))) {
        socket.0.send(message.clone()).await.unwrap();
        let answer = socket.hear_json().await;
        let told = (&answer["type"], &answer["code"]);
        assert_eq!((&json!("error"), &json!(code)), told, "{message}: {answer}");
        assert!(answer["error"].is_string(), "{message}: {answer}");
    }
    socket.say(json!({ "action": "ping" })).await;
    assert_eq!(json!("pong"), socket.hear_json().await["type"]);
}

#[tokio::test]
async fn subscriptions_of_a_socket_have_a_limit() {
    let server = TestServer::start_with(Limits { subscriptions_max: 1, ..Limits::default() }).await;
    let mut socket = Socket::open(&server).await;
    socket.subscribe(json!({ "channel": "blocks" })).await;
    socket.subscribe(json!({ "channel": "blocks" })).await;
    socket.say(json!({ "action": "subscribe", "channel": "chat" })).await;
    assert_eq!(json!("TOO_MANY_SUBSCRIPTIONS"), socket.hear_json().await["code"]);
}

#[tokio::test]
async fn a_client_that_answers_no_pings_is_closed_with_a_code_after_which_it_comes_back() {
    let limits = Limits { ping_interval_ms: 50, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    // Nothing is read, so nothing is answered.
    let mut socket = Socket::open(&server).await;
    eventually("the socket is closed", || server.world.listeners() <= 1).await;
    let Message::Close(Some(frame)) = socket.hear().await else { panic!("no close frame") };
    assert_eq!(CloseCode::Again, frame.code);
}

#[tokio::test]
async fn a_client_that_reads_too_little_is_closed_with_a_code_after_which_it_comes_back() {
    const BLOCKS: u64 = 60;
    const TURNS: u64 = 20;
    let limits =
        Limits { subscription_lag_blocks_max: 5, write_timeout_ms: 600_000, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    let (mut slow, mut quick) = (Socket::open(&server).await, Socket::open(&server).await);
    slow.subscribe(json!({ "channel": "txs" })).await;
    slow.subscribe(json!({ "channel": "chat" })).await;
    quick.subscribe(json!({ "channel": "blocks" })).await;
    let (mut sent, longest) = (Vec::new(), "x".repeat(16_384));
    for block in 0..BLOCKS {
        let turns = (0..TURNS).map(|place| turn(1, block * TURNS + place, &longest));
        sent.extend(turns.map(|text| server.world.accept(&text).to_string()));
        server.world.commit();
        assert_eq!(json!(block + 1), quick.hear_json().await["data"]["index"]);
    }

    let (mut seen, mut close) = (Vec::new(), None);
    while close.is_none() {
        match slow.hear().await {
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text).unwrap();
                let hash = message["data"]["hash"].as_str().unwrap_or_default();
                seen.extend((message["type"] == "tx").then(|| hash.to_owned()));
            }
            Message::Close(frame) => close = Some(frame),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(Some(CloseCode::Again), close.unwrap().map(|frame| frame.code));
    assert!(sent.starts_with(&seen), "without gaps");
    let least = (BLOCKS - 6) * TURNS;
    assert!((seen.len() as u64) < least, "the node has not waited with {} of them", seen.len());
}

#[tokio::test]
async fn who_loses_events_of_the_pool_is_told_how_many() {
    let server = TestServer::start().await;
    let mut socket = Socket::open(&server).await;
    socket.subscribe(json!({ "channel": "mempool" })).await;
    // Nobody else runs meanwhile, so that the first ones are lost.
    let lost = 4;
    let sent: Vec<_> = (0..POOL_EVENTS + lost)
        .map(|nonce| server.world.accept(&transfer(1, nonce as u64)))
        .collect();
    let lagged = socket.hear_json().await;
    let expected = json!({ "type": "lagged", "data": { "lagged": lost, "blockIndex": 0 } });
    assert_eq!(expected, lagged);
    for hash in &sent[lost..] {
        assert_eq!(json!(hash), socket.hear_json().await["data"]["hash"]);
    }
}

#[tokio::test]
async fn every_message_of_a_client_counts_for_the_rate_limit() {
    let rate = RateLimits { requests_per_second: 1, burst: 5, ..RateLimits::default() };
    for message in
        [Message::text(r#"{"action":"ping"}"#), Message::text("nonsense"), Message::binary(vec![7])]
    {
        let config = Config { rate: rate.clone(), ..Config::default() };
        let server = TestServer::start_as(config).await;
        let mut socket = Socket::open(&server).await;
        let mut codes = Vec::new();
        while codes.last() != Some(&json!("RATE_LIMITED")) {
            assert!(codes.len() < 100, "{message}: {codes:?}");
            socket.0.send(message.clone()).await.unwrap();
            codes.push(socket.hear_json().await["code"].take());
        }
    }
}
