//! Why a model file was not fetched.

use std::io;
use std::path::{Path, PathBuf};

/// Why a model file was not fetched. Addresses in it have no credentials.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address of the index is none.
    #[error("the index of packages is {given:?}: expected an address such as {expected}: {why}")]
    Index {
        /// What was given, without credentials.
        given: String,
        /// What was expected.
        expected: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A server does not answer.
    #[error("{url} cannot be reached: {cause}")]
    Unreachable {
        /// What was asked.
        url: String,
        /// Why, as far as it is known.
        cause: String,
    },
    /// A server answers with a status that is none of success.
    #[error("{url} answers with status {status}: expected 200")]
    Status {
        /// What was asked.
        url: String,
        /// The status.
        status: u16,
    },
    /// An index has something else than a list of files.
    #[error("{url} is not a page of a package: {why}")]
    Page {
        /// What was asked.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// An index does not list the archive.
    #[error("{url} does not list {archive}")]
    NotListed {
        /// What was asked.
        url: String,
        /// What was looked for.
        archive: String,
    },
    /// A server has another number of bytes.
    #[error("{url} has {found} bytes: expected {expected}")]
    Length {
        /// What was asked.
        url: String,
        /// What it has; at least, if it did not say.
        found: u64,
        /// What it should have.
        expected: u64,
    },
    /// The transfer broke off again and again.
    #[error("{url} ended after {bytes} of {expected} bytes, {attempts} times in a row: {cause}")]
    Broken {
        /// What was asked.
        url: String,
        /// What is here.
        bytes: u64,
        /// The whole.
        expected: u64,
        /// How often it was tried without a byte more.
        attempts: usize,
        /// Why it broke off the last time.
        cause: String,
    },
    /// What was received is something else. It was deleted.
    #[error("the download of {archive} has sha256 {found}: expected {expected}")]
    ArchiveHash {
        /// The archive.
        archive: String,
        /// What it has.
        found: String,
        /// What it should have.
        expected: String,
    },
    /// The archive does not hold what it should.
    #[error("{archive} cannot be unpacked: {why}")]
    Archive {
        /// The archive.
        archive: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is another file where the model should be.
    #[error("{path} has sha256 {found}, expected {expected}: it is another file, or damaged", path = path.display())]
    Another {
        /// Where.
        path: PathBuf,
        /// What it has.
        found: String,
        /// What it should have.
        expected: String,
    },
    /// The disk is full.
    #[error("no space left for {path}; the download needs 200 MB", path = path.display())]
    Full {
        /// What was being written.
        path: PathBuf,
    },
    /// A file or folder cannot be written.
    #[error("{path} cannot be written: {source}", path = path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("{path} cannot be read: {source}", path = path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was to stop.
    #[error("stopped; the next attempt continues the download")]
    Stopped,
}

impl FetchError {
    /// A file that cannot be written, with a sentence of its own for a full disk.
    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        let is_full =
            matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if is_full { Self::Full { path } } else { Self::Write { path, source } }
    }
}
