//! Clients that would have the node hold more than it may.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use rpc::{Config, Limits, RateLimits};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{PATIENCE, TestServer, eventually_asked, read_whole, transfer, upgrade_text};
use crate::world::key;

/// A connection on which a WebSocket begins.
async fn raw_websocket(server: &TestServer) -> TcpStream {
    begin(server, &upgrade_text("/")).await
}

async fn begin(server: &TestServer, head: &str) -> TcpStream {
    let mut stream = server.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"));
    stream
}

/// The header of a frame with a mask of zeros.
fn header(first: u8, length: u64) -> Vec<u8> {
    let mut bytes = vec![first, 0xff];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

/// Sends a text as one message.
async fn send(stream: &mut TcpStream, text: &[u8]) {
    stream.write_all(&header(0x81, text.len() as u64)).await.unwrap();
    stream.write_all(text).await.unwrap();
}

#[tokio::test]
async fn a_message_in_parts_that_is_too_large_ends_the_connection() {
    const MEBIBYTE: usize = 1024 * 1024;
    let server = TestServer::start().await;
    let mut stream = raw_websocket(&server).await;
    let first = MEBIBYTE * 3 / 2;
    let parts = [
        header(0x01, first as u64),
        vec![b' '; first],
        header(0x80, MEBIBYTE as u64),
        b"and a few bytes of it".to_vec(),
    ];
    // The rest never comes: the node must not wait for it.
    stream.write_all(&parts.concat()).await.unwrap();
    read_whole(&mut stream).await;
}

#[tokio::test]
async fn one_frame_that_is_too_large_ends_the_connection_at_its_header() {
    let server = TestServer::start().await;
    // Line feeds alone end a head, too.
    let head = upgrade_text("/");
    let mut stream = begin(&server, &format!("{}\n\n", head.trim_end())).await;
    stream.write_all(&header(0x81, 2 * 1024 * 1024 + 1)).await.unwrap();
    read_whole(&mut stream).await;
}

fn discover_twice() -> String {
    let call = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "rpc.discover"});
    json!([call(1), call(2)]).to_string()
}

fn outcome(answer: &Value) -> Value {
    match answer.get("error") {
        Some(error) => json!([error["code"], error["data"]["code"], error["data"]["retryAfterMs"]]),
        None => json!("answered"),
    }
}

#[tokio::test]
async fn answers_share_a_bounded_memory_that_is_free_again_when_they_are_sent() {
    // There is room for one answer.
    let limits = Limits { response_memory_bytes_max: 8 * 1024, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    let mut stream = raw_websocket(&server).await;
    for _ in 0..3 {
        let posted: Value = serde_json::from_str(&server.post(&discover_twice()).await.1).unwrap();
        send(&mut stream, discover_twice().as_bytes()).await;
        for answers in [posted, read_message(&mut stream).await] {
            assert_eq!(json!("answered"), outcome(&answers[0]));
            assert_eq!(json!([-32053, "BUSY", 500]), outcome(&answers[1]));
        }
    }
}

/// The next message with text.
async fn read_message(stream: &mut TcpStream) -> Value {
    loop {
        let (first, length) = (stream.read_u8().await.unwrap(), stream.read_u8().await.unwrap());
        let length = match length {
            126 => u64::from(stream.read_u16().await.unwrap()),
            127 => stream.read_u64().await.unwrap(),
            short => u64::from(short),
        };
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        if first == 0x81 {
            return serde_json::from_slice(&payload).unwrap();
        }
    }
}

#[tokio::test]
async fn a_page_ends_early_when_what_it_is_made_of_is_large() {
    let limits = Limits { page_bytes_max: 1, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    for nonce in 0..3 {
        server.send(&transfer(1, nonce)).await;
    }
    server.world.commit();
    let all = json!({"address": key(1).address(), "limit": 500});
    let pages = server.pages("ombra_getAccountTransactions", all).await;
    assert_eq!(3, pages.len());
    assert!(pages.iter().all(|page| page["items"].as_array().unwrap().len() == 1), "{pages:?}");
}

/// Requests that a client may make at once; one more comes each second.
const BURST: u32 = 50;

/// A server that takes so many.
async fn limited() -> TestServer {
    let rate = RateLimits { requests_per_second: 1, burst: BURST, ..RateLimits::default() };
    TestServer::start_as(Config { rate, ..Config::default() }).await
}

/// Whether a client who sends `BURST` of these is told by the next call, or the one after, that it
/// asks too fast.
async fn is_counted(body: &str) -> bool {
    let server = limited().await;
    for _ in 0..5 {
        for _ in 0..BURST {
            server.post(body).await;
        }
        let answer = server.call("ombra_chainInfo", json!([])).await;
        if answer["error"]["data"]["code"] == "RATE_LIMITED" {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn rubbish_counts_for_the_rate_limit() {
    for body in [
        "nonsense",
        "",
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ombra_unknown"}"#,
        r#"{"jsonrpc":"2.0","method":"ombra_chainInfo"}"#,
        r#"[{"jsonrpc":"2.0","method":"ombra_chainInfo"},7]"#,
    ] {
        assert!(is_counted(body).await, "{body}");
    }
}

#[tokio::test]
async fn who_sends_rubbish_too_fast_is_turned_away() {
    let server = limited().await;
    let mut refused = None;
    for _ in 0..5 * BURST {
        let (status, answer) = server.post("nonsense").await;
        if status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused: Value = serde_json::from_str(&refused.expect("a rejection")).unwrap();
    assert_eq!("RATE_LIMITED", refused["error"]["data"]["code"], "{refused}");
}

/// A call that is so long.
fn padded(bytes: usize) -> Vec<u8> {
    let mut text = br#"{"jsonrpc":"2.0","id":1,"method":"txpool_status"}"#.to_vec();
    text.resize(bytes, b' ');
    text
}

/// Posts until the answer has this status.
async fn until_status(server: &TestServer, expected: u16, body: &[u8]) {
    let body = std::str::from_utf8(body).unwrap();
    let what = format!("the status {expected}");
    eventually_asked(&what, async || server.post(body).await.0 == expected).await;
}

#[tokio::test]
async fn messages_share_the_memory_of_bodies_and_wait_for_it() {
    const KIB: u32 = 1024;
    // A client has 128 KiB.
    let limits = Limits {
        request_memory_bytes_max: 256 * KIB,
        request_bytes_max: 128 * KIB,
        ..Limits::default()
    };
    let server = TestServer::start_with(limits).await;
    let text = padded(100 * KIB as usize);
    let (mut slow, mut other) = (raw_websocket(&server).await, raw_websocket(&server).await);
    let (first, rest) = text.split_at(1_000);
    slow.write_all(&header(0x81, text.len() as u64)).await.unwrap();
    slow.write_all(first).await.unwrap();
    until_status(&server, 503, &text).await;
    send(&mut other, &text).await;
    let early = tokio::time::timeout(Duration::from_millis(300), read_message(&mut other)).await;
    assert!(early.is_err(), "there is no memory to read it: {early:?}");

    slow.write_all(rest).await.unwrap();
    for stream in [&mut slow, &mut other] {
        let answer = tokio::time::timeout(PATIENCE, read_message(stream)).await.unwrap();
        assert_eq!("answered", outcome(&answer));
    }
    until_status(&server, 200, &text).await;
}

#[tokio::test]
async fn a_message_that_takes_too_long_ends_the_connection() {
    let limits = Limits { body_timeout_ms: 300, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    for start in [header(0x81, 100), [header(0x01, 1), b" ".to_vec()].concat()] {
        let mut stream = raw_websocket(&server).await;
        send(&mut stream, &padded(60)).await;
        assert_eq!("answered", outcome(&read_message(&mut stream).await));
        stream.write_all(&start).await.unwrap();
        read_whole(&mut stream).await;
    }
}

#[tokio::test]
async fn a_call_too_many_is_refused_before_it_waits_to_read() {
    // A client reads one at a time.
    let limits = Limits { client_share_percent: 1, websocket_calls_max: 2, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    let mut stream = raw_websocket(&server).await;
    let (world, (locked, is_locked)) = (Arc::clone(&server.world), mpsc::channel());
    let (release, released) = mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        let _state = world.state();
        locked.send(()).unwrap();
        released.recv().ok();
    });
    is_locked.recv().unwrap();
    for id in 1..=5 {
        let params = json!([key(1).address()]);
        let call =
            json!({"jsonrpc": "2.0", "id": id, "method": "txpool_contentFrom", "params": params});
        send(&mut stream, call.to_string().as_bytes()).await;
    }
    for _ in 0..3 {
        let answer = tokio::time::timeout(PATIENCE, read_message(&mut stream)).await;
        let answer = answer.expect("a rejection while nothing can be read");
        assert_eq!(json!([-32053, "TOO_MANY_CALLS", 100]), outcome(&answer));
    }
    drop(release);
    holder.join().unwrap();
    for _ in 0..2 {
        assert_eq!("answered", outcome(&read_message(&mut stream).await));
    }
}
