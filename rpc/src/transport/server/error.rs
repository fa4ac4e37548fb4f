//! Why the interfaces cannot be served.

use std::io::Error as IoError;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the interfaces cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port cannot be opened.
    #[error("{purpose} cannot listen on {address}")]
    Listen {
        /// `rpc` or `metrics`.
        purpose: &'static str,
        /// The address in the configuration.
        address: SocketAddr,
        /// Why.
        source: IoError,
    },
    /// The operator's socket cannot be made.
    #[error("cannot create the admin socket at {path}")]
    AdminSocket {
        /// Where.
        path: PathBuf,
        /// Why.
        source: IoError,
    },
}
