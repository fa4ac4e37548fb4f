//! Listeners: binding, serving, stopping in order.

mod admin_socket;
mod body;
mod http;
mod io;
mod listener;
mod local;
mod pace;
mod patience;
mod visitors;

use std::io::Error as IoError;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::future::BoxFuture;
use jsonrpsee::server::{ServerHandle, stop_channel};
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::Api;
use crate::config::{Config, Limits};
use crate::events::Hub;
use crate::memory::AnswerMemory;
use crate::metrics::Metrics;
use crate::middleware::Shared;
use crate::ports::{ChainFacts, Endpoints, Ports, Readiness};
use crate::rate::{Client, Clients};
use crate::readers::{READERS_MAX, Readers};
use crate::registry::Registry;
use crate::rest::{Resources, Rest};
use crate::share::Shares;
use admin_socket::AdminSocket;
use http::Interface;
use listener::Listener;
use visitors::Visitors;

pub(crate) use body::{BodyReader, ReadBody};
pub use local::Local;

/// Why the interfaces cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port cannot be opened.
    #[error("{purpose} cannot listen on {address}")]
    Listen {
        /// `rpc` or `metrics`.
        purpose: &'static str,
        /// The address in the configuration.
        address: SocketAddr,
        /// Why.
        source: IoError,
    },
    /// The operator's socket cannot be made.
    #[error("the admin socket cannot be made at {path}")]
    AdminSocket {
        /// Where.
        path: PathBuf,
        /// Why.
        source: IoError,
    },
}

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
    let metrics = metrics_listener
        .map(|(bound, _)| (listener(bound), http::metrics_routes(Arc::new(registry))));
    let visitors = Visitors::new(origins, hosts, rpc_address.ip());
    let routes = http::public_routes(public, rest, Arc::clone(&ports.readiness));
    let clients = Arc::new(Clients::new(rate, shares.clone()));
    let routes = pace::guard(http::compressed(routes), Arc::clone(&clients));
    Ok(Server {
        rpc: (listener(rpc_listener).shared_by(clients), visitors.guard(routes)),
        metrics,
        admin: admin.map(|socket| (socket, http::admin_routes(operator))),
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
    let routes = http::monitoring_routes(registry, readiness).merge(more);
    let (patience, connections) = (limits.shutdown_timeout(), TaskTracker::new());
    let memory = AnswerMemory::new(limits.response_memory_bytes_max);
    let context = listener::Context { limits, shutdown, connections: connections.clone(), memory };
    Box::pin(async move {
        listener.serve(routes, context).await;
        connections.close();
        finish_within(patience, connections.wait()).await;
    })
}

/// What answers, before it is bound to anything.
struct Parts {
    public: Interface,
    operator: Interface,
    rest: Rest,
    shares: Shares,
    counts: Metrics,
    hub: Arc<Hub>,
    websockets: ServerHandle,
    tasks: TaskTracker,
}

impl Parts {
    fn assemble(
        facts: ChainFacts,
        ports: &Ports,
        limits: &Limits,
        registry: &mut MetricsRegistry,
        shutdown: &CancellationToken,
    ) -> Self {
        let counts = Metrics::register(registry);
        let hub = Arc::new(Hub::new(ports.clone(), limits.waiting_calls_max));
        let (stop, websockets) = stop_channel();
        let readers = Readers::new();
        let api = Api {
            facts: Arc::new(facts),
            ports: ports.clone(),
            limits: limits.clone(),
            hub: Arc::clone(&hub),
            readers: readers.clone(),
            shutdown: shutdown.clone(),
        };
        let tasks = TaskTracker::new();
        let resources = |readers| {
            let memory = AnswerMemory::new(limits.response_memory_bytes_max);
            let shares = Shares::new(limits, memory, READERS_MAX);
            Resources {
                metrics: counts.clone(),
                bodies: BodyReader::new(limits),
                nobody: Client::nobody(&shares),
                shares,
                readers,
                tasks: tasks.clone(),
            }
        };
        let interface = |registry, methods, resources| {
            let shared = Shared {
                registry,
                metrics: counts.clone(),
                submit: Arc::clone(&ports.submit),
                shutdown: shutdown.clone(),
                response_bytes_max: usize::try_from(limits.response_bytes_max)
                    .unwrap_or(usize::MAX),
            };
            Interface::new(shared, methods, limits, resources, stop.clone())
        };
        let shared = resources(readers);
        let shares = shared.shares.clone();
        let public = interface(Registry::public(), api.public_methods(), shared.clone());
        let operator = interface(Registry::admin(), api.admin_methods(), resources(Readers::new()));
        let rest = Rest::new(api, shared);
        Self { public, operator, rest, shares, counts, hub, websockets, tasks }
    }
}

/// Bound listeners that wait to be served.
#[expect(missing_debug_implementations, reason = "ports are opaque")]
pub struct Server {
    endpoints: Endpoints,
    rpc: (Listener, Router),
    metrics: Option<(Listener, Router)>,
    admin: Option<(AdminSocket, Router)>,
    counts: Metrics,
    hub: Arc<Hub>,
    memory: AnswerMemory,
    limits: Limits,
    shutdown: CancellationToken,
    websockets: ServerHandle,
    /// Web sockets of the public clients.
    tasks: TaskTracker,
}

impl Server {
    /// The addresses that are bound.
    #[must_use]
    pub const fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Serves until the node stops. Then no connection is accepted any more, waiting calls and
    /// subscriptions are told, and open requests may end within the configured time.
    ///
    /// # Errors
    /// If a part of the server ends before that.
    pub fn finished(self) -> BoxFuture<'static, Result<(), IoError>> {
        Box::pin(self.serve())
    }

    async fn serve(self) -> Result<(), IoError> {
        let Self {
            endpoints: _,
            rpc,
            metrics,
            admin,
            counts,
            hub,
            memory,
            limits,
            shutdown,
            websockets,
            tasks,
        } = self;
        let connections = TaskTracker::new();
        let mut parts: JoinSet<&'static str> = JoinSet::new();
        let context = listener::Context {
            limits: limits.clone(),
            shutdown: shutdown.clone(),
            connections: connections.clone(),
            memory,
        };
        spawn(&mut parts, "rpc", rpc.0.serve(rpc.1, context.clone()));
        if let Some((listener, routes)) = metrics {
            spawn(&mut parts, "metrics", listener.serve(routes, context.clone()));
        }
        if let Some((socket, routes)) = admin {
            spawn(&mut parts, "admin", socket.serve(routes, counts, context.clone()));
        }
        spawn(&mut parts, "events", hub.run(shutdown.clone()));

        let ended = tokio::select! {
            () = shutdown.cancelled() => None,
            ended = parts.join_next() => ended,
        };
        if let Some(ended) = ended.filter(|_| !shutdown.is_cancelled()) {
            let part = ended.unwrap_or("of a panicked task");
            return Err(IoError::other(format!("the part {part} of the interfaces ended")));
        }
        connections.close();
        tasks.close();
        if websockets.stop().is_err() {
            tracing::debug!("no WebSocket is open");
        }
        let drained = async {
            while parts.join_next().await.is_some() {}
            connections.wait().await;
            tasks.wait().await;
            websockets.stopped().await;
        };
        finish_within(limits.shutdown_timeout(), drained).await;
        Ok(())
    }
}

fn spawn(
    parts: &mut JoinSet<&'static str>,
    name: &'static str,
    part: impl Future<Output = ()> + Send + 'static,
) {
    parts.spawn(async move {
        part.await;
        name
    });
}

async fn finish_within(deadline: Duration, drained: impl Future<Output = ()>) {
    if tokio::time::timeout(deadline, drained).await.is_err() {
        tracing::warn!(?deadline, "connections were still open at shutdown and are cut");
    }
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
