//! What happened since the start, counted for people and alarms.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::clock::Clock;
use parking_lot::Mutex;

use crate::ports::{Counters, Event};

/// Counts since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Decisions by their code.
    pub decisions: BTreeMap<&'static str, u64>,
    /// Decisions by their code since there was work.
    pub idle_decisions: BTreeMap<&'static str, u64>,
    /// Claims that were lost since there was work.
    pub idle_losses: u64,
    /// When a pending run was last looked at, milliseconds since 1970.
    pub run_seen_ms: Option<u64>,
    /// When there was work last, milliseconds since 1970; at first the start.
    pub worked_ms: u64,
}

/// Counts, and hands every event on.
#[derive(Debug)]
pub struct Tally {
    clock: Arc<dyn Clock>,
    next: Arc<dyn Counters>,
    counts: Mutex<Counts>,
}

impl Tally {
    /// Nothing has happened yet; `next` hears everything too.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, next: Arc<dyn Counters>) -> Self {
        let counts = Counts { worked_ms: clock.now_ms(), ..Counts::default() };
        Self { clock, next, counts: Mutex::new(counts) }
    }

    /// The counts now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts.lock().clone()
    }

    /// There is work now.
    pub fn note_work(&self) {
        let now_ms = self.clock.now_ms();
        let mut counts = self.counts.lock();
        counts.worked_ms = now_ms;
        counts.idle_decisions.clear();
        counts.idle_losses = 0;
    }
}

impl Counters for Tally {
    fn count(&self, event: Event) {
        match &event {
            Event::Decided(code) => {
                let now_ms = self.clock.now_ms();
                let mut counts = self.counts.lock();
                counts.run_seen_ms = Some(now_ms);
                let Counts { decisions, idle_decisions, .. } = &mut *counts;
                for codes in [decisions, idle_decisions] {
                    let times = codes.entry(code).or_default();
                    *times = times.saturating_add(1);
                }
            }
            Event::LostRace => {
                let mut counts = self.counts.lock();
                counts.idle_losses = counts.idle_losses.saturating_add(1);
            }
            Event::Claimed
            | Event::Step { .. }
            | Event::Answered { .. }
            | Event::Finished { .. }
            | Event::Drawn
            | Event::Served { .. } => self.note_work(),
            Event::ToolCall { .. }
            | Event::BackendFailed
            | Event::Written { .. }
            | Event::Swept { .. } => (),
        }
        self.next.count(event);
    }
}
