//! The journal: accepted transactions on disk, so that they survive a restart.
//!
//! ```text
//! accepted ──▶ Written (under the pool's lock: only a note)
//!                 │ Pool::write_journal, before the client is answered; Pool::flush_journal syncs
//!                 ▼
//! 00000000000000000007.journal   16 bytes of header, then records
//!    | mark 4 | checksum 8 | length u32 LE | arrival u64 LE | Transaction::encode |
//! ```
//!
//! What left the pool before it was written never is. Nothing is ever removed from a segment: a
//! segment of which no transaction is in the pool any more is deleted, and when less than half of
//! the journal is alive, the living part of its oldest segment is written again.
//!
//! What was dropped after it was written gets a tombstone with the next write: a record of its
//! arrival without a transaction. Else a restart would bring it back in place of what was accepted
//! since. What a block holds needs none, because the chain knows it. A tombstone is about a record of
//! its own segment or an older one, so a segment with tombstones is kept until all older ones are
//! deleted.
//!
//! A crash of the
//! process loses nothing that was written; a crash of the machine may lose what came after the last
//! flush. Either may cut off the last record. A damaged record costs only itself: reading goes on
//! at the next mark.

mod files;
mod flush;
mod record;
mod restore;
#[cfg(test)]
mod tests;
mod written;

pub(crate) use files::Journal;
pub use flush::Flushed;
pub use restore::Restored;
pub(crate) use written::Written;
