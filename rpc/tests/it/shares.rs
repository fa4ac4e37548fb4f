//! What one client can take from the others: its share and no more. Clients are loopback addresses.

use std::time::Duration;

use rpc::{Config, Limits, RateLimits};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{
    TestServer, eventually, eventually_asked, exchange, post_text, read_response, turn,
    upgrade_text,
};
use crate::streams::Stream;

const GREEDY: u8 = 8;
const HONEST: u8 = 9;
const MEBIBYTE: u32 = 1024 * 1024;

/// A client has room for one large answer, and all together for four.
fn limits() -> Limits {
    Limits {
        response_memory_bytes_max: 64 * MEBIBYTE,
        response_bytes_max: 16 * MEBIBYTE,
        write_timeout_ms: 600_000,
        ..Limits::default()
    }
}

async fn start(limits: Limits, rate: RateLimits) -> TestServer {
    let server = TestServer::start_as(Config { limits, rate, ..Config::default() }).await;
    for mebibytes in BLOBS {
        let bytes = vec![7; usize::try_from(mebibytes * MEBIBYTE).unwrap()];
        server.world.add_blob(&blob(mebibytes), "text/plain", &bytes);
    }
    server
}

/// The sizes of the blobs that there are, in MiB: the largest is four times what the system keeps for a
/// connection.
const BLOBS: [u32; 3] = [16, 8, 6];

fn blob(mebibytes: u32) -> String {
    format!("of-{mebibytes}-mebibytes")
}

/// Asks for the largest answer, and takes nothing of it but how it begins.
async fn slow_reader(stream: TcpStream, header: &str) -> TcpStream {
    slow_reader_of(BLOBS[0], stream, header).await
}

async fn slow_reader_of(mebibytes: u32, mut stream: TcpStream, header: &str) -> TcpStream {
    let path = format!("/api/blob/{}", blob(mebibytes));
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{header}\r\n");
    begin(&mut stream, &head).await;
    stream
}

/// Sends the head of a request; answers the status, and takes nothing of the rest.
async fn begin(stream: &mut TcpStream, head: &str) -> u16 {
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    std::str::from_utf8(&first[9..]).unwrap().parse().unwrap()
}

async fn slow_readers(server: &TestServer, count: usize) -> Vec<TcpStream> {
    let mut slow = Vec::new();
    for _ in 0..count {
        slow.push(slow_reader(server.connect_from(GREEDY).await, "").await);
    }
    slow
}

/// Slow readers until there is no room for anybody: smaller answers fill what larger ones leave.
async fn until_full(server: &TestServer) -> Vec<TcpStream> {
    let mut slow = Vec::new();
    for mebibytes in BLOBS {
        for _ in 0..12 {
            slow.push(slow_reader_of(mebibytes, server.connect_from(GREEDY).await, "").await);
        }
        if is_busy(&ask(server, HONEST).await) {
            return slow;
        }
    }
    panic!("there is room for more than {} slow readers", slow.len());
}

const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}"#;

async fn ask(server: &TestServer, last: u8) -> Value {
    let (status, body) = exchange(server.connect_from(last).await, &post_text(DISCOVER)).await;
    assert_eq!(200, status, "{body}");
    serde_json::from_str(&body).unwrap()
}

fn is_busy(answer: &Value) -> bool {
    answer["error"]["data"]["code"] == "BUSY"
}

#[tokio::test]
async fn slow_readers_of_one_address_make_nobody_else_wait() {
    let server = start(limits(), RateLimits::default()).await;
    let slow = slow_readers(&server, 12).await;
    assert!(is_busy(&ask(&server, GREEDY).await), "its share is full");
    for _ in 0..3 {
        assert!(!is_busy(&ask(&server, HONEST).await));
    }
    drop(slow);
    eventually_asked("its share is free", async || !is_busy(&ask(&server, GREEDY).await)).await;
}

/// A stream of events of a client, opened with this header.
async fn events(server: &TestServer, last: u8, header: &str) -> Stream {
    Stream::open_over(server.connect_from(last).await, "/api/chain/events", header).await
}

/// A block whose event is larger than a piece of a stream.
fn commit_large(server: &TestServer, nonce: u64) {
    for place in 0..24 {
        server.world.accept(&turn(1, nonce * 24 + place, &"x".repeat(16_000)));
    }
    server.world.commit();
}

#[tokio::test]
async fn events_go_on_though_the_memory_for_answers_is_full() {
    let limits = Limits { client_share_percent: 100, ..limits() };
    let server = start(limits, RateLimits::default()).await;
    let before = server.world.state().blocks.len() as u64;
    let mut streams = [events(&server, GREEDY, "").await, events(&server, HONEST, "").await];
    for stream in &mut streams {
        assert_eq!("hello", stream.event().await.1);
    }
    let slow = until_full(&server).await;
    for nonce in 0..3 {
        commit_large(&server, nonce);
        for stream in &mut streams {
            // The event comes in pieces, so it is not read as one.
            stream.until(&format!("id: {}\n", before + nonce + 1)).await;
            stream.until("\n\n").await;
        }
    }
    drop(slow);
}

#[tokio::test]
async fn an_older_event_waits_for_room_instead_of_being_made_again_for_each_piece() {
    let limits = Limits { client_share_percent: 100, ..limits() };
    let server = start(limits, RateLimits::default()).await;
    let before = server.world.state().blocks.len() as u64;
    (0..4).for_each(|nonce| commit_large(&server, nonce));
    let slow = until_full(&server).await;
    let mut stream = events(&server, HONEST, &format!("last-event-id: {before}\r\n")).await;
    let id = |event: u64| format!("id: {}\n", before + event);
    let early = tokio::time::timeout(Duration::from_millis(300), stream.until(&id(1))).await;
    assert!(early.is_err(), "a piece of an event that nobody else wants");
    drop(slow);
    let text = stream.until(&id(4)).await;
    let mut ids = text.split_inclusive('\n').filter(|line| line.starts_with("id: "));
    assert!((1..4).all(|event| ids.next() == Some(id(event).as_str())), "each once, in order");
}

#[tokio::test]
async fn while_memory_is_scarce_who_takes_nothing_is_cut_off_soon() {
    let limits = Limits { client_share_percent: 100, ..limits() };
    let server = start(limits, RateLimits::default()).await;
    let slow = slow_readers(&server, 12).await;
    // The time-out on writing is ten minutes.
    eventually_asked("the memory is free", async || !is_busy(&ask(&server, HONEST).await)).await;
    drop(slow);
}

#[tokio::test]
async fn an_address_has_its_part_of_the_connections_and_another_its_own() {
    let server = TestServer::start_with(Limits { connections_max: 8, ..Limits::default() }).await;
    let held = [server.connect_from(GREEDY).await, server.connect_from(GREEDY).await];
    let (status, answer) = read_response(&mut server.connect_from(GREEDY).await).await;
    assert_eq!(503, status);
    assert!(answer.contains("TOO_MANY_CONNECTIONS"), "{answer}");
    assert!(!is_busy(&ask(&server, HONEST).await));
    drop(held);
    let has_a_place = async || {
        let stream = server.connect_from(GREEDY).await;
        exchange(stream, &post_text(DISCOVER)).await.0 == 200
    };
    eventually_asked("a place", has_a_place).await;
}

async fn open_websocket(server: &TestServer, last: u8, path: &str) -> (u16, TcpStream) {
    let mut stream = server.connect_from(last).await;
    (begin(&mut stream, &upgrade_text(path)).await, stream)
}

#[tokio::test]
async fn an_address_has_its_part_of_the_websockets_and_streams_and_another_its_own() {
    let limits = Limits { websockets_max: 8, streams_max: 8, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    for (path, rejection) in [("/", 429), ("/api/ws", 503)] {
        let mut open = Vec::new();
        for expected in [101, 101, rejection] {
            let (status, stream) = open_websocket(&server, GREEDY, path).await;
            assert_eq!(expected, status, "{path}");
            open.push(stream);
        }
        assert_eq!(101, open_websocket(&server, HONEST, path).await.0, "{path}");
        let listeners = server.world.listeners();
        drop(open);
        if path == "/api/ws" {
            eventually("they have ended", || server.world.listeners() < listeners).await;
        }
        let is_open = async || open_websocket(&server, GREEDY, path).await.0 == 101;
        eventually_asked(path, is_open).await;
    }
}

#[tokio::test]
async fn behind_a_trusted_proxy_it_is_the_client_that_has_a_share() {
    let proxy = format!("127.0.0.{HONEST}/32").parse().unwrap();
    let rate = RateLimits { trusted_proxies: vec![proxy], ..RateLimits::default() };
    // The proxy itself may have all connections, and needs three.
    let server = start(Limits { connections_max: 8, ..limits() }, rate).await;
    let mut slow = Vec::new();
    for _ in 0..3 {
        let stream = server.connect_from(HONEST).await;
        slow.push(slow_reader(stream, "x-forwarded-for: 10.0.0.1\r\n").await);
    }
    for (client, busy) in [("10.0.0.1", true), ("10.0.0.2", false)] {
        let request = String::from_utf8(post_text(DISCOVER)).unwrap();
        let request = request.replacen("host:", &format!("x-forwarded-for: {client}\r\nhost:"), 1);
        let stream = server.connect_from(HONEST).await;
        let (_, body) = exchange(stream, request.as_bytes()).await;
        assert_eq!(busy, is_busy(&serde_json::from_str(&body).unwrap()), "{client}");
    }
}
