//! What the suites and the load program share: a node as a process of its own, and the plainest
//! possible client.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "helpers of this repository's tests; their names say what they do"
)]

pub mod actor;
pub mod home;
pub mod http;
pub mod net;
pub mod node;
pub mod process;
pub mod python;
pub mod websocket;
pub mod workload;
