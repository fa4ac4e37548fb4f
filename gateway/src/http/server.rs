//! The server: connections, their number, and their end.

use std::io::Error as IoError;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::routes;
use crate::operate::One;
use crate::request_service::RequestService;

/// Connections at once: several for each of the streams that a machine can serve, and fewer than a
/// process may have files.
const CONNECTIONS_MAX: usize = 800;
/// How long a client may take for the headers of a request.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(30);
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
        let graceful = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = accept(&self.listener, &places) => accepted,
            };
            match accepted {
                Ok((stream, place)) => {
                    let places = (place, number.one());
                    tasks.spawn(connection(stream, places, routes.clone(), graceful.watcher()));
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
) -> Result<(TcpStream, OwnedSemaphorePermit), IoError> {
    let place = Arc::clone(places).acquire_owned().await.map_err(IoError::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, place))
}

async fn connection(
    stream: TcpStream,
    places: (OwnedSemaphorePermit, One),
    routes: Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_TIMEOUT);
    let serving = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    if let Err(error) = watcher.watch(serving).await {
        tracing::debug!(%error, "a connection broke");
    }
    drop(places);
}
