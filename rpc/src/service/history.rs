//! The error for data that this node does not have.

use crate::error::RpcError;
use crate::ports::Ports;

/// The error for an object that does not exist here. If the node began with a snapshot, the object
/// may be in an earlier block.
pub(super) fn missing(ports: &Ports, what: &'static str, name: impl ToString) -> RpcError {
    match ports.chain.tip().earliest {
        earliest @ 2.. => RpcError::History { earliest },
        0 | 1 => RpcError::not_found(what, name),
    }
}
