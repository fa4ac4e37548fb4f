//! Metrics and health of a miner, over HTTP: the same port while it starts and while it works.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use miner::operate::{Desk, WaitFact};
use miner::waiting::Waiting;
use prometheus_client::registry::Registry;
use rpc::ports::{Check, Readiness};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use types::Hash;

use super::super::client::CliError;

/// Whether a miner can work, in the words of the health interface.
#[derive(Debug)]
pub(super) struct Health {
    /// What its start waits for.
    pub(super) waiting: Arc<Waiting>,
    /// Where it is asked once it works.
    desk: OnceLock<Arc<Desk>>,
}

impl Health {
    /// Of a miner that starts.
    pub(super) const fn new(waiting: Arc<Waiting>) -> Self {
        Self { waiting, desk: OnceLock::new() }
    }

    /// It works from now on.
    pub(super) fn works(&self, desk: Arc<Desk>) {
        self.desk.get_or_init(|| desk);
    }

    /// Where it is asked, if it works.
    pub(super) fn desk(&self) -> Option<&Desk> {
        self.desk.get().map(AsRef::as_ref)
    }
}

impl Readiness for Health {
    fn checks(&self) -> Vec<Check> {
        let check = |it: miner::operate::Check| {
            let miner::operate::Check { name, is_ok, detail } = it;
            Check { name, is_ok, detail }
        };
        match self.desk() {
            Some(desk) => desk.checks().into_iter().map(check).collect(),
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
        return "nothing is waited for; journal, model and tools are being opened".to_owned();
    }
    let texts: Vec<_> = waits.iter().map(WaitFact::text).collect();
    format!("waiting for {}", texts.join("; "))
}

/// Receipts of calls whose answers are on the chain.
fn receipts(health: Arc<Health>) -> Router {
    Router::new().route("/receipts/{call}", get(receipt)).with_state(health)
}

async fn receipt(State(health): State<Arc<Health>>, UrlPath(call): UrlPath<Hash>) -> Response {
    let Some(desk) = health.desk.get().cloned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    // The disk is read on a thread that may wait for it.
    match tokio::task::spawn_blocking(move || desk.published_receipt(&call)).await {
        Ok(Ok(Some(receipt))) => Json(receipt).into_response(),
        Ok(Ok(None)) => StatusCode::NOT_FOUND.into_response(),
        Ok(Err(error)) => {
            tracing::error!(%call, %error, "a receipt cannot be read");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        Err(_panic) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The port, bound.
pub(super) struct Monitor {
    listener: TcpListener,
    address: SocketAddr,
}

impl Monitor {
    /// Binds; port 0 picks a free one.
    pub(super) async fn bind(address: SocketAddr) -> Result<Self, CliError> {
        let failed = |source| CliError::File { what: format!("metrics on {address}"), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Where it is.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled, and a few seconds longer who is being answered.
    pub(super) async fn serve(
        self,
        registry: Arc<Registry>,
        health: Arc<Health>,
        stop: CancellationToken,
    ) {
        let receipts = receipts(Arc::clone(&health));
        rpc::serve_monitoring(self.listener, registry, health, receipts, stop).await;
    }
}
