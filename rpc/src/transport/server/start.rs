//! Binding the ports.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::admin_socket::AdminSocket;
use super::clients::Clients;
use super::error::StartError;
use super::listener::Listener;
use super::origin_check::OriginCheck;
use super::parts::Parts;
use super::run::Server;
use super::{pace, routes};
use crate::config::Config;
use crate::ports::{ChainFacts, Endpoints, Ports};
use crate::transport::metrics;

/// Opens the ports and, unless `admin_socket` is none, the operator's socket. Nothing is answered
/// before [`Server::finished`] is awaited.
///
/// What is measured here is added to `registry`, and `/metrics` answers with all of it. The node
/// cancels `shutdown` when it stops.
///
/// # Errors
/// [`StartError`] names what cannot be opened.
///
/// The future is boxed here, so that everything below is compiled once, in this crate.
pub fn start(
    config: Config,
    facts: ChainFacts,
    ports: Ports,
    registry: MetricsRegistry,
    admin_socket: impl Into<Option<PathBuf>>,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<Server, StartError>> {
    Box::pin(bind(config, facts, ports, registry, admin_socket.into(), shutdown))
}

async fn bind(
    config: Config,
    facts: ChainFacts,
    ports: Ports,
    mut registry: MetricsRegistry,
    admin_socket: Option<PathBuf>,
    shutdown: CancellationToken,
) -> Result<Server, StartError> {
    let Config { listen, metrics_listen, metrics: serves_metrics, origins, hosts, rate, limits } =
        config;
    let (rpc_listener, rpc_address) = open("rpc", listen).await?;
    let metrics_listener =
        if serves_metrics { Some(open("metrics", metrics_listen).await?) } else { None };
    let admin = admin_socket.map(AdminSocket::bind).transpose()?;
    let endpoints = Endpoints {
        rpc: rpc_address,
        metrics: metrics_listener.as_ref().map(|(_, address)| *address),
        admin: admin.as_ref().map(|socket| socket.path().to_owned()),
    };

    let Parts { public, operator, rest, shares, counts, hub, websockets, tasks } =
        Parts::assemble(facts, &ports, &limits, &mut registry, &shutdown);
    let listener = |bound| Listener::new(bound, &limits, counts.clone());
    let metrics =
        metrics_listener.map(|(bound, _)| (listener(bound), metrics::routes(Arc::new(registry))));
    let origin_check = OriginCheck::new(origins, hosts, rpc_address.ip());
    let routes = routes::public_routes(public, rest, Arc::clone(&ports.readiness));
    let clients = Arc::new(Clients::new(rate, shares.clone()));
    let routes = pace::guard(routes::compressed(routes), Arc::clone(&clients));
    Ok(Server {
        rpc: (listener(rpc_listener).shared_by(clients), origin_check.guard(routes)),
        metrics,
        admin: admin.map(|socket| (socket, operator.http_routes())),
        endpoints,
        counts,
        hub,
        memory: shares.memory().clone(),
        limits,
        shutdown,
        websockets,
        tasks,
    })
}

async fn open(
    purpose: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { purpose, address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}
