//! A running server, and the ways in which tests talk to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::http_client::HttpClient;
use jsonrpsee::ws_client::{WsClient, WsClientBuilder};
use prometheus_client::registry::Registry;
use rpc::ports::Endpoints;
use rpc::{Config, Limits};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use types::build::{self, Envelope};
use types::tx::{AgentCall, AgentClaim, AgentRequest, ChatTurn, WorkLimits};
use types::{Amount, Body, Fork, Forks, Hash, Keypair};

use crate::world::{CHAIN_ID, FORKS, NOW, V7, V8, World, facts, key};

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// What the system keeps for a client that [`TestServer::connect_from`] makes.
const RECEIVED_BYTES_MAX: u32 = 256 * 1024;

pub struct TestServer {
    pub world: Arc<World>,
    pub endpoints: Endpoints,
    pub shutdown: CancellationToken,
    pub finished: JoinHandle<std::io::Result<()>>,
    pub folder: tempfile::TempDir,
}

impl TestServer {
    pub async fn start() -> Self {
        Self::start_with(Limits::default()).await
    }

    pub async fn start_with(limits: Limits) -> Self {
        Self::start_as(Config { limits, ..Config::default() }).await
    }

    /// A server of a chain on which the rules of v7 hold.
    pub async fn start_v7() -> Self {
        Self::start_on(V7, Config::default()).await
    }

    /// The same with the rules of v8.
    pub async fn start_v8() -> Self {
        Self::start_on(V8, Config::default()).await
    }

    pub async fn start_as(config: Config) -> Self {
        Self::start_on(FORKS, config).await
    }

    async fn start_on(forks: Forks, config: Config) -> Self {
        let world = World::new(forks);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = Config { listen: any, metrics_listen: any, ..config };
        let folder = tempfile::tempdir().unwrap();
        let shutdown = CancellationToken::new();
        let socket = folder.path().join("admin.sock");
        let registry = Registry::with_prefix("ombra");
        let server =
            rpc::start(config, facts(forks), world.ports(), registry, socket, shutdown.clone());
        let server = server.await.unwrap();
        let endpoints = server.endpoints().clone();
        let finished = tokio::spawn(server.finished());
        Self { world, endpoints, shutdown, finished, folder }
    }

    pub fn http(&self) -> HttpClient {
        HttpClient::builder().build(format!("http://{}", self.endpoints.rpc)).unwrap()
    }

    pub async fn websocket(&self) -> WsClient {
        let url = format!("ws://{}", self.endpoints.rpc);
        WsClientBuilder::default().request_timeout(PATIENCE).build(url).await.unwrap()
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.endpoints.rpc).await.unwrap()
    }

    /// Connects as another client: from `127.0.0.last`. The system keeps little of what is not read yet: by
    /// itself it keeps as much as its settings allow, which may be more than a whole answer.
    pub async fn connect_from(&self, last: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(RECEIVED_BYTES_MAX).unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        socket.connect(self.endpoints.rpc).await.unwrap()
    }

    /// Posts a text; answers the status and the body.
    pub async fn post(&self, body: &str) -> (u16, String) {
        exchange(self.connect().await, &post_text(body)).await
    }

    /// Posts a text to a path; answers the status and the body.
    pub async fn post_to(&self, path: &str, body: &str) -> (u16, String) {
        let text = String::from_utf8(post_text(body)).unwrap();
        let text = text.replacen("POST / ", &format!("POST {path} "), 1);
        exchange(self.connect().await, text.as_bytes()).await
    }

    pub async fn get(&self, path: &str) -> (u16, String) {
        exchange(self.connect().await, get_text(path, "").as_bytes()).await
    }

    /// The whole answer to a GET with these headers, each of which ends with a line break.
    pub async fn get_whole(&self, path: &str, headers: &str) -> Vec<u8> {
        let mut stream = self.connect().await;
        stream.write_all(get_text(path, headers).as_bytes()).await.unwrap();
        read_answer(&mut stream).await
    }

    /// A path's status and JSON.
    pub async fn get_json(&self, path: &str) -> (u16, Value) {
        let (status, body) = self.get(path).await;
        (status, serde_json::from_str(&body).unwrap_or_else(|_| panic!("{path}: {body}")))
    }

    /// The JSON of a path that must be there.
    pub async fn found(&self, path: &str) -> Value {
        let (status, json) = self.get_json(path).await;
        assert_eq!(200, status, "{path}: {json}");
        json
    }

    /// Calls a method; answers the whole response.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        self.call_raw(method, &params.to_string()).await
    }

    /// Calls a method that must succeed.
    pub async fn result(&self, method: &str, params: Value) -> Value {
        let mut response = self.call(method, params).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].take()
    }

    /// Calls a method that must fail; answers number, `data.code` and the whole error.
    pub async fn error(&self, method: &str, params: Value) -> (i64, String, Value) {
        let mut response = self.call(method, params).await;
        assert!(response.get("result").is_none(), "{method}: {response}");
        let error = response["error"].take();
        let code = error["data"]["code"].as_str().unwrap_or_default().to_owned();
        (error["code"].as_i64().unwrap(), code, error)
    }

    /// Calls a method that must fail with this number and `data.code`; answers `data`.
    pub async fn refused(&self, method: &str, params: Value, expected: (i64, &str)) -> Value {
        let (number, code, mut error) = self.error(method, params.clone()).await;
        assert_eq!(expected, (number, code.as_str()), "{method} {params}: {error}");
        error["data"].take()
    }

    /// Calls a method with a parameter that must be refused by its name; answers `data`.
    pub async fn wrong_param(&self, method: &str, params: Value, field: &str) -> Value {
        let data = self.refused(method, params.clone(), INVALID_PARAMS).await;
        assert_eq!(data["field"], field, "{method} {params}: {data}");
        data
    }

    /// The items of a list that is asked for page by page.
    pub async fn items(&self, method: &str, question: Value) -> Vec<Value> {
        let pages = self.pages(method, question).await;
        pages.iter().flat_map(|page| page["items"].as_array().unwrap().clone()).collect()
    }

    /// The pages of a list.
    pub async fn pages(&self, method: &str, mut question: Value) -> Vec<Value> {
        let mut pages = Vec::new();
        loop {
            let page = self.result(method, question.clone()).await;
            question["cursor"] = page["nextCursor"].clone();
            pages.push(page);
            if question["cursor"].is_null() {
                return pages;
            }
        }
    }

    /// Calls a method with parameters as text, whose order of members matters.
    pub async fn call_raw(&self, method: &str, params: &str) -> Value {
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let (_, body) = self.post(&request).await;
        serde_json::from_str(&body).unwrap_or_else(|_| panic!("not JSON: {body}"))
    }

    /// Sends a transaction that must be taken.
    pub async fn send(&self, tx: &str) -> String {
        let response = self.call_raw("ombra_sendTransaction", &format!("[{tx}]")).await;
        response["result"]["hash"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
    }
}

/// The number and `data.code` of a wrong parameter, and of what is not there.
pub const INVALID_PARAMS: (i64, &str) = (-32602, "INVALID_PARAMS");
pub const NOT_FOUND: (i64, &str) = (-32051, "NOT_FOUND");

/// Some members of an object are these; others do not matter.
#[track_caller]
pub fn assert_has(object: &Value, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(object[name], *value, "{name} of {object}");
    }
}

/// The head of a GET with these headers, each of which ends with a line break.
fn get_text(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n")
}

/// The head of a request for a WebSocket.
pub fn upgrade_text(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

pub fn post_text(body: &str) -> Vec<u8> {
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// Writes a request and reads until the connection ends; answers the status and the body.
pub async fn exchange<T: AsyncRead + AsyncWrite + Unpin>(
    mut stream: T,
    request: &[u8],
) -> (u16, String) {
    // A server that refuses may close before it has read everything.
    stream.write_all(request).await.ok();
    read_response(&mut stream).await
}

/// What comes until the connection ends as it should.
pub async fn read_answer<T: AsyncRead + Unpin>(stream: &mut T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    ended.expect("the connection is still open").expect("the answer is whole");
    bytes
}

/// What comes until the connection ends, however it ends.
pub async fn read_whole<T: AsyncRead + Unpin>(stream: &mut T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    ended.expect("the connection is still open").ok();
    bytes
}

pub async fn read_response<T: AsyncRead + Unpin>(stream: &mut T) -> (u16, String) {
    let text = String::from_utf8(read_whole(stream).await).unwrap();
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, body.to_owned())
}

/// A signed transaction.
pub fn signed(key: &Keypair, nonce: u64, body: &Body) -> String {
    // Kinds of v8 have to name the chain.
    let chain_id = (body.fork() == Some(Fork::V8)).then(|| CHAIN_ID.to_owned());
    build::build_tx(key, body, &Envelope::new(nonce, NOW, chain_id))
}

/// A signed transfer of one micro from the key of `seed`.
pub fn transfer(seed: u8, nonce: u64) -> String {
    signed(&key(seed), nonce, &fixtures::transfer(key(200).address(), 1))
}

/// A turn of a conversation.
pub fn chat_turn(conversation_id: Hash, content: &str) -> ChatTurn {
    ChatTurn { conversation_id, ..fixtures::turn(content) }
}

/// A signed turn.
pub fn turn(seed: u8, nonce: u64, content: &str) -> String {
    signed(&key(seed), nonce, &Body::ChatTurn(chat_turn(Hash::ZERO, content)))
}

/// What asks for a run with this nonce.
pub fn request_body(seed: u8, nonce: u64, prompt: &str) -> AgentRequest {
    fixtures::request(key(seed).address(), nonce, prompt, 10_000, 4)
}

/// Asks for a run; answers its id and the signed text.
pub fn request(seed: u8, nonce: u64) -> (Hash, String) {
    let body = request_body(seed, nonce, "prompt");
    (body.agent_run_id, signed(&key(seed), nonce, &Body::AgentRequest(body)))
}

/// Claims a run with the key of `seed`.
pub fn claim(seed: u8, nonce: u64, agent_run_id: Hash) -> String {
    let model_info = "model-7b".to_owned();
    let body = AgentClaim { model_info, ..fixtures::claim(key(seed).address(), agent_run_id) };
    signed(&key(seed), nonce, &Body::AgentClaim(body))
}

/// What the key of `seed` would ask of three members with this nonce, for these prices.
pub fn call(seed: u8, nonce: u64, agent_id: Hash, prices: [u64; 4]) -> AgentCall {
    AgentCall {
        prices: fixtures::prices(prices),
        limits: WorkLimits { input_tokens: 10, output_tokens: 10, fuel: 0, result_bytes: 16_384 },
        max_fee: Amount::new(10_000),
        timeout_ms: 60_000,
        ..fixtures::call(CHAIN_ID, key(seed).address(), nonce, agent_id)
    }
}

/// Waits until a condition holds.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    eventually_asked(what, async || condition()).await;
}

/// The same for a condition that has to be asked for.
pub async fn eventually_asked(what: &str, condition: impl AsyncFn() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition().await {
        assert!(tokio::time::Instant::now() < deadline, "never: {what}");
        tokio::task::yield_now().await;
    }
}
