//! The interface over HTTP.
//!
//! ```text
//! POST /v1/chat/completions    chat.rs, stream.rs
//! GET  /v1/agents/…, POST       agents.rs
//! GET  /v1/models, /v1/key, /v1/requests   lists.rs
//! GET  /                       page.rs
//! POST /mcp                    mcp/
//! GET  /healthz                whether requests can be taken in
//! ```
//!
//! Every path below `/v1` needs a key, and so does `/mcp`. Before that, `authentication.rs` turns
//! away hosts and pages that may not ask.

mod agents;
pub(crate) mod authentication;
pub(crate) mod body;
mod chat;
pub(crate) mod connection;
mod connection_limit;
mod lists;
mod page;
mod server;
mod stream;
mod timed_stream;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};

use crate::mcp;
use crate::openai::ApiFault;
use crate::request_service::RequestService;
pub(crate) use lists::PUBLIC;
pub use server::Server;

/// The routes of a service.
pub(crate) fn routes(service: Arc<RequestService>) -> Router {
    let state = Arc::clone(&service);
    let guard = axum::middleware::from_fn_with_state(Arc::clone(&service), mcp::guard);
    let mcp = axum::routing::any_service(mcp::service(&service)).layer(guard);
    Router::new()
        .route("/mcp", mcp)
        .route("/v1/chat/completions", post(chat::chat))
        .route("/v1/agents/{id}/{version}", get(agents::agent))
        .route("/v1/agents/{id}/{version}/{method}", post(agents::call))
        .route("/v1/models", get(lists::models))
        .route("/v1/models/{*model}", get(lists::model))
        .route("/v1/key", get(lists::key))
        .route("/v1/requests", get(lists::requests))
        .route("/", get(page::index))
        .route("/page.js", get(page::script))
        .route("/page.css", get(page::style))
        .route("/healthz", get(health))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_path)
        .layer(axum::middleware::from_fn_with_state(state, authentication::guard))
        .with_state(service)
}

async fn no_such_path(method: Method, uri: Uri) -> Response {
    body::fault(&ApiFault::no_such_path(method.as_str(), uri.path()))
}

async fn health(State(service): State<Arc<RequestService>>) -> Response {
    if service.is_open() {
        return (StatusCode::OK, "ok\n").into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "the gateway is still finishing work from before its start\n")
        .into_response()
}
