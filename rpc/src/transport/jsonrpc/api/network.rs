//! Peers.

use jsonrpsee::proc_macros::rpc;

use crate::error::RpcError;
use crate::service::{Context, network};
use crate::wire::{NetInfo, PeerView};

/// This node and its peers.
#[rpc(server, namespace = "net")]
pub trait NetworkRpc {
    /// Returns this node's peer id and addresses.
    #[method(name = "info")]
    fn info(&self) -> Result<NetInfo, RpcError>;

    /// Returns the connected peers.
    #[method(name = "peers")]
    fn peers(&self) -> Result<Vec<PeerView>, RpcError>;
}

impl NetworkRpcServer for Context {
    fn info(&self) -> Result<NetInfo, RpcError> {
        Ok(network::info(&self.ports))
    }

    fn peers(&self) -> Result<Vec<PeerView>, RpcError> {
        Ok(network::peers(&self.ports))
    }
}
