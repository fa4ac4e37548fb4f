//! The connection to a node: calls over HTTP, and the socket that subscriptions share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use jsonrpsee::core::client::ClientT;
use jsonrpsee::core::traits::ToRpcParams;
use jsonrpsee::http_client::{HttpClient, HttpClientBuilder};
use jsonrpsee::ws_client::{WsClient, WsClientBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Mutex;

use super::url::{NodeUrl, shown};
use super::{Answer, ClientError};

/// Where a node listens unless told otherwise.
pub const DEFAULT_URL: &str = "http://127.0.0.1:8777";
/// The parameters of a method that has none.
pub const NO_PARAMS: [u8; 0] = [];

/// A connection attempt that takes longer counts as not reachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the longest waiting call of the node (60 seconds).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);
/// The largest answer accepted: a page of full blocks.
const RESPONSE_BYTES_MAX: u32 = 256 * 1024 * 1024;
/// The largest request sent: an array of 1,000 transactions or a large blob's chunks.
const REQUEST_BYTES_MAX: u32 = 64 * 1024 * 1024;
/// Events held for a subscriber that is busy; beyond it the subscription is resumed from the chain.
const EVENTS_HELD_MAX: usize = 4096;

/// A client of one node. Cloning is cheap; clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    url: NodeUrl,
    http: HttpClient,
    /// Opened by the first subscription, opened again when it is lost.
    socket: Arc<Mutex<Option<Arc<WsClient>>>>,
    /// Calls that the node did not answer.
    failures: Arc<AtomicU64>,
}

impl Client {
    /// A client of the node at `url` (`http://`, `https://`, `ws://` or `wss://`); nothing is sent yet.
    ///
    /// # Errors
    /// When the URL has another form.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let url = NodeUrl::parse(url)?;
        let http = HttpClientBuilder::default()
            .request_timeout(REQUEST_TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .max_response_size(RESPONSE_BYTES_MAX)
            .max_request_size(REQUEST_BYTES_MAX)
            .build(url.http())
            .map_err(|source| ClientError::from_call(url.http(), source))?;
        Ok(Self { url, http, socket: Arc::default(), failures: Arc::default() })
    }

    /// The node's address for JSON-RPC over HTTP.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.http()
    }

    /// The same without what may be secret in it, for people and logs.
    #[must_use]
    pub fn shown_url(&self) -> String {
        shown(self.url())
    }

    /// The node's address for subscriptions over WebSocket.
    pub(super) fn socket_url(&self) -> &str {
        self.url.socket()
    }

    /// How many calls of this client and its clones the node did not answer, or not as a node does.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Calls any method with positional parameters (anything that serialises to a JSON array).
    ///
    /// # Errors
    /// When the node is not reachable, refuses, or answers something that is not a `T`.
    pub async fn call<T, P>(
        &self,
        method: &'static str,
        params: P,
    ) -> Result<Answer<T>, ClientError>
    where
        T: DeserializeOwned,
        P: Serialize,
    {
        let params = Positional::of(method, &params)?;
        Answer::read(method, self.request(method, params).await?)
    }

    /// The call itself. Boxed, so that the HTTP client is compiled once, in this crate.
    fn request(
        &self,
        method: &'static str,
        params: Positional,
    ) -> BoxFuture<'_, Result<Box<RawValue>, ClientError>> {
        Box::pin(async move {
            let answer = self.http.request(method, params).await;
            answer.map_err(|source| {
                let error = ClientError::from_call(self.url.http(), source);
                if error.is_of_node() {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                }
                error
            })
        })
    }

    /// The shared WebSocket connection, opened if there is none that works.
    pub(super) fn socket(&self) -> BoxFuture<'_, Result<Arc<WsClient>, ClientError>> {
        Box::pin(self.open_socket())
    }

    async fn open_socket(&self) -> Result<Arc<WsClient>, ClientError> {
        let mut held = self.socket.lock().await;
        if let Some(open) = held.as_ref().filter(|socket| socket.is_connected()) {
            return Ok(Arc::clone(open));
        }
        let opened = WsClientBuilder::default()
            .request_timeout(REQUEST_TIMEOUT)
            .connection_timeout(CONNECT_TIMEOUT)
            .max_response_size(RESPONSE_BYTES_MAX)
            .max_buffer_capacity_per_subscription(EVENTS_HELD_MAX)
            .enable_ws_ping(jsonrpsee::ws_client::PingConfig::default())
            .build(self.url.socket())
            .await
            .map_err(|source| ClientError::from_call(self.url.socket(), source))?;
        let opened = Arc::new(opened);
        *held = Some(Arc::clone(&opened));
        Ok(opened)
    }
}

/// Positional parameters, already serialised.
pub(super) struct Positional(Box<RawValue>);

impl Positional {
    pub(super) fn of<P: Serialize>(method: &'static str, params: &P) -> Result<Self, ClientError> {
        to_raw_value(params).map(Self).map_err(|source| ClientError::Unwritable { method, source })
    }
}

impl ToRpcParams for Positional {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        Ok(Some(self.0))
    }
}
