//! The database as its users see it, on real RocksDB in temporary folders.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod ahead;
mod calls;
mod commits;
mod crossing;
mod fixture;
mod forks;
mod kill;
mod market;
mod market_rows;
mod model;
mod open_runs;
mod opening;
mod paging;
mod peers;
mod pins;
mod proofs;
mod queries;
mod randomness;
mod snapshots;
mod tools;
mod validators;
mod versions;
