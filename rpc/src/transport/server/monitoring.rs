//! Monitoring of a process that is no node.

use std::sync::Arc;

use axum::Router;
use futures::future::BoxFuture;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listener::{self, Listener};
use super::routes;
use super::run::finish_within;
use crate::admission::AnswerMemory;
use crate::config::Limits;
use crate::ports::Readiness;
use crate::transport::metrics::Metrics;

/// Serves `/metrics`, `/healthz`, `/readyz` and `more` for a process that is no node until `shutdown` is
/// cancelled, with the usual limits on connections. Then open requests may end within the usual time.
pub fn serve_monitoring(
    listener: TcpListener,
    registry: Arc<MetricsRegistry>,
    readiness: Arc<dyn Readiness>,
    more: Router,
    shutdown: CancellationToken,
) -> BoxFuture<'static, ()> {
    let limits = Limits::default();
    // Its own connections are not measured.
    let counts = Metrics::register(&mut MetricsRegistry::default());
    let listener = Listener::new(listener, &limits, counts);
    let routes = routes::monitoring_routes(registry, readiness).merge(more);
    let (patience, connections) = (limits.shutdown_timeout(), TaskTracker::new());
    let memory = AnswerMemory::new(limits.response_memory_bytes_max);
    let context = listener::Context { limits, shutdown, connections: connections.clone(), memory };
    Box::pin(async move {
        listener.serve(routes, context).await;
        connections.close();
        finish_within(patience, connections.wait()).await;
    })
}
