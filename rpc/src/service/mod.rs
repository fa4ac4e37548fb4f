//! What the interfaces do for clients, whatever way the clients came: each file does what is asked about
//! one thing. These functions ask the ports and shape the answers; they know nothing of HTTP, of JSON-RPC
//! or of WebSockets.

pub(crate) mod accounts;
pub(crate) mod admin;
pub(crate) mod agents;
pub(crate) mod blobs;
pub(crate) mod blocks;
pub(crate) mod build;
pub(crate) mod calls;
mod census;
pub(crate) mod chain;
pub(crate) mod compute;
mod context;
pub(crate) mod conversations;
pub(crate) mod events;
mod fees;
mod history;
pub(crate) mod market;
pub(crate) mod miners;
pub(crate) mod network;
pub(crate) mod offers;
mod paging;
pub(crate) mod pool;
pub(crate) mod proofs;
pub(crate) mod randomness;
pub(crate) mod rules;
pub(crate) mod runs;
pub(crate) mod search;
pub(crate) mod stats;
pub(crate) mod submit;
pub(crate) mod tokenomics;
pub(crate) mod transactions;

pub(crate) use context::Context;
