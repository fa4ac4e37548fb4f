//! The lines of all senders, and how much in them waits for the base fee to fall.

use super::line::{Keys, Line, Part};
use super::offer::{Offer, Rate};
use super::waits::Waits;
use crate::senders::SenderId;

/// One line for each sender with something executable.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// By the number of the sender. The numbers are used again, so there are as many places as there ever
    /// were senders at once.
    by_sender: Vec<Option<Box<Line>>>,
    /// How often a sender got another first transaction.
    turns: u64,
    waits: Waits,
}

/// What a change of a line means for the orders in which its sender stands.
pub(super) struct Moved {
    pub(super) before: Option<Keys>,
    pub(super) now: Option<Keys>,
    pub(super) kept_before: Part,
    pub(super) kept: Part,
}

impl Lines {
    /// No lines, at this base fee.
    pub(super) fn at(base_fee: u64) -> Self {
        Self { waits: Waits::at(base_fee), ..Self::default() }
    }

    pub(super) const fn base_fee(&self) -> u64 {
        self.waits.base_fee()
    }

    /// How many transactions wait for the base fee to fall.
    pub(super) const fn waiting(&self) -> usize {
        self.waits.waiting()
    }

    /// The base fee has changed. Answers how many wait no more.
    pub(super) fn follow(&mut self, base_fee: u64) -> usize {
        self.waits.change(base_fee)
    }

    pub(super) fn get(&self, id: SenderId) -> Option<&Line> {
        self.by_sender.get(id)?.as_deref()
    }

    /// The first transaction of the sender that waits for the base fee to fall.
    pub(super) fn first_waiting(&self, id: SenderId) -> Option<&Offer> {
        self.get(id)?.first_waiting(self.base_fee())
    }

    /// Whether the last of the first `count` transactions of a sender waits for the base fee to fall.
    pub(super) fn waits_at(&self, id: SenderId, count: usize) -> bool {
        self.get(id).is_some_and(|line| line.floor_of(count) < self.base_fee())
    }

    /// Whether all that the sender has is in the tenth that is kept for steps.
    pub(super) fn is_kept(&self, id: Option<SenderId>) -> bool {
        id.and_then(|id| self.get(id)).is_none_or(Line::is_kept)
    }

    /// What a transaction that offers `rate` and is ready to pay so much at `most` would be worth after
    /// the others of its sender; none if it would wait for the base fee to fall.
    pub(super) fn worth(&self, id: Option<SenderId>, rate: Rate, most: u64) -> Option<Rate> {
        let line = id.and_then(|id| self.get(id));
        let base_fee = self.base_fee();
        if most < base_fee || line.is_some_and(|line| line.first_waiting(base_fee).is_some()) {
            return None;
        }
        let lowest = line.and_then(Line::lowest);
        Some(lowest.map_or(rate, |lowest| rate.min(lowest)))
    }

    /// Changes the line of a sender, which is there as long as something is in it.
    pub(super) fn change(
        &mut self,
        id: SenderId,
        change: impl FnOnce(&mut Line, &mut Waits),
    ) -> Moved {
        let mut line = self.by_sender.get_mut(id).and_then(Option::take).unwrap_or_default();
        let (before, kept_before) = (line.listed, line.kept);
        let first = |line: &Line| line.offers.front().map(|offer| offer.nonce);
        let first_before = first(&line);
        change(&mut line, &mut self.waits);
        if first(&line) != first_before {
            line.refusals = 0;
            line.since = self.turns;
            self.turns = self.turns.saturating_add(1);
        }
        line.listed = line.keys();
        let (now, kept) = (line.listed, line.kept);
        if !line.offers.is_empty() {
            self.put(id, line);
        }
        Moved { before, now, kept_before, kept }
    }

    fn put(&mut self, id: SenderId, line: Box<Line>) {
        if self.by_sender.len() <= id {
            self.by_sender.resize_with(id.saturating_add(1), || None);
        }
        if let Some(place) = self.by_sender.get_mut(id) {
            *place = Some(line);
        }
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (SenderId, &Line)> {
        self.by_sender.iter().enumerate().filter_map(|(id, line)| Some((id, line.as_deref()?)))
    }
}
