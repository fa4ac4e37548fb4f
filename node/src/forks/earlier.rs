//! The votes for later forks in the blocks before the first one of a database that began with a
//! snapshot: read once more from peers, checked, counted, and not kept.
//!
//! ```text
//!   the first ◀── part ◀── part ◀── part ◀── the snapshot's header
//! ```
//!
//! The blocks are fetched in parts, the last part first. A block counts only if the one after it names
//! its hash, and so on up to the snapshot's header, which is proved. A certificate alone would not do:
//! keys that are worth nothing any more can sign another history. Nothing is counted before the chain of
//! hashes has reached the first block, so what comes out is what a node has that executed every block.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use p2p::ports::EncodedBlock;
use p2p::{DownloadFigures, Handle, PeerKey, Range};
use state::forks::VoteInBlock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use types::block::merkle_root;
use types::{Hash, SizeLimits, Transaction, UncheckedBlock};

use crate::chain::NodeChain;
use crate::fault::NodeFault;
use crate::supervisor::answer_of;
use crate::validator_sets::set_of;

/// Blocks of a part. Their hashes and votes are in memory before the part is checked.
const PART: u64 = 4_096;
/// Ranges that wait for the thread that reads them: each has about 1 MiB.
const RANGES_WAITING: usize = 2;
/// How long to wait before peers are asked again that had nothing.
const VAIN_TIME: Duration = Duration::from_secs(1);

/// What is left to be counted, and where it comes from.
pub(crate) struct EarlierVotes {
    pub(crate) chain: Arc<NodeChain>,
    pub(crate) network: Handle,
    /// To be cancelled when nothing is missing: a validator must know of every fork before it votes.
    pub(crate) may_sign: CancellationToken,
}

/// A block that is not what it has to be.
struct Wrong {
    from: PeerKey,
    what: String,
}

/// The blocks of a part, as far as they are there. Wrong ones cost none of the others.
struct Part {
    first: u64,
    last: u64,
    blocks: BTreeMap<u64, Fetched>,
}

/// A block that was fetched.
struct Fetched {
    hash: Hash,
    previous: Hash,
    votes: Vec<VoteInBlock>,
    from: PeerKey,
}

/// The blocks that are known to be of this chain.
struct Linked {
    /// The hash that the next block downwards has to have.
    hash: Hash,
    /// Its height.
    height: u64,
    /// The votes in the blocks above, those of the highest block first. A validator that votes in each of
    /// a million blocks takes about 60 MB of memory.
    votes: Vec<VoteInBlock>,
}

impl Linked {
    /// Takes what was fetched up to the next block downwards, in ascending order; or says who sent a
    /// block that is not of this chain. Those above it stay.
    fn take(&mut self, fetched: Vec<Fetched>) -> Result<(), Wrong> {
        for Fetched { hash, previous, votes, from } in fetched.into_iter().rev() {
            if hash != self.hash {
                let what =
                    format!("block {} is not the one that the next block names", self.height);
                return Err(Wrong { from, what });
            }
            self.votes.extend(votes.into_iter().rev());
            (self.hash, self.height) = (previous, self.height.saturating_sub(1));
        }
        Ok(())
    }
}

impl Part {
    const fn new(first: u64, last: u64) -> Self {
        Self { first, last, blocks: BTreeMap::new() }
    }

    /// The first heights that are missing, one after the other.
    fn gap(&self) -> Option<(u64, u64)> {
        let first = (self.first..=self.last).find(|height| !self.blocks.contains_key(height))?;
        let next = self.blocks.range(first..).next();
        Some((first, next.map_or(self.last, |(height, _)| height.saturating_sub(1))))
    }

    /// Keeps what comes up to the first wrong block of each range. Whoever sent that is asked for no more.
    /// `judge` says whether a block is good.
    fn read(
        &mut self,
        mut ranges: mpsc::Receiver<Range>,
        figures: &DownloadFigures,
        judge: impl Fn(u64, &EncodedBlock, PeerKey) -> Result<Result<Fetched, String>, NodeFault>,
    ) -> Result<Vec<Wrong>, NodeFault> {
        let mut wrong = Vec::new();
        while let Some(Range { first, blocks, from }) = ranges.blocking_recv() {
            for (height, block) in (first..=self.last).zip(blocks) {
                match judge(height, &block, from)? {
                    Ok(block) => {
                        self.blocks.insert(height, block);
                    }
                    Err(what) => {
                        figures.wrong(from);
                        wrong.push(Wrong { from, what });
                        break;
                    }
                }
            }
        }
        Ok(wrong)
    }
}

impl EarlierVotes {
    /// Counts until nothing is missing, lets the validator sign then, and ends when asked to stop. Peers
    /// that lack the blocks are waited for.
    ///
    /// # Errors
    /// [`NodeFault`] for trouble of our own; a peer's trouble is the peer's.
    pub(crate) async fn run(self, stop: CancellationToken) -> Result<(), NodeFault> {
        if let Some(counted) = stop.run_until_cancelled(self.all()).await {
            counted?;
            if self.chain.forks().missing.is_none() {
                self.may_sign.cancel();
            }
        }
        stop.cancelled().await;
        Ok(())
    }

    async fn all(&self) -> Result<(), NodeFault> {
        let Some(missing) = self.chain.forks().missing else { return Ok(()) };
        let (first, last) = (*missing.start(), *missing.end());
        tracing::info!(
            first,
            last,
            "counting the votes for later forks in the blocks before the snapshot"
        );
        let header = self.chain.store().snapshot().header(last)?;
        let hash = header.ok_or(state::StorageError::Inconsistent {
            what: "the header of the snapshot is missing",
        })?;
        let mut linked = Linked { hash: hash.hash, height: last, votes: Vec::new() };
        // Who has failed in one part is not asked for the next one.
        let mut figures = DownloadFigures::default();
        while linked.height >= first {
            let from = first.max(linked.height.saturating_sub(PART - 1));
            let part = self.part(Part::new(from, linked.height), &mut figures).await?;
            let senders: BTreeSet<PeerKey> = part.blocks.values().map(|it| it.from).collect();
            match linked.take(part.blocks.into_values().collect()) {
                Ok(()) => senders.into_iter().for_each(|peer| figures.proved(peer)),
                Err(wrong) => {
                    figures.wrong(wrong.from);
                    self.blame(wrong).await;
                }
            }
        }
        let chain = Arc::clone(&self.chain);
        let counting = tokio::task::spawn_blocking(move || {
            linked.votes.reverse();
            chain.store().count_earlier(&linked.votes)?;
            chain.store().count_own()?;
            chain.learn_v7().map_err(NodeFault::from)
        });
        answer_of(counting.await).unwrap_or(Ok(()))?;
        tracing::info!(last, "the votes for later forks are counted");
        Ok(())
    }

    /// Fetches all blocks of a part. When nobody gives any of those that are missing, all peers are asked
    /// anew.
    async fn part(&self, mut part: Part, figures: &mut DownloadFigures) -> Result<Part, NodeFault> {
        let mut has_waited = false;
        while let Some((first, last)) = part.gap() {
            let before = part.blocks.len();
            let wrong;
            (part, wrong) = self.fetch(part, (first, last), figures).await?;
            for wrong in wrong {
                self.blame(wrong).await;
            }
            if part.blocks.len() == before {
                if !std::mem::replace(&mut has_waited, true) {
                    tracing::warn!(first, last, "no peer has these blocks before the snapshot yet");
                }
                *figures = DownloadFigures::default();
                tokio::time::sleep(VAIN_TIME).await;
            }
        }
        Ok(part)
    }

    /// Fetches blocks of a part once, and answers it with those that came.
    async fn fetch(
        &self,
        mut part: Part,
        (first, last): (u64, u64),
        figures: &DownloadFigures,
    ) -> Result<(Part, Vec<Wrong>), NodeFault> {
        let (out, ranges) = mpsc::channel(RANGES_WAITING);
        let (chain, of_reader) = (Arc::clone(&self.chain), figures.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let judge = |height, block: &_, from| decided(&chain, height, (block, from));
            let wrong = part.read(ranges, &of_reader, judge);
            wrong.map(|wrong| (part, wrong))
        });
        self.network.download(first, &|| last, out, figures.clone()).await;
        match answer_of(reading.await) {
            Some(read) => read,
            // The runtime ends.
            None => std::future::pending().await,
        }
    }

    async fn blame(&self, Wrong { from, what }: Wrong) {
        tracing::warn!(%from, what, "a peer sent a wrong block");
        self.network.blame(from, what).await;
    }
}

/// A block that keys of its height have decided; or why it is none.
fn decided(
    chain: &NodeChain,
    height: u64,
    (block, from): (&EncodedBlock, PeerKey),
) -> Result<Result<Fetched, String>, NodeFault> {
    let spec = chain.spec();
    let limits = SizeLimits::from(spec.params());
    let UncheckedBlock { header, transactions } =
        match UncheckedBlock::decode(&block.bytes, &limits) {
            Ok(decoded) => decoded,
            Err(error) => return Ok(Err(format!("block {height}: {error}"))),
        };
    let set = match chain.store().snapshot().validator_set(height)? {
        Some(stored) => set_of(&stored.members)?,
        None => spec.validators.clone(),
    };
    let (domain, hash) = (spec.domain_now(), header.hash());
    // Whoever has no keys at all is turned away before its part is complete.
    let decided = consensus::verify_certificate(&domain, &set, height, &hash, &block.certificate);
    if let Err(error) = decided {
        return Ok(Err(format!("block {height}: {error}")));
    }
    let hashes: Vec<Hash> = transactions.iter().map(Transaction::hash).collect();
    if header.index != height || header.tx_root != merkle_root(&hashes) {
        return Ok(Err(format!("block {height} does not have the transactions of its header")));
    }
    let votes = chain.store().earlier_votes(height, &transactions)?;
    Ok(Ok(Fetched { hash, previous: header.previous_hash, votes, from }))
}

#[cfg(test)]
mod tests {
    //! Which of the fetched blocks are of this chain.

    use super::*;

    const GOOD: &str = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN";
    const LIAR: &str = "12D3KooWPjceQrSwdWXPyLLeABRXmuqt69Rg3sBYbU1Nft9HyQ6X";

    fn peer(id: &str) -> PeerKey {
        PeerKey::parse(id).expect("a peer id")
    }

    /// A block of a history: its hash is made of the number and the history.
    fn block(history: u8, number: u8, from: &str) -> Fetched {
        let hash = |number| Hash::new([history.wrapping_add(number); 32]);
        let (hash, previous) = (hash(number), hash(number.wrapping_sub(1)));
        Fetched { hash, previous, votes: Vec::new(), from: peer(from) }
    }

    /// Reads ranges of blocks by these peers; answers who sent a wrong one. The byte of a block is its
    /// number, and 0 is a wrong one.
    fn read(
        part: &mut Part,
        figures: &DownloadFigures,
        sent: &[(u64, &[u8], &str)],
    ) -> Vec<PeerKey> {
        let (out, ranges) = mpsc::channel(sent.len());
        for (first, blocks, from) in sent {
            let encoded = |byte: &u8| EncodedBlock { bytes: vec![*byte], certificate: Vec::new() };
            let blocks = blocks.iter().map(encoded).collect();
            out.try_send(Range { first: *first, blocks, from: peer(from) }).expect("room");
        }
        drop(out);
        let wrong = part.read(ranges, figures, |_, encoded, from| {
            let number = encoded.bytes.first().copied().filter(|number| *number > 0);
            let fetched = number.map(|number| Fetched { from, ..block(0, number, GOOD) });
            Ok(fetched.ok_or_else(|| "wrong".to_owned()))
        });
        wrong.expect("no fault").into_iter().map(|wrong| wrong.from).collect()
    }

    #[test]
    fn a_wrong_block_costs_no_block_of_others_and_only_what_is_missing_is_fetched_again() {
        let (mut part, figures) = (Part::new(1, 8), DownloadFigures::default());
        assert_eq!(Some((1, 8)), part.gap());
        let sent: [(u64, &[u8], _); 3] =
            [(1, &[1, 2], GOOD), (3, &[3, 0], LIAR), (5, &[5, 6], GOOD)];
        assert_eq!(vec![peer(LIAR)], read(&mut part, &figures, &sent));
        assert_eq!((Some((4, 4)), 5), (part.gap(), part.blocks.len()));
        assert!(figures.has_given_up(peer(LIAR)) && !figures.has_given_up(peer(GOOD)));
        assert!(read(&mut part, &figures, &[(4, &[4], GOOD)]).is_empty());
        assert_eq!(Some((7, 8)), part.gap());
        // What is beyond the part does not count.
        assert!(read(&mut part, &figures, &[(7, &[7, 8, 9], GOOD)]).is_empty());
        assert_eq!((None, 8), (part.gap(), part.blocks.len()));
        let mut linked = Linked { hash: Hash::new([8; 32]), height: 8, votes: Vec::new() };
        assert!(linked.take(part.blocks.into_values().collect()).is_ok());
        assert_eq!((linked.height, linked.hash), (0, Hash::ZERO));
    }

    #[test]
    fn blocks_are_taken_as_far_down_as_each_is_named_by_the_next_one() {
        let mut linked = Linked { hash: Hash::new([9; 32]), height: 9, votes: Vec::new() };
        let good = |numbers: std::ops::RangeInclusive<u8>| {
            numbers.map(|number| block(0, number, GOOD)).collect::<Vec<_>>()
        };
        assert!(linked.take(good(7..=9)).is_ok());
        assert_eq!((linked.height, linked.hash), (6, Hash::new([6; 32])));
        // Another history from block 5 down, each block of it well linked and decided by sold keys.
        let mut forged = vec![block(100, 4, LIAR), block(100, 5, LIAR)];
        forged.push(block(0, 6, GOOD));
        let wrong = linked.take(forged).expect_err("another history");
        assert_eq!(peer(LIAR), wrong.from);
        assert!(wrong.what.contains("block 5 "), "{}", wrong.what);
        assert_eq!((linked.height, linked.hash), (5, Hash::new([5; 32])));
        assert!(linked.take(good(1..=5)).is_ok());
        assert_eq!(linked.height, 0);
    }
}
