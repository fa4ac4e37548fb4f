//! The connection that waits for a request. When it is lost, the store learns of it, so that a retry
//! finds the request again.

use std::sync::Arc;

use crate::desk::Desk;
use crate::record::{Delivery, RequestId};

/// A connection that waits for a request.
#[derive(Debug)]
pub(crate) struct Connection {
    desk: Arc<Desk>,
    id: RequestId,
    is_done: bool,
}

impl Connection {
    pub(crate) const fn new(desk: Arc<Desk>, id: RequestId) -> Self {
        Self { desk, id, is_done: false }
    }

    /// The client has its answer.
    pub(crate) fn done(&mut self) {
        if !self.is_done {
            self.is_done = true;
            self.desk.deliver(self.id, Delivery::Done);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.is_done {
            self.desk.deliver(self.id, Delivery::Lost);
        }
    }
}
