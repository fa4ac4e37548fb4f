//! The methods: one trait per group of a namespace, which names them, and has each call its service.

#![expect(
    clippy::missing_errors_doc,
    reason = "the registry lists for each method the errors that it answers with"
)]

pub mod accounts;
pub mod admin;
pub mod agents;
mod build;
pub mod calls;
pub mod chain;
pub mod compute;
pub mod discover;
pub mod events;
pub mod market;
mod methods;
pub mod network;
pub mod offers;
pub mod pool;
mod pool_subscriptions;
pub mod runs;
pub mod submit;
mod subscription;
pub mod transactions;

pub(crate) use methods::{admin_methods, public_methods};
pub(crate) use pool_subscriptions::PoolSubscriptions;
