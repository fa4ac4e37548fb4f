//! Metrics and health of a gateway, over HTTP, on a port of their own: no key is needed there.

use std::sync::Arc;
use std::time::Duration;

use agent::clock::Clock as _;
use axum::Router;
use gateway::request_service::RequestService;
use rpc::ports::{Check, Readiness};
use tokio_util::sync::CancellationToken;

use super::figures::Figures;
use crate::clock::Clock;
use crate::monitor::MonitorPort;

/// Where `--metrics` without an address serves.
pub(super) const LOCAL: &str = "127.0.0.1:8789";
/// How often the store and the node are looked at for it.
const LOOK: Duration = Duration::from_secs(2);

/// Whether a gateway can work, in the words of the health interface.
struct Health(Arc<RequestService>);

impl Readiness for Health {
    fn checks(&self) -> Vec<Check> {
        let check = |it: gateway::operate::Check| {
            let gateway::operate::Check { name, is_ok, detail } = it;
            Check { name, is_ok, detail }
        };
        self.0.checks().into_iter().map(check).collect()
    }
}

/// Serves until `stop` is cancelled, and a few seconds longer who is being answered.
pub(crate) async fn serve(
    port: MonitorPort,
    figures: Arc<Figures>,
    service: Arc<RequestService>,
    stop: CancellationToken,
) {
    let registry = Arc::new(figures.registry(Arc::clone(&service), Clock.now_ms()));
    let health = Arc::new(Health(Arc::clone(&service)));
    let listener = port.into_listener();
    let serving = rpc::serve_monitoring(listener, registry, health, Router::new(), stop);
    tokio::join!(serving, service.look_out(LOOK));
}
