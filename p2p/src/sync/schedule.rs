//! Which blocks to ask whom for: pure bookkeeping, told of the time.
//!
//! The heights that are wanted are cut into parts, which are asked for in their order from several
//! peers at once. A peer has a few parts under way at most and gets the next when it has answered,
//! so a slow one gets fewer. What is not answered goes to another peer; the first part, for which
//! all others wait, is asked of a second peer after a while.
//!
//! What peers say of themselves is a claim. One that claims a height and does not deliver it is
//! asked less, and after a few times no more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

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
/// So often in a row a peer may fail to deliver.
const STRIKES_MAX: u32 = 3;
/// So often in a row it may say that it has no time.
const REFUSALS_MAX: u32 = 30;
/// The rest after a refusal, doubled with each further one, and after a failure.
const REST: Duration = Duration::from_millis(50);
const REST_MAX: Duration = Duration::from_secs(2);

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
}

/// Whether there is more to get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outlook {
    /// Something is under way, waits to be taken, or can be asked for.
    More,
    /// No peer claims a height that is not here.
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
    under_way: usize,
    room: usize,
    part_bytes: usize,
    strikes: u32,
    refusals: u32,
    rests_until: Option<Instant>,
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
    /// Peers that are not asked any more.
    given_up: BTreeSet<PeerKey>,
    /// Bytes of a block as of late.
    block_bytes: Option<usize>,
    /// Bytes of the parts that are here.
    held: usize,
    asked: u64,
}

impl Schedule {
    /// A download from this height on, without asking those who were given up before.
    pub(crate) const fn new(first: u64, given_up: BTreeSet<PeerKey>) -> Self {
        Self {
            next: first,
            parts: BTreeMap::new(),
            sources: BTreeMap::new(),
            given_up,
            block_bytes: None,
            held: 0,
            asked: 0,
        }
    }

    /// The connected peers and what they claim.
    pub(crate) fn update(&mut self, peers: &[(PeerKey, Status)]) {
        self.sources.retain(|peer, _| peers.iter().any(|(other, _)| other == peer));
        for (peer, status) in peers {
            if self.given_up.contains(peer) {
                continue;
            }
            let source = self.sources.entry(*peer).or_insert_with(|| Source::new(*status));
            source.status = *status;
        }
    }

    /// Who is not asked any more.
    pub(crate) const fn given_up(&self) -> &BTreeSet<PeerKey> {
        &self.given_up
    }

    /// The highest claim of a peer that has not failed.
    pub(crate) fn target(&self) -> u64 {
        self.sources.values().map(|source| source.status.tip).max().unwrap_or(0)
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
        Some(Ask { peer, first, count })
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
        Some(Ask { peer, first, count })
    }

    /// The part for which all others wait, of one more peer.
    fn ask_second(&mut self, now: Instant) -> Option<Ask> {
        let (first, part) = self.parts.first_key_value()?;
        let (first, Part::Asked { count, by, since }) = (*first, part) else { return None };
        let is_late = now.saturating_duration_since(*since) >= SECOND_ASK;
        if by.len() > 1 || !is_late {
            return None;
        }
        let (count, peer) = (*count, self.free(first, now, by)?);
        if let Some(Part::Asked { by, .. }) = self.parts.get_mut(&first) {
            by.push(peer);
        }
        Some(Ask { peer, first, count })
    }

    /// The peer with the fewest questions that claims the height and has room, but none of `not`.
    fn free(&self, height: u64, now: Instant, not: &[PeerKey]) -> Option<PeerKey> {
        let free = self.sources.iter().filter(|(peer, source)| {
            !not.contains(peer)
                && source.has(height)
                && source.under_way < source.room
                && source.rests_until.is_none_or(|until| until <= now)
        });
        free.min_by_key(|(_, source)| (source.under_way, source.last)).map(|(peer, _)| *peer)
    }

    /// How many blocks from `first` on to ask this peer for.
    fn count_for(&self, peer: PeerKey, first: u64) -> u32 {
        let Some(source) = self.sources.get(&peer) else { return 1 };
        let fitting = match self.block_bytes {
            None => FIRST_BLOCKS,
            Some(bytes) => source.part_bytes / bytes.max(1),
        };
        let there = source.status.tip.saturating_sub(first).saturating_add(1);
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
        let Ask { peer, first, count } = ask;
        if let Some(source) = self.sources.get_mut(&peer) {
            source.under_way = source.under_way.saturating_sub(1);
            let has_failed = match &answer {
                Ok(blocks) if !blocks.is_empty() => source.delivered(),
                Ok(_) | Err(AskError::Silent) => source.failed(now),
                Err(AskError::Busy) => source.refused(now),
                Err(AskError::Offence { .. }) => true,
            };
            if has_failed {
                tracing::info!(%peer, "a peer does not deliver the blocks that it claims");
                self.give_up(peer);
            }
        }
        match answer {
            Ok(blocks) if !blocks.is_empty() => self.arrived(peer, first, count, blocks),
            Ok(_) | Err(_) => self.not_arrived(peer, first),
        }
    }

    /// Asks a peer no more.
    fn give_up(&mut self, peer: PeerKey) {
        self.sources.remove(&peer);
        self.given_up.insert(peer);
    }

    fn arrived(&mut self, from: PeerKey, first: u64, count: u32, blocks: Vec<EncodedBlock>) {
        // Another peer may have been faster.
        let Some(Part::Asked { count: wanted, .. }) = self.parts.get(&first) else { return };
        if *wanted != count {
            return;
        }
        let sizes = blocks.iter().map(|it| it.bytes.len().saturating_add(it.certificate.len()));
        let bytes = sizes.fold(0_usize, usize::saturating_add);
        self.block_bytes = Some((bytes / blocks.len().max(1)).max(1));
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
        let claimed = |height: u64| self.sources.values().any(|source| source.has(height));
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
    const fn new(status: Status) -> Self {
        Self {
            status,
            under_way: 0,
            room: 2,
            part_bytes: BLOCKS_BYTES_WANTED,
            strikes: 0,
            refusals: 0,
            rests_until: None,
            last: 0,
        }
    }

    const fn has(&self, height: u64) -> bool {
        self.status.earliest <= height && height <= self.status.tip
    }

    fn delivered(&mut self) -> bool {
        (self.strikes, self.refusals) = (0, 0);
        self.room = self.room.saturating_add(1).min(ROOM_MAX);
        self.part_bytes = self.part_bytes.saturating_mul(2).min(BLOCKS_BYTES_WANTED);
        false
    }

    /// Answers whether that was once too often.
    fn failed(&mut self, now: Instant) -> bool {
        self.strikes = self.strikes.saturating_add(1);
        self.room = 1;
        self.part_bytes = (self.part_bytes / 2).max(PART_BYTES_MIN);
        self.rest(self.strikes.saturating_add(2), now);
        self.strikes >= STRIKES_MAX
    }

    /// Answers whether that was once too often.
    fn refused(&mut self, now: Instant) -> bool {
        self.refusals = self.refusals.saturating_add(1);
        self.room = (self.room / 2).max(1);
        self.rest(self.refusals, now);
        self.refusals >= REFUSALS_MAX
    }

    fn rest(&mut self, times: u32, now: Instant) {
        let time = REST.saturating_mul(1 << times.saturating_sub(1).min(10)).min(REST_MAX);
        self.rests_until = Some(now + time);
    }
}

#[cfg(test)]
mod tests;
