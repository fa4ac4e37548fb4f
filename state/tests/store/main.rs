//! The database as its users see it, on real RocksDB in temporary folders.

mod commits;
mod fixture;
mod model;
mod opening;
mod paging;
mod proofs;
mod queries;
mod tools;
