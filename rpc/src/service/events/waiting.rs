//! Calls of methods that wait for a call of an agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use types::call::CallChange;
use types::{CommittedBlock, Event, Hash};

use crate::admission::Held;
use crate::wire::WaitUntil;

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WaitFor {
    /// The call.
    pub(crate) call_id: Hash,
    /// What shall have become of it.
    pub(crate) until: WaitUntil,
}

/// The call that is waited for, and a number of its own for each who waits.
type Key = (Hash, u64);

/// Who waits, by call.
#[derive(Default)]
pub(super) struct Waiting {
    by_call: Mutex<BTreeMap<Key, (WaitUntil, oneshot::Sender<()>)>>,
    next_ticket: AtomicU64,
}

impl Waiting {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.by_call.lock().len()
    }

    /// One more waits, in this place.
    pub(super) fn add(self: &Arc<Self>, wait_for: WaitFor, place: Held) -> CallWaiter {
        let WaitFor { call_id, until } = wait_for;
        let key = (call_id, self.next_ticket.fetch_add(1, Ordering::Relaxed));
        let (sender, told) = oneshot::channel();
        self.by_call.lock().insert(key, (until, sender));
        CallWaiter { waiting: Arc::clone(self), key, told, _place: place }
    }

    /// Tells those whose call a block has decided or settled: they look for themselves.
    pub(super) fn tell(&self, committed: &CommittedBlock) {
        let Some(events) = &committed.events else { return };
        for (_, event) in events.iter() {
            if let Event::CallChanged { call_id, change } = event {
                self.tell_of(call_id, change);
            }
        }
    }

    fn tell_of(&self, call_id: &Hash, change: &CallChange) {
        let is_reached = |until: WaitUntil| match change {
            CallChange::Unassigned { .. } | CallChange::Settled { .. } => true,
            CallChange::Decided { .. } | CallChange::AppealFailed { .. } => {
                until == WaitUntil::Decided
            }
            CallChange::Requested { .. }
            | CallChange::Elected { .. }
            | CallChange::Committed { .. }
            | CallChange::Revealing { .. }
            | CallChange::Revealed { .. }
            | CallChange::Appealed { .. } => false,
        };
        let mut by_call = self.by_call.lock();
        let of_call = by_call.range((*call_id, 0)..=(*call_id, u64::MAX));
        let reached = of_call.filter(|(_, (until, _))| is_reached(*until));
        let keys: Vec<Key> = reached.map(|(key, _)| *key).collect();
        for (_, sender) in keys.iter().filter_map(|key| by_call.remove(key)) {
            // Fails only if the caller has gone.
            sender.send(()).ok();
        }
    }

    /// For when blocks were stepped over: all look again.
    pub(super) fn tell_all(&self) {
        for (_, sender) in std::mem::take(&mut *self.by_call.lock()).into_values() {
            sender.send(()).ok();
        }
    }

    fn forget(&self, key: &Key) {
        self.by_call.lock().remove(key);
    }
}

/// A method's call that waits for a call of an agent.
pub(crate) struct CallWaiter {
    waiting: Arc<Waiting>,
    key: Key,
    told: oneshot::Receiver<()>,
    _place: Held,
}

impl CallWaiter {
    /// Ends when it is worth looking again; none if nobody tells any more.
    pub(crate) async fn told(mut self) -> Option<()> {
        (&mut self.told).await.ok()
    }
}

impl Drop for CallWaiter {
    fn drop(&mut self) {
        self.waiting.forget(&self.key);
    }
}
