//! The interfaces of the node: JSON-RPC over HTTP and WebSocket, health, metrics, the page for people,
//! and the operator's socket.
//!
//! ```text
//! one TCP port                                 Unix socket       metrics port
//!   POST /  GET / (upgrade)  /healthz /readyz    POST /            GET /metrics
//!      │        │                │                 │                  │
//!   body limits, time-outs, connection limits      │                  │
//!      └────┬───┘                │                 │                  │
//!   checks of place and parameters, metrics ◀──────┘                  │
//!           │                    │                                    │
//!   api: one trait per group     │                                    │
//!           └────────▶ ports ◀───┘                              metrics
//! ```
//!
//! Entry points: [`start`] and [`Server::finished`], or [`Local`] without a network; [`ports`] for
//! what the node must provide; [`registry`] for what is served; [`error`] for what can go wrong.
//!
//! Not here: rules of the ledger, the database, the pool, consensus. A transaction's text passes
//! through untouched: nothing here reads, rewrites or re-serialises what its signer wrote.

pub mod api;
pub mod config;
mod cursor;
pub mod error;
mod events;
mod explorer;
mod frames;
mod gate;
mod memory;
mod metrics;
mod middleware;
pub mod ports;
mod rate;
mod readers;
pub mod registry;
mod requests;
mod rest;
mod server;
mod share;
pub mod socket;
pub mod wire;

pub use config::{Config, Limits};
pub use ports::{ChainFacts, Endpoints, Ports};
pub use rate::RateLimits;
pub use rest::openapi_document;
pub use server::{Local, Server, StartError, serve_monitoring, start};

/// The most transactions of one `ombra_sendTransactions`.
pub const SUBMIT_ITEMS_MAX: usize = 1_000;
/// Entries of a page if the client does not say.
pub const PAGE_ITEMS_DEFAULT: usize = 30;
/// The most entries of a page.
pub const PAGE_ITEMS_MAX: usize = 500;
