//! JSON-RPC over HTTP and WebSocket: from a request to the methods, and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Full};
use jsonrpsee::Methods;
use jsonrpsee::core::middleware::RpcServiceBuilder;
use jsonrpsee::server::{
    BatchRequestConfig, ConnectionState, HttpRequest, PingConfig, RandomStringIdProvider,
    Server as JsonRpcServer, ServerConfig, ServerConfigBuilder, StopHandle, TowerServiceBuilder,
    ws,
};
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::types::error::reject_too_big_batch_request;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Semaphore;
use tower::Service;
use tower::layer::util::Identity;

use super::api::PoolSubscriptions;
use super::middleware::{Checks, Connection, Shared};
use super::registry::count_elements;
use crate::admission::{Calls, Client, Kept, Readers};
use crate::config::Limits;
use crate::error::RpcError;
use crate::transport::body::{BodyError, BodyReader, ReadBody};
use crate::transport::flow_control::FlowControl;
use crate::transport::pages;
use crate::transport::resources::Resources;

/// A set of methods, served over HTTP and WebSocket.
#[derive(Clone)]
pub(crate) struct Interface(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    methods: Methods,
    http: ServerConfig,
    websockets: TowerServiceBuilder<Identity, Identity>,
    bodies: BodyReader,
    batch_calls_max: usize,
    requests: Arc<Semaphore>,
    /// Who asks where nobody is asked who it is.
    nobody: Client,
    readers: Readers,
    next_connection: AtomicU32,
    stop: StopHandle,
}

impl Interface {
    pub(crate) fn new(
        shared: Shared,
        methods: Methods,
        limits: &Limits,
        resources: Resources,
        stop: StopHandle,
    ) -> Self {
        let Resources { bodies, nobody, readers, .. } = resources;
        let size = |count: u32| usize::try_from(count).unwrap_or(Semaphore::MAX_PERMITS);
        let http = config(limits).max_request_body_size(limits.request_bytes_max).build();
        let ping = PingConfig::new()
            .ping_interval(limits.ping_interval())
            .inactive_limit(limits.ping_interval().saturating_mul(2));
        let websocket = config(limits)
            .max_request_body_size(limits.websocket_message_bytes_max)
            .max_connections(limits.websockets_max)
            .max_subscriptions_per_connection(limits.subscriptions_max)
            .set_message_buffer_capacity(limits.websocket_queue_max.max(1))
            .set_id_provider(RandomStringIdProvider::new(16))
            .enable_ws_ping(ping)
            .ws_only()
            .build();
        Self(Arc::new(Inner {
            shared: Arc::new(shared),
            methods,
            http,
            websockets: JsonRpcServer::builder().set_config(websocket).to_service_builder(),
            bodies,
            batch_calls_max: size(limits.batch_calls_max),
            requests: Arc::new(Semaphore::new(size(limits.connections_max).saturating_mul(2))),
            nobody,
            readers,
            next_connection: AtomicU32::new(0),
            stop,
        }))
    }

    /// Over HTTP and WebSocket.
    pub(crate) fn routes(self) -> Router {
        Router::new().route("/", post(call).get(upgrade)).with_state(self)
    }

    /// Over HTTP only.
    pub(crate) fn http_routes(self) -> Router {
        Router::new().route("/", post(call)).with_state(self)
    }
}

impl Inner {
    fn checks(&self, connection: Connection, calls: Calls) -> Checks {
        Checks {
            calls,
            shared: Arc::clone(&self.shared),
            connection,
            readers: self.readers.clone(),
        }
    }
}

fn config(limits: &Limits) -> ServerConfigBuilder {
    ServerConfig::builder()
        .max_response_body_size(limits.response_bytes_max)
        .set_batch_request_config(BatchRequestConfig::Limit(limits.batch_calls_max))
}

/// A JSON-RPC request or batch.
async fn call(State(interface): State<Interface>, request: Request) -> Response {
    let calls = calls_of(&interface.0, &request);
    let response = answer(&interface.0, request, calls.clone()).await;
    match calls.end() {
        Ok(()) => response,
        Err(error) => error_response(StatusCode::TOO_MANY_REQUESTS, error),
    }
}

fn calls_of(inner: &Inner, request: &Request) -> Calls {
    Calls::of(request.extensions().get::<Client>().unwrap_or(&inner.nobody).clone())
}

async fn answer(inner: &Inner, request: Request, calls: Calls) -> Response {
    let (parts, body) = request.into_parts();
    let read = inner.bodies.read(calls.client().share(), &parts.headers, body).await;
    let ReadBody { bytes, memory } = match read {
        Ok(read) => read,
        Err(error) => {
            inner.shared.metrics.request_refused();
            return refused(error, inner.bodies.bytes_max());
        }
    };
    if has_more_elements(&bytes, inner.batch_calls_max) {
        return error_response(StatusCode::OK, reject_too_big_batch_request(inner.batch_calls_max));
    }
    let Ok(permit) = Arc::clone(&inner.requests).try_acquire_owned() else {
        let busy = RpcError::busy("BUSY", "too many requests at the same time", 100);
        return error_response(StatusCode::SERVICE_UNAVAILABLE, busy);
    };

    let mut request = HttpRequest::new(Full::new(bytes));
    *request.method_mut() = parts.method;
    *request.headers_mut() = parts.headers;
    let connection_id = inner.next_connection.fetch_add(1, Ordering::Relaxed);
    let connection = ConnectionState::new(inner.stop.clone(), connection_id, permit);
    let room = Arc::new(Mutex::default());
    let checks = inner.checks(Connection::Http(Arc::clone(&room)), calls);
    let response = jsonrpsee::server::http::call_with_service_builder(
        request,
        inner.http.clone(),
        connection,
        inner.methods.clone(),
        RpcServiceBuilder::new().layer(checks),
    )
    .await;
    drop(memory);
    let (head, body) = response.into_parts();
    let Ok(bytes) = body.collect().await.map(Collected::to_bytes) else {
        return error_response(StatusCode::INTERNAL_SERVER_ERROR, RpcError::Internal);
    };
    // The library's mark of a message that gets no answer.
    if *bytes == *b"null" {
        return StatusCode::NO_CONTENT.into_response();
    }
    // The room is free again when the last byte was written, whoever has the bytes till then.
    let kept = Kept { bytes, _room: std::mem::take(&mut *room.lock()) };
    Response::from_parts(head, Body::from(Bytes::from_owner(kept)))
}

/// The start of a WebSocket.
async fn upgrade(State(Interface(inner)): State<Interface>, mut request: Request) -> Response {
    if !ws::is_upgrade_request(&request) {
        if let Some(page) = pages::welcome(&request) {
            return page;
        }
        let text = "POST JSON-RPC 2.0 here, or open a WebSocket. rpc.discover lists the methods.\n";
        return (StatusCode::UPGRADE_REQUIRED, [UPGRADE], text).into_response();
    }
    // The WebSocket's bytes begin after the head, and nothing may stand between.
    if !HttpBody::is_end_stream(request.body()) {
        return (StatusCode::BAD_REQUEST, "a WebSocket begins without a body\n").into_response();
    }
    let flow_control = request
        .extensions()
        .get::<Arc<FlowControl>>()
        .filter(|flow_control| flow_control.open_websocket());
    let Some(flow_control) = flow_control.cloned() else {
        let text = "open the WebSocket with the first request of its connection\n";
        return (StatusCode::BAD_REQUEST, text).into_response();
    };
    let calls = calls_of(&inner, &request);
    let Some(place) = calls.client().share().websocket() else {
        let text = "this address has as many WebSockets open as one client may have\n";
        return (StatusCode::TOO_MANY_REQUESTS, text).into_response();
    };
    flow_control.occupy(place, inner.bodies.memory().of(calls.client().share()));
    let checks = inner.checks(Connection::WebSocket(flow_control), calls);
    let connection_id = inner.next_connection.fetch_add(1, Ordering::Relaxed);
    let mut service = inner
        .websockets
        .clone()
        .connection_id(connection_id)
        .set_rpc_middleware(RpcServiceBuilder::new().layer(checks))
        .build(inner.methods.clone(), inner.stop.clone());
    request.extensions_mut().insert(Arc::<PoolSubscriptions>::default());
    match service.call(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => {
            tracing::debug!(%error, "a WebSocket was not opened");
            StatusCode::BAD_REQUEST.into_response()
        }
    }
}

const UPGRADE: (HeaderName, &str) = (header::UPGRADE, "websocket");

/// Whether a large body is an array of more than `max` elements. The server library looks at small
/// ones, after reading all elements: they cannot cost much.
fn has_more_elements(body: &[u8], max: usize) -> bool {
    const LARGE: usize = 256 * 1024;
    body.len() > LARGE && count_elements(body, max) > max
}

fn refused(error: BodyError, bytes_max: usize) -> Response {
    if error == BodyError::TooLarge {
        let limit = u32::try_from(bytes_max).unwrap_or(u32::MAX);
        return jsonrpsee::server::http::response::too_large(limit).map(Body::new);
    }
    error_response(error.status(), error.told(bytes_max))
}

fn error_response(status: StatusCode, error: impl Into<ErrorObjectOwned>) -> Response {
    let error: ErrorObjectOwned = error.into();
    (status, Json(json!({ "jsonrpc": "2.0", "id": null, "error": error }))).into_response()
}
