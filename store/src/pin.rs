//! The state of one height for as long as somebody holds it, read through the memory of hot rows.
//!
//! ```text
//!   commit of h + 1   what its rows were ─▶ every pin of h       then the write
//!   read at h         has the pin a former value? ─▶ that        else the newest value is that of h
//! ```
//!
//! RocksDB's own snapshots would do, too, but reads of them pass by the hot rows, and the pool reads
//! for each transaction. So a pin costs nothing until the database moves on, and then each commit
//! gives it the former values of the rows that it changes. Whoever holds a pin takes a new one after
//! each block; one that is held for longer than a few blocks is lost, so that a chain that catches up
//! does not collect former values for somebody who does not ask.

mod kept;
mod pinned;
mod tables;

pub(crate) use kept::Pins;
pub use pinned::Pinned;
pub(crate) use pinned::former;
pub use tables::pinned_tables;
