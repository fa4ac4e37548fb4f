//! Which blocks to ask whom for: pure bookkeeping, told of the time.
//!
//! The heights that are wanted are cut into parts, which are asked for in their order from several
//! peers at once. A peer has a few parts under way at most and gets the next when it has answered,
//! so a slow one gets fewer. What is not answered goes to another peer; the first part, for which
//! all others wait, is asked of a second peer after a while.
//!
//! What peers say of themselves is a claim. Nothing above the height that is wanted is asked for,
//! whoever claims it, and what has been given out above all claims of those who are still there is
//! dropped. Peers that proved good are asked first (`standing.rs`); of the strangers only a few at a
//! time, while somebody better has what is wanted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::standing::{Answered, Outcome, PeerStandings, Rank, bytes_of};
use super::wire::{BLOCKS_BYTES_WANTED, BLOCKS_MAX};
use crate::ports::{EncodedBlock, Status};
use crate::{AskError, PeerKey};

/// Parts of one peer that may be under way: as many as a peer lets in.
const ROOM_MAX: usize = 4;
/// Bytes of blocks that wait for those before them, or may arrive at any moment.
const WINDOW_BYTES: usize = 48 * 1024 * 1024;
/// The smallest part that a peer with a slow line is asked for.
const PART_BYTES_MIN: usize = 64 * 1024;
/// Blocks of the very first part, before anything is known about their size.
const FIRST_BLOCKS: usize = 16;
/// The first part is asked of another peer after so long.
const SECOND_ASK: Duration = Duration::from_secs(3);
/// The same, if it was asked of a stranger.
const SECOND_ASK_STRANGER: Duration = Duration::from_secs(1);
/// Questions to strangers under way while others have the block, too.
const TRIALS_MAX: usize = 2;
/// The same while only strangers have it.
const TRIALS_ALONE_MAX: usize = 8;
/// After so many strangers that failed no further one is asked while others have the block.
const DISAPPOINTED_MAX: usize = 8;

/// Blocks in a row, from one peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    /// The height of the first.
    pub first: u64,
    /// The blocks, in order of heights.
    pub blocks: Vec<EncodedBlock>,
    /// Who sent them, and is to be blamed if one is wrong.
    pub from: PeerKey,
}

/// A question to be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ask {
    pub(crate) peer: PeerKey,
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) rank: Rank,
    pub(crate) since: Instant,
}

/// What a connected peer says of its chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub(crate) peer: PeerKey,
    pub(crate) status: Status,
    /// Whether the settings name the peer.
    pub(crate) is_named: bool,
}

/// Whether there is more to get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outlook {
    /// Something is under way, waits to be taken, or can be asked for.
    More,
    /// No peer claims a height that is wanted and not here.
    Done,
    /// What comes next is claimed by nobody who could still be asked.
    Stuck,
}

#[derive(Debug)]
enum Part {
    Waiting { count: u32 },
    Asked { count: u32, by: Vec<PeerKey>, since: Instant },
    Here(Range, usize),
}

#[derive(Debug)]
struct Source {
    status: Status,
    rank: Rank,
    under_way: usize,
    room: usize,
    part_bytes: usize,
    /// The number of its last question.
    last: u64,
}

/// The state of one download.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The lowest height that no part has.
    next: u64,
    /// By their first heights, without gaps.
    parts: BTreeMap<u64, Part>,
    sources: BTreeMap<PeerKey, Source>,
    standing: PeerStandings,
    /// Nothing above is asked for.
    goal: u64,
    /// Bytes of a block as of late.
    block_bytes: Option<usize>,
    /// Bytes of the parts that are here.
    held: usize,
    asked: u64,
}

impl Schedule {
    /// A download from this height on.
    pub(crate) const fn new(first: u64, standing: PeerStandings) -> Self {
        Self {
            next: first,
            parts: BTreeMap::new(),
            sources: BTreeMap::new(),
            standing,
            goal: 0,
            block_bytes: None,
            held: 0,
            asked: 0,
        }
    }

    /// The connected peers and what they claim, and the height up to which blocks are wanted.
    pub(crate) fn update(&mut self, claims: &[Claim], goal: u64) {
        self.goal = goal;
        self.sources.retain(|peer, _| claims.iter().any(|claim| claim.peer == *peer));
        for Claim { peer, status, is_named } in claims {
            let rank = match (self.standing.is_proved(*peer), is_named) {
                (true, _) => Rank::Proved,
                (false, true) => Rank::Named,
                (false, false) => Rank::Stranger,
            };
            let has_room = rank != Rank::Stranger || self.standing.has_room(*peer);
            if self.standing.has_given_up(*peer) || !has_room {
                self.sources.remove(peer);
                continue;
            }
            let source = self.sources.entry(*peer).or_insert_with(|| Source::new(*status, rank));
            (source.status, source.rank) = (*status, rank);
        }
        self.drop_unclaimed();
    }

    /// Forgets what was given out above the goal, or above what anybody still claims. Without peers
    /// nothing is forgotten: they may come back.
    fn drop_unclaimed(&mut self) {
        let Some(highest) = self.sources.values().map(|source| source.status.tip).max() else {
            return;
        };
        let limit = highest.min(self.goal);
        while let Some((first, _)) = self.parts.last_key_value().filter(|(at, _)| **at > limit) {
            self.next = *first;
            if let Some((_, Part::Here(_, bytes))) = self.parts.pop_last() {
                self.held = self.held.saturating_sub(bytes);
            }
        }
        if let Some((first, Part::Waiting { count })) = self.parts.iter_mut().next_back() {
            let wanted = limit.saturating_sub(*first).saturating_add(1);
            *count = u32::try_from(wanted).unwrap_or(u32::MAX).min(*count);
            self.next = first.saturating_add(u64::from(*count));
        }
    }

    /// The highest claim of a peer that has not failed, as far as blocks are wanted.
    pub(crate) fn target(&self) -> u64 {
        let highest = self.sources.values().map(|source| source.status.tip).max();
        highest.unwrap_or(0).min(self.goal)
    }

    /// Peers that are asked.
    pub(crate) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// The next question, if one is to be asked now.
    pub(crate) fn next_ask(&mut self, now: Instant) -> Option<Ask> {
        let ask = self.ask_again(now).or_else(|| self.ask_new(now));
        let ask = ask.or_else(|| self.ask_second(now))?;
        self.asked = self.asked.saturating_add(1);
        if let Some(source) = self.sources.get_mut(&ask.peer) {
            source.under_way = source.under_way.saturating_add(1);
            source.last = self.asked;
        }
        Some(ask)
    }

    /// The first part that waits and for which somebody has room.
    fn ask_again(&mut self, now: Instant) -> Option<Ask> {
        let waiting = self.parts.iter().filter_map(|(first, part)| match part {
            Part::Waiting { count } => Some((*first, *count)),
            Part::Asked { .. } | Part::Here(..) => None,
        });
        let found = waiting.filter_map(|(first, count)| {
            self.free(first, now, &[]).map(|peer| (peer, first, count))
        });
        let (peer, first, count) = found.into_iter().next()?;
        let fitting = self.count_for(peer, first);
        if fitting < count {
            // The rest waits for its own turn.
            let rest = count.saturating_sub(fitting);
            let after = first.saturating_add(u64::from(fitting));
            self.parts.insert(after, Part::Waiting { count: rest });
        }
        let count = fitting.min(count);
        self.parts.insert(first, Part::Asked { count, by: vec![peer], since: now });
        Some(Ask { peer, first, count, rank: self.rank(peer), since: now })
    }

    fn ask_new(&mut self, now: Instant) -> Option<Ask> {
        let under_way: usize = self.sources.values().map(|source| source.under_way).sum();
        let coming = under_way.saturating_add(1).saturating_mul(self.part_bytes());
        if self.held.saturating_add(coming) > WINDOW_BYTES && !self.parts.is_empty() {
            return None;
        }
        let first = self.next;
        let peer = self.free(first, now, &[])?;
        let count = self.count_for(peer, first);
        self.next = first.saturating_add(u64::from(count));
        self.parts.insert(first, Part::Asked { count, by: vec![peer], since: now });
        Some(Ask { peer, first, count, rank: self.rank(peer), since: now })
    }

    /// The part for which all others wait, of one more peer.
    fn ask_second(&mut self, now: Instant) -> Option<Ask> {
        let (first, part) = self.parts.first_key_value()?;
        let (first, Part::Asked { count, by, since }) = (*first, part) else { return None };
        let is_stranger = by.iter().all(|peer| self.rank(*peer) == Rank::Stranger);
        let patience = if is_stranger { SECOND_ASK_STRANGER } else { SECOND_ASK };
        let is_late = now.saturating_duration_since(*since) >= patience;
        if by.len() > 1 || !is_late {
            return None;
        }
        let (count, peer) = (*count, self.free(first, now, by)?);
        if let Some(Part::Asked { by, .. }) = self.parts.get_mut(&first) {
            by.push(peer);
        }
        Some(Ask { peer, first, count, rank: self.rank(peer), since: now })
    }

    fn rank(&self, peer: PeerKey) -> Rank {
        self.sources.get(&peer).map_or(Rank::Stranger, |source| source.rank)
    }

    /// Whether this peer may be asked for the height at all, now or later.
    fn may_ask(&self, source: &Source, height: u64) -> bool {
        let is_wanted = height <= self.goal && source.has(height);
        let is_enough = self.standing.disappointed() >= DISAPPOINTED_MAX;
        is_wanted && (source.rank != Rank::Stranger || !is_enough || !self.has_better(height))
    }

    /// Whether somebody has the height who is no stranger.
    fn has_better(&self, height: u64) -> bool {
        self.sources.values().any(|source| source.rank != Rank::Stranger && source.has(height))
    }

    /// Whether one more question to a stranger may be under way.
    fn has_trial(&self, height: u64) -> bool {
        let strangers = self.sources.values().filter(|source| source.rank == Rank::Stranger);
        let under_way: usize = strangers.map(|source| source.under_way).sum();
        under_way < if self.has_better(height) { TRIALS_MAX } else { TRIALS_ALONE_MAX }
    }

    /// The best peer that claims the height and has room, but none of `not`: of equals, the one with
    /// the fewest questions.
    fn free(&self, height: u64, now: Instant, not: &[PeerKey]) -> Option<PeerKey> {
        let has_trial = self.has_trial(height);
        let free = self.sources.iter().filter(|(peer, source)| {
            !not.contains(peer)
                && self.may_ask(source, height)
                && source.under_way < source.room
                && (has_trial || source.rank != Rank::Stranger)
                && !self.standing.rests(**peer, now)
        });
        let order = |(peer, source): &(&PeerKey, &Source)| {
            let has_strikes = self.standing.has_strikes(**peer);
            (has_strikes, source.rank, source.under_way, source.last)
        };
        free.min_by_key(order).map(|(peer, _)| *peer)
    }

    /// How many blocks from `first` on to ask this peer for.
    fn count_for(&self, peer: PeerKey, first: u64) -> u32 {
        let Some(source) = self.sources.get(&peer) else { return 1 };
        let fitting = match self.block_bytes {
            None => FIRST_BLOCKS,
            Some(bytes) => source.part_bytes / bytes.max(1),
        };
        let last = source.status.tip.min(self.goal);
        let there = last.saturating_sub(first).saturating_add(1);
        let fitting = u32::try_from(fitting).unwrap_or(u32::MAX).clamp(1, BLOCKS_MAX);
        fitting.min(u32::try_from(there).unwrap_or(u32::MAX))
    }

    /// Bytes that a part may have: what is asked for, and one block more.
    fn part_bytes(&self) -> usize {
        BLOCKS_BYTES_WANTED.saturating_add(self.block_bytes.unwrap_or(0))
    }

    /// A peer answered, or did not.
    pub(crate) fn answered(
        &mut self,
        ask: Ask,
        answer: Result<Vec<EncodedBlock>, AskError>,
        now: Instant,
    ) {
        let Ask { peer, first, count, rank, since } = ask;
        let blocks = answer.as_deref().unwrap_or_default();
        let bytes = bytes_of(blocks);
        let is_all = blocks.len() >= usize::try_from(count).unwrap_or(usize::MAX);
        let outcome = match answer.as_deref() {
            Ok([]) | Err(AskError::Silent) => Outcome::Nothing,
            Ok(_) if is_all || bytes >= BLOCKS_BYTES_WANTED => Outcome::Full,
            Ok(_) => Outcome::Short,
            Err(AskError::Busy) => Outcome::Refused,
            Err(AskError::Offence { .. }) => Outcome::Offence,
        };
        if let Some(source) = self.sources.get_mut(&peer) {
            source.answered(outcome);
        }
        // One that has gone meanwhile has failed like one that stayed.
        let answered = Answered { outcome, bytes, since };
        let is_over = self.standing.note((peer, rank), answered, now);
        if is_over && !self.standing.has_given_up(peer) {
            tracing::info!(%peer, "a peer does not deliver the blocks that it claims");
            self.standing.give_up(peer);
        }
        if self.standing.has_given_up(peer) {
            self.sources.remove(&peer);
        }
        match answer {
            Ok(blocks) if !blocks.is_empty() => self.arrived((peer, rank), first, count, blocks),
            Ok(_) | Err(_) => self.not_arrived(peer, first),
        }
    }

    fn arrived(
        &mut self,
        (from, rank): (PeerKey, Rank),
        first: u64,
        count: u32,
        blocks: Vec<EncodedBlock>,
    ) {
        // Another peer may have been faster.
        let Some(Part::Asked { count: wanted, .. }) = self.parts.get(&first) else { return };
        if *wanted != count {
            return;
        }
        let bytes = bytes_of(&blocks);
        if self.block_bytes.is_none() || rank != Rank::Stranger {
            self.block_bytes = Some((bytes / blocks.len().max(1)).max(1));
        }
        let got = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
        if got < count {
            let rest = Part::Waiting { count: count.saturating_sub(got) };
            self.parts.insert(first.saturating_add(u64::from(got)), rest);
        }
        self.held = self.held.saturating_add(bytes);
        self.parts.insert(first, Part::Here(Range { first, blocks, from }, bytes));
    }

    fn not_arrived(&mut self, peer: PeerKey, first: u64) {
        let Some(Part::Asked { count, by, .. }) = self.parts.get_mut(&first) else { return };
        by.retain(|other| *other != peer);
        if by.is_empty() {
            let count = *count;
            self.parts.insert(first, Part::Waiting { count });
        }
    }

    /// Whether the first part is here.
    pub(crate) fn has_range(&self) -> bool {
        matches!(self.parts.first_key_value(), Some((_, Part::Here(..))))
    }

    /// The first part, if it is here.
    pub(crate) fn take(&mut self) -> Option<Range> {
        if !self.has_range() {
            return None;
        }
        let (_, part) = self.parts.pop_first()?;
        let Part::Here(range, bytes) = part else { return None };
        self.held = self.held.saturating_sub(bytes);
        Some(range)
    }

    pub(crate) fn outlook(&self) -> Outlook {
        let claimed =
            |height: u64| self.sources.values().any(|source| self.may_ask(source, height));
        match self.parts.first_key_value() {
            Some((_, Part::Asked { .. } | Part::Here(..))) => Outlook::More,
            Some((first, Part::Waiting { .. })) if claimed(*first) => Outlook::More,
            Some((_, Part::Waiting { .. })) => Outlook::Stuck,
            None if claimed(self.next) => Outlook::More,
            None => Outlook::Done,
        }
    }
}

impl Source {
    const fn new(status: Status, rank: Rank) -> Self {
        // Of a stranger nothing is known; the others begin with two.
        let room = if matches!(rank, Rank::Stranger) { 1 } else { 2 };
        Self { status, rank, under_way: 0, room, part_bytes: BLOCKS_BYTES_WANTED, last: 0 }
    }

    const fn has(&self, height: u64) -> bool {
        self.status.earliest <= height && height <= self.status.tip
    }

    fn answered(&mut self, outcome: Outcome) {
        self.under_way = self.under_way.saturating_sub(1);
        match outcome {
            Outcome::Full => {
                self.room = self.room.saturating_add(1).min(ROOM_MAX);
                self.part_bytes = self.part_bytes.saturating_mul(2).min(BLOCKS_BYTES_WANTED);
            }
            Outcome::Short => self.room = 1,
            Outcome::Nothing => {
                self.room = 1;
                self.part_bytes = (self.part_bytes / 2).max(PART_BYTES_MIN);
            }
            Outcome::Refused => self.room = (self.room / 2).max(1),
            Outcome::Offence => {}
        }
    }
}

#[cfg(test)]
mod tests;
