//! What an operator may do, on the Unix socket only.

use jsonrpsee::core::async_trait;
use jsonrpsee::proc_macros::rpc;

use crate::error::RpcError;
use crate::service::{Context, admin, network};
use crate::wire::{PeerQuery, PeerView};

/// What an operator may do.
#[rpc(server, namespace = "admin")]
pub trait AdminRpc {
    /// Returns the log filter in force.
    #[method(name = "logFilter")]
    fn log_filter(&self) -> Result<String, RpcError>;

    /// Replaces the log filter until the node stops; returns the filter in force.
    #[method(name = "setLogFilter")]
    fn set_log_filter(&self, filter: String) -> Result<String, RpcError>;

    /// Drops every waiting transaction and returns their number.
    #[method(name = "flushPool", blocking)]
    fn flush_pool(&self) -> Result<u64, RpcError>;

    /// Returns the connected peers.
    #[method(name = "peers")]
    fn peers(&self) -> Result<Vec<PeerView>, RpcError>;

    /// Connects to a peer, disconnects from one, or keeps one out; returns the connected peers.
    #[method(name = "changePeer")]
    async fn change_peer(&self, change: PeerQuery) -> Result<Vec<PeerView>, RpcError>;
}

#[async_trait]
impl AdminRpcServer for Context {
    fn log_filter(&self) -> Result<String, RpcError> {
        Ok(admin::log_filter(&self.ports))
    }

    fn set_log_filter(&self, filter: String) -> Result<String, RpcError> {
        admin::set_log_filter(&self.ports, &filter)
    }

    fn flush_pool(&self) -> Result<u64, RpcError> {
        admin::flush_pool(&self.ports)
    }

    fn peers(&self) -> Result<Vec<PeerView>, RpcError> {
        Ok(network::peers(&self.ports))
    }

    async fn change_peer(&self, change: PeerQuery) -> Result<Vec<PeerView>, RpcError> {
        admin::change_peer(&self.ports, change).await?;
        Ok(network::peers(&self.ports))
    }
}
