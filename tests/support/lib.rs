//! What the suites and the load program share: a node as a process of its own, and the plainest
//! possible client.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "helpers of this repository's tests; their names say what they do"
)]

pub mod actor;
pub mod books;
pub mod crowd;
pub mod dashboards;
pub mod desk;
pub mod front;
pub mod gate;
pub mod harness;
pub mod home;
pub mod http;
pub mod index;
pub mod lanes;
pub mod market;
pub mod miners;
pub mod model;
pub mod net;
pub mod node;
pub mod process;
pub mod python;
pub mod script;
pub mod terminal;
pub mod tool_server;
pub mod web;
pub mod websocket;
pub mod wire;
pub mod workload;
