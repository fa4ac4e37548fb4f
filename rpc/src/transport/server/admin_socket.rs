//! The operator's Unix socket: only the owner of the node's files may open it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use tokio::sync::Semaphore;

use super::error::StartError;
use super::io::ConnectionSlot;
use super::listener::{Context, serve_connection};
use crate::transport::metrics::Metrics;
use crate::transport::socket::PrivateSocket;

/// Connections of operators at the same time.
const CONNECTIONS_MAX: usize = 16;

/// A bound socket; its file goes with it.
pub(super) struct AdminSocket(PrivateSocket);

impl AdminSocket {
    /// Makes the socket with mode 0600, in place of a stale one.
    pub(super) fn bind(path: PathBuf) -> Result<Self, StartError> {
        match PrivateSocket::bind(path.clone()) {
            Ok(socket) => Ok(Self(socket)),
            Err(source) => Err(StartError::AdminSocket { path, source }),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Serves until the node stops.
    pub(super) async fn serve(self, routes: Router, metrics: Metrics, context: Context) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let permit = tokio::select! {
                () = context.shutdown.cancelled() => return,
                permit = Arc::clone(&places).acquire_owned() => permit,
            };
            let Ok(permit) = permit else { return };
            let accepted = tokio::select! {
                () = context.shutdown.cancelled() => return,
                accepted = self.0.accept() => accepted,
            };
            match accepted {
                Ok(stream) => {
                    let place = ConnectionSlot::new(permit, None, metrics.clone());
                    let connection =
                        serve_connection(stream, None, place, routes.clone(), context.clone());
                    context.connections.spawn(connection);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection on the admin socket");
                }
            }
        }
    }
}
