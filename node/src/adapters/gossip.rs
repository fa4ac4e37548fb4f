//! Transactions between nodes: the pool as the transaction network needs it, and the pool's events
//! as announcements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use p2p::ports::{Listing, Outcome};
use p2p::{Handle, SignedTx};
use parking_lot::Mutex;
use tokio::task::coop::consume_budget;
use tokio_util::sync::CancellationToken;
use txpool::{Accepted, Pool};
use types::{Address, Code, Hash};

use crate::adapters::events::{EventBus, Next};
use crate::chain::NodeChain;
use crate::fault::NodeFault;
use crate::ingest::{Answer, IngestError, IngestHandle, Origin, Text};
use crate::sync::SyncState;

/// How long a list of the pool is good for. Making one goes through the whole pool, so peers' questions
/// must not make one each.
const LIST_AGE_MAX: Duration = Duration::from_secs(1);

/// The pool, for the transaction network. What peers send goes through the ingest service, as what
/// clients send does, after a look at the state that spares the signatures of what would be refused
/// anyhow.
#[derive(Clone)]
pub(crate) struct GossipPool {
    chain: Arc<NodeChain>,
    pool: Arc<Pool>,
    ingest: IngestHandle,
    sync: Arc<SyncState>,
    listed: Arc<Mutex<Option<Listed>>>,
}

/// The pool's transactions at some time, by sender and nonce.
#[derive(Clone)]
struct Listed {
    at: Instant,
    entries: Arc<Vec<(Address, Hash)>>,
}

impl GossipPool {
    pub(crate) fn new(
        chain: Arc<NodeChain>,
        pool: Arc<Pool>,
        ingest: IngestHandle,
        sync: Arc<SyncState>,
    ) -> Self {
        Self { chain, pool, ingest, sync, listed: Arc::default() }
    }

    /// A list of the pool that is at most [`LIST_AGE_MAX`] old.
    fn listed(&self) -> Arc<Vec<(Address, Hash)>> {
        let mut listed = self.listed.lock();
        if let Some(it) = listed.as_ref().filter(|it| it.at.elapsed() < LIST_AGE_MAX) {
            return Arc::clone(&it.entries);
        }
        let entries = Arc::new(self.pool.all_names());
        *listed = Some(Listed { at: Instant::now(), entries: Arc::clone(&entries) });
        entries
    }

    /// Runs what may wait for the pool's lock or the disk on a thread for that.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || work(&this)).await.ok()
    }

    async fn pooled(&self, hashes: Vec<Hash>) -> Vec<bool> {
        let count = hashes.len();
        let pooled = self.blocking(move |this| this.pool.holds(&hashes)).await;
        pooled.unwrap_or_else(|| vec![false; count])
    }

    /// Offers transactions that are not in the pool.
    async fn offer(&self, txs: Vec<SignedTx>) -> Vec<Outcome> {
        let answers = self.ingest.submit(txs.iter().map(text).collect(), Origin::Peer).await;
        self.recognise(&txs, answers.into_iter().map(outcome).collect()).await
    }

    /// What was refused for a stale nonce and stands in a block is known.
    async fn recognise(&self, txs: &[SignedTx], mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
        let stale = Outcome::Refused(Code::NonceStale);
        let hashes = txs.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == stale);
        let hashes: Vec<Hash> = hashes.map(|(tx, _)| tx.hash()).collect();
        if hashes.is_empty() {
            return outcomes;
        }
        let included = self.blocking(move |this| {
            let view = this.chain.store().snapshot();
            let found = |hash: &Hash| matches!(view.has_transaction(hash), Ok(true));
            hashes.iter().map(found).collect::<Vec<bool>>()
        });
        let mut included = included.await.unwrap_or_default().into_iter();
        for outcome in outcomes.iter_mut().filter(|outcome| **outcome == stale) {
            if included.next() == Some(true) {
                *outcome = Outcome::Known;
            }
        }
        outcomes
    }
}

/// A transaction as its signer would hand it in.
fn text(tx: &SignedTx) -> Text {
    tx.to_json().into_boxed_str().into_boxed_bytes()
}

/// The ingest service's answer in the words of the network.
fn outcome(answer: Answer) -> Outcome {
    match answer {
        Ok(Accepted { is_new: true, .. }) => Outcome::New,
        Ok(_) => Outcome::Known,
        // The sender may be behind a fork that has changed what is right. That is no offence, but it
        // counts as a rejection, so that nobody can flood a node with such transactions for nothing.
        Err(IngestError::Rejected(reason))
            if reason.code().is_peer_fault() && !reason.is_peer_fault() =>
        {
            Outcome::Refused(Code::ForkNotActive)
        }
        Err(IngestError::Rejected(reason)) => Outcome::Refused(reason.code()),
        Err(
            IngestError::Syncing
            | IngestError::ShuttingDown
            | IngestError::Busy { .. }
            | IngestError::Fault(_),
        ) => Outcome::Unable,
    }
}

#[async_trait]
impl p2p::ports::Pool for GossipPool {
    async fn submit(&self, txs: Vec<SignedTx>) -> Vec<Outcome> {
        let known = self.pooled(txs.iter().map(SignedTx::hash).collect()).await;
        let mut unknown = txs.into_iter().zip(&known).filter(|(_, known)| !**known);
        let unknown = unknown.by_ref().map(|(tx, _)| tx).collect();
        let mut offered = self.offer(unknown).await.into_iter();
        let answers = known.iter().map(|known| {
            if *known { Outcome::Known } else { offered.next().unwrap_or(Outcome::Unable) }
        });
        answers.collect()
    }

    async fn unknown(&self, hashes: Vec<Hash>) -> Vec<Hash> {
        if self.sync.is_catching_up() {
            // They could not be taken. What still waits afterwards is pulled then.
            return Vec::new();
        }
        let unknown = self.blocking(move |this| {
            let pooled = this.pool.holds(&hashes);
            let view = this.chain.store().snapshot();
            let open = hashes.into_iter().zip(pooled).filter(|(_, pooled)| !pooled);
            // What cannot be looked up is not asked for; the next pull tries again.
            open.map(|(hash, _)| hash)
                .filter(|hash| matches!(view.has_transaction(hash), Ok(false)))
                .collect()
        });
        unknown.await.unwrap_or_default()
    }

    async fn list(&self, after: Option<Address>, wanted: usize) -> Listing {
        let listed = self.blocking(move |this| list(&this.listed(), after, wanted)).await;
        listed.unwrap_or_default()
    }

    async fn fetch(&self, hashes: Vec<Hash>) -> Vec<SignedTx> {
        let txs = self.blocking(move |this| {
            let pooled = hashes.into_iter().filter_map(|hash| this.pool.lookup(hash));
            pooled.map(|tx| SignedTx::from(&tx)).collect()
        });
        txs.await.unwrap_or_default()
    }

    fn height(&self) -> u64 {
        self.chain.tip().height
    }
}

/// The part of the list after a sender: whole senders, until there are enough.
fn list(entries: &[(Address, Hash)], after: Option<Address>, wanted: usize) -> Listing {
    let first = entries.partition_point(|(sender, _)| after.is_some_and(|it| *sender <= it));
    let rest = entries.get(first..).unwrap_or_default();
    let Some((last, _)) = wanted.checked_sub(1).and_then(|at| rest.get(at)) else {
        return Listing { hashes: rest.iter().map(|(_, hash)| *hash).collect(), next: None };
    };
    let end = rest.partition_point(|(sender, _)| sender <= last);
    let hashes = rest.iter().take(end).map(|(_, hash)| *hash).collect();
    Listing { hashes, next: (end < rest.len()).then_some(*last) }
}

/// Tells peers what the pool accepts, until asked to stop.
pub(crate) async fn announce(
    bus: Arc<EventBus>,
    handle: Handle,
    stop: CancellationToken,
) -> Result<(), NodeFault> {
    let mut accepted = bus.accepted();
    let work = async {
        while let Some(Next { lost, item }) = accepted.next().await {
            // Peers pull what was not told.
            handle.counters().unpublished.inc_by(lost);
            if let Some(tx) = item {
                handle.announce(SignedTx::from(&tx));
            }
            // There may be no end of them.
            consume_budget().await;
        }
    };
    stop.run_until_cancelled(work).await;
    Ok(())
}

#[cfg(test)]
mod tests;
