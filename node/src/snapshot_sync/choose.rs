//! Which of the offers of several peers is taken. Nothing here waits or asks.
//!
//! What reaches this place was followed from genesis to its root. But keys that were sold can sign
//! another history, and one peer can make up what no root covers. So peers have voices: an offer that
//! two of them make in the same words goes before one that a single one makes, and one that came to
//! nothing goes behind all that were not tried as often. However many lies there are, each costs one
//! attempt, and those who told it.
//!
//! Where the settings name peers, only these have voices, because a stranger's name costs nothing. What
//! strangers alone offer is not taken; they only give chunks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use p2p::ports::SnapshotHead;
use types::Hash;

/// How long to wait for further offers after the first one, so that chunks come from several peers.
const MORE_TIME: Duration = Duration::from_secs(3);
/// How long to wait for two peers with the same offer, when several peers offer something.
const AGREE_TIME: Duration = Duration::from_secs(10);
/// So many voices with the same offer agree.
pub(super) const AGREED: usize = 2;

/// What two peers have to say alike. Their certificates may differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Content {
    /// The state is that after this block.
    pub(super) height: u64,
    /// The hash of the block.
    pub(super) block: Hash,
    /// The root in the certified header after it.
    pub(super) root: Hash,
    /// The hash of the manifest, which has what the root does not cover.
    pub(super) manifest: Hash,
}

/// A peer that offers something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Teller<P> {
    pub(super) peer: P,
    /// Whether it is one of those whose word counts.
    pub(super) has_voice: bool,
}

/// An offer, and who makes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Choice<P> {
    pub(super) content: Content,
    /// No peer twice. At least one has a voice.
    pub(super) tellers: Vec<Teller<P>>,
}

impl<P: Copy> Choice<P> {
    /// How many of those who make the offer have a voice.
    pub(super) fn voices(&self) -> usize {
        self.tellers.iter().filter(|teller| teller.has_voice).count()
    }

    /// All who make the offer.
    pub(super) fn peers(&self) -> impl Iterator<Item = P> {
        self.tellers.iter().map(|teller| teller.peer)
    }
}

/// The newest few offers of a peer that do not pass over the trusted block, the newest first, and the
/// height of the newest that does. A database that begins above the trusted block cannot be compared with
/// it, and nothing would be left of the trust.
pub(super) fn up_to_trusted(
    mut heads: Vec<SnapshotHead>,
    trusted: Option<u64>,
    max: usize,
) -> (Vec<SnapshotHead>, Option<u64>) {
    heads.sort_by_key(|head| Reverse(head.height));
    let is_above = |head: &SnapshotHead| trusted.is_some_and(|trusted| head.height > trusted);
    let newest_above = heads.first().filter(|head| is_above(head)).map(|head| head.height);
    heads.retain(|head| !is_above(head));
    heads.truncate(max);
    (heads, newest_above)
}

/// The offers in the order in which they are tried, but for those that nobody with a voice makes.
/// `tries` says how often one came to nothing.
pub(super) fn order<P: Copy + Ord>(
    told: &[(Teller<P>, Content)],
    tries: &BTreeMap<Content, u32>,
) -> Vec<Choice<P>> {
    let mut tellers: BTreeMap<Content, BTreeSet<Teller<P>>> = BTreeMap::new();
    for (teller, content) in told {
        tellers.entry(*content).or_default().insert(*teller);
    }
    let mut choices: Vec<Choice<P>> = tellers
        .into_iter()
        .map(|(content, tellers)| Choice { content, tellers: tellers.into_iter().collect() })
        .filter(|choice| choice.voices() > 0)
        .collect();
    choices.sort_by_key(|choice| {
        let tries = tries.get(&choice.content).copied().unwrap_or(0);
        let voices = choice.voices();
        let better = (voices >= AGREED, choice.content.height, voices);
        (tries, Reverse(better))
    });
    choices
}

/// Whether the first of these is to be taken now. `speakers` is the number of peers with a voice that
/// offer anything, `is_asking` whether peers have still to answer, and `waited` the time since the
/// first offer.
pub(super) fn is_decided<P: Copy>(
    choices: &[Choice<P>],
    (speakers, is_asking): (usize, bool),
    waited: Duration,
) -> bool {
    let Some(first) = choices.first() else { return false };
    let nobody_else = speakers < AGREED && !is_asking;
    let is_settled = first.voices() >= AGREED || nobody_else || waited >= AGREE_TIME;
    is_settled && waited >= MORE_TIME
}

#[cfg(test)]
mod tests;
