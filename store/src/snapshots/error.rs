//! Why a snapshot was not made, not taken, or not imported.

use std::io;
use std::path::{Path, PathBuf};

use state::error::StorageError;
use state::invariants::Broken;
use types::Hash;

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
        source: io::Error,
    },
    /// The place for the database is taken.
    #[error("{} exists already", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// [`Progress`](super::Progress) answered false.
    #[error("the import was stopped")]
    Stopped,
    /// A chunk that was fetched is not there any more.
    #[error("the chunk {hash} is missing")]
    Missing {
        /// Its hash.
        hash: Hash,
    },
}

/// The fault of a file or folder of an import.
pub(super) fn file(path: &Path) -> impl Fn(io::Error) -> ImportError {
    move |source| ImportError::File { path: path.to_path_buf(), source }
}

/// Why no snapshot was made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The database failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file could not be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Nobody could use a snapshot of this database.
    #[error(
        "no snapshot can be offered: the database was made by a program that did not keep the proofs of \
         changes of validators"
    )]
    NoLinks,
    /// What was made cannot be offered, and was removed.
    #[error("the snapshot of block {height} cannot be offered and is removed: {what}")]
    Unusable {
        /// Its height.
        height: u64,
        /// Why.
        what: &'static str,
    },
    /// A row is longer than a chunk may be.
    #[error("a chunk of {bytes} bytes is longer than a chunk may be")]
    TooLong {
        /// Its bytes.
        bytes: u64,
    },
    /// [`Throttle`](super::Throttle) answered false.
    #[error("the work was stopped")]
    Stopped,
}

impl MakeError {
    /// Whether it will be the same at every later time.
    pub(super) const fn is_final(&self) -> bool {
        match self {
            Self::NoLinks | Self::Unusable { .. } => true,
            Self::Storage(_) | Self::File { .. } | Self::TooLong { .. } | Self::Stopped => false,
        }
    }
}

/// The fault of a file or folder of a snapshot that is being made.
pub(super) fn file_error(path: &Path) -> impl Fn(io::Error) -> MakeError {
    move |source| MakeError::File { path: path.to_path_buf(), source }
}
