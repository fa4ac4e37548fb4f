//! The outbox: the wallet's transactions, each from its signature to its fate, in one row of nonces.
//!
//! ```text
//! place ──▶ turn: nonce, signature, journal, first sending ──▶ fate ──▶ journal
//! ```
//!
//! A few may be under way at a time, and no two of one run, so that none depends on another but by
//! its nonce. One that loses a race, or that a deadline overtakes, would leave a gap behind which the
//! others wait. The next transaction takes the free nonce; if there is none, a filler does, a
//! transfer of nothing to oneself. So nothing is ever signed twice, and nothing that was sent is ever
//! replaced while it may still be included.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{try_join, try_join_all};
use tokio::sync::{Mutex, MutexGuard, OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;
use types::tx::Transfer;
use types::{Address, Amount, Body, Hash, Keypair};
use wallet::{Envelope, Signed};

use super::error::{Halt, Pauses};
use super::settle::{Verdict, settle, settle_call};
use super::{Parts, error};
use crate::chain::{ChainError, Fate, Funds, Head, Ledger};
use crate::journal::call::CallEntry;
use crate::journal::entry::{Day, Entry, Parcel, Purpose, SweptLast};
use crate::journal::{Journal, Spent};
use crate::ports::{Clock, Counters, Event};

/// One waiting call; the node is asked again after it.
const WAIT: Duration = Duration::from_secs(30);
/// How far ahead of the newest block a transaction says that it was signed, milliseconds.
const AHEAD_MS_MAX: u64 = 60_000;
/// Transactions under way: well below the 64 nonces that pools keep beyond the next one.
pub(super) const UNDER_WAY_MAX: usize = 16;

/// The outbox of a wallet.
pub(crate) struct Outbox {
    key: Keypair,
    clock: Arc<dyn Clock>,
    ledger: Arc<dyn Ledger>,
    journal: Arc<Journal>,
    counters: Arc<dyn Counters>,
    pause_ms: u64,
    stop: CancellationToken,
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
            .field("address", &self.key.address())
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

/// What a transaction is about: the entry that says that it is signed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About<'a> {
    /// A run.
    Run(&'a Entry),
    /// A call.
    Call(&'a CallEntry),
    /// The wallet alone.
    Wallet,
}

impl About<'_> {
    const fn id(&self) -> Hash {
        match self {
            Self::Run(entry) => entry.run.id,
            Self::Call(entry) => entry.call,
            Self::Wallet => Hash::ZERO,
        }
    }
}

impl Outbox {
    pub(super) fn new(parts: &Parts, stop: CancellationToken) -> Self {
        Self {
            key: parts.key.clone(),
            clock: Arc::clone(&parts.clock),
            ledger: Arc::clone(&parts.ledger),
            journal: Arc::clone(&parts.journal),
            counters: Arc::clone(&parts.counters),
            pause_ms: parts.config.pause_ms,
            stop,
            chain: OnceCell::new(),
            places: Semaphore::new(UNDER_WAY_MAX),
            turn: Mutex::new(()),
            used: AtomicU64::new(0),
        }
    }

    /// Sends what was signed and whose fate is not known, as it is. Only while nothing is posted.
    pub(super) async fn recover(&self) -> Result<(), Halt> {
        let parcels = self.journal.outbox()?;
        // Those after a gap wait for what fills it, and that for those before it.
        let sent = try_join_all(parcels.iter().map(|parcel| self.deliver(parcel, Sent::NotYet)));
        try_join(self.mend(), sent).await?;
        Ok(())
    }

    /// The same for one run or call, by its worker; how many there were.
    pub(crate) async fn resend(&self, run: &Hash) -> Result<usize, Halt> {
        let parcels = self.journal.outbox()?;
        let mut sent = 0_usize;
        for parcel in parcels.iter().filter(|parcel| parcel.run == *run) {
            self.deliver(parcel, Sent::NotYet).await?;
            sent = sent.saturating_add(1);
        }
        Ok(sent)
    }

    /// Signs a transaction, writes it down with `entry`, which says that it is signed, and delivers it.
    pub(super) async fn post(
        &self,
        entry: &Entry,
        body: &Body,
        purpose: Purpose,
    ) -> Result<Verdict, Halt> {
        self.post_about(About::Run(entry), body, purpose).await
    }

    /// The same for a run, a call, or neither.
    pub(crate) async fn post_about(
        &self,
        about: About<'_>,
        body: &Body,
        purpose: Purpose,
    ) -> Result<Verdict, Halt> {
        let Ok(place) = self.places.acquire().await else { return Err(Halt::Stopped) };
        let turn = self.turn.lock().await;
        let nonce = self.free_nonce().await?;
        let parcel = self.sign(nonce, body, about.id(), purpose).await?;
        match about {
            About::Run(entry) => self.journal.sign(Some(entry), &parcel).await?,
            About::Call(entry) => self.journal.sign_call(entry, &parcel).await?,
            About::Wallet => self.journal.sign(None, &parcel).await?,
        }
        let verdict = self.see_through(&parcel, turn).await?;
        drop(place);
        Ok(verdict)
    }

    /// Sends what was signed in this turn, and ends the turn as soon as others may sign.
    async fn see_through(
        &self,
        parcel: &Parcel,
        turn: MutexGuard<'_, ()>,
    ) -> Result<Verdict, Halt> {
        let sent = self.send(parcel).await;
        if let Sent::Refused(_) = sent {
            // Before anybody takes the nonce after it.
            let verdict = self.conclude(parcel, sent).await?;
            drop(turn);
            self.mend().await?;
            Ok(verdict)
        } else {
            drop(turn);
            self.deliver(parcel, sent).await
        }
    }

    /// Moves money to an address, `micro` of the wallet's funds, if no transaction is under way and
    /// the node answers; none if nothing was sent. The sender pays no fee.
    pub(super) async fn post_transfer(
        &self,
        to: Address,
        micro: impl FnOnce(&Funds) -> Option<u64>,
    ) -> Result<Option<Verdict>, Halt> {
        let (Ok(place), Ok(turn)) = (self.places.try_acquire(), self.turn.try_lock()) else {
            return Ok(None);
        };
        if !self.journal.nonces()?.is_empty() {
            return Ok(None);
        }
        let Ok(funds) = self.ledger.funds(&self.key.address()).await else { return Ok(None) };
        let Some(micro) = micro(&funds) else { return Ok(None) };
        let nonce = self.free_nonce().await?;
        let body = Body::Transfer(Transfer::new(to, Amount::new(micro), Amount::ZERO));
        let purpose = Purpose::Sweep { to, micro };
        let parcel = self.sign(nonce, &body, Hash::ZERO, purpose).await?;
        self.journal.sign_sweep(&parcel, self.clock.now_ms()).await?;
        let verdict = self.see_through(&parcel, turn).await?;
        drop(place);
        Ok(Some(verdict))
    }

    /// Fills the gaps in the row of nonces that others wait behind, one after the other.
    async fn mend(&self) -> Result<(), Halt> {
        let mut pauses = Pauses::new(self.pause_ms);
        loop {
            let turn = self.turn.lock().await;
            let nonces = self.journal.nonces()?;
            let free = if nonces.is_empty() { 0 } else { self.free_nonce().await? };
            if nonces.last().is_none_or(|last| *last < free) {
                return Ok(());
            }
            let nothing = Transfer::new(self.key.address(), Amount::ZERO, Amount::ZERO);
            let body = Body::Transfer(nothing);
            let parcel = self.sign(free, &body, Hash::ZERO, Purpose::Filler).await?;
            tracing::info!(nonce = free, "a gap of nonces is filled");
            self.journal.sign(None, &parcel).await?;
            let sent = self.send(&parcel).await;
            drop(turn);
            if let Verdict::Refused(_) = self.conclude(&parcel, sent).await? {
                pauses.pause(&self.stop).await?;
            }
        }
    }

    /// The lowest nonce that nothing has which is in a block, known to the node, or in the outbox.
    async fn free_nonce(&self) -> Result<u64, Halt> {
        let address = self.key.address();
        let funds = self.patiently(|| self.ledger.funds(&address)).await?;
        let taken: BTreeSet<u64> = self.journal.nonces()?;
        let mut free = funds.nonce.max(self.used.load(Ordering::SeqCst));
        while taken.contains(&free) {
            free = free.saturating_add(1);
        }
        Ok(free)
    }

    async fn sign(
        &self,
        nonce: u64,
        body: &Body,
        run: Hash,
        purpose: Purpose,
    ) -> Result<Parcel, Halt> {
        let chain_id = Some(self.chain().await?.chain_id.clone());
        // Pools refuse what is ahead of their clock. A miner whose own is ahead would wait with it, and
        // with everything after it, until the time has come.
        let head = self.patiently(|| self.ledger.head()).await?;
        let signed_ms = self.clock.now_ms().min(head.block_ms.saturating_add(AHEAD_MS_MAX));
        let envelope = Envelope::new(nonce, signed_ms, chain_id);
        let signed = Signed::new(&self.key, &envelope, body);
        let (hash, text) = (signed.hash(), signed.text().to_owned());
        Ok(Parcel { nonce, hash, text, run, purpose })
    }

    /// Brings a transaction that was sent, or not yet, to its end, and writes that down.
    async fn deliver(&self, parcel: &Parcel, sent: Sent) -> Result<Verdict, Halt> {
        let verdict = self.conclude(parcel, sent).await?;
        if let Verdict::Refused(_) = verdict {
            Box::pin(self.mend()).await?;
        }
        Ok(verdict)
    }

    async fn conclude(&self, parcel: &Parcel, sent: Sent) -> Result<Verdict, Halt> {
        let verdict = self.fate(parcel, sent).await?;
        self.write_down(parcel, &verdict).await?;
        Ok(verdict)
    }

    async fn write_down(&self, parcel: &Parcel, verdict: &Verdict) -> Result<(), Halt> {
        let (run, nonce) = (parcel.run, parcel.nonce);
        match verdict {
            Verdict::Included => {
                self.used.fetch_max(nonce.saturating_add(1), Ordering::SeqCst);
                tracing::info!(%run, nonce, tx = %parcel.hash, purpose = ?parcel.purpose, "included");
            }
            Verdict::Refused(code) => {
                tracing::warn!(%run, nonce, code, purpose = ?parcel.purpose, "refused");
            }
        }
        if let Purpose::Sweep { micro, .. } = parcel.purpose {
            let last = match verdict {
                Verdict::Included => SweptLast::Included { tx: parcel.hash, micro },
                Verdict::Refused(code) => SweptLast::Refused { code: code.clone() },
            };
            self.journal.resolve_sweep(nonce, last).await?;
            if *verdict == Verdict::Included {
                self.counters.count(Event::Swept { micro });
            }
            return Ok(());
        }
        if let Purpose::Commit { round } | Purpose::Reveal { round } = parcel.purpose
            && let Some(entry) = self.journal.call(&run, round)?
        {
            let entry = settle_call(&entry, verdict);
            return Ok(self.journal.resolve_call(&entry, nonce).await?);
        }
        let now_ms = self.clock.now_ms();
        let Some(entry) = self.journal.entry(&run)? else {
            let spent = Spent { now_ms, add: Day::default() };
            return Ok(self.journal.resolve(None, nonce, spent).await?);
        };
        let step = self.journal.step(&run, entry.steps)?;
        let (entry, add) = settle(&entry, step.as_ref(), &parcel.purpose, verdict);
        self.journal.resolve(Some(&entry), nonce, Spent { now_ms, add }).await?;
        self.count(&parcel.purpose, verdict, add);
        Ok(())
    }

    fn count(&self, purpose: &Purpose, verdict: &Verdict, add: Day) {
        if add.claims > 0 {
            self.counters.count(Event::Claimed);
        }
        if add.lost > 0 {
            self.counters.count(Event::LostRace);
        }
        if let (Purpose::Step { tokens }, Verdict::Included) = (purpose, verdict) {
            self.counters.count(Event::Step { tokens: *tokens });
        }
    }

    /// What becomes of a transaction. The same bytes are sent again as long as that may help.
    async fn fate(&self, parcel: &Parcel, mut sent: Sent) -> Result<Verdict, Halt> {
        let mut pauses = Pauses::new(self.pause_ms);
        loop {
            match sent {
                Sent::Refused(code) => return Ok(Verdict::Refused(code)),
                Sent::Taken => {
                    if let Some(verdict) = self.await_block(parcel).await? {
                        return Ok(verdict);
                    }
                    pauses.pause(&self.stop).await?;
                }
                Sent::NotYet => (),
            }
            sent = self.send(parcel).await;
            if let Sent::NotYet = sent {
                pauses.pause(&self.stop).await?;
            }
        }
    }

    async fn send(&self, parcel: &Parcel) -> Sent {
        match self.ledger.send(&parcel.text).await {
            Ok(()) => Sent::Taken,
            Err(ChainError::Refused { code, message: _ }) if !passes(&code) => Sent::Refused(code),
            Err(error) => {
                tracing::warn!(%error, "the same transaction is sent again");
                Sent::NotYet
            }
        }
    }

    /// Waits for an accepted transaction; none if it is to be sent again.
    async fn await_block(&self, parcel: &Parcel) -> Result<Option<Verdict>, Halt> {
        loop {
            let fate = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(Halt::Stopped),
                fate = self.ledger.wait(&parcel.hash, WAIT) => fate,
            };
            match fate {
                Ok(Fate::Included) => return Ok(Some(Verdict::Included)),
                Ok(Fate::Dropped(code)) if !passes(&code) => {
                    return Ok(Some(Verdict::Refused(code)));
                }
                Ok(Fate::Pending) => (),
                Ok(Fate::Dropped(_) | Fate::Unknown) => return Ok(None),
                Err(error) => {
                    tracing::warn!(%error, "the fate of a transaction is asked for again");
                    return Ok(None);
                }
            }
        }
    }

    /// What a chunk of a blob burns.
    pub(super) async fn blob_chunk_fee_micro(&self) -> Result<u64, Halt> {
        Ok(self.chain().await?.blob_chunk_fee_micro)
    }

    /// The most tokens that the chain takes for one step.
    pub(super) async fn step_tokens_max(&self) -> Result<u64, Halt> {
        Ok(self.chain().await?.step_tokens_max)
    }

    /// The chain as it was when it was first asked for: what of it never changes.
    async fn chain(&self) -> Result<&Head, Halt> {
        if let Some(known) = self.chain.get() {
            return Ok(known);
        }
        let head = self.patiently(|| self.ledger.head()).await?;
        Ok(self.chain.get_or_init(|| async { head }).await)
    }

    async fn patiently<T, F>(&self, mut ask: impl FnMut() -> F) -> Result<T, Halt>
    where
        F: Future<Output = Result<T, ChainError>>,
    {
        error::patiently(self.pause_ms, &self.stop, &mut ask).await
    }
}

/// Whether a refusal with this code may pass by itself, so that the same bytes can still be included.
fn passes(code: &str) -> bool {
    const PASSING: [&str; 6] =
        ["POOL_FULL", "SENDER_LIMIT", "CLOCK_SKEW", "NONCE_TOO_HIGH", "FEE_ABOVE_MAX", "EVICTED"];
    PASSING.contains(&code)
}
