//! What the suites and the load program share: nodes and miners as processes of their own, plain clients,
//! people who send transactions, and the runner of the suites.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "helpers of this repository's tests; their names say what they do"
)]

pub mod actor;
pub mod books;
pub mod breakpoint;
pub mod chat;
pub mod client;
pub mod crowd;
pub mod dashboards;
pub mod dice;
pub mod docker;
pub mod front;
pub mod gateway;
pub mod harness;
pub mod home;
pub mod http;
pub mod index;
pub mod market;
pub mod metadata;
pub mod miners;
pub mod model;
pub mod net;
pub mod node;
pub mod parallel;
pub mod process;
pub mod python;
pub mod script;
pub mod senders;
pub mod suite;
pub mod terminal;
pub mod tool_server;
pub mod web;
pub mod websocket;
pub mod wire;
pub mod workload;
