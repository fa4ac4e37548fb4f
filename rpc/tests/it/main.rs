//! The interfaces as clients meet them: a real server on free ports, real clients and raw bytes,
//! over a small chain in memory.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "in a test, a panic is the assertion; helpers are public within the suite"
)]

mod admin;
mod agents;
mod batches;
mod calls;
mod client;
mod discover;
mod errors;
mod explorer;
mod flood;
mod health;
mod layers;
mod market;
mod methods;
mod offers;
mod origin_check;
mod params;
mod places;
mod rest;
mod rubbish;
mod shares;
mod shutdown;
mod socket;
mod streams;
mod subscriptions;
mod waiting;
mod world;
