//! Stopping in order.

use std::path::PathBuf;
use std::time::Duration;

use jsonrpsee::core::client::ClientT;
use jsonrpsee::rpc_params;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::client::{PATIENCE, TestServer, eventually, transfer};
use crate::subscriptions::subscribe;
use crate::world::{FORKS, facts};

#[tokio::test]
async fn waiting_calls_subscriptions_and_idle_connections_end_at_once() {
    let mut server = TestServer::start().await;
    let hash = server.send(&transfer(1, 0)).await;
    let idle = server.connect().await;
    let client = server.websocket().await;
    let mut events = subscribe(&client, "blocks", Value::Null).await;
    let http = server.http();
    let before = server.world.lookups();
    let waiting = tokio::spawn(async move {
        let params = rpc_params![hash, json!({"timeoutMs": 60_000})];
        http.request::<Value, _>("ombra_waitForTransaction", params).await
    });
    eventually("it waits", || server.world.lookups() > before).await;

    server.shutdown.cancel();
    let stopped = tokio::time::timeout(Duration::from_secs(2), &mut server.finished).await;
    stopped.expect("stopped in time").unwrap().unwrap();
    let refused = waiting.await.unwrap().unwrap_err();
    assert!(format!("{refused:?}").contains("SHUTTING_DOWN"), "{refused:?}");
    let ended = tokio::time::timeout(PATIENCE, events.next()).await.unwrap();
    assert!(ended.is_none_or(|event| event.is_err()), "no more events");
    drop(idle);
    assert!(TcpStream::connect(server.endpoints.rpc).await.is_err(), "the port is closed");
    assert!(!server.endpoints.admin.clone().unwrap().exists(), "the socket is gone");
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let server = TestServer::start().await;
    let config =
        rpc::Config { listen: server.endpoints.rpc, metrics: false, ..rpc::Config::default() };
    let registry = prometheus_client::registry::Registry::default();
    let ports = server.world.ports();
    let stop = tokio_util::sync::CancellationToken::new();
    let refused = rpc::start(config, facts(FORKS), ports, registry, None::<PathBuf>, stop).await;
    let told = refused.err().unwrap().to_string();
    assert!(told.contains(&server.endpoints.rpc.to_string()), "{told}");
}
