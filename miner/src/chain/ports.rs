//! The ports to a node.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use types::{Address, Hash};

use super::{
    BlobFees, BlobView, ChainError, Fate, Funds, Head, Held, Notice, RunView, Stake, StepView,
};

/// Runs, as the chain has them.
#[async_trait]
pub trait Runs: Debug + Send + Sync {
    /// A run; none if there is no such run.
    async fn run(&self, id: &Hash) -> Result<Option<RunView>, ChainError>;
    /// The runs that wait for a miner, newest request first, as far as the node has them.
    async fn pending(&self) -> Result<Vec<RunView>, ChainError>;
    /// Runs of a miner, newest request first, open and ended; an error if the node has only some.
    async fn of_miner(&self, miner: &Address) -> Result<Vec<RunView>, ChainError>;
    /// The runs that a miner has and that have not ended, as far as the node has them.
    async fn open_of_miner(&self, miner: &Address) -> Result<Vec<RunView>, ChainError>;
    /// The recorded steps of a run.
    async fn steps(&self, id: &Hash) -> Result<Vec<StepView>, ChainError>;
    /// The text of a finalised blob of at most `bytes_max`; none if there is no such blob, it is
    /// larger, or not UTF-8.
    async fn blob_text(&self, id: &str, bytes_max: usize) -> Result<Option<String>, ChainError>;
}

/// Accounts and transactions.
#[async_trait]
pub trait Ledger: Debug + Send + Sync {
    /// The chain.
    async fn head(&self) -> Result<Head, ChainError>;
    /// An account, everything pending counted.
    async fn funds(&self, address: &Address) -> Result<Funds, ChainError>;
    /// Hands in a signed transaction. One that is known already is accepted again.
    async fn send(&self, text: &str) -> Result<(), ChainError>;
    /// Waits until a transaction is included or dropped, at most `patience`.
    async fn wait(&self, tx: &Hash, patience: Duration) -> Result<Fate, ChainError>;
    /// What an account has at stake; none while the chain has no bonds.
    async fn stake(&self, address: &Address) -> Result<Option<Stake>, ChainError>;
    /// What is held of a miner's rewards, among its 100 runs that were asked for last.
    async fn held(&self, miner: &Address) -> Result<Held, ChainError>;
    /// What blobs burn.
    async fn blob_fees(&self) -> Result<BlobFees, ChainError>;
    /// A blob's record.
    async fn blob(&self, id: &str) -> Result<Option<BlobView>, ChainError>;
}

/// Tells of runs that open and of those that are claimed, without a gap from the block after `head`.
#[async_trait]
pub trait Watch: Debug + Send + Sync {
    /// Begins to watch after the block `height`; what was watched before is dropped.
    async fn begin(&mut self, height: u64) -> Result<(), ChainError>;
    /// The next notice. An error means that [`Watch::begin`] is needed again.
    async fn next(&mut self) -> Result<Notice, ChainError>;
}
