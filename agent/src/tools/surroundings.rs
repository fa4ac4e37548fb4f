//! What the tools work with.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wallet::Client;

use super::ports::{Clock, Names};
use super::sandbox::Wrapper;

/// What the tools work with.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The node that the chain's tools ask.
    pub node: Client,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Finds hosts for `fetch_url`.
    pub names: Arc<dyn Names>,
    /// A folder of the miner's own; each MCP server that is a process gets a folder in it.
    pub folder: PathBuf,
    /// How to call the program that confines a server; none runs them without.
    pub wrapper: Option<Wrapper>,
    /// Ends the servers.
    pub stop: CancellationToken,
}
