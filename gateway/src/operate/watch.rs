//! What is seen of a service, for whoever asks.

use parking_lot::Mutex;

use super::number::Number;
use super::seen::Seen;

/// What is seen of a service.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// What was seen last.
    pub(super) seen: Mutex<Seen>,
    /// Connections of clients.
    pub(crate) connections: Number,
    /// Streams that are open.
    pub(crate) streams: Number,
}
