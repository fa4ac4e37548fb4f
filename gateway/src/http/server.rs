//! The server: connections, their number, and their end.

use std::io::Error as IoError;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection_limit::ConnectionLimit;
use super::routes;
use super::timed_stream::TimedStream;
use crate::request_service::RequestService;

/// Connections at once: several for each of the streams that a machine can serve, and fewer than a
/// process may have files.
const CONNECTIONS_MAX: usize = 800;
/// Connections of one client at once, so that nobody takes them all.
const CONNECTIONS_OF_CLIENT: usize = 200;
/// How long clients may take.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// For the headers of a request, from the connection or the answer before it on.
    headers: Duration,
    /// To take some of what is written to them.
    write: Duration,
}

const PATIENCE: Patience =
    Patience { headers: Duration::from_secs(30), write: Duration::from_secs(60) };
/// A pause after a connection that could not be accepted, for want of file handles for example.
const PAUSE: Duration = Duration::from_millis(100);
/// How long what is being answered may take when the gateway stops.
const GRACE: Duration = Duration::from_secs(2);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn bind(address: SocketAddr) -> Result<Self, IoError> {
        Ok(Self { listener: TcpListener::bind(address).await? })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say it.
    pub fn address(&self) -> Result<SocketAddr, IoError> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is cancelled, and a little longer who is being answered.
    pub async fn serve(self, service: Arc<RequestService>, stop: CancellationToken) {
        let number = service.watch.connections.clone();
        let routes = routes(service);
        let (places, tasks) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), TaskTracker::new());
        let limit = ConnectionLimit::new(CONNECTIONS_OF_CLIENT);
        let graceful = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = accept(&self.listener, &places) => accepted,
            };
            match accepted {
                Ok((stream, client, place)) => {
                    let Ok(permit) = limit.admit(client.ip()) else {
                        tracing::debug!(%client, "the client has too many connections");
                        continue;
                    };
                    let places = (place, permit, number.one());
                    let serving = connection(stream, routes.clone(), graceful.watcher(), PATIENCE);
                    tasks.spawn(async move {
                        serving.await;
                        drop(places);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
            tracing::info!("cutting off the open connections");
        }
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Result<(TcpStream, SocketAddr, OwnedSemaphorePermit), IoError> {
    let place = Arc::clone(places).acquire_owned().await.map_err(IoError::other)?;
    let (stream, client) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, client, place))
}

async fn connection(stream: TcpStream, routes: Router, watcher: Watcher, patience: Patience) {
    // A builder for several versions would wait for the first bytes of a connection without a limit.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(patience.headers);
    let stream = TokioIo::new(TimedStream::new(stream, patience.write));
    let serving = builder.serve_connection(stream, TowerToHyperService::new(routes));
    if let Err(error) = watcher.watch(serving).await {
        tracing::debug!(%error, "a connection broke");
    }
}

#[cfg(test)]
mod tests {
    //! Clients that do nothing, and keep their places by it.

    use axum::body::Body;
    use axum::routing::get;
    use bytes::Bytes;
    use futures::stream;
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::timeout;

    use super::*;
    use crate::testing::SOON;

    /// Serves a client these routes; whether that has ended soon. The client is given back with it.
    async fn served(routes: Router, patience: Patience, sends: &[u8]) -> (TcpStream, bool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        client.write_all(sends).await.unwrap();
        let graceful = GracefulShutdown::new();
        let serving = connection(stream, routes, graceful.watcher(), patience);
        let has_ended = timeout(SOON, serving).await.is_ok();
        drop(graceful);
        (client, has_ended)
    }

    #[tokio::test]
    async fn a_client_that_sends_nothing_is_given_up() {
        let patience = Patience { headers: SOON / 1_000, ..PATIENCE };
        let (_client, has_ended) = served(Router::new(), patience, b"").await;
        assert!(has_ended, "it keeps its place for ever");
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_its_answer_is_given_up() {
        let endless = || async {
            let part = Ok::<_, std::convert::Infallible>(Bytes::from_static(&[b'x'; 65_536]));
            Body::from_stream(stream::repeat(part))
        };
        let (routes, patience) =
            (Router::new().route("/", get(endless)), Patience { write: SOON / 1_000, ..PATIENCE });
        let asks = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let (_client, has_ended) = served(routes, patience, asks).await;
        assert!(has_ended, "it keeps its place for ever");
    }
}
