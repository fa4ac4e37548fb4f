//! Which web pages may call, and by which names.

use rpc::Config;
use tokio::io::AsyncWriteExt;

use crate::client::{TestServer, read_answer};

/// The status line and the headers with which a request is answered.
async fn head(server: &TestServer, method: &str, headers: &str) -> String {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"ombra_chainInfo"}"#;
    let (body, length) = if method == "POST" { (call, call.len()) } else { ("", 0) };
    let request = format!(
        "{method} / HTTP/1.1\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {length}\r\n{headers}\r\n{body}"
    );
    let mut stream = server.connect().await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = String::from_utf8(read_answer(&mut stream).await).unwrap();
    answer.split_once("\r\n\r\n").unwrap().0.to_owned()
}

/// What asks for a WebSocket.
const WEBSOCKET: &str = "upgrade: websocket\r\nsec-websocket-version: 13\r\n\
     sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

async fn status(server: &TestServer, method: &str, headers: &str) -> u16 {
    head(server, method, headers).await.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_web_page_that_is_not_listed_may_not_call() {
    let server = TestServer::start().await;
    let page = "host: localhost\r\norigin: https://page.example\r\n";
    assert_eq!(403, status(&server, "POST", page).await);
    assert_eq!(403, status(&server, "OPTIONS", page).await);
    assert_eq!(403, status(&server, "GET", &format!("{page}{WEBSOCKET}")).await);
    assert_eq!(200, status(&server, "POST", "host: localhost\r\n").await);
}

#[tokio::test]
async fn a_listed_web_page_may_call_and_is_told_so() {
    let origins = vec!["https://wallet.example".to_owned()];
    let server = TestServer::start_as(Config { origins, ..Config::default() }).await;
    let page = "host: localhost\r\norigin: https://wallet.example\r\n";
    let answer = head(&server, "POST", page).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("access-control-allow-origin: https://wallet.example"), "{answer}");
    let preflight = head(&server, "OPTIONS", page).await;
    assert!(preflight.starts_with("HTTP/1.1 204"), "{preflight}");
    assert!(preflight.contains("access-control-allow-headers: content-type"), "{preflight}");
    let other = "host: localhost\r\norigin: https://wallet.example.evil\r\n";
    assert_eq!(403, status(&server, "POST", other).await);
}

#[tokio::test]
async fn every_page_may_call_where_all_are_listed() {
    let origins = vec!["*".to_owned()];
    let server = TestServer::start_as(Config { origins, ..Config::default() }).await;
    assert_eq!(200, status(&server, "POST", "host: localhost\r\norigin: null\r\n").await);
}

#[tokio::test]
async fn on_loopback_the_node_answers_to_known_names_only() {
    let hosts = vec!["node.example".to_owned()];
    let server = TestServer::start_as(Config { hosts, ..Config::default() }).await;
    for known in ["localhost", "LOCALHOST:8777", "127.0.0.1:1", "[::1]:8777", "node.example:80"] {
        assert_eq!(200, status(&server, "POST", &format!("host: {known}\r\n")).await, "{known}");
    }
    for other in ["evil.example", "localhost.evil.example:8777", "127.0.0.1.evil.example"] {
        assert_eq!(403, status(&server, "POST", &format!("host: {other}\r\n")).await, "{other}");
    }
}

#[tokio::test]
async fn the_page_that_the_node_serves_may_call() {
    let server = TestServer::start().await;
    let own = "host: 127.0.0.1:8777\r\norigin: http://127.0.0.1:8777\r\n";
    assert_eq!(200, status(&server, "POST", own).await);
    assert_ne!(403, status(&server, "GET", &format!("{own}{WEBSOCKET}")).await);
    let neighbour = "host: 127.0.0.1:8777\r\norigin: http://127.0.0.1:3000\r\n";
    assert_eq!(403, status(&server, "POST", neighbour).await);
    let stranger = "host: evil.example\r\norigin: http://evil.example\r\n";
    assert_eq!(403, status(&server, "POST", stranger).await);
}
