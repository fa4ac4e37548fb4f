//! The votes for later forks in the blocks before the first one of a database that began with a
//! snapshot: read once more from peers, checked, counted, and not kept.
//!
//! A block counts only with its certificate, which is verified with the set that decided its height; the
//! snapshot has proved these sets. So what comes out is what a node has that executed every block.

use std::sync::Arc;
use std::time::Duration;

use p2p::{DownloadFigures, Handle, PeerKey, Range};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use types::block::merkle_root;
use types::{Hash, SizeLimits, Transaction, UncheckedBlock};

use crate::chain::{Chain, set_of};
use crate::fault::Fault;
use crate::supervisor::answer_of;

/// Ranges that wait for the thread that counts: each has about 1 MiB.
const RANGES_WAITING: usize = 2;
/// How long to wait before peers are asked again that had nothing.
const VAIN_TIME: Duration = Duration::from_secs(1);

/// What is left to be counted, and where it comes from.
pub(crate) struct EarlierVotes {
    pub(crate) chain: Arc<Chain>,
    pub(crate) network: Handle,
}

/// A block that is not what it has to be.
struct Wrong {
    from: PeerKey,
    what: String,
}

impl EarlierVotes {
    /// Counts until nothing is missing, or until asked to stop. Peers that lack the blocks are waited for.
    ///
    /// # Errors
    /// [`Fault`] for trouble of our own; a peer's trouble is the peer's.
    pub(crate) async fn run(&self, stop: &CancellationToken) -> Result<(), Fault> {
        stop.run_until_cancelled(self.all()).await.unwrap_or(Ok(()))
    }

    async fn all(&self) -> Result<(), Fault> {
        let Some(missing) = self.chain.forks().missing else { return Ok(()) };
        let (first, last) = (*missing.start(), *missing.end());
        tracing::info!(
            first,
            last,
            "counting the votes for later forks in the blocks before the snapshot"
        );
        let mut has_waited = false;
        while let Some(missing) = self.chain.forks().missing {
            if let Some(Wrong { from, what }) = self.round(*missing.start()).await? {
                tracing::warn!(%from, what, "a peer sent a wrong block");
                self.network.blame(from, what).await;
            }
            let left = self.chain.forks().missing;
            if left.as_ref().is_some_and(|left| left.start() == missing.start()) {
                if !has_waited {
                    tracing::warn!(
                        first = *missing.start(),
                        "no peer has the blocks before the snapshot yet"
                    );
                }
                has_waited = true;
                tokio::time::sleep(VAIN_TIME).await;
            }
        }
        tracing::info!(last, "the votes for later forks are counted");
        Ok(())
    }

    /// One download; answers what was wrong with it.
    async fn round(&self, first: u64) -> Result<Option<Wrong>, Fault> {
        let (out, ranges) = mpsc::channel(RANGES_WAITING);
        let chain = Arc::clone(&self.chain);
        let counting = tokio::task::spawn_blocking(move || count(&chain, ranges));
        // Nothing after the missing ones is wanted.
        let goal = || self.chain.forks().missing.map_or(0, |missing| *missing.end());
        self.network.download(first, &goal, out, DownloadFigures::default()).await;
        answer_of(counting.await).unwrap_or(Ok(None))
    }
}

/// Counts what comes until nothing is missing, nothing comes, or something is wrong.
fn count(chain: &Chain, mut ranges: mpsc::Receiver<Range>) -> Result<Option<Wrong>, Fault> {
    while let Some(Range { first, blocks, from }) = ranges.blocking_recv() {
        for (height, block) in (first..).zip(blocks) {
            if chain.forks().missing.is_none_or(|missing| height > *missing.end()) {
                return Ok(None);
            }
            match transactions(chain, height, &block)? {
                Ok(transactions) => chain.store().count_earlier(height, &transactions)?,
                Err(what) => return Ok(Some(Wrong { from, what })),
            }
        }
    }
    Ok(None)
}

/// The transactions of a block that was decided; or why it is not the block of this height.
fn transactions(
    chain: &Chain,
    height: u64,
    block: &p2p::ports::EncodedBlock,
) -> Result<Result<Vec<Transaction>, String>, Fault> {
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
    let (id, hash) = (&spec.rules.chain_id, header.hash());
    let decided = consensus::verify_certificate(id, &set, height, &hash, &block.certificate);
    if let Err(error) = decided {
        return Ok(Err(format!("block {height}: {error}")));
    }
    let hashes: Vec<Hash> = transactions.iter().map(Transaction::hash).collect();
    if header.index != height || header.tx_root != merkle_root(&hashes) {
        return Ok(Err(format!("block {height} has not the transactions of its header")));
    }
    Ok(Ok(transactions))
}
