//! What is told while a file is fetched.

use std::time::Duration;

/// What is going on while a file is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another process fetches the same file; it is waited for.
    Waiting,
    /// The archive is at this address; this much of it is here from an earlier attempt.
    Found {
        /// The address, without credentials.
        url: String,
        /// Bytes that are here already.
        bytes: u64,
    },
    /// This much of the archive is here.
    Received {
        /// Bytes so far.
        bytes: u64,
        /// Bytes of the whole archive.
        total: u64,
    },
    /// The transfer broke off and is tried again.
    Again {
        /// Why it broke off.
        why: String,
        /// When it is tried again.
        pause: Duration,
    },
    /// The archive is here, and is checked and unpacked.
    Unpacking,
}

/// Whom to tell.
pub type Tell<'a> = dyn FnMut(Progress) + Send + 'a;
