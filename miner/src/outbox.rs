//! The outbox: a wallet's transactions, each from its signature to its fate, in one row of nonces.
//!
//! ```text
//! turn: nonce ──▶ sign ──▶ rows ──▶ first sending ──▶ fate ──▶ rows
//! ```
//!
//! A few may be under way at a time. One that loses a race, or that a deadline overtakes, would leave
//! a gap behind which the others wait. The next transaction takes the free nonce; if there is none, a
//! filler does, a transfer of nothing to oneself. So nothing is ever signed twice, and nothing that was
//! sent is ever replaced while it may still be included.
//!
//! Not here: what the transactions are about. Whoever posts them writes that down in its [`Rows`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent::clock::Clock;
use async_trait::async_trait;
use futures::future::{try_join, try_join_all};
use tokio::sync::{Mutex, MutexGuard, OnceCell, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use types::tx::Transfer;
use types::{Amount, Body, Hash, Keypair};
use wallet::{Envelope, Signed};

pub use crate::backoff::{Halt, Pauses, patiently};
use crate::chain::{ChainError, Fate, Head, Ledger};
use crate::journal::JournalError;

/// One waiting call; the node is asked again after it.
const WAIT: Duration = Duration::from_secs(30);
/// How far ahead of the newest block a transaction says that it was signed, milliseconds.
const AHEAD_MS_MAX: u64 = 60_000;
/// Transactions under way: well below the 64 nonces that pools keep beyond the next one.
pub const UNDER_WAY_MAX: usize = 16;

/// A signed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip {
    /// Its nonce.
    pub nonce: u64,
    /// Its hash.
    pub hash: Hash,
    /// The signed text, sent as it is however often.
    pub text: String,
}

/// What became of a transaction, for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is in a block.
    Included {
        /// What it burned for its place in the block, micro-OMBRA; 0 before fork v7, and where the node
        /// cannot tell.
        inclusion_micro: u64,
    },
    /// It never will be; the code of docs/protocol.md section 9.
    Refused(String),
}

impl Verdict {
    /// Whether it is in a block.
    #[must_use]
    pub const fn is_included(&self) -> bool {
        matches!(self, Self::Included { .. })
    }
}

/// Where the signed transactions whose fate is not known are written down. Each change is kept before
/// its future is ready.
#[async_trait]
pub trait Rows: std::fmt::Debug + Send + Sync {
    /// Their nonces.
    ///
    /// # Errors
    /// When they cannot be read.
    fn nonces(&self) -> Result<BTreeSet<u64>, JournalError>;
    /// Writes down that a filler of a gap is signed.
    ///
    /// # Errors
    /// When that cannot be written; then the filler is not sent.
    async fn fill(&self, filler: &Slip) -> Result<(), JournalError>;
    /// Writes down what became of one, and what follows from that.
    ///
    /// # Errors
    /// When that cannot be written.
    async fn resolve(&self, slip: &Slip, verdict: &Verdict) -> Result<(), JournalError>;
}

/// What an outbox is made of.
#[derive(Debug)]
pub struct Setting {
    /// The wallet that signs.
    pub key: Keypair,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The chain.
    pub ledger: Arc<dyn Ledger>,
    /// Where transactions are written down.
    pub rows: Arc<dyn Rows>,
    /// The first pause between two attempts, milliseconds.
    pub pause_ms: u64,
    /// Ends every wait.
    pub stop: CancellationToken,
}

/// The outbox of a wallet.
pub struct Outbox {
    setting: Setting,
    chain: OnceCell<Head>,
    /// One for each transaction under way.
    places: Semaphore,
    /// Held from the choice of a nonce to the first sending of what is signed with it.
    turn: Mutex<()>,
    /// The nonce after the highest one that is known to be in a block: a node may be behind.
    used: AtomicU64,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Outbox")
            .field("address", &self.setting.key.address())
            .finish_non_exhaustive()
    }
}

/// What became of one sending.
enum Sent {
    /// The node has it.
    Taken,
    /// It will not have it.
    Refused(String),
    /// The same bytes are to be sent again.
    NotYet,
}

/// The right to sign the next transaction. While it is held nobody else signs.
#[derive(Debug)]
pub struct Turn<'a> {
    outbox: &'a Outbox,
    nonce: u64,
    guard: MutexGuard<'a, ()>,
    place: SemaphorePermit<'a>,
}

impl Turn<'_> {
    /// The nonce of the transaction.
    #[must_use]
    pub const fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Signs it. It is to be written down in the outbox's [`Rows`] before it is sent.
    ///
    /// # Errors
    /// When the program is being stopped.
    pub async fn sign(&self, body: &Body) -> Result<Slip, Halt> {
        self.outbox.sign(self.nonce, body).await
    }

    /// Sends what was signed and written down in this turn, ends the turn as soon as others may sign,
    /// and waits for its fate.
    ///
    /// # Errors
    /// When the program is being stopped, or the rows cannot be used.
    pub async fn send(self, slip: &Slip) -> Result<Verdict, Halt> {
        let Self { outbox, nonce: _, guard, place } = self;
        let sent = outbox.send(slip).await;
        let verdict = if let Sent::Refused(_) = sent {
            // Before anybody takes the nonce after it.
            let verdict = outbox.conclude(slip, sent).await?;
            drop(guard);
            outbox.mend().await?;
            verdict
        } else {
            drop(guard);
            outbox.deliver_sent(slip, sent).await?
        };
        drop(place);
        Ok(verdict)
    }
}

impl Outbox {
    /// An outbox in which nothing is under way.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        Self {
            setting,
            chain: OnceCell::new(),
            places: Semaphore::new(UNDER_WAY_MAX),
            turn: Mutex::new(()),
            used: AtomicU64::new(0),
        }
    }

    /// Sends what was signed and whose fate is not known, as it is. Only while nothing is posted.
    ///
    /// # Errors
    /// When the program is being stopped, or the rows cannot be used.
    pub async fn recover(&self, slips: &[Slip]) -> Result<(), Halt> {
        // Those after a gap wait for what fills it, and that for those before it.
        let sent = try_join_all(slips.iter().map(|slip| self.deliver(slip)));
        try_join(self.mend(), sent).await?;
        Ok(())
    }

    /// Sends what was signed before, as it is, and waits for its fate.
    ///
    /// # Errors
    /// When the program is being stopped, or the rows cannot be used.
    pub async fn deliver(&self, slip: &Slip) -> Result<Verdict, Halt> {
        self.deliver_sent(slip, Sent::NotYet).await
    }

    /// Waits for the right to sign.
    ///
    /// # Errors
    /// When the program is being stopped, or the rows cannot be used.
    pub async fn turn(&self) -> Result<Turn<'_>, Halt> {
        let Ok(place) = self.places.acquire().await else { return Err(Halt::Stopped) };
        let guard = self.turn.lock().await;
        let nonce = self.free_nonce().await?;
        Ok(Turn { outbox: self, nonce, guard, place })
    }

    /// The right to sign, if nothing is under way and `wanted` says so; nobody else signs while it is
    /// asked. None if nothing is to be signed.
    ///
    /// # Errors
    /// When the program is being stopped, or the rows cannot be used.
    pub async fn turn_alone(
        &self,
        wanted: impl AsyncFnOnce() -> bool,
    ) -> Result<Option<Turn<'_>>, Halt> {
        let (Ok(place), Ok(guard)) = (self.places.try_acquire(), self.turn.try_lock()) else {
            return Ok(None);
        };
        if !self.setting.rows.nonces()?.is_empty() || !wanted().await {
            return Ok(None);
        }
        let nonce = self.free_nonce().await?;
        Ok(Some(Turn { outbox: self, nonce, guard, place }))
    }

    /// Fills the gaps in the row of nonces that others wait behind, one after the other.
    async fn mend(&self) -> Result<(), Halt> {
        let Setting { key, rows, pause_ms, stop, .. } = &self.setting;
        let mut pauses = Pauses::new(*pause_ms);
        loop {
            let guard = self.turn.lock().await;
            let nonces = rows.nonces()?;
            let free = if nonces.is_empty() { 0 } else { self.free_nonce().await? };
            if nonces.last().is_none_or(|last| *last < free) {
                return Ok(());
            }
            let nothing = Transfer::new(key.address(), Amount::ZERO, Amount::ZERO);
            let filler = self.sign(free, &Body::Transfer(nothing)).await?;
            tracing::info!(nonce = free, "filling a gap of nonces");
            rows.fill(&filler).await?;
            let sent = self.send(&filler).await;
            drop(guard);
            if let Verdict::Refused(_) = self.conclude(&filler, sent).await? {
                pauses.pause(stop).await?;
            }
        }
    }

    /// The lowest nonce that nothing has which is in a block, known to the node, or in the outbox.
    async fn free_nonce(&self) -> Result<u64, Halt> {
        let address = self.setting.key.address();
        let funds = self.patiently(|| self.setting.ledger.funds(&address)).await?;
        let taken: BTreeSet<u64> = self.setting.rows.nonces()?;
        let mut free = funds.nonce.max(self.used.load(Ordering::SeqCst));
        while taken.contains(&free) {
            free = free.saturating_add(1);
        }
        Ok(free)
    }

    async fn sign(&self, nonce: u64, body: &Body) -> Result<Slip, Halt> {
        let chain_id = Some(self.chain().await?.chain_id.clone());
        // Pools refuse what is ahead of their clock. A program whose own is ahead would wait with it,
        // and with everything after it, until the time has come.
        let head = self.patiently(|| self.setting.ledger.head()).await?;
        let now_ms = self.setting.clock.now_ms();
        let signed_ms = now_ms.min(head.block_ms.saturating_add(AHEAD_MS_MAX));
        let envelope = Envelope::new(nonce, signed_ms, chain_id);
        let signed = Signed::new(&self.setting.key, &envelope, body);
        Ok(Slip { nonce, hash: signed.hash(), text: signed.text().to_owned() })
    }

    /// Brings a transaction that was sent, or not yet, to its end, and writes that down.
    async fn deliver_sent(&self, slip: &Slip, sent: Sent) -> Result<Verdict, Halt> {
        let verdict = self.conclude(slip, sent).await?;
        if let Verdict::Refused(_) = verdict {
            Box::pin(self.mend()).await?;
        }
        Ok(verdict)
    }

    async fn conclude(&self, slip: &Slip, sent: Sent) -> Result<Verdict, Halt> {
        let verdict = self.fate(slip, sent).await?;
        if verdict.is_included() {
            self.used.fetch_max(slip.nonce.saturating_add(1), Ordering::SeqCst);
        }
        self.setting.rows.resolve(slip, &verdict).await?;
        Ok(verdict)
    }

    /// What becomes of a transaction. The same bytes are sent again as long as that may help.
    async fn fate(&self, slip: &Slip, mut sent: Sent) -> Result<Verdict, Halt> {
        let Setting { pause_ms, stop, .. } = &self.setting;
        let mut pauses = Pauses::new(*pause_ms);
        loop {
            match sent {
                Sent::Refused(code) => return Ok(Verdict::Refused(code)),
                Sent::Taken => {
                    if let Some(verdict) = self.await_block(slip).await? {
                        return Ok(verdict);
                    }
                    pauses.pause(stop).await?;
                }
                Sent::NotYet => (),
            }
            sent = self.send(slip).await;
            if let Sent::NotYet = sent {
                pauses.pause(stop).await?;
            }
        }
    }

    async fn send(&self, slip: &Slip) -> Sent {
        match self.setting.ledger.send(&slip.text).await {
            Ok(()) => Sent::Taken,
            Err(ChainError::Rejected { code, message: _ }) if !passes(&code) => Sent::Refused(code),
            Err(error) => {
                tracing::warn!(%error, "sending the same transaction again");
                Sent::NotYet
            }
        }
    }

    /// Waits for an accepted transaction; none if it is to be sent again.
    async fn await_block(&self, slip: &Slip) -> Result<Option<Verdict>, Halt> {
        let Setting { ledger, stop, .. } = &self.setting;
        loop {
            let fate = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(Halt::Stopped),
                fate = ledger.wait(&slip.hash, WAIT) => fate,
            };
            match fate {
                Ok(Fate::Included { inclusion_micro }) => {
                    return Ok(Some(Verdict::Included { inclusion_micro }));
                }
                Ok(Fate::Dropped(code)) if !passes(&code) => {
                    return Ok(Some(Verdict::Refused(code)));
                }
                Ok(Fate::Pending) => (),
                Ok(Fate::Dropped(_) | Fate::Unknown) => return Ok(None),
                Err(error) => {
                    tracing::warn!(%error, "asking again for the outcome of a transaction");
                    return Ok(None);
                }
            }
        }
    }

    /// The chain as it was when it was first asked for: what of it never changes.
    ///
    /// # Errors
    /// When the program is being stopped.
    pub async fn chain(&self) -> Result<&Head, Halt> {
        if let Some(known) = self.chain.get() {
            return Ok(known);
        }
        let head = self.patiently(|| self.setting.ledger.head()).await?;
        Ok(self.chain.get_or_init(|| async { head }).await)
    }

    async fn patiently<T, F>(&self, mut ask: impl FnMut() -> F) -> Result<T, Halt>
    where
        F: Future<Output = Result<T, ChainError>>,
    {
        patiently(self.setting.pause_ms, &self.setting.stop, &mut ask).await
    }
}

/// Whether a rejection with this code may pass by itself, so that the same bytes can still be included.
fn passes(code: &str) -> bool {
    const PASSING: [&str; 6] =
        ["POOL_FULL", "SENDER_LIMIT", "CLOCK_SKEW", "NONCE_TOO_HIGH", "FEE_ABOVE_MAX", "EVICTED"];
    PASSING.contains(&code)
}
