//! The state of a height in pieces that prove themselves, so that a node can begin there instead of
//! at genesis.
//!
//! ```text
//!   genesis validators ─ links ─▶ validators of h + 1 ─ certificate ─▶ header h + 1 ─ stateRoot ─▶
//!     ─▶ hashes of all key ranges (manifest) ─▶ rows of each range (chunk)
//!
//!   serving    Shelf::make   rows of a moment ─▶ files, sorted by key hash
//!              Shelf::piece  ◀─ pieces by the hash of what they belong to
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
mod import;
mod intake;
mod link;
mod make;
mod manifest;
mod piles;
mod shelf;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use state::error::StorageError;
use state::invariants::Broken;
use types::Hash;

pub use import::{Progress, Report, import};
pub use intake::{Intake, Want};
pub use link::Link;
pub(crate) use link::{LinkRow, make_link};
pub(crate) use make::root_of_rows;
pub use make::{MakeError, Throttle};
pub use manifest::{Extra, Manifest, Offer, Part, Verified};
pub use shelf::{OFFERS_MAX, OfferHead, Shelf};

/// The form of manifests and offers, which a question names. The first one cut the state at one depth
/// everywhere, so that many rows under one prefix made a chunk that was too long to be made.
pub const FORMAT: u32 = 2;

/// The most bytes of a chunk: more than any row has, so that a range can be cut until each of its
/// chunks is shorter. Chunks of more than a megabyte are made only of states of more than 64 GiB, and
/// of single rows.
pub const CHUNK_BYTES_MAX: u64 = 16 << 20;

/// A subtree with fewer bytes is not cut, so a manifest cannot ask for many chunks of nothing. What it
/// says of the bytes is compared with each chunk that comes.
pub const CUT_BYTES_MIN: u64 = 64 << 10;

/// The most bytes of an encoded offer: what [`types::codec`] reads.
pub const OFFER_BYTES_MAX: u64 = 16 << 20;

/// Why an offer or a part of one is not taken: the fault of whoever sent it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OfferError {
    /// The bytes are not of the form.
    #[error("{what} is malformed")]
    Form {
        /// Which part.
        what: &'static str,
    },
    /// A header does not stand where it must.
    #[error("the header of block {height}: {what}")]
    Header {
        /// The height that it should have.
        height: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A certificate does not prove that the block was decided by the validators of its height.
    #[error("the certificate of block {height}: {reason}")]
    Certificate {
        /// The height.
        height: u64,
        /// Why, for people.
        reason: String,
    },
    /// A change of validators is not proved.
    #[error("the change of validators at block {height}: {what}")]
    Link {
        /// The height of the header that should prove it.
        height: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The ranges are not those of the root.
    #[error("the ranges lead to root {found}, not {expected}")]
    Root {
        /// The root that they lead to.
        found: Hash,
        /// The root of the certified header.
        expected: Hash,
    },
    /// A chunk is not the one that it was taken for.
    #[error("a chunk has hash {found}, not {expected}")]
    Chunk {
        /// Its hash.
        found: Hash,
        /// The hash in the manifest.
        expected: Hash,
    },
    /// A chunk has its hash, and is not what the manifest says of it.
    #[error("the chunk {hash} has {found} {what}, and the manifest says {said}")]
    Numbers {
        /// Its hash.
        hash: Hash,
        /// Bytes or rows.
        what: &'static str,
        /// How many it has.
        found: u64,
        /// How many the manifest says.
        said: u64,
    },
    /// What no root covers contradicts what one does.
    #[error("{what}")]
    Extras {
        /// How.
        what: String,
    },
    /// The state breaks a rule that must hold at all times.
    #[error("the state of the snapshot is broken: {0}")]
    Broken(Box<Broken>),
}

/// Why a snapshot was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The peer's fault.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// The fault of who made the manifest, and not of who sent the chunk.
    #[error("the manifest of a snapshot: {0}")]
    Manifest(#[source] OfferError),
    /// The database's fault.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The place for the database is taken.
    #[error("{} exists already", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// [`Progress`] answered false.
    #[error("the import was stopped")]
    Stopped,
    /// A chunk that was fetched is not there any more.
    #[error("the chunk {hash} is missing")]
    Missing {
        /// Its hash.
        hash: Hash,
    },
}
