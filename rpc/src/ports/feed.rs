//! A feed: events for many listeners, bounded by number and by memory. Whoever adds an event waits for
//! nobody; a listener that falls behind loses the oldest events, and learns how many.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::coop::consume_budget;

/// How much a feed keeps for listeners that read slowly. It keeps the newest event in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeedBounds {
    /// The most events.
    pub events_max: usize,
    /// The most memory that they take together, in bytes.
    pub bytes_max: usize,
}

/// The side of a feed that adds events.
#[derive(Debug)]
pub struct Feeder<T> {
    kept: Arc<Mutex<Kept<T>>>,
    bounds: FeedBounds,
    /// Tells listeners how many events there have been.
    end: watch::Sender<u64>,
}

/// The side of a feed that listens.
#[derive(Debug)]
pub struct Feed<T> {
    kept: Arc<Mutex<Kept<T>>>,
    /// The number of the event that it hears next.
    position: u64,
    end: watch::Receiver<u64>,
}

/// Why a listener does not hear the next event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FeedError {
    /// The listener has lost this many events. It continues with the one after them.
    #[error("{0} events are lost")]
    Lagged(u64),
    /// There will be no more events.
    #[error("the feed has ended")]
    Closed,
}

/// The newest events, each with its number and the memory that it takes.
#[derive(Debug)]
struct Kept<T> {
    events: VecDeque<(u64, usize, T)>,
    bytes: usize,
    /// How many events there have been, lost ones included: the number of the next one.
    end: u64,
}

/// What is known of the event with a certain number.
enum Found<T> {
    Here(T),
    /// The first event that is not lost has this number.
    Lost(u64),
    NotYet,
}

impl<T> Kept<T> {
    /// Adds an event; answers those that have to go for it.
    fn push(&mut self, bytes: usize, event: T, bounds: FeedBounds) -> Vec<(u64, usize, T)> {
        self.events.push_back((self.end, bytes, event));
        self.bytes = self.bytes.saturating_add(bytes);
        self.end = self.end.saturating_add(1);
        let mut gone = Vec::new();
        while self.is_too_much(bounds)
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(oldest.1);
            gone.push(oldest);
        }
        gone
    }

    fn is_too_much(&self, bounds: FeedBounds) -> bool {
        let FeedBounds { events_max, bytes_max } = bounds;
        let count = self.events.len();
        count > 1 && (count > events_max || self.bytes > bytes_max)
    }
}

impl<T: Clone> Kept<T> {
    fn find(&self, position: u64) -> Found<T> {
        let at = self.events.partition_point(|(number, ..)| *number < position);
        match self.events.get(at) {
            Some((number, _, event)) if *number == position => Found::Here(event.clone()),
            Some((number, ..)) => Found::Lost(*number),
            None if self.end > position => Found::Lost(self.end),
            None => Found::NotYet,
        }
    }
}

impl<T> Feeder<T> {
    /// A feed without events.
    #[must_use]
    pub fn new(bounds: FeedBounds) -> Self {
        let kept = Kept { events: VecDeque::new(), bytes: 0, end: 0 };
        Self { kept: Arc::new(Mutex::new(kept)), bounds, end: watch::Sender::new(0) }
    }

    /// Adds an event that takes so much memory. Listeners hear of it after [`Feeder::tell`]. Without
    /// listeners, nothing is kept.
    pub fn push(&self, bytes: usize, event: T) {
        let is_heard = self.listeners() > 0;
        let mut kept = self.kept.lock();
        let gone = if is_heard {
            kept.push(bytes, event, self.bounds)
        } else {
            kept.end = kept.end.saturating_add(1);
            kept.bytes = 0;
            kept.events.drain(..).collect()
        };
        // Taking large events down takes a while, in which nobody shall wait.
        drop(kept);
        drop(gone);
    }

    /// So many events were lost before they could be added.
    pub fn lose(&self, events: u64) {
        let mut kept = self.kept.lock();
        kept.end = kept.end.saturating_add(events);
    }

    /// Wakes the listeners that wait.
    pub fn tell(&self) {
        let end = self.kept.lock().end;
        self.end.send_if_modified(|told| std::mem::replace(told, end) != end);
    }

    /// A listener that hears the events from now on.
    #[must_use]
    pub fn listen(&self) -> Feed<T> {
        self.listen_from(|| self.kept.lock().end)
    }

    /// A listener that hears the events from the one with this number on, which may be still to come. The
    /// number is asked for when events are kept for the listener.
    #[must_use]
    pub fn listen_from(&self, position: impl FnOnce() -> u64) -> Feed<T> {
        let end = self.end.subscribe();
        Feed { kept: Arc::clone(&self.kept), position: position(), end }
    }

    /// How many listeners there are.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.end.receiver_count()
    }
}

impl<T: Clone> Feed<T> {
    /// The number of the event that it hears next, counted from the first event of the feed.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The next event, as soon as there is one. It stays the next one until [`Feed::pass`].
    ///
    /// # Errors
    /// [`FeedError`].
    pub async fn peek(&mut self) -> Result<T, FeedError> {
        // Whoever is far behind lets others have a turn, too.
        consume_budget().await;
        loop {
            self.end.borrow_and_update();
            let found = self.kept.lock().find(self.position);
            match found {
                Found::Here(event) => return Ok(event),
                Found::Lost(first) => {
                    let lost = first.saturating_sub(self.position);
                    self.position = first;
                    return Err(FeedError::Lagged(lost));
                }
                Found::NotYet => {}
            }
            self.end.changed().await.map_err(|_ended| FeedError::Closed)?;
        }
    }

    /// The next event if it is here and not lost.
    #[must_use]
    pub fn current(&self) -> Option<T> {
        match self.kept.lock().find(self.position) {
            Found::Here(event) => Some(event),
            Found::Lost(_) | Found::NotYet => None,
        }
    }

    /// Leaves the next event behind.
    pub const fn pass(&mut self) {
        self.position = self.position.saturating_add(1);
    }

    /// The next event, as soon as there is one; it is behind the listener then.
    ///
    /// # Errors
    /// [`FeedError`].
    pub async fn next(&mut self) -> Result<T, FeedError> {
        let event = self.peek().await?;
        self.pass();
        Ok(event)
    }
}

#[cfg(test)]
mod tests {
    //! What is kept, and what listeners hear.

    use futures::FutureExt as _;

    use super::*;

    const BOUNDS: FeedBounds = FeedBounds { events_max: 4, bytes_max: 100 };

    /// Adds events that take so much memory each, and tells of them.
    fn add<T>(feeder: &Feeder<T>, bytes: usize, events: impl IntoIterator<Item = T>) {
        events.into_iter().for_each(|event| feeder.push(bytes, event));
        feeder.tell();
    }

    /// What the listener hears now; none if it waits.
    fn hear<T: Clone>(feed: &mut Feed<T>) -> Option<Result<T, FeedError>> {
        feed.next().now_or_never()
    }

    #[test]
    fn a_listener_hears_what_comes_after_it_in_order() {
        let feeder = Feeder::new(BOUNDS);
        let mut early = feeder.listen();
        add(&feeder, 1, [1, 2]);
        let mut late = feeder.listen();
        add(&feeder, 1, [3]);
        for event in 1..=3 {
            assert_eq!(Some(Ok(event)), hear(&mut early));
        }
        assert_eq!(None, hear(&mut early));
        assert_eq!(Some(Ok(3)), hear(&mut late));
        assert_eq!(None, hear(&mut late));
    }

    #[test]
    fn a_listener_that_waits_is_woken_when_it_is_told() {
        let feeder = Feeder::new(BOUNDS);
        let mut feed = feeder.listen();
        let mut heard = Box::pin(feed.next());
        assert_eq!(None, heard.as_mut().now_or_never());
        add(&feeder, 1, [7]);
        assert_eq!(Some(Ok(7)), heard.as_mut().now_or_never());
    }

    #[test]
    fn too_many_events_push_the_oldest_out_and_the_listener_learns_how_many() {
        let feeder = Feeder::new(BOUNDS);
        let mut feed = feeder.listen();
        add(&feeder, 1, 1..=7);
        assert_eq!(Some(Err(FeedError::Lagged(3))), hear(&mut feed));
        assert_eq!(Some(Ok(4)), hear(&mut feed));
    }

    #[test]
    fn large_events_push_the_oldest_out_whoever_still_wants_them() {
        let feeder = Feeder::new(BOUNDS);
        let mut feed = feeder.listen();
        let large: Vec<_> = (0..3).map(Arc::new).collect();
        add(&feeder, 60, large.iter().cloned());
        let owners: Vec<_> = large.iter().map(Arc::strong_count).collect();
        assert_eq!(vec![1, 1, 2], owners, "one of 60 bytes is kept, two are not");
        assert_eq!(Some(Err(FeedError::Lagged(2))), hear(&mut feed));
        assert_eq!(Some(Ok(Arc::clone(&large[2]))), hear(&mut feed));
        add(&feeder, 1_000, [Arc::new(3)]);
        assert_eq!(Some(Ok(Arc::new(3))), hear(&mut feed), "the newest is kept in any case");
    }

    #[test]
    fn an_event_is_the_next_one_until_it_is_passed_or_lost() {
        let feeder = Feeder::new(BOUNDS);
        let mut feed = feeder.listen();
        add(&feeder, 60, [1, 2]);
        assert_eq!(Some(Err(FeedError::Lagged(1))), feed.peek().now_or_never());
        assert_eq!((Some(Ok(2)), 1), (feed.peek().now_or_never(), feed.position()));
        assert_eq!(Some(2), feed.current());
        add(&feeder, 60, [3]);
        assert_eq!(None, feed.current(), "it was pushed out meanwhile");
        assert_eq!(Some(Err(FeedError::Lagged(1))), hear(&mut feed));
        assert_eq!(Some(Ok(3)), hear(&mut feed));
    }

    #[test]
    fn what_was_lost_on_the_way_counts_for_those_who_waited_for_it() {
        let feeder = Feeder::new(BOUNDS);
        let (mut feed, mut later) = (feeder.listen(), feeder.listen_from(|| 5));
        feeder.lose(4);
        add(&feeder, 1, [4, 5]);
        assert_eq!(Some(Err(FeedError::Lagged(4))), hear(&mut feed));
        assert_eq!(Some(Ok(4)), hear(&mut feed));
        assert_eq!(Some(Ok(5)), hear(&mut later), "it wanted nothing before that");
        feeder.lose(2);
        feeder.tell();
        assert_eq!(Some(Err(FeedError::Lagged(2))), hear(&mut later));
    }

    #[test]
    fn without_listeners_nothing_is_kept() {
        let (feeder, event) = (Feeder::new(BOUNDS), Arc::new(1));
        let feed = feeder.listen();
        add(&feeder, 1, [Arc::clone(&event)]);
        drop(feed);
        add(&feeder, 1, [Arc::clone(&event)]);
        assert_eq!(1, Arc::strong_count(&event));
        let mut feed = feeder.listen();
        assert_eq!((2, None), (feed.position(), hear(&mut feed)));
    }
}
