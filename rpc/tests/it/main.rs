//! The interfaces as clients meet them: a real server on free ports, real clients and raw bytes,
//! over a small chain in memory.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, a panic is the assertion"
)]

mod admin;
mod batches;
mod client;
mod discover;
mod errors;
mod health;
mod methods;
mod params;
mod rubbish;
mod shutdown;
mod subscriptions;
mod waiting;
mod world;
