//! The description of the interface.

use jsonrpsee::proc_macros::rpc;
use serde_json::Value;

use super::Api;
use crate::error::RpcError;
use crate::registry::{self, Registry};

/// The description of the interface.
#[rpc(server, namespace = "rpc", namespace_separator = ".")]
pub trait DiscoverRpc {
    /// The OpenRPC document of every method.
    #[method(name = "discover", blocking)]
    fn discover(&self) -> Result<Value, RpcError>;
}

impl DiscoverRpcServer for Api {
    fn discover(&self) -> Result<Value, RpcError> {
        Ok(registry::document(&Registry::public(), &self.facts.version))
    }
}
