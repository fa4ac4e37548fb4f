//! The memory that answers occupy until they are sent, which all of them share. Nobody holds a part
//! of it, or a lock, while waiting for more.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::error::RpcError;

/// Smaller answers are not counted: they are bounded by the number of calls, and a node whose
/// memory for answers is full still says so, and how it is.
pub(crate) const FREE_BYTES: usize = 4 * 1024;
/// What stands around the content of a notification, at most.
const ENVELOPE_BYTES_MAX: usize = 512;
/// When an answer that found no room may find some.
const RETRY_AFTER_MS: u64 = 500;
/// How often who waits for room looks for some.
const LOOK_INTERVAL: Duration = Duration::from_millis(25);

/// A number of bytes that answers may occupy together; perhaps a part of a larger one.
#[derive(Clone, Debug)]
pub(crate) struct AnswerMemory {
    bytes_max: u32,
    bytes: Arc<Semaphore>,
    whole: Option<Arc<Self>>,
}

impl AnswerMemory {
    pub(crate) fn new(bytes_max: u32) -> Self {
        let bytes = usize::try_from(bytes_max).unwrap_or(Semaphore::MAX_PERMITS);
        let bytes = Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        Self { bytes_max, bytes, whole: None }
    }

    /// So much of this memory: what is held there is held here, too.
    pub(crate) fn part(&self, bytes_max: u32) -> Self {
        Self { whole: Some(Arc::new(self.clone())), ..Self::new(bytes_max.min(self.bytes_max)) }
    }

    /// Room for an answer now, in this and in what it is a part of.
    pub(crate) fn hold(&self, bytes: usize) -> Result<Room, RpcError> {
        let mut room = Room::default();
        let mut part = Some(self);
        while let Some(memory) = part {
            room.add(memory.hold_here(bytes)?);
            part = memory.whole.as_deref();
        }
        Ok(room)
    }

    fn hold_here(&self, bytes: usize) -> Result<Room, RpcError> {
        let Some(bytes) = self.counted(bytes) else { return Ok(Room::default()) };
        match Arc::clone(&self.bytes).try_acquire_many_owned(bytes) {
            Ok(permit) => Ok(Room { permits: vec![permit], owners: Vec::new() }),
            Err(_) => {
                let message = "too many large answers are waiting to be read";
                Err(RpcError::busy("BUSY", message, RETRY_AFTER_MS))
            }
        }
    }

    /// Whether more than half of it is occupied.
    pub(crate) fn is_scarce(&self) -> bool {
        let most = usize::try_from(self.bytes_max).unwrap_or(usize::MAX);
        self.bytes.available_permits() < most / 2
    }

    /// How much an answer counts, if at all: a larger one than all memory needs all of it.
    fn counted(&self, bytes: usize) -> Option<u32> {
        (bytes > FREE_BYTES).then(|| u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max))
    }
}

/// Room as soon as `hold` finds some; none if it finds none within `patience`. Nothing is kept between
/// two looks, so who waits for much does not keep little from others.
pub(crate) async fn wait_for_room(
    patience: Duration,
    hold: impl Fn() -> Result<Room, RpcError>,
) -> Option<Room> {
    let begun = Instant::now();
    loop {
        if let Ok(room) = hold() {
            return Some(room);
        }
        let left = patience.checked_sub(begun.elapsed()).filter(|left| !left.is_zero())?;
        tokio::time::sleep(left.min(LOOK_INTERVAL)).await;
    }
}

/// Room that is occupied until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Room {
    permits: Vec<OwnedSemaphorePermit>,
    /// Whose it is, who are not forgotten meanwhile.
    owners: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Room {
    pub(crate) fn add(&mut self, mut more: Self) {
        self.permits.append(&mut more.permits);
        self.owners.append(&mut more.owners);
    }

    /// The room is this owner's, who is not forgotten as long as it is occupied.
    pub(super) fn of(mut self, owner: Arc<dyn Any + Send + Sync>) -> Self {
        if !self.is_empty() {
            self.owners.push(owner);
        }
        self
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.permits.is_empty()
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
    fn a_part_takes_from_the_whole_and_no_more_than_its_size() {
        let whole = AnswerMemory::new(30_000);
        let (one, other) = (whole.part(10_000), whole.part(25_000));
        let held = one.hold(8_000).unwrap();
        assert!(one.hold(5_000).is_err(), "its part is full");
        assert_eq!(22_000, whole.bytes.available_permits(), "what was refused holds nothing");
        let more = other.hold(20_000).unwrap();
        assert!(whole.is_scarce());
        assert!(other.hold(5_000).is_err(), "the whole is full");
        assert_eq!(5_000, other.bytes.available_permits(), "what was refused holds nothing");
        drop((held, more));
        assert_eq!(30_000, whole.bytes.available_permits());
        assert!(!whole.is_scarce());
    }

    #[tokio::test]
    async fn who_waits_for_room_keeps_none_meanwhile() {
        let memory = AnswerMemory::new(20_000);
        let held = memory.hold(15_000).unwrap();
        let waiting = memory.clone();
        let minute = Duration::from_secs(60);
        let mut waits =
            tokio::spawn(async move { wait_for_room(minute, || waiting.hold(18_000)).await });
        let looks = tokio::time::timeout(3 * LOOK_INTERVAL, &mut waits).await;
        assert!(looks.is_err(), "there is no room yet");
        let other = memory.hold(5_000).expect("the rest is free for others");
        drop((held, other));
        let room = waits.await.unwrap();
        assert!(room.is_some());
        let in_vain = wait_for_room(LOOK_INTERVAL, || memory.hold(18_000)).await;
        assert!(in_vain.is_none());
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
