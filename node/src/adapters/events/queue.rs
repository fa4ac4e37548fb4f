//! A queue from somebody who must not wait to one task. It is bounded by number and by memory; what does not
//! fit is lost, and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// The most items in a queue: more than one operation of the pool adds, unless it empties the pool.
const ITEMS_MAX: usize = 16_384;
/// The most memory that they take together, in bytes. An item that is alone always fits.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// An item, with its number and the memory that it takes.
struct Numbered<T> {
    number: u64,
    bytes: usize,
    item: T,
}

/// What both ends know.
#[derive(Debug, Default)]
struct Counts {
    /// Items so far, lost ones included: the number of the next one.
    put: AtomicU64,
    /// The memory of what is in the queue.
    bytes: AtomicUsize,
}

/// The side that adds items.
#[derive(Debug)]
pub(super) struct QueueSender<T> {
    sender: mpsc::Sender<Numbered<T>>,
    counts: Arc<Counts>,
}

/// The side that takes them.
#[derive(Debug)]
pub(crate) struct QueueReceiver<T> {
    receiver: mpsc::Receiver<Numbered<T>>,
    counts: Arc<Counts>,
    /// The number of the item that is to come next.
    next: u64,
}

/// What comes out next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Next<T> {
    /// So many were lost since the last one.
    pub(crate) lost: u64,
    /// The next one; none if those that were lost were the last ones.
    pub(crate) item: Option<T>,
}

/// A queue without items.
pub(super) fn queue<T>() -> (QueueSender<T>, QueueReceiver<T>) {
    let (sender, receiver) = mpsc::channel(ITEMS_MAX);
    let counts = Arc::<Counts>::default();
    (
        QueueSender { sender, counts: Arc::clone(&counts) },
        QueueReceiver { receiver, counts, next: 0 },
    )
}

impl<T> QueueSender<T> {
    /// Puts in an item that takes so much memory. Only one may put in at a time, as the pool does under its
    /// lock. It takes no lock, and wakes no more than the one task.
    pub(super) fn put(&self, bytes: usize, item: T) {
        let Counts { put, bytes: held } = &*self.counts;
        let number = put.load(Ordering::Acquire);
        let before = held.fetch_add(bytes, Ordering::AcqRel);
        let fits = before == 0 || before.saturating_add(bytes) <= BYTES_MAX;
        if !fits || self.sender.try_send(Numbered { number, bytes, item }).is_err() {
            held.fetch_sub(bytes, Ordering::AcqRel);
        }
        put.store(number.saturating_add(1), Ordering::Release);
    }

    /// The number of the item that is put in next.
    pub(super) fn end(&self) -> u64 {
        self.counts.put.load(Ordering::Acquire)
    }
}

impl<T> QueueReceiver<T> {
    /// What comes next, as soon as there is something; none if nothing will come any more.
    pub(crate) async fn next(&mut self) -> Option<Next<T>> {
        match self.here() {
            Some(next) => Some(next),
            None => self.receiver.recv().await.map(|numbered| self.out(numbered)),
        }
    }

    /// What comes next, if it is here.
    pub(crate) fn here(&mut self) -> Option<Next<T>> {
        // What was put in before this look and is not here, was lost.
        let end = self.counts.put.load(Ordering::Acquire);
        match self.receiver.try_recv() {
            Ok(numbered) => Some(self.out(numbered)),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                let lost = end.saturating_sub(self.next);
                self.next = self.next.max(end);
                (lost > 0).then_some(Next { lost, item: None })
            }
        }
    }

    fn out(&mut self, Numbered { number, bytes, item }: Numbered<T>) -> Next<T> {
        self.counts.bytes.fetch_sub(bytes, Ordering::AcqRel);
        let lost = number.saturating_sub(self.next);
        self.next = number.saturating_add(1);
        Next { lost, item: Some(item) }
    }
}

#[cfg(test)]
mod tests {
    //! What comes out.

    use futures::FutureExt as _;

    use super::*;

    const fn next(lost: u64, item: Option<u64>) -> Option<Next<u64>> {
        Some(Next { lost, item })
    }

    #[test]
    fn what_fits_comes_out_in_order() {
        let (sender, mut receiver) = queue();
        assert_eq!(None, receiver.next().now_or_never());
        (0..3).for_each(|item| sender.put(1, item));
        for item in 0..3 {
            assert_eq!(Some(next(0, Some(item))), receiver.next().now_or_never());
        }
        assert_eq!(None, receiver.next().now_or_never());
    }

    #[test]
    fn what_takes_too_much_memory_is_lost_and_counted_even_if_it_comes_last() {
        let (sender, mut receiver) = queue();
        let third = BYTES_MAX / 3;
        (0..5).for_each(|item| sender.put(third, item));
        assert_eq!(next(0, Some(0)), receiver.here());
        sender.put(third, 5);
        for (lost, item) in [(0, 1), (0, 2), (2, 5)] {
            assert_eq!(next(lost, Some(item)), receiver.here());
        }
        (6..10).for_each(|item| sender.put(third, item));
        for item in 6..9 {
            assert_eq!(next(0, Some(item)), receiver.here());
        }
        assert_eq!(next(1, None), receiver.here());
        assert_eq!(None, receiver.here());
        sender.put(2 * BYTES_MAX, 10);
        assert_eq!(next(0, Some(10)), receiver.here(), "alone it fits");
    }

    #[test]
    fn too_many_are_lost_too() {
        let (sender, mut receiver) = queue();
        let most = u64::try_from(ITEMS_MAX).unwrap();
        (0..=most).for_each(|item| sender.put(0, item));
        (0..most).for_each(|item| assert_eq!(next(0, Some(item)), receiver.here()));
        assert_eq!(next(1, None), receiver.here());
    }
}
