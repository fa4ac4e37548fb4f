//! Bytes that no client should send: each costs little and is answered or cut off.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::client::{
    PATIENCE, TestServer, eventually_asked, exchange, post_text, read_response, read_whole,
    transfer,
};

/// The head of a POST, to be followed by what says how long its body is.
const POST_HEAD: &str = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

async fn still_answers(server: &TestServer) {
    let info = server.result("ombra_chainInfo", json!([])).await;
    assert_eq!(info["chainId"], "test-chain");
}

#[tokio::test]
async fn texts_that_are_not_json_rpc_are_parse_errors() {
    let server = TestServer::start().await;
    let deep = "[".repeat(1_000_000);
    let deep_params = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ombra_getAccount","params":[{}1{}]}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    for (body, number) in [
        ("", -32700),
        ("{", -32700),
        ("nonsense", -32700),
        ("\"text\"", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}", -32600),
        (deep.as_str(), -32700),
        (deep_params.as_str(), -32602),
    ] {
        let (_, answer) = server.post(body).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let start: String = body.chars().take(40).collect();
        assert_eq!(answer["error"]["code"], number, "{start}: {answer}");
        assert!(answer.to_string().len() < 2_000, "{start}");
    }
    still_answers(&server).await;
}

#[tokio::test]
async fn invalid_utf8_is_a_parse_error() {
    let server = TestServer::start().await;
    let mut request =
        post_text(r#"{"jsonrpc":"2.0","id":1,"method":"ombra_getBlob","params":["??"]}"#);
    let at = request.len() - 5;
    request[at] = 0xff;
    let (_, answer) = exchange(server.connect().await, &request).await;
    assert!(answer.contains("-32700") || answer.contains("-32600"), "{answer}");
    still_answers(&server).await;
}

#[tokio::test]
async fn a_deeply_nested_transaction_is_malformed() {
    let server = TestServer::start().await;
    let nested = format!("{}{}{}", "{\"a\":".repeat(50_000), 1, "}".repeat(50_000));
    let answer = server.call_raw("ombra_sendTransaction", &format!("[{nested}]")).await;
    let error = &answer["error"];
    assert_eq!((&json!("MALFORMED"), &json!(-32050)), (&error["data"]["code"], &error["code"]));
}

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_refused_unread() {
    let server = TestServer::start().await;
    let head = format!("{POST_HEAD}content-length: 104857600\r\n\r\n");
    let (status, answer) = exchange(server.connect().await, head.as_bytes()).await;
    assert_eq!(413, status);
    assert!(answer.contains("-32007"), "{answer}");
}

#[tokio::test]
async fn a_body_that_grows_too_large_is_cut_off() {
    let server = TestServer::start().await;
    let mut stream = server.connect().await;
    let head = format!("{POST_HEAD}transfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"100000\r\n".as_slice(), &vec![b'['; 0x10_0000], b"\r\n"].concat();
    let mut sent = 0_usize;
    for _ in 0..100 {
        if stream.write_all(&chunk).await.is_err() {
            break;
        }
        sent += chunk.len();
    }
    assert!(sent < 40 * 1024 * 1024, "{sent} bytes were taken");
    still_answers(&server).await;
}

#[tokio::test]
async fn bodies_share_a_bounded_memory() {
    let limits = rpc::Limits { request_memory_bytes_max: 16 * 1024, ..rpc::Limits::default() };
    let server = TestServer::start_with(limits).await;
    let (status, answer) = server.post(&format!("[{}]", " ".repeat(40_000))).await;
    assert_eq!(503, status);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let error = &answer["error"];
    assert_eq!((&json!(-32053), &json!("BUSY")), (&error["code"], &error["data"]["code"]));
    still_answers(&server).await;
}

#[tokio::test]
async fn a_request_that_never_comes_is_cut_off() {
    let limits =
        rpc::Limits { head_timeout_ms: 500, body_timeout_ms: 500, ..rpc::Limits::default() };
    let server = TestServer::start_with(limits).await;
    let mut silent = server.connect().await;
    let mut half_head = server.connect().await;
    half_head.write_all(b"POST / HTTP/1.1\r\nhost:").await.unwrap();
    for stream in [&mut silent, &mut half_head] {
        read_whole(stream).await;
    }
    let half_body = format!("{POST_HEAD}content-length: 100\r\n\r\n{{");
    let (status, answer) = exchange(server.connect().await, half_body.as_bytes()).await;
    assert_eq!(408, status);
    assert!(answer.contains("TOO_SLOW"), "{answer}");
    still_answers(&server).await;
}

#[tokio::test]
async fn connections_are_bounded_and_places_become_free_again() {
    let limits =
        rpc::Limits { connections_max: 2, client_share_percent: 100, ..rpc::Limits::default() };
    let server = TestServer::start_with(limits).await;
    let first = server.connect().await;
    let second = server.connect().await;
    let mut third = server.connect().await;
    let (status, answer) = read_response(&mut third).await;
    assert_eq!(503, status);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["error"]["data"]["code"], "TOO_MANY_CONNECTIONS");
    drop((first, second));
    until_there_is_a_place(&server).await;
}

/// Until a connection is accepted.
async fn until_there_is_a_place(server: &TestServer) {
    eventually_asked("a place", async || server.get("/healthz").await.0 == 200).await;
}

#[tokio::test]
async fn a_websocket_keeps_its_place_until_it_closes() {
    let limits = rpc::Limits { connections_max: 1, ..rpc::Limits::default() };
    let server = TestServer::start_with(limits).await;
    let socket = server.websocket().await;
    let (status, _) = read_response(&mut server.connect().await).await;
    assert_eq!(503, status);
    drop(socket);
    until_there_is_a_place(&server).await;
}

#[tokio::test]
async fn rubbish_instead_of_http_is_cut_off() {
    let server = TestServer::start().await;
    for rubbish in [b"\x00\x01\x02\x03\r\n\r\n".as_slice(), &[0xff; 300_000], &[b'a'; 300_000]] {
        let mut stream = server.connect().await;
        stream.write_all(rubbish).await.ok();
        read_whole(&mut stream).await;
    }
    still_answers(&server).await;
}

#[tokio::test]
async fn large_parameters_of_small_methods_are_refused() {
    let server = TestServer::start().await;
    let large = json!(["x".repeat(3_000_000)]);
    server.refused("ombra_computeContentHash", large, (-32053, "TOO_LARGE")).await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_cut_off() {
    let limits = rpc::Limits { write_timeout_ms: 100, ..rpc::Limits::default() };
    let server = TestServer::start_with(limits).await;
    let mut stream = server.connect().await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}"#;
    let request = format!("{POST_HEAD}content-length: {}\r\n\r\n{call}", call.len());
    // Requests follow each other on one connection, and no answer is taken.
    let flood = async { while stream.write_all(request.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, flood).await.expect("cut off");
    still_answers(&server).await;
}

#[tokio::test]
async fn slow_and_fast_clients_do_not_meet() {
    let server = TestServer::start().await;
    let mut slow = server.connect().await;
    let request = post_text(&format!("[{}]", " ".repeat(100)));
    slow.write_all(&request[..60]).await.unwrap();
    let sent = tokio::time::timeout(Duration::from_secs(5), server.send(&transfer(1, 0))).await;
    assert!(sent.is_ok());
    slow.write_all(&request[60..]).await.unwrap();
    assert!(read_response(&mut slow).await.1.contains("-32600"));
}
