//! The connection that waits for a request. When it is lost, the store learns of it, so that a retry
//! finds the request again.

use std::sync::Arc;

use crate::key_turns::Turn;
use crate::keys::KeyId;
use crate::operate::{Asking, One};
use crate::record::{Delivery, RequestId};
use crate::request_service::RequestService;

/// A connection that waits for a request.
#[derive(Debug)]
pub(crate) struct Connection {
    service: Arc<RequestService>,
    id: RequestId,
    pub(crate) asking: Asking,
    is_done: bool,
}

impl Connection {
    pub(crate) const fn new(service: Arc<RequestService>, id: RequestId, asking: Asking) -> Self {
        Self { service, id, asking, is_done: false }
    }

    /// Waits until the answer may be put into words: only so many answers of a key are sent at once.
    pub(super) async fn turn(&self, key: KeyId) -> Option<Turn> {
        self.service.answer_turns.turn(key).await
    }

    /// One stream more.
    pub(super) fn streams(&self) -> One {
        self.service.watch.streams.one()
    }

    /// The client has its answer.
    pub(crate) fn done(&mut self) {
        if !self.is_done {
            self.is_done = true;
            self.asking.done();
            self.service.deliver(self.id, Delivery::Done);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.is_done {
            self.service.deliver(self.id, Delivery::Lost);
        }
    }
}
