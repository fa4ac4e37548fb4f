//! The miner's outbox: what its transactions are about, in the journal.
//!
//! No two transactions of one run are under way, so that none depends on another but by its nonce.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent::clock::Clock;
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use types::tx::Transfer;
use types::{Address, Amount, Body, Hash, Keypair};

use super::Parts;
use super::error::Halt;
use super::tx_outcome::{Verdict, settle, settle_call};
use crate::chain::{Funds, Ledger};
use crate::journal::call::CallEntry;
use crate::journal::entry::{Day, Entry, Parcel, Purpose, SweptLast};
use crate::journal::{Journal, JournalError, Spent};
use crate::outbox::{self, Rows, Setting, Slip};
use crate::ports::{Counters, Event};

/// The outbox of a miner's wallet.
#[derive(Debug)]
pub(crate) struct Outbox {
    key: Keypair,
    clock: Arc<dyn Clock>,
    ledger: Arc<dyn Ledger>,
    journal: Arc<Journal>,
    inner: outbox::Outbox,
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
        let (clock, ledger) = (Arc::clone(&parts.clock), Arc::clone(&parts.ledger));
        let journal = Arc::clone(&parts.journal);
        let rows = Arc::new(Written {
            clock: Arc::clone(&clock),
            journal: Arc::clone(&journal),
            counters: Arc::clone(&parts.counters),
        });
        let setting = Setting {
            key: parts.key.clone(),
            clock: Arc::clone(&clock),
            ledger: Arc::clone(&ledger),
            rows,
            pause_ms: parts.config.pause_ms,
            stop,
        };
        let inner = outbox::Outbox::new(setting);
        Self { key: parts.key.clone(), clock, ledger, journal, inner }
    }

    /// Sends what was signed and whose fate is not known, as it is. Only while nothing is posted.
    pub(super) async fn recover(&self) -> Result<(), Halt> {
        let slips: Vec<_> = self.journal.outbox()?.iter().map(slip).collect();
        self.inner.recover(&slips).await
    }

    /// The same for one run or call, by its worker; how many there were.
    pub(crate) async fn resend(&self, run: &Hash) -> Result<usize, Halt> {
        let parcels = self.journal.outbox()?;
        let mut sent = 0_usize;
        for parcel in parcels.iter().filter(|parcel| parcel.run == *run) {
            self.inner.deliver(&slip(parcel)).await?;
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
        let turn = self.inner.turn().await?;
        let slip = turn.sign(body).await?;
        let parcel = parcel(&slip, about.id(), purpose);
        match about {
            About::Run(entry) => self.journal.sign(Some(entry), &parcel).await?,
            About::Call(entry) => self.journal.sign_call(entry, &parcel).await?,
            About::Wallet => self.journal.sign(None, &parcel).await?,
        }
        turn.send(&slip).await
    }

    /// Moves money to an address, `micro` of the wallet's funds, if no transaction is under way and
    /// the node answers; none if nothing was sent. The sender pays no fee.
    pub(super) async fn post_transfer(
        &self,
        to: Address,
        micro: impl FnOnce(&Funds) -> Option<u64>,
    ) -> Result<Option<Verdict>, Halt> {
        let mut amount = None;
        let wanted = async || {
            let funds = self.ledger.funds(&self.key.address()).await;
            amount = funds.ok().as_ref().and_then(micro);
            amount.is_some()
        };
        let Some(turn) = self.inner.turn_alone(wanted).await? else { return Ok(None) };
        let Some(micro) = amount else { return Ok(None) };
        let body = Body::Transfer(Transfer::new(to, Amount::new(micro), Amount::ZERO));
        let slip = turn.sign(&body).await?;
        let parcel = parcel(&slip, Hash::ZERO, Purpose::Sweep { to, micro });
        self.journal.sign_sweep(&parcel, self.clock.now_ms()).await?;
        turn.send(&slip).await.map(Some)
    }

    /// The most tokens that the chain takes for one step.
    pub(super) async fn step_tokens_max(&self) -> Result<u64, Halt> {
        Ok(self.inner.chain().await?.step_tokens_max)
    }
}

fn slip(parcel: &Parcel) -> Slip {
    let Parcel { nonce, hash, text, run: _, purpose: _ } = parcel;
    Slip { nonce: *nonce, hash: *hash, text: text.clone() }
}

fn parcel(slip: &Slip, run: Hash, purpose: Purpose) -> Parcel {
    let Slip { nonce, hash, text } = slip;
    Parcel { nonce: *nonce, hash: *hash, text: text.clone(), run, purpose }
}

/// The journal as the outbox writes to it.
#[derive(Debug)]
struct Written {
    clock: Arc<dyn Clock>,
    journal: Arc<Journal>,
    counters: Arc<dyn Counters>,
}

#[async_trait]
impl Rows for Written {
    fn nonces(&self) -> Result<BTreeSet<u64>, JournalError> {
        self.journal.nonces()
    }

    async fn fill(&self, filler: &Slip) -> Result<(), JournalError> {
        let parcel = parcel(filler, Hash::ZERO, Purpose::Filler);
        self.journal.sign(None, &parcel).await
    }

    async fn resolve(&self, slip: &Slip, verdict: &Verdict) -> Result<(), JournalError> {
        let Some(parcel) = self.journal.parcel(slip.nonce)? else { return Ok(()) };
        let (run, nonce) = (parcel.run, parcel.nonce);
        match verdict {
            Verdict::Included { .. } => {
                tracing::info!(%run, nonce, tx = %parcel.hash, purpose = ?parcel.purpose, "included");
            }
            Verdict::Refused(code) => {
                tracing::warn!(%run, nonce, code, purpose = ?parcel.purpose, "refused");
            }
        }
        if let Purpose::Sweep { micro, .. } = parcel.purpose {
            return self.swept(&parcel, micro, verdict).await;
        }
        self.worked(&parcel, &parcel.purpose, verdict).await
    }
}

impl Written {
    async fn swept(
        &self,
        parcel: &Parcel,
        micro: u64,
        verdict: &Verdict,
    ) -> Result<(), JournalError> {
        let last = match verdict {
            Verdict::Included { .. } => SweptLast::Included { tx: parcel.hash, micro },
            Verdict::Refused(code) => SweptLast::Refused { code: code.clone() },
        };
        self.journal.resolve_sweep(parcel.nonce, last).await?;
        if verdict.is_included() {
            self.counters.count(Event::Swept { micro });
        }
        Ok(())
    }

    async fn worked(
        &self,
        parcel: &Parcel,
        purpose: &Purpose,
        verdict: &Verdict,
    ) -> Result<(), JournalError> {
        let (run, nonce) = (parcel.run, parcel.nonce);
        if let Purpose::Commit { round } | Purpose::Reveal { round } = *purpose
            && let Some(entry) = self.journal.call(&run, round)?
        {
            let entry = settle_call(&entry, verdict);
            return self.journal.resolve_call(&entry, nonce).await;
        }
        let now_ms = self.clock.now_ms();
        let Some(entry) = self.journal.entry(&run)? else {
            let spent = Spent { now_ms, add: Day::default() };
            return self.journal.resolve(None, nonce, spent).await;
        };
        let step = self.journal.step(&run, entry.steps)?;
        let (entry, add) = settle(&entry, step.as_ref(), purpose, verdict);
        self.journal.resolve(Some(&entry), nonce, Spent { now_ms, add }).await?;
        self.count(purpose, verdict, add);
        Ok(())
    }

    fn count(&self, purpose: &Purpose, verdict: &Verdict, add: Day) {
        if add.claims > 0 {
            self.counters.count(Event::Claimed);
        }
        if add.lost > 0 {
            self.counters.count(Event::LostRace);
        }
        if let (Purpose::Step { tokens }, Verdict::Included { .. }) = (purpose, verdict) {
            self.counters.count(Event::Step { tokens: *tokens });
        }
    }
}
