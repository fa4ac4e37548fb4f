//! Taking transactions in, and what waits for a block.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::value::RawValue;
use types::{Address, Amount, CheckedTx, Hash, Rejection, Run, Settlement};

use super::{PortFault, Slice};

/// Why a transaction was not taken.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubmitError {
    /// The chain or the pool refuses it.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The node is catching up.
    #[error("the node is catching up with the chain")]
    Syncing,
    /// The node is stopping.
    #[error("the node is shutting down")]
    ShuttingDown,
    /// Too many submissions wait already.
    #[error("too many submissions at the same time")]
    Busy {
        /// When to try again, in milliseconds.
        retry_after_ms: u64,
    },
    /// A fault of this node.
    #[error(transparent)]
    Fault(#[from] PortFault),
}

/// Taking transactions in.
#[async_trait]
pub trait Submit: Send + Sync {
    /// Parses, checks and stores signed transactions, each text exactly as its signer wrote it.
    /// The answers are in the order of the texts and as many; one bad text never affects
    /// another. A transaction that is pending or included already is answered with its hash.
    /// At most [`crate::SUBMIT_ITEMS_MAX`] texts. Concurrent calls may be joined, so that
    /// signatures are checked in batches.
    async fn submit(&self, texts: Vec<Box<RawValue>>) -> Vec<Result<Hash, SubmitError>>;
}

/// An account with everything pending applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PendingAccount {
    /// The nonce that its next transaction must have.
    pub nonce: u64,
    /// What its next transaction may spend; without the transactions that the pool is to execute again.
    pub balance: Amount,
}

/// What an AGENT_FINISH must state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SettlementNow {
    /// The sum of the steps' tokens.
    pub total_tokens_out: u64,
    /// The number of steps.
    pub step_count: u64,
    /// How the escrow is divided.
    pub fees: Settlement,
}

/// What a transaction would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effects {
    /// Balances that change, before and after, in order of addresses.
    pub balances: Vec<(Address, Amount, Amount)>,
    /// The run that it is about, as it would be; positions in it that are not yet known are 0.
    pub run: Option<Run>,
    /// What it burns.
    pub burned: Amount,
}

/// The latest state with everything pending applied.
pub trait Projection: Send + Sync {
    /// The account.
    ///
    /// # Errors
    /// [`PortFault`].
    fn account(&self, address: &Address) -> Result<PendingAccount, PortFault>;

    /// What an AGENT_FINISH of the run must state after everything pending; how it was settled
    /// if it has ended; none for an unknown run.
    ///
    /// # Errors
    /// [`PortFault`].
    fn settlement(&self, agent_run_id: &Hash) -> Result<Option<SettlementNow>, PortFault>;

    /// What the transaction would do after everything pending. `hash` and `signature` may be
    /// missing; what is there is checked. Nothing is kept.
    ///
    /// # Errors
    /// [`SubmitError`] as [`Submit::submit`].
    fn simulate(&self, text: &RawValue) -> Result<Effects, SubmitError>;
}

/// A transaction that the pool knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolTx {
    /// Waits for a block (executable or for an earlier nonce).
    Pending(CheckedTx),
    /// Is executable, but waits for the base fee to fall.
    Waiting {
        /// The transaction.
        tx: CheckedTx,
        /// What it would be refused with in the next block.
        reason: Box<Rejection>,
    },
    /// Was dropped; remembered for a while.
    Dropped(Arc<DroppedTx>),
}

/// A transaction that the pool dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DroppedTx {
    /// The transaction.
    pub tx: CheckedTx,
    /// Why.
    pub reason: Rejection,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// Waiting transactions of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolCount {
    /// How many are executable, with those that wait for the base fee to fall.
    pub pending: u64,
    /// How many wait for an earlier nonce.
    pub queued: u64,
    /// Bytes of payloads and signatures, of both.
    pub bytes: u64,
}

/// What one sender has waiting, each list by ascending nonce.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderContent {
    /// The sender.
    pub sender: Address,
    /// Executable transactions.
    pub pending: Vec<CheckedTx>,
    /// Those after them that are executable when the base fee has fallen.
    pub waiting: Vec<CheckedTx>,
    /// Transactions that wait for an earlier nonce.
    pub queued: Vec<CheckedTx>,
}

/// The pool's content.
pub trait Pool: Send + Sync {
    /// The transaction with this hash, if the pool knows it.
    fn find(&self, hash: &Hash) -> Option<PoolTx>;

    /// Counts by kind of transaction, in any order; kinds without any may be left out.
    fn counts(&self) -> Vec<(&'static str, PoolCount)>;

    /// Senders with their transactions in order of addresses, after `after`. `limit` counts
    /// senders; there may be fewer although more follow, so that nobody waits long for the pool.
    fn content(&self, after: Option<Address>, limit: usize) -> Slice<SenderContent, Address>;

    /// The first executable transactions, in the order in which they are to be executed.
    fn pending(&self, limit: usize) -> Vec<CheckedTx>;

    /// What one sender has waiting.
    fn content_from(&self, sender: &Address) -> SenderContent;
}
