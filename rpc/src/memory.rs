//! The memory that answers occupy until they are sent, which all of them share.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::RpcError;

/// Smaller answers are not counted: they are bounded by the number of calls, and a node whose
/// memory for answers is full still says so, and how it is.
pub(crate) const FREE_BYTES: usize = 4 * 1024;
/// What stands around the content of a notification, at most.
const ENVELOPE_BYTES_MAX: usize = 512;
/// When an answer that found no room may find some.
const RETRY_AFTER_MS: u64 = 500;

/// A number of bytes that answers may occupy together.
#[derive(Clone, Debug)]
pub(crate) struct AnswerMemory {
    bytes_max: u32,
    bytes: Arc<Semaphore>,
}

impl AnswerMemory {
    pub(crate) fn new(bytes_max: u32) -> Self {
        let bytes = usize::try_from(bytes_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self { bytes_max, bytes: Arc::new(Semaphore::new(bytes)) }
    }

    /// Room for an answer now.
    pub(crate) fn hold(&self, bytes: usize) -> Result<Room, RpcError> {
        let Some(bytes) = self.counted(bytes) else { return Ok(Room::default()) };
        match Arc::clone(&self.bytes).try_acquire_many_owned(bytes) {
            Ok(permit) => Ok(Room(vec![permit])),
            Err(_) => {
                let message = "too many large answers wait to be taken";
                Err(RpcError::busy("BUSY", message, RETRY_AFTER_MS))
            }
        }
    }

    /// Room for an answer, as soon as there is some.
    pub(crate) async fn wait_for(&self, bytes: usize) -> Room {
        let Some(bytes) = self.counted(bytes) else { return Room::default() };
        let permit = Arc::clone(&self.bytes).acquire_many_owned(bytes).await;
        Room(permit.into_iter().collect())
    }

    /// How much an answer counts, if at all: a larger one than all memory needs all of it.
    fn counted(&self, bytes: usize) -> Option<u32> {
        (bytes > FREE_BYTES).then(|| u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max))
    }
}

/// Room that is occupied until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Room(Vec<OwnedSemaphorePermit>);

impl Room {
    pub(crate) fn add(&mut self, mut more: Self) {
        self.0.append(&mut more.0);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Bytes, and the room that they occupy.
pub(crate) struct Kept {
    pub(crate) bytes: bytes::Bytes,
    pub(crate) _room: Room,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The room of messages that wait to be sent, by the size of the message.
#[derive(Debug, Default)]
pub(crate) struct Ledger(BTreeMap<usize, Vec<Room>>);

impl Ledger {
    pub(crate) fn keep(&mut self, message_bytes: usize, room: Room) {
        if !room.is_empty() {
            self.0.entry(message_bytes).or_default().push(room);
        }
    }

    /// A message was sent: its room, or that of one that is as large. The size of a notification
    /// was told without its envelope.
    pub(crate) fn sent(&mut self, message_bytes: u64) -> Option<Room> {
        let most = usize::try_from(message_bytes).unwrap_or(usize::MAX);
        let least = most.saturating_sub(ENVELOPE_BYTES_MAX);
        let (&size, rooms) = self.0.range_mut(least..=most).next_back()?;
        let room = rooms.pop();
        if rooms.is_empty() {
            self.0.remove(&size);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_free_again_when_the_message_was_sent() {
        let memory = AnswerMemory::new(20_000);
        let mut ledger = Ledger::default();
        ledger.keep(10_000, memory.hold(10_000).unwrap());
        ledger.keep(9_000, memory.hold(9_000).unwrap());
        assert!(memory.hold(5_000).is_err());
        assert!(memory.hold(FREE_BYTES).unwrap().is_empty(), "small answers are free");
        assert!(ledger.sent(8_999).is_none(), "nothing of that size is kept");
        drop(ledger.sent(9_100));
        assert_eq!(10_000, memory.bytes.available_permits());
        drop(ledger.sent(10_000));
        assert_eq!(20_000, memory.bytes.available_permits());
        assert!(ledger.0.is_empty());
    }

    #[test]
    fn an_answer_larger_than_all_memory_needs_all_of_it() {
        let memory = AnswerMemory::new(5_000);
        let room = memory.hold(1_000_000).unwrap();
        assert!(memory.hold(4_500).is_err());
        drop(room);
        assert!(memory.hold(4_500).is_ok());
    }
}
