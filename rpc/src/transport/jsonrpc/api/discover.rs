//! The description of the interface.

use jsonrpsee::proc_macros::rpc;
use serde_json::Value;

use crate::error::RpcError;
use crate::service::Context;
use crate::transport::jsonrpc::registry::{self, Registry};

/// The description of the interface.
#[rpc(server, namespace = "rpc", namespace_separator = ".")]
pub trait DiscoverRpc {
    /// Returns the OpenRPC document of all methods.
    #[method(name = "discover", blocking)]
    fn discover(&self) -> Result<Value, RpcError>;
}

impl DiscoverRpcServer for Context {
    fn discover(&self) -> Result<Value, RpcError> {
        Ok(registry::document(&Registry::public(), &self.facts.version))
    }
}
