//! What the services are done with.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::census::Census;
use super::events::Hub;
use super::fees::TransferFees;
use crate::admission::{Client, Readers};
use crate::config::Limits;
use crate::error::RpcError;
use crate::ports::{ChainFacts, Ports};

/// What the services are done with: the ports, the settings, and what is kept between two questions. A
/// service that needs no more than the ports takes only those.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) facts: Arc<ChainFacts>,
    pub(crate) ports: Ports,
    pub(crate) limits: Limits,
    pub(crate) hub: Arc<Hub>,
    pub(crate) readers: Readers,
    pub(crate) shutdown: CancellationToken,
    pub(super) census: Arc<Census>,
    pub(super) transfer_fees: Arc<TransferFees>,
}

impl Context {
    pub(crate) fn new(
        facts: ChainFacts,
        ports: Ports,
        limits: Limits,
        readers: Readers,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            facts: Arc::new(facts),
            hub: Arc::new(Hub::new(ports.clone(), limits.waiting_calls_max)),
            ports,
            limits,
            readers,
            shutdown,
            census: Arc::default(),
            transfer_fees: Arc::default(),
        }
    }

    /// The most bytes of texts in one page of a list.
    pub(crate) fn page_bytes_max(&self) -> usize {
        usize::try_from(self.limits.page_bytes_max).unwrap_or(usize::MAX)
    }

    /// Does something for a client that may touch the disk, off the runtime's own threads.
    ///
    /// # Errors
    /// Those of the work, and that the node is stopping.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        client: &Client,
        work: impl FnOnce(&Self) -> Result<T, RpcError> + Send + 'static,
    ) -> Result<T, RpcError> {
        if self.shutdown.is_cancelled() {
            return Err(RpcError::ShuttingDown);
        }
        let context = Arc::clone(self);
        self.readers.read(client.share(), move || work(&context)).await
    }
}
