//! The WebSocket of the public clients.

use futures::{SinkExt, StreamExt};
use rpc::Limits;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::client::{PATIENCE, TestServer, request, signed, transfer};
use crate::world::key;

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
        loop {
            let next = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("in time");
            match next.expect("no end without a close").unwrap() {
                Message::Ping(_) => {}
                message => return message,
            }
        }
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
async fn a_client_hears_what_it_has_subscribed_to_and_nothing_else() {
    let server = TestServer::start().await;
    let mut socket = Socket::open(&server).await;
    socket.subscribe(json!({ "channel": "blocks" })).await;
    let mine = key(2).address();
    socket.subscribe(json!({ "channel": "txs", "address": mine })).await;
    let others = server.world.accept(&transfer(1, 0));
    let own = server.world.accept(&transfer(2, 0));
    server.world.commit();

    let block = socket.hear_json().await;
    assert_eq!((&json!("block"), &json!(1)), (&block["type"], &block["data"]["index"]));
    assert_eq!(json!([others, own]), block["data"]["transactions"]);
    let tx = socket.hear_json().await;
    assert_eq!((&json!("tx"), &json!(own)), (&tx["type"], &tx["data"]["hash"]));
    server.world.commit();
    assert_eq!(json!(2), socket.hear_json().await["data"]["index"]);
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
    for (seed, id) in [(1, 1), (2, 2)] {
        server.world.accept(&signed(&key(seed), 0, &request(id)));
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
    for rubbish in [
        json!("what?"),
        json!({ "action": "dance" }),
        json!({ "action": "subscribe" }),
        json!({ "action": "subscribe", "channel": "weather" }),
        json!({ "action": "subscribe", "channel": "txs", "address": "me" }),
        json!({ "action": "subscribe", "channel": "blocks", "address": key(1).address() }),
        json!({ "action": "subscribe", "channel": "agent", "minerId": "ab".repeat(32) }),
        json!({ "action": "unsubscribe", "channel": "txs" }),
    ] {
        socket.say(rubbish.clone()).await;
        let answer = socket.hear_json().await;
        assert_eq!(json!("error"), answer["type"], "{rubbish}");
        assert!(answer["error"].is_string() && answer["code"].is_string(), "{answer}");
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
async fn a_node_that_stops_closes_with_a_code_after_which_clients_come_back() {
    let server = TestServer::start().await;
    let mut socket = Socket::open(&server).await;
    socket.subscribe(json!({ "channel": "blocks" })).await;
    server.shutdown.cancel();
    let Message::Close(Some(frame)) = socket.hear().await else { panic!("no close frame") };
    assert_eq!(CloseCode::Restart, frame.code);
    while let Some(Ok(_)) = socket.0.next().await {}
    let ended = tokio::time::timeout(PATIENCE, server.finished).await;
    ended.expect("in time").unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_answers_no_pings_is_closed_with_a_code_after_which_it_comes_back() {
    let limits = Limits { ping_interval_ms: 50, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    // Nothing is read, so nothing is answered.
    let mut socket = Socket::open(&server).await;
    crate::client::eventually("the socket is closed", || server.world.listeners() <= 1).await;
    let Message::Close(Some(frame)) = socket.hear().await else { panic!("no close frame") };
    assert_eq!(CloseCode::Again, frame.code);
}
