//! Metrics and health of a miner, over HTTP: the same port while it starts and while it works.

use std::sync::{Arc, OnceLock};

use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use miner::operate::{StatusService, WaitFact};
use miner::waiting::Waiting;
use prometheus_client::registry::Registry;
use rpc::ports::{Check, Readiness};
use tokio_util::sync::CancellationToken;
use types::Hash;

use super::super::monitor::MonitorPort;

/// Whether a miner can work, in the words of the health interface.
#[derive(Debug)]
pub(super) struct Health {
    /// What its start waits for.
    pub(super) waiting: Arc<Waiting>,
    /// Where it is asked once it works.
    status_service: OnceLock<Arc<StatusService>>,
}

impl Health {
    /// Of a miner that starts.
    pub(super) const fn new(waiting: Arc<Waiting>) -> Self {
        Self { waiting, status_service: OnceLock::new() }
    }

    /// It works from now on.
    pub(super) fn works(&self, status_service: Arc<StatusService>) {
        self.status_service.get_or_init(|| status_service);
    }

    /// Where it is asked, if it works.
    pub(super) fn status_service(&self) -> Option<&StatusService> {
        self.status_service.get().map(AsRef::as_ref)
    }
}

impl Readiness for Health {
    fn checks(&self) -> Vec<Check> {
        let check = |it: miner::operate::Check| {
            let miner::operate::Check { name, is_ok, detail } = it;
            Check { name, is_ok, detail }
        };
        match self.status_service() {
            Some(status_service) => status_service.checks().into_iter().map(check).collect(),
            None => vec![Check {
                name: "start",
                is_ok: false,
                detail: waits(&self.waiting.told().waits),
            }],
        }
    }
}

/// What a start waits for, as one text.
pub(super) fn waits(waits: &[WaitFact]) -> String {
    if waits.is_empty() {
        return "opening journal, model and tools".to_owned();
    }
    let texts: Vec<_> = waits.iter().map(WaitFact::text).collect();
    format!("waiting for {}", texts.join("; "))
}

/// Receipts of calls whose answers are on the chain.
fn receipts(health: Arc<Health>) -> Router {
    Router::new().route("/receipts/{call}", get(receipt)).with_state(health)
}

async fn receipt(State(health): State<Arc<Health>>, UrlPath(call): UrlPath<Hash>) -> Response {
    let Some(status_service) = health.status_service.get().cloned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    // The disk is read on a thread that may wait for it.
    match tokio::task::spawn_blocking(move || status_service.published_receipt(&call)).await {
        Ok(Ok(Some(receipt))) => Json(receipt).into_response(),
        Ok(Ok(None)) => StatusCode::NOT_FOUND.into_response(),
        Ok(Err(error)) => {
            tracing::error!(%call, %error, "cannot read a receipt");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        Err(_panic) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Serves until `stop` is cancelled, and a few seconds longer who is being answered.
pub(super) async fn serve(
    port: MonitorPort,
    registry: Arc<Registry>,
    health: Arc<Health>,
    stop: CancellationToken,
) {
    let receipts = receipts(Arc::clone(&health));
    rpc::serve_monitoring(port.into_listener(), registry, health, receipts, stop).await;
}
