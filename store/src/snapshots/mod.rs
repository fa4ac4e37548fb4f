//! The state of a height in pieces that prove themselves, so that a node can begin there instead of
//! at genesis.
//!
//! ```text
//!   genesis validators ─ links ─▶ validators of h + 1 ─ certificate ─▶ header h + 1 ─ stateRoot ─▶
//!     ─▶ hashes of all key ranges (manifest) ─▶ rows of each range (chunk)
//!
//!   serving    SnapshotStore::make   rows of a moment ─▶ files, sorted by key hash
//!              SnapshotStore::piece  ◀─ pieces by the hash of what they belong to
//!   fetching   Offer::verify from the genesis validators to the manifest
//!              Intake        chunks that were checked, in files, until all are there
//!              import        a whole database out of them, under its name only when it is whole
//! ```
//!
//! Rows that no root covers are of three kinds. What follows from proved rows is made from them
//! (deadlines, indexes, the figures of miners). The bytes of complete blobs are checked with the hash
//! in the blob's record, the metadata of agents with that in the version's. The rest is carried in *extras* and taken on trust, and docs/storage.md says
//! what a lie there can do: the places of turns, and the chunks of blobs that are not complete yet.
//! Records of steps are not carried: nothing reads them but queries, and those name the earliest
//! block instead.

mod chunk;
mod derive;
mod error;
mod format;
mod import;
mod intake;
mod link;
mod make;
mod manifest;
mod piles;
mod snapshot_store;
#[cfg(test)]
mod tests;

pub use self::error::{ImportError, MakeError, OfferError};
pub use self::format::{CHUNK_BYTES_MAX, CUT_BYTES_MIN, FORMAT, OFFER_BYTES_MAX};
pub use self::import::{Progress, Report, import};
pub use self::intake::{Intake, Want};
pub use self::make::Throttle;
pub(crate) use self::make::root_of_rows;
pub use self::manifest::{Extra, Manifest, Offer, Part, Verified};
pub use self::snapshot_store::{OFFERS_MAX, OfferHead, SnapshotStore};
pub use crate::tables::Link;
