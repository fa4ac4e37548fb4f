//! REST, event streams and the WebSocket of the public clients, under `/api` (docs/rest.md). The
//! answers are made by the same services as those of JSON-RPC; only their shapes differ.

mod agents;
mod ascii;
mod blob;
mod call_events;
mod chain;
mod endpoint;
mod error;
mod market;
mod openapi;
mod params;
mod rendered;
mod routes;
mod state;
mod streams;
mod submit;

pub(crate) use error::error_response;
pub use routes::openapi_document;
pub(crate) use routes::routes;
pub(crate) use state::{Rest, StreamSlot};
