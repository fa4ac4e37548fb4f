//! The interfaces of the node: JSON-RPC over HTTP and WebSocket, health, metrics, the page for people,
//! and the operator's socket.
//!
//! ```text
//! one TCP port                                      Unix socket    metrics port
//!   POST /  GET / (upgrade)  /api  /explorer  /healthz     POST /       GET /metrics
//!      │                       │       │         │           │              │
//! transport::server: connection limits, time-outs, origins, rates            │
//!      │                       │       │         │           │              │
//! transport::jsonrpc       ::rest   ::pages   ::health   ::jsonrpc     ::metrics
//!   middleware, registry   ::websocket
//!   api: one trait per group   │
//!      └───────────┬───────────┘
//!                service: what is asked for, whatever way
//!                  ├─────────────────▶ admission: what each client may have
//!                ports: what the node provides
//! ```
//!
//! Entry points: [`start`] and [`Server::finished`], or [`Local`] without a network; [`ports`] for
//! what the node must provide; [`registry`] for what is served; [`error`] for what can go wrong.
//!
//! Not here: rules of the ledger, the database, the pool, consensus. A transaction's text passes
//! through untouched: nothing here reads, rewrites or re-serializes what its signer wrote.

mod admission;
pub mod config;
mod cursor;
pub mod error;
pub mod ports;
mod service;
mod transport;
pub mod wire;

pub use config::{Config, Limits, RateLimits};
pub use ports::{ChainFacts, Endpoints, Ports};
pub use transport::jsonrpc::{api, registry};
pub use transport::rest::openapi_document;
pub use transport::server::{Local, Server, StartError, serve_monitoring, start};
pub use transport::socket;
pub use wire::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, SUBMIT_ITEMS_MAX};
