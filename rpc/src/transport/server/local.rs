//! The network port's interface without a network: for fuzzing, and for whoever wants the answers
//! of a node in its own process.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, Request};
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use jsonrpsee::server::ServerHandle;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::parts::Parts;
use super::routes;
use crate::config::Limits;
use crate::ports::{ChainFacts, Ports};

/// Answers what would be posted to the network port, through the same code.
#[derive(Clone, Debug)]
pub struct Local {
    router: Router,
    /// Once this is dropped, the server library takes itself for stopped.
    _running: ServerHandle,
}

impl Local {
    /// The interface over these ports. Nothing runs in the background: a call that waits for
    /// something to happen is answered when its time is over.
    #[must_use]
    pub fn new(facts: ChainFacts, ports: &Ports, limits: &Limits) -> Self {
        let (mut registry, shutdown) = (MetricsRegistry::default(), CancellationToken::new());
        let parts = Parts::assemble(facts, ports, limits, &mut registry, &shutdown);
        let router = routes::public_routes(parts.public, parts.rest, Arc::clone(&ports.readiness));
        Self { router, _running: parts.websockets }
    }

    /// The HTTP status and the body with which a body is answered.
    pub fn post(&self, body: Vec<u8>) -> BoxFuture<'static, (u16, Vec<u8>)> {
        let router = self.router.clone();
        Box::pin(async move {
            let mut request = Request::new(Body::from(body));
            *request.method_mut() = Method::POST;
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
            let Ok(response) = router.oneshot(request).await;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await;
            (status, body.map(|body| body.to_bytes().to_vec()).unwrap_or_default())
        })
    }
}
