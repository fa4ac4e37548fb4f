//! Accepting connections and serving HTTP/1.1 on them.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Request, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::clients::Clients;
use super::io::{ConnectionSlot, GuardedIo};
use super::pace::PeerAddress;
use crate::admission::AnswerMemory;
use crate::config::Limits;
use crate::transport::flow_control::FlowControl;
use crate::transport::metrics::Metrics;

/// Members of a request's head.
const HEADERS_MAX: usize = 64;
/// Bytes of a request's head, and of one read of a body.
const HEAD_BYTES_MAX: usize = 128 * 1024;
/// How long to pause when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a refused client is given to take its answer.
const REFUSE_TIMEOUT: Duration = Duration::from_millis(100);

const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\ncontent-length: 143\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\n\
    {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32053,\"message\":\"too many \
    connections\",\"data\":{\"code\":\"TOO_MANY_CONNECTIONS\",\"retryAfterMs\":1000}}}";

/// What every connection of the node needs.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) limits: Limits,
    pub(super) shutdown: CancellationToken,
    pub(super) connections: TaskTracker,
    /// For answers that wait to be taken.
    pub(super) memory: AnswerMemory,
}

/// A bound TCP port.
pub(super) struct Listener {
    listener: TcpListener,
    places: Arc<Semaphore>,
    /// Whose connections they are; none where only operators connect.
    clients: Option<Arc<Clients>>,
    metrics: Metrics,
}

impl Listener {
    pub(super) fn new(listener: TcpListener, limits: &Limits, metrics: Metrics) -> Self {
        let places = usize::try_from(limits.connections_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self { listener, places: Arc::new(Semaphore::new(places)), clients: None, metrics }
    }

    /// Has each client take no more than its share.
    pub(super) fn shared_by(mut self, clients: Arc<Clients>) -> Self {
        self.clients = Some(clients);
        self
    }

    /// A place for a connection, if its client has one and there is one.
    fn place(&self, peer: IpAddr) -> Option<ConnectionSlot> {
        let of_client = match &self.clients {
            Some(clients) => Some(clients.share_of(peer).connection()?),
            None => None,
        };
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(ConnectionSlot::new(permit, of_client, self.metrics.clone()))
    }

    /// Serves until the node stops; open connections are left to the context's tracker.
    pub(super) async fn serve(self, routes: Router, context: Context) {
        loop {
            let accepted = tokio::select! {
                () = context.shutdown.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok((stream, from)) => (stream, PeerAddress(from.ip())),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            match self.place(peer.0) {
                Some(place) => {
                    let connection =
                        serve_tcp(stream, peer, place, routes.clone(), context.clone());
                    context.connections.spawn(connection);
                }
                None => {
                    self.metrics.connection_refused();
                    refuse(stream).await;
                }
            }
        }
    }
}

async fn refuse(mut stream: TcpStream) {
    // The client may have gone; there is nobody to tell.
    drop(tokio::time::timeout(REFUSE_TIMEOUT, stream.write_all(REFUSAL)).await);
}

async fn serve_tcp(
    stream: TcpStream,
    peer: PeerAddress,
    place: ConnectionSlot,
    routes: Router,
    context: Context,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection ended at once");
        return;
    }
    serve_connection(stream, Some(peer), place, routes, context).await;
}

/// Serves HTTP/1.1 until the client or the node ends it.
pub(super) async fn serve_connection<T>(
    stream: T,
    peer: Option<PeerAddress>,
    place: ConnectionSlot,
    routes: Router,
    context: Context,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Context { limits, shutdown, memory, connections: _ } = context;
    let flow_control = Arc::new(FlowControl::new(&limits));
    let guarded = GuardedIo::new(stream, &limits, memory, Arc::clone(&flow_control), place);
    let io = TokioIo::new(guarded);
    let service = service_fn(move |mut request: Request<Incoming>| {
        flow_control.count_request();
        request.extensions_mut().insert(Arc::clone(&flow_control));
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        let routes = routes.clone();
        async move { Ok::<_, Infallible>(answer(routes, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout())
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(io, service)
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let ended = tokio::time::timeout(limits.shutdown_timeout(), connection).await;
            ended.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(routes: Router, request: Request<Incoming>) -> axum::response::Response {
    match routes.oneshot(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
