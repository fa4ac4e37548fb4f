//! Serving, and stopping in order.

use std::io::Error as IoError;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::future::BoxFuture;
use jsonrpsee::server::ServerHandle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admin_socket::AdminSocket;
use super::listener::{self, Listener};
use crate::admission::AnswerMemory;
use crate::config::Limits;
use crate::ports::Endpoints;
use crate::service::events::Hub;
use crate::transport::metrics::Metrics;

/// Bound listeners that wait to be served.
#[expect(missing_debug_implementations, reason = "ports are opaque")]
pub struct Server {
    pub(super) endpoints: Endpoints,
    pub(super) rpc: (Listener, Router),
    pub(super) metrics: Option<(Listener, Router)>,
    pub(super) admin: Option<(AdminSocket, Router)>,
    pub(super) counts: Metrics,
    pub(super) hub: Arc<Hub>,
    pub(super) memory: AnswerMemory,
    pub(super) limits: Limits,
    pub(super) shutdown: CancellationToken,
    pub(super) websockets: ServerHandle,
    /// Web sockets of the public clients.
    pub(super) tasks: TaskTracker,
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

pub(super) async fn finish_within(deadline: Duration, drained: impl Future<Output = ()>) {
    if tokio::time::timeout(deadline, drained).await.is_err() {
        tracing::warn!(?deadline, "connections were still open at shutdown and are cut");
    }
}
