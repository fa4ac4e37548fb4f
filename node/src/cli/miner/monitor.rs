//! Metrics and health of a running miner, over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use miner::operate::Desk;
use prometheus_client::registry::Registry;
use rpc::ports::{Check, Readiness};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::super::client::CliError;

/// Whether a miner can work, in the words of the health interface.
pub(super) struct Health(pub(super) Arc<Desk>);

impl Readiness for Health {
    fn checks(&self) -> Vec<Check> {
        let check = |it: miner::operate::Check| {
            let miner::operate::Check { name, is_ok, detail } = it;
            Check { name, is_ok, detail }
        };
        self.0.checks().into_iter().map(check).collect()
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

    /// Serves until `stop` is cancelled.
    pub(super) async fn serve(
        self,
        registry: Arc<Registry>,
        desk: Arc<Desk>,
        stop: CancellationToken,
    ) {
        let routes = rpc::monitoring_routes(registry, Arc::new(Health(desk)));
        let serving = axum::serve(self.listener, routes);
        if let Err(error) = serving.with_graceful_shutdown(stop.cancelled_owned()).await {
            tracing::error!(%error, "metrics are not served any more");
        }
    }
}
