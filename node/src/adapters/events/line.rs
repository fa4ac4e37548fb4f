//! A line: from one who must not wait, to one task. It is bounded by number and by memory; what does not
//! fit is lost, and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// Items in a line at the same time: more than one operation of the pool brings, unless it empties the pool.
const ITEMS_MAX: usize = 16_384;
/// What they may take together, in bytes. One that comes alone always fits.
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
    /// The memory of what is in the line.
    bytes: AtomicUsize,
}

/// The end at which items are put in.
#[derive(Debug)]
pub(super) struct Line<T> {
    sender: mpsc::Sender<Numbered<T>>,
    counts: Arc<Counts>,
}

/// The end at which they come out.
#[derive(Debug)]
pub(crate) struct Exit<T> {
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

/// A line without items.
pub(super) fn line<T>() -> (Line<T>, Exit<T>) {
    let (sender, receiver) = mpsc::channel(ITEMS_MAX);
    let counts = Arc::<Counts>::default();
    (Line { sender, counts: Arc::clone(&counts) }, Exit { receiver, counts, next: 0 })
}

impl<T> Line<T> {
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

impl<T> Exit<T> {
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
        let (line, mut exit) = line();
        assert_eq!(None, exit.next().now_or_never());
        (0..3).for_each(|item| line.put(1, item));
        for item in 0..3 {
            assert_eq!(Some(next(0, Some(item))), exit.next().now_or_never());
        }
        assert_eq!(None, exit.next().now_or_never());
    }

    #[test]
    fn what_takes_too_much_memory_is_lost_and_counted_even_if_it_comes_last() {
        let (line, mut exit) = line();
        let third = BYTES_MAX / 3;
        (0..5).for_each(|item| line.put(third, item));
        assert_eq!(next(0, Some(0)), exit.here());
        line.put(third, 5);
        for (lost, item) in [(0, 1), (0, 2), (2, 5)] {
            assert_eq!(next(lost, Some(item)), exit.here());
        }
        (6..10).for_each(|item| line.put(third, item));
        for item in 6..9 {
            assert_eq!(next(0, Some(item)), exit.here());
        }
        assert_eq!(next(1, None), exit.here());
        assert_eq!(None, exit.here());
        line.put(2 * BYTES_MAX, 10);
        assert_eq!(next(0, Some(10)), exit.here(), "alone it fits");
    }

    #[test]
    fn too_many_are_lost_too() {
        let (line, mut exit) = line();
        let most = u64::try_from(ITEMS_MAX).unwrap();
        (0..=most).for_each(|item| line.put(0, item));
        (0..most).for_each(|item| assert_eq!(next(0, Some(item)), exit.here()));
        assert_eq!(next(1, None), exit.here());
    }
}
