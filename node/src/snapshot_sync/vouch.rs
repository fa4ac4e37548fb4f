//! Whether the named peers have the block of a snapshot.
//!
//! An offer is followed from the validators of genesis, but keys that are worth nothing any more can
//! sign another history. A node that has imported a snapshot has a recent block, and takes the blocks
//! after it from any single peer. So two of the named peers have to vouch for the snapshot's block
//! before anything is fetched: they offer its state too, or they show the block. One is enough where
//! the settings name only one (docs/network.md section 5.2).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use p2p::{Handle, PeerKey};
use store::Tip;
use types::{Hash, SizeLimits, UncheckedBlock};

use super::choose::{AGREED, Choice};

/// How long a peer may take to show its block.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the named peers have. One that is restarting is back by then, and one whose chain is a
/// few blocks shorter has the block.
const VOUCH_TIME_MAX: Duration = Duration::from_secs(20);
/// How often those are asked that have not shown the block.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// What the named peers say of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Vouched {
    /// Enough of them have it.
    Enough,
    /// Enough of them have another one.
    Other,
    /// Too few have shown theirs.
    Unheard,
}

/// Asks the named peers that do not make the offer for the block of its height.
pub(super) async fn vouch(
    network: &Handle,
    limits: &SizeLimits,
    offer: &Choice<PeerKey>,
    tip: &Tip,
) -> Vouched {
    let speakers = offer.tellers.iter().filter(|teller| teller.has_voice);
    let enough = AGREED.min(network.named());
    let mut tally = Tally::new(enough, tip.hash, speakers.map(|teller| teller.peer));
    let begun = Instant::now();
    loop {
        if let Some(verdict) = tally.verdict() {
            return verdict;
        }
        if begun.elapsed() >= VOUCH_TIME_MAX {
            return Vouched::Unheard;
        }
        ask_for_block(network, limits, tip.height, &mut tally).await;
        if tally.verdict().is_none() {
            tokio::time::sleep(ASK_INTERVAL).await;
        }
    }
}

/// Asks until enough have answered alike, or nobody is left to wait for.
async fn ask_for_block(
    network: &Handle,
    limits: &SizeLimits,
    height: u64,
    tally: &mut Tally<PeerKey>,
) {
    let mut asked: FuturesUnordered<_> = network
        .peers()
        .into_iter()
        .filter(|peer| peer.is_named && !tally.heard.contains(&peer.key))
        .map(async |peer| {
            let range = (height, 1);
            let blocks = network.blocks(peer.key, range, ANSWER_TIME_MAX).await.ok()?;
            let block = UncheckedBlock::decode(&blocks.first()?.bytes, limits).ok()?;
            (block.header.index == height).then(|| (peer.key, block.header.hash()))
        })
        .collect();
    while let Some(answer) = asked.next().await {
        if let Some((peer, found)) = answer {
            tally.said(peer, found);
        }
        if tally.verdict().is_some() {
            return;
        }
    }
}

/// Who has which block of one height.
#[derive(Debug)]
struct Tally<P> {
    /// So many have to have the same.
    enough: usize,
    expected: Hash,
    heard: BTreeSet<P>,
    voices: BTreeMap<Hash, usize>,
}

impl<P: Ord> Tally<P> {
    fn new(enough: usize, expected: Hash, speakers: impl Iterator<Item = P>) -> Self {
        let (heard, voices) = (BTreeSet::new(), BTreeMap::new());
        let mut tally = Self { enough, expected, heard, voices };
        for peer in speakers {
            tally.said(peer, expected);
        }
        tally
    }

    /// A peer has this block. What it says first counts.
    fn said(&mut self, peer: P, block: Hash) {
        if self.heard.insert(peer) {
            let voices = self.voices.entry(block).or_insert(0);
            *voices = voices.saturating_add(1);
        }
    }

    /// None while too few have spoken.
    fn verdict(&self) -> Option<Vouched> {
        if self.voices.get(&self.expected).copied().unwrap_or(0) >= self.enough {
            return Some(Vouched::Enough);
        }
        let has_other = self.voices.values().any(|voices| *voices >= self.enough);
        has_other.then_some(Vouched::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: Hash = Hash::new([7; 32]);
    const OTHER: Hash = Hash::new([8; 32]);

    fn tally(enough: usize, speakers: &[u32]) -> Tally<u32> {
        Tally::new(enough, HASH, speakers.iter().copied())
    }

    #[test]
    fn two_named_peers_vouch_by_offering_or_by_showing_the_block() {
        assert_eq!(Some(Vouched::Enough), tally(2, &[1, 2]).verdict());
        let mut tally = tally(2, &[1, 1]);
        assert_eq!(None, tally.verdict(), "one that offers twice is one");
        tally.said(1, OTHER);
        tally.said(2, HASH);
        assert_eq!(Some(Vouched::Enough), tally.verdict());
    }

    #[test]
    fn two_that_have_another_block_outvote_the_one_that_offers() {
        let mut tally = tally(2, &[1]);
        tally.said(2, OTHER);
        assert_eq!(None, tally.verdict());
        tally.said(3, OTHER);
        assert_eq!(Some(Vouched::Other), tally.verdict());
    }

    #[test]
    fn the_only_named_peer_is_enough_and_so_is_anybody_where_none_is_named() {
        assert_eq!(Some(Vouched::Enough), tally(1, &[1]).verdict());
        assert_eq!(Some(Vouched::Enough), tally(0, &[]).verdict());
    }
}
