//! Where requests are counted: behind the check of their origin, so that a page is told that it asks
//! too fast, and before everything that costs.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use super::clients::{self, Clients};

/// The address at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerAddress(pub(super) IpAddr);

/// The routes, for those who do not ask too fast. JSON-RPC counts its calls itself, and health is
/// free: who looks after a node must not be turned away.
pub(super) fn guard(routes: Router, clients: Arc<Clients>) -> Router {
    routes.layer(middleware::from_fn_with_state(clients, count))
}

async fn count(State(clients): State<Arc<Clients>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0);
    let client = clients.of(peer, request.headers());
    request.extensions_mut().insert(client.clone());
    if matches!(request.uri().path(), "/" | "/healthz" | "/readyz") {
        return next.run(request).await;
    }
    match client.take() {
        Ok(None) => next.run(request).await,
        Ok(Some(remaining)) => {
            let mut response = next.run(request).await;
            clients::tell(&client, remaining, response.headers_mut());
            response
        }
        Err(error) => {
            let mut response = error.into_response();
            clients::tell(&client, 0, response.headers_mut());
            response
        }
    }
}
