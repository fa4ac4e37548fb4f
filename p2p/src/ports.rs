//! What this network needs from the rest of the node: the pool.

use async_trait::async_trait;
use types::{Address, Code, Hash};

use crate::SignedTx;

/// What the pool did with a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was taken, and had not been known.
    New,
    /// It waits in the pool or stands in a block already.
    Known,
    /// The chain or the pool refuses it.
    Refused(Code),
    /// The node could not look at it: it is busy, catching up or stopping.
    Unable,
}

/// Part of the list of pooled transactions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// Hashes sender by sender in order of addresses, and by nonce within a sender.
    pub hashes: Vec<Hash>,
    /// The last sender listed, if there are more senders.
    pub next: Option<Address>,
}

/// The own pool. Implementations do what may block on threads of their own.
#[async_trait]
pub trait Pool: Send + Sync {
    /// Offers transactions as a client would; the answers are in their order and as many.
    async fn submit(&self, txs: Vec<SignedTx>) -> Vec<Outcome>;

    /// Those of the hashes that neither the pool nor the chain knows, in their order.
    async fn unknown(&self, hashes: Vec<Hash>) -> Vec<Hash>;

    /// The pooled transactions of the senders after `after`: whole senders, until there are at
    /// least `wanted` hashes or no more senders.
    async fn list(&self, after: Option<Address>, wanted: usize) -> Listing;

    /// Those of the transactions that are in the pool, in their order.
    async fn fetch(&self, hashes: Vec<Hash>) -> Vec<SignedTx>;

    /// The height of the latest committed block.
    fn height(&self) -> u64;
}
