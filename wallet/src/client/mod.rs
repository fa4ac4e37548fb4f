//! A typed client of the node's JSON-RPC interface (docs/rpc.md): calls over HTTP, events over WebSocket.
//!
//! Every answer keeps the node's own text, so that what is printed is what the node said: a
//! transaction's key order is part of its hash and must survive.

mod answer;
mod connection;
mod error;
mod events;
mod queries;
pub mod records;
mod sending;
mod url;

pub use answer::Answer;
pub use connection::{Client, DEFAULT_URL, NO_PARAMS};
pub use error::{ClientError, Rejection};
pub use events::{Events, Kind};
pub use queries::Page;

#[cfg(test)]
mod tests;
