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

use std::sync::Arc;
use std::time::Duration;

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

/// Blocks of a part. Their hashes and votes are in memory before the part is checked, and a peer that
/// sends wrong ones costs the time for so many.
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
        let mut has_waited = false;
        while linked.height >= first {
            let from = first.max(linked.height.saturating_sub(PART - 1));
            let wrong = match self.part(from, linked.height).await? {
                Ok(fetched) if fetched.is_empty() => {
                    if !std::mem::replace(&mut has_waited, true) {
                        tracing::warn!(from, "no peer has the blocks before the snapshot yet");
                    }
                    tokio::time::sleep(VAIN_TIME).await;
                    continue;
                }
                Ok(fetched) => linked.take(fetched).err(),
                Err(wrong) => Some(wrong),
            };
            if let Some(Wrong { from, what }) = wrong {
                tracing::warn!(%from, what, "a peer sent a wrong block");
                self.network.blame(from, what).await;
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

    /// Fetches the blocks from one height to another: all of them, or none if peers do not give them now;
    /// or what was wrong with one.
    async fn part(&self, first: u64, last: u64) -> Result<Result<Vec<Fetched>, Wrong>, NodeFault> {
        let (out, ranges) = mpsc::channel(RANGES_WAITING);
        let chain = Arc::clone(&self.chain);
        let reading = tokio::task::spawn_blocking(move || read(&chain, (first, last), ranges));
        self.network.download(first, &|| last, out, DownloadFigures::default()).await;
        answer_of(reading.await).unwrap_or_else(|| Ok(Ok(Vec::new())))
    }
}

/// Reads what comes until all blocks are there, nothing comes, or something is wrong.
fn read(
    chain: &NodeChain,
    (first, last): (u64, u64),
    mut ranges: mpsc::Receiver<Range>,
) -> Result<Result<Vec<Fetched>, Wrong>, NodeFault> {
    let mut fetched = Vec::new();
    let mut next = first;
    while let Some(Range { first, blocks, from }) = ranges.blocking_recv() {
        for (height, block) in (first..=last).zip(blocks) {
            match decided(chain, height, (&block, from))? {
                Ok(block) => fetched.push(block),
                Err(what) => return Ok(Err(Wrong { from, what })),
            }
            next = height.saturating_add(1);
        }
        if next > last {
            return Ok(Ok(fetched));
        }
    }
    Ok(Ok(Vec::new()))
}

/// A block that keys of its height have decided; or why it is none.
fn decided(
    chain: &NodeChain,
    height: u64,
    (block, from): (&p2p::ports::EncodedBlock, PeerKey),
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
