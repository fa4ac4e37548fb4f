//! Blocks that several of the named peers have.
//!
//! A range of blocks hangs together by the hashes of the blocks before; so who has its last block has
//! all of them, and one question for that block is enough. Strangers have no voice: a name costs them
//! nothing. With one named peer there is one voice, and it is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use p2p::{Handle, Peer, PeerKey, Range};
use tokio::sync::mpsc;
use types::{Hash, SizeLimits, UncheckedBlock};

/// How long a peer may take to show its block when it is asked first; then twice as long, and so on.
const FIRST_TIME_MAX: Duration = Duration::from_secs(1);
/// And at most.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the others are waited for until the node gives up for now.
const VOICES_TIME_MAX: Duration = Duration::from_secs(20);
/// How often those are asked that have not shown it.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// What came of the ranges of a download.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// All of them were passed on.
    Passed,
    /// Enough others have another block than this peer, or its blocks do not hang together.
    Wrong { from: PeerKey, what: String },
    /// Too few have shown the block of this height.
    Unheard { height: u64 },
}

/// Passes on what enough peers have.
pub(super) struct Confirm<'a> {
    pub(super) network: &'a Handle,
    /// So many of the named peers have to have a block; none passes everything on.
    pub(super) voices: usize,
    pub(super) limits: SizeLimits,
}

impl Confirm<'_> {
    /// Works until the download ends, or until something is wrong.
    pub(super) async fn run(
        &self,
        mut ranges: mpsc::Receiver<Range>,
        out: mpsc::Sender<Range>,
    ) -> Verdict {
        while let Some(range) = ranges.recv().await {
            let count = u64::try_from(range.blocks.len()).unwrap_or(u64::MAX);
            let last = range.first.saturating_add(count).saturating_sub(1);
            if self.voices > 0 {
                match self.judge(&range, last).await {
                    Verdict::Passed => {}
                    refused @ (Verdict::Wrong { .. } | Verdict::Unheard { .. }) => return refused,
                }
            }
            if out.send(range).await.is_err() {
                break;
            }
        }
        Verdict::Passed
    }

    async fn judge(&self, range: &Range, last: u64) -> Verdict {
        let from = range.from;
        let Some(hash) = last_hash(range, &self.limits) else {
            let what = format!("its blocks up to {last} do not follow each other");
            return Verdict::Wrong { from, what };
        };
        let mut tally = Tally::default();
        if self.named().any(|peer| peer.key == from) {
            tally.said(from, hash);
        }
        let begun = Instant::now();
        let mut time = FIRST_TIME_MAX;
        loop {
            match tally.verdict(&hash, self.voices) {
                Some(true) => return Verdict::Passed,
                Some(false) => {
                    let what = format!("the other named peers have another block {last}");
                    return Verdict::Wrong { from, what };
                }
                None => {}
            }
            if begun.elapsed() >= VOICES_TIME_MAX {
                tracing::warn!(height = last, %hash, ?tally, "too few named peers have this block");
                return Verdict::Unheard { height: last };
            }
            // One that keeps silent must not have the others waited for.
            let _in_time = tokio::time::timeout(time, self.ask(last, &hash, &mut tally)).await;
            time = time.saturating_mul(2).min(ANSWER_TIME_MAX);
            if tally.verdict(&hash, self.voices).is_none() {
                tokio::time::sleep(ASK_INTERVAL).await;
            }
        }
    }

    /// Whether enough of the named peers have this block now.
    pub(super) async fn is_common(&self, height: u64, hash: &Hash) -> bool {
        let mut tally = Tally::default();
        self.ask(height, hash, &mut tally).await;
        tally.verdict(hash, self.voices) == Some(true)
    }

    fn named(&self) -> impl Iterator<Item = Peer> {
        self.network.peers().into_iter().filter(|peer| peer.is_named)
    }

    /// Asks the named peers that have not shown their block of this height, until enough have. What
    /// they said of their height is some seconds old, so they may have it all the same.
    async fn ask(&self, height: u64, hash: &Hash, tally: &mut Tally) {
        let speaks = |peer: &Peer| peer.status.is_some();
        let peers = self.named().filter(|peer| speaks(peer) && !tally.heard.contains(&peer.key));
        let mut asked: FuturesUnordered<_> = peers
            .map(async |Peer { key, .. }| {
                let blocks = self.network.blocks(key, (height, 1), ANSWER_TIME_MAX).await.ok()?;
                let header = UncheckedBlock::decode(&blocks.first()?.bytes, &self.limits).ok()?;
                (header.header.index == height).then(|| (key, header.header.hash()))
            })
            .collect();
        while let Some(answer) = asked.next().await {
            if let Some((peer, found)) = answer {
                tally.said(peer, found);
            }
            if tally.verdict(hash, self.voices).is_some() {
                return;
            }
        }
    }
}

/// Who has which block of one height.
#[derive(Default, Debug)]
struct Tally {
    heard: BTreeSet<PeerKey>,
    voices: BTreeMap<Hash, usize>,
}

impl Tally {
    /// A peer has this block. What it says first counts.
    fn said(&mut self, peer: PeerKey, hash: Hash) {
        if self.heard.insert(peer) {
            let voices = self.voices.entry(hash).or_default();
            *voices = voices.saturating_add(1);
        }
    }

    /// Whether this block is the one that enough have; none while no block is.
    fn verdict(&self, hash: &Hash, enough: usize) -> Option<bool> {
        let voices = |of: &Hash| self.voices.get(of).copied().unwrap_or_default();
        if voices(hash) >= enough {
            return Some(true);
        }
        self.voices.values().any(|voices| *voices >= enough).then_some(false)
    }
}

/// The hash of the last block, if each block names the one before it.
fn last_hash(range: &Range, limits: &SizeLimits) -> Option<Hash> {
    let mut before: Option<Hash> = None;
    for (height, block) in (range.first..).zip(&range.blocks) {
        let header = UncheckedBlock::decode(&block.bytes, limits).ok()?.header;
        let follows = before.is_none_or(|before| before == header.previous_hash);
        if header.index != height || !follows {
            return None;
        }
        before = Some(header.hash());
    }
    before
}

#[cfg(test)]
mod tests {
    use p2p::ports::EncodedBlock;
    use types::block::merkle_root;
    use types::{Address, Amount, Block, Header};

    use super::*;

    const PEERS: [&str; 3] = [
        "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
        "12D3KooWPjceQrSwdWXPyLLeABRXmuqt69Rg3sBYbU1Nft9HyQ6X",
        "12D3KooWH3uVF6wv47WnArKHk5p6cvgCJEb74UTmxztmQDc298L3",
    ];

    fn peers() -> [PeerKey; 3] {
        PEERS.map(|peer| PeerKey::parse(peer).expect("a peer id"))
    }

    #[test]
    fn a_block_counts_when_enough_peers_have_it_and_another_one_when_they_have_that() {
        let (peers, good, bad) = (peers(), Hash::new([1; 32]), Hash::new([2; 32]));
        let mut tally = Tally::default();
        assert_eq!(None, tally.verdict(&good, 2));
        tally.said(peers[0], good);
        tally.said(peers[0], good);
        assert_eq!((None, Some(true)), (tally.verdict(&good, 2), tally.verdict(&good, 1)));
        tally.said(peers[1], bad);
        assert_eq!((None, None), (tally.verdict(&good, 2), tally.verdict(&bad, 2)));
        // Who has said one thing does not get to say another.
        tally.said(peers[1], good);
        assert_eq!(None, tally.verdict(&good, 2));
        tally.said(peers[2], good);
        assert_eq!((Some(true), Some(false)), (tally.verdict(&good, 2), tally.verdict(&bad, 2)));
    }

    fn block(index: u64, previous_hash: Hash) -> Block {
        let header = Header {
            chain_id: "test".to_owned(),
            index,
            previous_hash,
            timestamp: index,
            proposer: Address::new([7; 20]),
            tx_root: merkle_root(&[]),
            state_root: Hash::ZERO,
            tokens_burned: Amount::ZERO,
            tx_count: 0,
            randomness: None,
        };
        Block { header, transactions: Vec::new() }
    }

    #[test]
    fn the_last_block_speaks_only_for_blocks_that_follow_each_other() {
        let limits = SizeLimits { tx_bytes: 1_000, chunk_tx_bytes: 1_000 };
        let first = block(5, Hash::ZERO);
        let second = block(6, first.hash());
        let third = block(7, second.hash());
        let range = |blocks: &[&Block]| {
            let encoded =
                |block: &&Block| EncodedBlock { bytes: block.encode(), certificate: Vec::new() };
            let blocks = blocks.iter().map(encoded).collect();
            Range { first: 5, blocks, from: peers()[0] }
        };
        let hash = |blocks: &[&Block]| last_hash(&range(blocks), &limits);
        assert_eq!(Some(third.hash()), hash(&[&first, &second, &third]));
        let forged = block(6, Hash::new([9; 32]));
        assert_eq!(None, hash(&[&first, &forged, &third]));
        assert_eq!(None, hash(&[&block(5, Hash::new([9; 32])), &second]));
        assert_eq!(None, hash(&[&first, &third]));
        assert_eq!(None, hash(&[&second]));
        assert_eq!(None, hash(&[]));
    }
}
