//! Peers.

use jsonrpsee::proc_macros::rpc;

use super::Api;
use crate::error::RpcError;
use crate::wire::{NetInfo, PeerView};

/// This node and its peers.
#[rpc(server, namespace = "net")]
pub trait NetworkRpc {
    /// This node's peer id and addresses.
    #[method(name = "info")]
    fn info(&self) -> Result<NetInfo, RpcError>;

    /// The connected peers.
    #[method(name = "peers")]
    fn peers(&self) -> Result<Vec<PeerView>, RpcError>;
}

impl NetworkRpcServer for Api {
    fn info(&self) -> Result<NetInfo, RpcError> {
        let peers = self.ports.network.peers().len();
        Ok(NetInfo::new(self.ports.network.identity(), peers))
    }

    fn peers(&self) -> Result<Vec<PeerView>, RpcError> {
        Ok(self.ports.network.peers().into_iter().map(PeerView::from).collect())
    }
}
