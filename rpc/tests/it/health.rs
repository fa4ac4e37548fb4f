//! Health and metrics.

use rpc::ports::Check;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::client::{TestServer, assert_has, eventually_asked, exchange, transfer};

#[tokio::test]
async fn readiness_lists_each_check_and_fails_with_one() {
    let server = TestServer::start().await;
    assert_eq!((200, "ok\n".to_owned()), server.get("/healthz").await);
    assert_eq!(json!(true), server.found("/readyz").await["ready"]);
    let lag = Check { name: "lag", is_ok: false, detail: "9 blocks behind".to_owned() };
    server.world.state().checks.push(lag);
    // What was seen a moment ago is told to others, too.
    eventually_asked("not ready", async || server.get("/readyz").await.0 == 503).await;
    let (_, body) = server.get_json("/readyz").await;
    let expected = json!({"name": "lag", "ok": false, "detail": "9 blocks behind"});
    assert_eq!(expected, body["checks"][1]);
}

#[tokio::test]
async fn a_wrong_clock_is_told_and_leaves_the_node_ready() {
    let server = TestServer::start().await;
    let body = server.found("/readyz").await;
    let clock = json!({"ok": false, "detail": "it is wrong"});
    assert_has(&body, &json!({"ready": true, "clock": clock}));
    let is_told = |check: &Value| check["name"] == "clock";
    assert!(!body["checks"].as_array().unwrap().iter().any(is_told), "{body}");
}

#[tokio::test]
async fn metrics_count_calls_by_method_and_error() {
    let server = TestServer::start().await;
    server.send(&transfer(1, 0)).await;
    server.call("ombra_getBlock", json!([7])).await;
    server.call("made_up", json!([])).await;
    let stream = TcpStream::connect(server.endpoints.metrics.unwrap()).await.unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let (status, text) = exchange(stream, request).await;
    assert_eq!(200, status);
    for line in [
        "ombra_rpc_calls_total{method=\"ombra_sendTransaction\",error=\"0\"} 1",
        "ombra_rpc_calls_total{method=\"ombra_getBlock\",error=\"-32051\"} 1",
        "ombra_rpc_calls_total{method=\"unknown\",error=\"-32601\"} 1",
        "ombra_rpc_call_seconds_count{method=\"ombra_getBlock\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(404, server.get("/metrics").await.0, "not on the network port");
}

#[tokio::test]
async fn a_message_without_a_call_gets_no_answer() {
    let server = TestServer::start().await;
    let notification = r#"{"jsonrpc":"2.0","method":"ombra_chainInfo","params":[]}"#;
    for message in [notification.to_owned(), format!("[{notification},{notification}]")] {
        assert_eq!((204, String::new()), server.post(&message).await, "{message}");
    }
}
