//! The memory that all requests under way share: bodies that are read or answered, and WebSocket
//! messages that come in or are not answered yet. It is counted in blocks, of each client's share and
//! of what all have.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::share::{BODY_BLOCK_BYTES as BLOCK_BYTES, Share};
use crate::config::Limits;

/// The blocks of all clients. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct RequestMemory {
    blocks: Arc<Semaphore>,
    blocks_max: usize,
}

/// Other requests fill the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

impl RequestMemory {
    pub(crate) fn new(limits: &Limits) -> Self {
        let bytes = usize::try_from(limits.request_memory_bytes_max).unwrap_or(usize::MAX);
        let blocks_max = bytes.div_ceil(BLOCK_BYTES);
        Self { blocks: Arc::new(Semaphore::new(blocks_max)), blocks_max }
    }

    /// Nothing yet, for a client.
    pub(crate) fn of(&self, share: &Share) -> RequestBlocks {
        let own = Arc::clone(&share.body_blocks);
        RequestBlocks {
            most: share.body_blocks_max().min(self.blocks_max),
            own,
            of_all: Arc::clone(&self.blocks),
            held: None,
        }
    }
}

/// What requests of a client occupy until this is dropped.
#[derive(Debug)]
pub(crate) struct RequestBlocks {
    own: Arc<Semaphore>,
    of_all: Arc<Semaphore>,
    /// What a client can have at most.
    most: usize,
    held: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl RequestBlocks {
    /// Takes blocks until they hold so many bytes; the first block is free. If there are too few,
    /// nothing changes.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Full> {
        self.take(blocks(bytes))
    }

    /// The same, but what is larger than all that a client can have needs no more than all of it.
    pub(crate) fn grow_at_most(&mut self, bytes: u64) -> Result<(), Full> {
        self.take(blocks(bytes).min(self.most))
    }

    fn take(&mut self, wanted: usize) -> Result<(), Full> {
        let missing = wanted.saturating_sub(self.count());
        if missing == 0 {
            return Ok(());
        }
        let missing = u32::try_from(missing).map_err(|_error| Full)?;
        let take = |blocks: &Arc<Semaphore>| {
            Arc::clone(blocks).try_acquire_many_owned(missing).map_err(|_error| Full)
        };
        let (own, of_all) = (take(&self.own)?, take(&self.of_all)?);
        match &mut self.held {
            Some((own_held, of_all_held)) => {
                own_held.merge(own);
                of_all_held.merge(of_all);
            }
            held @ None => *held = Some((own, of_all)),
        }
        Ok(())
    }

    /// Gives back what so many bytes do not need.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let surplus = self.count().saturating_sub(blocks(bytes));
        if let Some((own, of_all)) = &mut self.held {
            drop((own.split(surplus), of_all.split(surplus)));
        }
    }

    fn count(&self) -> usize {
        self.held.as_ref().map_or(0, |(own, _)| own.num_permits())
    }
}

fn blocks(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX) / BLOCK_BYTES
}

/// The messages of one WebSocket that take memory.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// How many messages of each size are unanswered. Which one an answer was to is not known: it is
    /// taken for the smallest, so that they never take more memory than is counted. What the node sends
    /// by itself has no size.
    unanswered: BTreeMap<u64, u64>,
    unanswered_bytes: u64,
    /// What the message that comes in may come to.
    coming_bytes: u64,
    /// None until the WebSocket is open.
    blocks: Option<RequestBlocks>,
}

impl Messages {
    pub(crate) fn open(&mut self, blocks: RequestBlocks) {
        self.blocks = Some(blocks);
    }

    /// A message is coming in that may come to so many bytes; 0 if none is.
    pub(crate) const fn coming(&mut self, bytes: u64) {
        self.coming_bytes = bytes;
    }

    /// A message of so many bytes is unanswered.
    pub(crate) fn add(&mut self, bytes: u64) {
        let count = self.unanswered.entry(bytes).or_default();
        *count = count.saturating_add(1);
        self.unanswered_bytes = self.unanswered_bytes.saturating_add(bytes);
    }

    /// So many of them need no answer any more.
    pub(crate) fn settle(&mut self, messages: u64) {
        let mut left = messages;
        while left > 0
            && let Some(mut smallest) = self.unanswered.first_entry()
        {
            let settled = left.min(*smallest.get());
            let bytes = smallest.key().saturating_mul(settled);
            left = left.saturating_sub(settled);
            *smallest.get_mut() = smallest.get().saturating_sub(settled);
            if *smallest.get() == 0 {
                smallest.remove();
            }
            self.unanswered_bytes = self.unanswered_bytes.saturating_sub(bytes);
        }
        let bytes = self.bytes();
        if let Some(blocks) = &mut self.blocks {
            blocks.shrink(bytes);
        }
    }

    /// Takes memory for all that is there and comes in.
    pub(crate) fn hold(&mut self) -> Result<(), Full> {
        let (bytes, is_alone) = (self.bytes(), self.unanswered_bytes == 0);
        let Some(blocks) = &mut self.blocks else { return Ok(()) };
        // Nothing becomes free by waiting if there is nothing else.
        if is_alone { blocks.grow_at_most(bytes) } else { blocks.grow(bytes) }
    }

    const fn bytes(&self) -> u64 {
        self.unanswered_bytes.saturating_add(self.coming_bytes)
    }
}

#[cfg(test)]
mod tests {
    //! What is held for whom, and when it is free again.

    use std::net::Ipv4Addr;

    use super::*;
    use crate::admission::{AnswerMemory, Party, Shares};

    const BLOCK: u64 = BLOCK_BYTES as u64;

    /// All have eight blocks, and one client four.
    fn memory() -> (RequestMemory, Arc<Share>) {
        let bytes = |blocks: u32| blocks * u32::try_from(BLOCK_BYTES).unwrap();
        let limits = Limits {
            client_share_percent: 50,
            request_memory_bytes_max: bytes(8),
            request_bytes_max: bytes(4),
            ..Limits::default()
        };
        let shares = Shares::new(&limits, AnswerMemory::new(1 << 20), 32);
        let share = shares.of(Party::Network(Ipv4Addr::LOCALHOST.into()));
        (RequestMemory::new(&limits), share)
    }

    fn free(memory: &RequestMemory, share: &Share) -> (usize, usize) {
        (share.body_blocks.available_permits(), memory.blocks.available_permits())
    }

    #[test]
    fn blocks_are_taken_of_both_or_of_none() {
        let (memory, share) = memory();
        let (mut one, mut other) = (memory.of(&share), memory.of(&share));
        one.grow(3 * BLOCK - 1).unwrap();
        assert_eq!((2, 6), free(&memory, &share), "the first block is free");
        assert_eq!(Err(Full), other.grow(3 * BLOCK));
        assert_eq!((2, 6), free(&memory, &share));
        one.shrink(BLOCK);
        other.grow(3 * BLOCK).unwrap();
        assert_eq!((0, 4), free(&memory, &share));
        drop((one, other));
        assert_eq!((4, 8), free(&memory, &share));
    }

    #[test]
    fn messages_hold_memory_from_their_header_to_their_answer() {
        let (memory, share) = memory();
        let mut messages = Messages::default();
        messages.coming(2 * BLOCK);
        messages.hold().unwrap();
        assert_eq!((4, 8), free(&memory, &share), "no WebSocket yet");
        messages.open(memory.of(&share));
        messages.hold().unwrap();
        assert_eq!((2, 6), free(&memory, &share));
        messages.coming(0);
        messages.add(2 * BLOCK);
        messages.add(BLOCK);
        messages.add(0);
        messages.hold().unwrap();
        assert_eq!((1, 5), free(&memory, &share));
        messages.coming(2 * BLOCK);
        assert_eq!(Err(Full), messages.hold(), "it has to wait for an answer");
        // The answer may have been that to the small one.
        messages.settle(2);
        assert_eq!((1, 5), free(&memory, &share), "what comes in is counted, too");
        messages.hold().unwrap();
        assert_eq!((0, 4), free(&memory, &share));
        messages.coming(0);
        messages.settle(9);
        assert_eq!((4, 8), free(&memory, &share));
    }

    #[test]
    fn many_small_messages_are_counted_together() {
        let (memory, share) = memory();
        let mut messages = Messages::default();
        messages.open(memory.of(&share));
        (0..32).for_each(|_| messages.add(BLOCK / 8));
        messages.hold().unwrap();
        assert_eq!((0, 4), free(&memory, &share));
        messages.add(BLOCK);
        assert_eq!(Err(Full), messages.hold());
    }

    #[test]
    fn a_message_larger_than_what_a_client_can_have_needs_all_of_it() {
        let (memory, share) = memory();
        let mut messages = Messages::default();
        messages.open(memory.of(&share));
        messages.coming(9 * BLOCK);
        messages.hold().unwrap();
        assert_eq!((0, 4), free(&memory, &share));
        messages.coming(0);
        messages.add(9 * BLOCK);
        messages.coming(BLOCK);
        assert_eq!(Err(Full), messages.hold());
    }
}
