//! What all calls share.

use tokio_util::sync::CancellationToken;

use crate::ports::Ports;
use crate::transport::jsonrpc::registry::Registry;
use crate::transport::metrics::Metrics;

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) metrics: Metrics,
    pub(crate) ports: Ports,
    pub(crate) shutdown: CancellationToken,
    pub(crate) response_bytes_max: usize,
}
