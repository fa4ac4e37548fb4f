//! The connection that calls come from.

use std::sync::Arc;

use jsonrpsee::MethodResponse;
use parking_lot::Mutex;

use crate::admission::{Room, Share};
use crate::error::RpcError;
use crate::transport::flow_control::FlowControl;

/// What kind of connection calls come from.
#[derive(Clone)]
pub(crate) enum Connection {
    /// One request, one answer, and the room that the answer takes.
    Http(Arc<Mutex<Room>>),
    /// Many calls at the same time, as many as the flow control admits.
    WebSocket(Arc<FlowControl>),
}

impl Connection {
    /// A message of the client gets no answer.
    pub(super) fn settle_unanswered(&self) {
        match self {
            Self::Http(_) => {}
            Self::WebSocket(flow_control) => flow_control.settle(1),
        }
    }

    /// Room for an answer or a part of one.
    pub(super) fn hold(&self, bytes: usize, share: &Arc<Share>) -> Result<Room, RpcError> {
        match self {
            Self::Http(_) => share.hold(bytes),
            Self::WebSocket(flow_control) => flow_control.hold(bytes, share),
        }
    }

    /// Keeps the room of an answer until it is sent.
    pub(super) fn keep(&self, message: &MethodResponse, room: Room) {
        match self {
            Self::Http(kept) => kept.lock().add(room),
            Self::WebSocket(flow_control) => flow_control.keep(message.as_json().get().len(), room),
        }
    }
}
