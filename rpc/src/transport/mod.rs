//! The ways to ask: each parses what comes in, has a service do it, and writes the answer.

pub(crate) mod body;
pub(crate) mod fault;
pub(crate) mod flow_control;
pub(crate) mod health;
pub(crate) mod jsonrpc;
pub(crate) mod metrics;
pub(crate) mod pages;
pub(crate) mod resources;
pub(crate) mod rest;
pub(crate) mod server;
pub mod socket;
pub(crate) mod websocket;
