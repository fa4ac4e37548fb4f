//! The subscriptions of one connection to the pool. One task listens for all of them, so that an event of
//! the pool wakes a connection once, however much it has subscribed to.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::subscription::{End, NOTICE_BYTES, Sink, too_slow_to_read};
use crate::admission::Room;
use crate::ports::{Feed, FeedError, PoolEvent};
use crate::service::Context;
use crate::service::events::{Filter, Keys, pool_notice};
use crate::wire::Lagged;

/// The subscriptions of one connection to the pool.
#[derive(Default)]
pub(crate) struct PoolSubscriptions {
    listed: Mutex<Listed>,
    /// Told when a subscription has ended.
    ended: Notify,
}

#[derive(Default)]
struct Listed {
    /// By number, the oldest first.
    members: BTreeMap<u64, Arc<Member>>,
    next_number: u64,
    /// Whether a task listens for them.
    is_served: bool,
}

/// A subscription.
struct Member {
    filter: Filter,
    sink: Arc<Sink>,
    /// The number of the first event that it is told of.
    from: u64,
    is_too_slow: CancellationToken,
}

/// A place among the subscriptions, until it is dropped.
pub(super) struct Membership {
    all: Arc<PoolSubscriptions>,
    number: u64,
    is_too_slow: CancellationToken,
}

impl Membership {
    /// Waits until the client has not taken what there is for too long.
    pub(super) async fn ended(&self) -> End {
        self.is_too_slow.cancelled().await;
        too_slow_to_read()
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.all.listed.lock().members.remove(&self.number);
        self.all.ended.notify_one();
    }
}

impl PoolSubscriptions {
    /// Begins a subscription that is told of what `feed` hears. The first one's feed serves all that come
    /// while there is one.
    pub(super) fn begin(
        self: &Arc<Self>,
        context: &Context,
        filter: Filter,
        sink: Arc<Sink>,
        feed: Feed<PoolEvent>,
    ) -> Membership {
        let is_too_slow = CancellationToken::new();
        let from = feed.position();
        let member = Member { filter, sink, from, is_too_slow: is_too_slow.clone() };
        let mut listed = self.listed.lock();
        let number = listed.next_number;
        listed.next_number = number.saturating_add(1);
        listed.members.insert(number, Arc::new(member));
        let is_served = std::mem::replace(&mut listed.is_served, true);
        drop(listed);
        if !is_served {
            let heights = context.hub.heights();
            let listener = Listener { all: Arc::clone(self), feed, heights, told: None };
            let shutdown = context.shutdown.clone();
            tokio::spawn(async move { shutdown.run_until_cancelled(listener.run()).await });
        }
        Membership { all: Arc::clone(self), number, is_too_slow }
    }

    /// The first subscription after this one that is as wanted.
    fn next_after(
        &self,
        last: Option<u64>,
        is_wanted: impl Fn(&Member) -> bool,
    ) -> Option<(u64, Arc<Member>)> {
        let after = last.map_or(Bound::Unbounded, Bound::Excluded);
        let listed = self.listed.lock();
        let mut later = listed.members.range((after, Bound::Unbounded));
        let found = later.find(|(_, member)| is_wanted(member));
        found.map(|(number, member)| (*number, Arc::clone(member)))
    }

    /// Whether the last one has ended; then nobody listens any more.
    fn is_over(&self) -> bool {
        let mut listed = self.listed.lock();
        listed.is_served = !listed.members.is_empty();
        !listed.is_served
    }
}

/// Listens for all subscriptions of a connection, and holds no event while it waits for anything.
struct Listener {
    all: Arc<PoolSubscriptions>,
    feed: Feed<PoolEvent>,
    heights: watch::Receiver<u64>,
    /// The last subscription that has had its turn at the next event.
    told: Option<u64>,
}

impl Listener {
    /// Listens until there is no subscription left.
    async fn run(mut self) {
        loop {
            let heard = tokio::select! {
                heard = self.feed.peek() => heard,
                () = self.all.ended.notified() => {
                    if self.all.is_over() {
                        return;
                    }
                    continue;
                }
            };
            match heard {
                Ok(event) => {
                    let keys = Keys::of(event.tx());
                    let bytes = event.tx().signed_bytes().saturating_add(NOTICE_BYTES);
                    drop(event);
                    self.tell(&keys, bytes).await;
                }
                Err(FeedError::Lagged(lost)) => self.tell_of_lost(lost).await,
                Err(FeedError::Closed) => return,
            }
        }
    }

    /// Tells those of the next event who want it, one after the other.
    async fn tell(&mut self, keys: &Keys, bytes: usize) {
        let position = self.feed.position();
        let wants = |member: &Member| {
            member.from <= position
                && !member.is_too_slow.is_cancelled()
                && member.filter.wants(keys)
        };
        while let Some((number, member)) = self.all.next_after(self.told, wants) {
            let room = tokio::select! {
                room = member.sink.room(bytes) => room,
                () = member.sink.closed() => Ok(Room::default()),
            };
            let Ok(room) = room else {
                // Nor is there room for the others: they have waited as long.
                while let Some((number, member)) = self.all.next_after(self.told, wants) {
                    member.is_too_slow.cancel();
                    self.told = Some(number);
                }
                break;
            };
            // It may have been lost meanwhile; how many were lost is told next then.
            let Some(event) = self.feed.current() else { return };
            let notice = pool_notice(&event, *self.heights.borrow());
            // One that has gone hears nothing, and ends itself.
            drop(member.sink.send_value(&notice, room).await);
            self.told = Some(number);
        }
        self.feed.pass();
        self.told = None;
    }

    /// Tells all how many events they have lost.
    async fn tell_of_lost(&mut self, lost: u64) {
        let end = self.feed.position();
        let first = end.saturating_sub(lost);
        // Those who have had their turn at the first of them have not lost it.
        let (had_turn, mut last) = (self.told.take(), None);
        while let Some((number, member)) = self.all.next_after(last, |_| true) {
            let has_first = had_turn.is_some_and(|told| number <= told);
            let first = first.saturating_add(u64::from(has_first)).max(member.from);
            let lagged = end.saturating_sub(first);
            if lagged > 0 {
                let notice = Lagged { lagged, block_index: *self.heights.borrow() };
                drop(member.sink.send_value(&notice, Room::default()).await);
            }
            last = Some(number);
        }
    }
}
