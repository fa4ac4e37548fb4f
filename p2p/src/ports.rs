//! What this network needs from the rest of the node: the pool and the chain.

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

/// How far a node's chain goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// The lowest height whose block it has.
    pub earliest: u64,
    /// The height of its latest committed block; 0 for genesis.
    pub tip: u64,
}

/// A block in its binary form with the proof of its decision. Opaque to this crate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedBlock {
    /// The block.
    pub bytes: Vec<u8>,
    /// Its certificate.
    pub certificate: Vec<u8>,
}

/// A snapshot of the state that a node offers: a claim until it is verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotHead {
    /// The state is that after this block.
    pub height: u64,
    /// The SHA-256 of the offer, which names it.
    pub hash: Hash,
    /// The bytes of the offer.
    pub bytes: u64,
}

/// Blocks could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(pub String);

/// The own chain. Except for [`ChainSource::status`], which must be quick, its methods are called on
/// threads that may block, and not for many peers at once.
pub trait ChainSource: Send + Sync {
    /// How far it goes.
    fn status(&self) -> Status;

    /// The committed blocks from `first` on, at most `count`, up to the one with which they have
    /// `bytes_wanted` or that is the last. None if the first is not there.
    ///
    /// # Errors
    /// [`ReadError`] if the database fails.
    fn blocks(
        &self,
        first: u64,
        count: u32,
        bytes_wanted: usize,
    ) -> Result<Vec<EncodedBlock>, ReadError>;

    /// The snapshots of the state that it offers in a format, the newest first; at most four are told
    /// of.
    fn snapshots(&self, _format: u32) -> Vec<SnapshotHead> {
        Vec::new()
    }

    /// `bytes_max` bytes from `offset` on of an offer or a chunk of a snapshot, or the rest of it;
    /// none if there is no such thing.
    ///
    /// # Errors
    /// [`ReadError`] if a file cannot be read.
    fn piece(&self, _hash: &Hash, _offset: u64, _bytes_max: usize) -> Result<Vec<u8>, ReadError> {
        Ok(Vec::new())
    }
}

/// The pool and the chain of a node that has neither and only asks others.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

#[async_trait]
impl Pool for Nothing {
    async fn submit(&self, txs: Vec<SignedTx>) -> Vec<Outcome> {
        vec![Outcome::Unable; txs.len()]
    }

    async fn unknown(&self, _: Vec<Hash>) -> Vec<Hash> {
        Vec::new()
    }

    async fn list(&self, _: Option<Address>, _: usize) -> Listing {
        Listing::default()
    }

    async fn fetch(&self, _: Vec<Hash>) -> Vec<SignedTx> {
        Vec::new()
    }

    fn height(&self) -> u64 {
        0
    }
}

impl ChainSource for Nothing {
    fn status(&self) -> Status {
        Status { earliest: 1, tip: 0 }
    }

    fn blocks(&self, _: u64, _: u32, _: usize) -> Result<Vec<EncodedBlock>, ReadError> {
        Ok(Vec::new())
    }
}
