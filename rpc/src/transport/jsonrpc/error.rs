//! Errors as JSON-RPC has them.

use jsonrpsee::types::{ErrorObject, ErrorObjectOwned};

use crate::error::RpcError;

impl From<RpcError> for ErrorObjectOwned {
    fn from(error: RpcError) -> Self {
        ErrorObject::owned(error.number(), error.to_string(), error.data())
    }
}
