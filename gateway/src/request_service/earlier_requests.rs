//! Requests that were made earlier: they are followed once more, or taken back.

use std::sync::Arc;

use tokio::sync::watch;
use types::Hash;

use super::admission::internal;
use super::{Progress, RequestService};
use crate::keys::KeyId;
use crate::openai::ApiFault;
use crate::record::{Record, RequestId};
use crate::store::TakenBack;

impl RequestService {
    /// Waits until requests can be taken in, or until the service is stopped.
    pub(crate) async fn opened(&self) {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => (),
            () = self.recovered.cancelled() => (),
        }
    }

    /// The request of a key that made a run or a call, if there is one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn made(&self, key: KeyId, run: Hash) -> Result<Option<Record>, ApiFault> {
        self.store.request_that_made(key, run).map_err(|error| internal(&error))
    }

    /// How a request goes on whose AGENT_REQUEST is signed.
    pub(crate) fn follow_on(self: &Arc<Self>, id: RequestId) -> watch::Receiver<Progress> {
        self.spawn(id, None)
    }

    /// Has a run taken back that waits for a miner; its worker does it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub(crate) async fn take_back(&self, id: RequestId) -> Result<TakenBack, ApiFault> {
        let taken = self.store.take_back(id).await.map_err(|error| internal(&error))?;
        if let TakenBack::Marked(run) = taken {
            self.chain_events.wake(&run);
        }
        Ok(taken)
    }
}
