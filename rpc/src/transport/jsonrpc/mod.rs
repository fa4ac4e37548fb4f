//! JSON-RPC over HTTP and WebSocket: the methods, the list of them, and what every call passes.

pub mod api;
mod error;
mod interface;
mod middleware;
pub mod registry;

pub(crate) use interface::Interface;
pub(crate) use middleware::Shared;
pub(crate) use registry::Registry;
