//! The operator's Unix socket: only the owner of the node's files may open it.

use std::fs::{self, DirBuilder, Permissions};
use std::io::Error as IoError;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use tokio::net::UnixListener;
use tokio::sync::Semaphore;

use super::StartError;
use super::io::Place;
use super::listener::{Context, serve_connection};
use crate::metrics::Metrics;

/// Connections of operators at the same time.
const CONNECTIONS_MAX: usize = 16;

/// A bound socket; its file goes with it.
pub(super) struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl AdminSocket {
    /// Makes the socket with mode 0600, in place of a stale one.
    pub(super) fn bind(path: PathBuf) -> Result<Self, StartError> {
        match make(&path) {
            Ok(listener) => Ok(Self { listener, path }),
            Err(source) => Err(StartError::AdminSocket { path, source }),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
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
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let place = Place::new(permit, metrics.clone());
                    let connection =
                        serve_connection(stream, None, place, routes.clone(), context.clone());
                    context.connections.spawn(connection);
                }
                Err(error) => tracing::warn!(%error, "an operator could not be accepted"),
            }
        }
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "the admin socket was gone already");
        }
    }
}

/// Binds in a private folder and moves the finished socket into place, so that it never exists
/// there with wider permissions.
fn make(path: &Path) -> Result<UnixListener, IoError> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or_else(|| Path::new(".")).join(format!(".{}", std::process::id()));
    DirBuilder::new().mode(0o700).recursive(true).create(&folder)?;
    let made = || {
        let inside = folder.join(name);
        if inside.exists() {
            fs::remove_file(&inside)?;
        }
        let listener = UnixListener::bind(&inside)?;
        fs::set_permissions(&inside, Permissions::from_mode(0o600))?;
        fs::rename(&inside, path)?;
        Ok(listener)
    };
    let listener = made();
    fs::remove_dir_all(&folder)?;
    listener
}
