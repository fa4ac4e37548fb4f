//! The socket of a miner that starts: what it waits for, while it has no journal yet.
//!
//! It is another file than the control socket, because whoever starts may still be refused by the
//! journal of a miner that works in the same folder.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use miner::operate::Starting;
use miner::waiting::Waiting;
use rpc::socket::PrivateSocket;

use super::super::client::CliError;
use super::control::{Control, SameUserOrRoot};

/// The socket's file in the miner's folder.
const SOCKET: &str = "start.sock";

/// The socket, bound.
pub(super) struct StartSocket(PrivateSocket);

impl StartSocket {
    /// Binds in the miner's folder, in place of a socket that is there.
    pub(super) fn bind(folder: &Path) -> Result<Self, CliError> {
        let path = folder.join(SOCKET);
        let what = format!("the socket {}", path.display());
        PrivateSocket::bind(path).map(Self).map_err(|source| CliError::File { what, source })
    }

    /// Answers until it is dropped.
    pub(super) async fn serve(self, waiting: Arc<Waiting>) {
        let routes = Router::new().route("/status", get(status)).with_state(waiting);
        if let Err(error) = axum::serve(SameUserOrRoot(self.0), routes).await {
            tracing::error!(%error, "the start stopped answering status requests");
        }
    }
}

async fn status(State(waiting): State<Arc<Waiting>>) -> Json<Starting> {
    Json(waiting.told())
}

/// The miner that starts in a folder, if one does. One that is ready in this moment is none.
pub(super) async fn starting(folder: &Path) -> Result<Option<Starting>, CliError> {
    let Some(control) = Control::at(folder.join(SOCKET)).await? else { return Ok(None) };
    Ok(control.get("/status").await.unwrap_or_default())
}

/// Whether a miner starts in a folder.
pub(super) fn is_starting(folder: &Path) -> bool {
    UnixStream::connect(folder.join(SOCKET)).is_ok()
}
