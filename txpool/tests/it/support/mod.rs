//! Helpers: wallets and their transactions, a chain, and a world that joins them to a pool.

pub(crate) mod ledger;
pub(crate) mod make;
pub(crate) mod world;

pub(crate) use make::{Wallet, trusted};
pub(crate) use world::World;
