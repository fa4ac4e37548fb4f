//! The port on which a miner or a gateway serves metrics and health over HTTP.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::client::CliError;

/// The port, bound.
pub(super) struct MonitorPort {
    listener: TcpListener,
    address: SocketAddr,
}

impl MonitorPort {
    /// Binds; port 0 picks a free one.
    pub(super) async fn bind(address: SocketAddr) -> Result<Self, CliError> {
        let failed = |source| CliError::File { what: format!("metrics on {address}"), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Where it is.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What accepts its connections.
    pub(super) fn into_listener(self) -> TcpListener {
        self.listener
    }
}
