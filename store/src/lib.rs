//! The database: the state, the blocks, their indexes and the state tree, in one RocksDB.
//!
//! ```text
//!   execution ──Changes──▶ Store::prepare ──Prepared──▶ Store::commit   one synced batch
//!   execution ◀──Read───── Store::latest                newest rows, hot ones from memory
//!   queries   ◀─────────── Store::snapshot              one moment, whatever is committed meanwhile
//!   pool      ◀─────────── Store::pin                   one height, hot rows from memory
//!   consensus ◀──────────▶ Store::put_undecided …       proposals that must survive a crash
//! ```
//!
//! A commit is one write: state, block, certificate, indexes, tree and tip are all there after a
//! crash, or none of them is. docs/storage.md has the byte layouts.

#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::float_arithmetic
)]

mod bodies;
mod cache;
mod certificates;
mod commit;
mod database;
mod equivocations;
mod events;
mod folder;
mod forks;
mod history;
mod latest;
mod leading;
mod market;
mod memory;
mod meta;
mod open_rows;
mod options;
mod pieces;
mod pin;
mod query;
mod queue_cursor;
mod rocks;
mod row;
mod snapshot;
pub mod snapshots;
pub mod tables;
pub mod tools;
pub mod tree;
mod undecided;

pub use self::commit::{CommitBlock, GenesisState, Prepared};
pub use self::database::Store;
pub use self::forks::ForkCount;
pub use self::meta::{FORMAT, Tip};
pub use self::options::Options;
pub use self::pin::{Pinned, pinned_tables};
pub use self::query::{
    CALL_ROWS_MAX, CallDetail, CallFilter, CallPage, KEY_ROWS_MAX, MinerDetail, PunishedPage,
    RUN_ROWS_MAX, RunDetail, RunFilter, RunPage, StateProof, StepDetail, StoredHeader, StoredSet,
    StoredTx, TurnDetail,
};
pub use self::rocks::DatabaseMemory;
pub use self::snapshot::Snapshot;
pub use self::tables::{Equivocation, Equivocations, SignedChoice, ValidatorStats};
pub use self::undecided::{Undecided, UndecidedHead};
