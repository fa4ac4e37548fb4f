//! What is served on which port.

use std::sync::Arc;

use axum::Router;
use prometheus_client::registry::Registry;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use crate::ports::Readiness;
use crate::transport::jsonrpc::Interface;
use crate::transport::rest::{self, Rest};
use crate::transport::{health, metrics, pages};

/// JSON-RPC, REST, health and the page for people, on the network port.
pub(super) fn public_routes(
    interface: Interface,
    rest: Rest,
    readiness: Arc<dyn Readiness>,
) -> Router {
    let health = health::routes(readiness);
    interface.routes().merge(health).merge(rest::routes(rest)).merge(pages::routes())
}

/// `/metrics`, `/healthz` and `/readyz`, for a process that is no node.
pub(super) fn monitoring_routes(registry: Arc<Registry>, readiness: Arc<dyn Readiness>) -> Router {
    metrics::routes(registry).merge(health::routes(readiness))
}

/// The routes, with large answers compressed for who asks for it. Streams are not: their events
/// would wait for each other.
pub(super) fn compressed(routes: Router) -> Router {
    let compression = CompressionLayer::new().quality(CompressionLevel::Fastest);
    routes.layer(compression)
}
