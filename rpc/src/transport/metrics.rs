//! What is measured of the interfaces, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `/metrics`, for Prometheus.
pub(super) fn routes(registry: Arc<Registry>) -> Router {
    Router::new().route("/metrics", get(metrics_text)).with_state(registry)
}

/// Some figures are read from the system when they are asked for.
async fn metrics_text(State(registry): State<Arc<Registry>>) -> Response {
    match tokio::task::spawn_blocking(move || text(&registry)).await {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// Everything in the registry in the format that Prometheus reads.
fn text(registry: &Registry) -> String {
    let mut text = String::with_capacity(64 * 1024);
    if prometheus_client::encoding::text::encode(&mut text, registry).is_err() {
        tracing::error!("a metric could not be written");
    }
    text
}

/// The label of a method that is not one.
pub(crate) const UNKNOWN_METHOD: &str = "unknown";

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct MethodLabel {
    method: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OutcomeLabels {
    method: &'static str,
    /// `0`, or the number of the error.
    error: i32,
}

/// Counters and histograms of the interfaces. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    calls: Family<OutcomeLabels, Counter>,
    seconds: Family<MethodLabel, Histogram, fn() -> Histogram>,
    connections: Gauge,
    connections_refused: Counter,
    requests_refused: Counter,
}

impl Metrics {
    /// Registers everything that this crate measures, without a prefix of its own.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            calls: Family::default(),
            seconds: Family::new_with_constructor(latency_histogram),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            requests_refused: Counter::default(),
        };
        let Self { calls, seconds, connections, connections_refused, requests_refused } = &metrics;
        registry.register(
            "rpc_calls",
            "Calls by method and error number, 0 if none",
            calls.clone(),
        );
        registry.register(
            "rpc_call_seconds",
            "Time to answer a call; the calls of a joined batch count once",
            seconds.clone(),
        );
        registry.register("rpc_connections", "Open connections", connections.clone());
        registry.register(
            "rpc_connections_refused",
            "Connections refused because too many were open",
            connections_refused.clone(),
        );
        registry.register(
            "rpc_requests_refused",
            "Requests refused for their size, their slowness, or for lack of memory",
            requests_refused.clone(),
        );
        metrics
    }

    /// `count` calls of a method took `elapsed` together and ended alike.
    pub(crate) fn observe(&self, method: &'static str, elapsed: Duration) {
        self.seconds.get_or_create(&MethodLabel { method }).observe(elapsed.as_secs_f64());
    }

    /// Calls of a method ended with the same error number, 0 for none.
    pub(crate) fn count(&self, method: &'static str, error: i32, calls: u64) {
        self.calls.get_or_create(&OutcomeLabels { method, error }).inc_by(calls);
    }

    pub(crate) fn connection_opened(&self) {
        self.connections.inc();
    }

    pub(crate) fn connection_closed(&self) {
        self.connections.dec();
    }

    pub(crate) fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    pub(crate) fn request_refused(&self) {
        self.requests_refused.inc();
    }
}

/// 50 µs to 26 s.
fn latency_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 2.0, 20))
}
