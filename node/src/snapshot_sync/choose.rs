//! Which of the offers of several peers is taken. Nothing here waits or asks.
//!
//! What reaches this place was followed from genesis to its root, so no peer can make up a state. What
//! a root does not cover, one peer could: so an offer that two peers make in the same words goes before
//! one that a single peer makes, and one that came to nothing goes behind all that were not tried as
//! often. However many lies there are, each costs one attempt, and those who told it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use types::Hash;

/// How long to wait for further offers after the first one, so that chunks come from several peers.
const MORE_TIME: Duration = Duration::from_secs(3);
/// How long to wait for two peers with the same offer, when several peers offer something.
const AGREE_TIME: Duration = Duration::from_secs(10);
/// So many peers with the same offer agree.
const AGREED: usize = 2;

/// What two peers have to say alike. Their certificates may differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Content {
    /// The state is that after this block.
    pub(super) height: u64,
    /// The root in the certified header after it.
    pub(super) root: Hash,
    /// The hash of the manifest, which has what the root does not cover.
    pub(super) manifest: Hash,
}

/// An offer, and who makes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Choice<P> {
    pub(super) content: Content,
    /// No peer twice.
    pub(super) peers: Vec<P>,
}

/// The offers in the order in which they are tried. `tries` says how often one came to nothing.
pub(super) fn order<P: Copy + Ord>(
    told: &[(P, Content)],
    tries: &BTreeMap<Content, u32>,
) -> Vec<Choice<P>> {
    let mut peers: BTreeMap<Content, BTreeSet<P>> = BTreeMap::new();
    for (peer, content) in told {
        peers.entry(*content).or_default().insert(*peer);
    }
    let mut choices: Vec<Choice<P>> = peers
        .into_iter()
        .map(|(content, peers)| Choice { content, peers: peers.into_iter().collect() })
        .collect();
    choices.sort_by_key(|Choice { content, peers }| {
        let tries = tries.get(content).copied().unwrap_or(0);
        let better = (peers.len() >= AGREED, content.height, peers.len());
        (tries, std::cmp::Reverse(better))
    });
    choices
}

/// Whether the first of these is to be taken now. `tellers` is the number of peers that offer anything,
/// `is_asking` whether others have still to answer, and `waited` the time since the first offer.
pub(super) fn is_decided<P>(
    choices: &[Choice<P>],
    (tellers, is_asking): (usize, bool),
    waited: Duration,
) -> bool {
    let Some(first) = choices.first() else { return false };
    let nobody_else = tellers < AGREED && !is_asking;
    let is_settled = first.peers.len() >= AGREED || nobody_else || waited >= AGREE_TIME;
    is_settled && waited >= MORE_TIME
}

#[cfg(test)]
mod tests;
