//! What the ways to ask share.

use tokio_util::task::TaskTracker;

use super::body::BodyReader;
use crate::admission::{Client, Readers, Shares};
use crate::transport::metrics::Metrics;

/// What is shared by JSON-RPC and REST.
#[derive(Clone)]
pub(crate) struct Resources {
    pub(crate) metrics: Metrics,
    /// For bodies of requests.
    pub(crate) bodies: BodyReader,
    /// What each client may have.
    pub(crate) shares: Shares,
    /// Who asks where nobody is asked who it is, and the node itself.
    pub(crate) nobody: Client,
    /// Places for calls that read.
    pub(crate) readers: Readers,
    /// What the node waits for when it stops.
    pub(crate) tasks: TaskTracker,
}
