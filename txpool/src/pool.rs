//! The pool as the node holds it: one lock, and the journal beside it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use types::{Account, Address, CheckedTx, Code, Hash, Rejection, Transaction};

use crate::core::{Committed, Core, Found, Page, SenderContent};
use crate::entries::Entry;
use crate::error::{JournalError, PoolFault};
use crate::journal::Journal;
use crate::market::Offered;
use crate::order::BlockLimits;
use crate::ports::{AdmitError, CommittedChain, EventSink, PendingLedger};
use crate::tally::{Stats, Status};
use crate::{Accepted, Config};

/// Transactions of strangers that are looked at before others get the lock: each may read its sender's
/// account from the disk, some times.
const GLANCE_TXS: usize = 16;

/// Transactions that are taken before others get the lock. In a full pool each takes a tenth of a
/// millisecond, and the most that one may take is a millisecond.
const TAKEN_AT_ONCE: usize = 8;

/// The same in bytes of transactions: the checks that take long are of long transactions.
const BYTES_AT_ONCE: usize = 65_536;

/// Names that are looked up before others get the lock.
const NAMES_AT_ONCE: usize = 256;

/// What the pool works with.
pub struct Ports {
    /// The draft over the committed state.
    pub ledger: Box<dyn PendingLedger>,
    /// The committed chain.
    pub chain: Arc<dyn CommittedChain>,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// The transaction pool. Every method may be called from any thread.
pub struct Pool {
    core: Mutex<Core>,
    chain: Arc<dyn CommittedChain>,
    events: Arc<dyn EventSink>,
    pending: AtomicUsize,
    has_offers: AtomicBool,
    has_unsettled: AtomicBool,
    pub(crate) journal: Option<Mutex<Journal>>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = self.pending.load(Ordering::Relaxed);
        f.debug_struct("Pool").field("pending", &pending).finish_non_exhaustive()
    }
}

impl Pool {
    /// An empty pool without a journal. `max_clock_skew_ms` is the genesis parameter
    /// `maxClockSkewMs`.
    #[must_use]
    pub fn new(config: Config, max_clock_skew_ms: u64, ports: Ports) -> Self {
        let Ports { ledger, chain, events } = ports;
        Self {
            core: Mutex::new(Core::new(config, max_clock_skew_ms, ledger)),
            chain,
            events,
            pending: AtomicUsize::new(0),
            has_offers: AtomicBool::new(false),
            has_unsettled: AtomicBool::new(false),
            journal: None,
        }
    }

    /// An empty pool with a journal in the directory `journal`, which is made if it is missing.
    /// Follow with [`Pool::restore`] before anything is submitted.
    ///
    /// # Errors
    /// [`JournalError`] if the directory cannot be made or read.
    pub fn with_journal(
        config: Config,
        max_clock_skew_ms: u64,
        ports: Ports,
        journal: &Path,
    ) -> Result<Self, JournalError> {
        let journal = Some(Mutex::new(Journal::open(journal)?));
        Ok(Self { journal, ..Self::new(config, max_clock_skew_ms, ports) })
    }

    /// Takes transactions, or says of each why not; the answers are in the order of `txs`, and each
    /// is the one that the transaction would get if they came one by one. `now_ms` is the node's
    /// clock, in milliseconds since 1970.
    ///
    /// A fault of the ledger is the answer for the one transaction that met it, which was not taken. The
    /// lock goes to whoever waits for it every few transactions.
    #[must_use]
    pub fn submit(&self, txs: &[CheckedTx], now_ms: u64) -> Vec<Result<Accepted, AdmitError>> {
        let chain = self.chain.as_ref();
        self.take(txs, |core, tx| core.submit(tx, now_ms, chain))
    }

    /// [`Pool::submit`] for transactions that were in the pool before: the base fee may be too high for
    /// them.
    pub(crate) fn resubmit(
        &self,
        txs: &[CheckedTx],
        now_ms: u64,
    ) -> Vec<Result<Accepted, AdmitError>> {
        let chain = self.chain.as_ref();
        self.take(txs, |core, tx| core.resubmit(tx, now_ms, chain))
    }

    /// Does the same with each transaction, a slice of them at a time; the answers are in their order.
    fn take<T>(&self, txs: &[CheckedTx], one: impl Fn(&mut Core, &CheckedTx) -> T) -> Vec<T> {
        let mut answers = Vec::with_capacity(txs.len());
        let mut left = txs;
        while !left.is_empty() {
            let (slice, rest) = left.split_at(slice_of(left));
            slice.iter().for_each(|tx| self.chain.prepare(tx));
            self.operate(|core| answers.extend(slice.iter().map(|tx| one(core, tx))));
            left = rest;
        }
        answers
    }

    /// Whether [`Pool::settle`] has something to do. Takes no lock.
    #[must_use]
    pub fn has_unsettled(&self) -> bool {
        self.has_unsettled.load(Ordering::Acquire)
    }

    /// Goes on with building the draft anew, if that has to be done: a quarter of
    /// [`Config::rebuild_slice`]. Answers whether there is more to do. To be called again and again,
    /// often while there is.
    ///
    /// # Errors
    /// [`PoolFault`] if the ledger failed; what was not done is left for the next call.
    pub fn settle(&self, now_ms: u64) -> Result<bool, PoolFault> {
        if !self.has_unsettled() {
            return Ok(false);
        }
        self.operate(|core| core.settle(now_ms))
    }

    /// Why each of the transactions would be refused for its nonce or its sender's balance as things
    /// are, whatever its signature is worth: so a transaction of somebody without money costs no look
    /// at its signature. None if it could be taken or is known, and if the ledger failed, which it does
    /// again when the transaction is to be taken. A nonce is stale too if a block holds the
    /// transaction. Who is paid by one of the transactions may spend that in a later one.
    ///
    /// Nothing else is looked at: a claim may come together with the request that it claims. The lock is
    /// let go every few transactions.
    #[must_use]
    pub fn glance(&self, txs: &[CheckedTx]) -> Vec<Option<Rejection>> {
        let (mut paid, mut rejections) = (BTreeSet::new(), Vec::with_capacity(txs.len()));
        for some in txs.chunks(GLANCE_TXS) {
            let mut core = self.core();
            for tx in some {
                let rejection = core.glance(tx, &paid).ok().flatten();
                if rejection.is_none() {
                    paid.extend(tx.body().payee(tx.from()));
                }
                rejections.push(rejection);
            }
        }
        rejections
    }

    /// Follows a block that was committed: removes what it holds, drops what became invalid, and
    /// promotes what became executable; of what has to be executed again for that, only a quarter of
    /// [`Config::rebuild_slice`], the rest by [`Pool::settle`]. To be called once for every block, in order, after the
    /// state that [`PendingLedger`] reads has moved.
    ///
    /// # Errors
    /// [`PoolFault`] if the ledger failed.
    pub fn committed(&self, block: &Committed<'_>, now_ms: u64) -> Result<(), PoolFault> {
        self.operate(|core| core.committed(block, now_ms))
    }

    /// Follows a chain that has moved by many blocks at once, after the state that
    /// [`PendingLedger`] reads has moved: forgets what stands in blocks, drops what became invalid,
    /// and promotes what became executable.
    ///
    /// # Errors
    /// [`PoolFault`] if the ledger or the chain failed.
    pub fn chain_moved(&self, now_ms: u64) -> Result<(), PoolFault> {
        let mut included = Vec::new();
        for (_, hash) in self.all_names() {
            if self.chain.is_included(hash)? {
                included.push(hash);
            }
        }
        self.operate(|core| core.chain_moved(&included, now_ms))
    }

    /// Transactions for the next block, in the order in which they are to be executed, within
    /// `limits`. While there are more than fit, no sender gets more than its share
    /// ([`Config::block_share`]); from fork v7 on those are chosen that are worth the most, and shares
    /// count among what is worth the same. They stay in the pool until [`Pool::committed`]; one that fails on
    /// the block's draft (because it builds on one that is not in the block) is simply left out of
    /// the block.
    #[must_use]
    pub fn candidates(&self, limits: BlockLimits) -> Vec<CheckedTx> {
        self.core().candidates(limits, &mut Offered::default())
    }

    /// [`Pool::candidates`] for a block of which some were `offered` already: more for the room that is
    /// left, in order. None if there is nothing more; before fork v7 there never is.
    #[must_use]
    pub fn more_candidates(&self, limits: BlockLimits, offered: &mut Offered) -> Vec<CheckedTx> {
        self.core().candidates(limits, offered)
    }

    /// A block was built of what was offered. What it could not take is not offered again before a block
    /// with transactions, or a lower base fee, may have brought what is missing; and if something was
    /// evicted on which it may have built, it is executed again ([`Pool::settle`]).
    pub fn built(&self, offered: &Offered) {
        if offered.has_refused() {
            self.operate(|core| core.built(offered));
        }
    }

    /// How many transactions are executable, without those that wait for the base fee to fall. Takes no
    /// lock.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.pending.load(Ordering::Acquire)
    }

    /// Whether there is something that the next block could take. Takes no lock.
    #[must_use]
    pub fn has_offers(&self) -> bool {
        self.has_offers.load(Ordering::Acquire)
    }

    /// What the pool knows of a transaction.
    #[must_use]
    pub fn find(&self, hash: Hash) -> Option<Found> {
        self.core().query().find(hash)
    }

    /// A pooled transaction.
    #[must_use]
    pub fn lookup(&self, hash: Hash) -> Option<CheckedTx> {
        self.core().query().entry(hash).map(|entry| entry.tx.clone())
    }

    /// The pooled transactions of these names; the answers are in the order of `hashes`.
    #[must_use]
    pub fn lookup_all(&self, hashes: &[Hash]) -> Vec<Option<CheckedTx>> {
        self.look_up(hashes, |entry| entry.map(|entry| entry.tx.clone()))
    }

    /// Which of the transactions are in the pool and were accepted at `time_ms` or before, in
    /// milliseconds since 1970 by this node's clock; the answers are in the order of `hashes`.
    #[must_use]
    pub fn held_since(&self, hashes: &[Hash], time_ms: u64) -> Vec<bool> {
        self.look_up(hashes, |entry| entry.is_some_and(|it| it.accepted_ms <= time_ms))
    }

    /// Which of the transactions are in the pool; the answers are in the order of `hashes`.
    #[must_use]
    pub fn holds(&self, hashes: &[Hash]) -> Vec<bool> {
        self.look_up(hashes, |entry| entry.is_some())
    }

    /// What the answer is to each name. The lock is let go every [`NAMES_AT_ONCE`] names.
    fn look_up<T>(&self, hashes: &[Hash], answer: impl Fn(Option<&Entry>) -> T) -> Vec<T> {
        let mut answers = Vec::with_capacity(hashes.len());
        for some in hashes.chunks(NAMES_AT_ONCE) {
            let core = self.core();
            answers.extend(some.iter().map(|hash| answer(core.query().entry(*hash))));
        }
        answers
    }

    /// Which of the transactions of a block are in the pool, with the same signature: these need no
    /// check by [`types::check::verify`]. The answers are in the order of `txs`.
    #[must_use]
    pub fn recognise<'a>(
        &self,
        txs: impl IntoIterator<Item = &'a Transaction>,
    ) -> Vec<Option<CheckedTx>> {
        let core = self.core();
        txs.into_iter().map(|tx| core.query().recognise(tx)).collect()
    }

    /// The account with everything executable applied: its nonce is the next to use, its balance
    /// what can still be spent. While the draft is built anew ([`Pool::has_unsettled`]), the balance
    /// lacks what those transactions pay and cost that were not executed again yet, so it may be too
    /// high or too low.
    ///
    /// # Errors
    /// [`PoolFault`] if the ledger failed.
    pub fn account(&self, address: Address) -> Result<Account, PoolFault> {
        self.core().query().account(address)
    }

    /// Counts and bytes, in total and by type.
    #[must_use]
    pub fn status(&self) -> Status {
        self.core().query().status()
    }

    /// Figures for monitoring.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core().query().stats()
    }

    /// The transactions of the first senders after `after`, by address: of at most `senders_max`, and of
    /// no more senders once there are some hundred transactions, for the sake of all who wait for the
    /// pool.
    #[must_use]
    pub fn content(&self, after: Option<Address>, senders_max: usize) -> Page<SenderContent> {
        self.core().query().content(after, senders_max)
    }

    /// The names of the transactions of the first senders after `after`, by address and nonce: of whole
    /// senders, until there are some hundred.
    #[must_use]
    pub fn names(&self, after: Option<Address>) -> Page<(Address, Hash)> {
        self.core().query().names(after)
    }

    /// Senders and names of all transactions, by address and nonce. The lock is let go again and again,
    /// so what comes or goes meanwhile may be in it or not.
    #[must_use]
    pub fn all_names(&self) -> Vec<(Address, Hash)> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.names(after);
            all.extend(page.items);
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    }

    /// The first executable transactions, in the order in which they are to be executed, with those that
    /// wait for the base fee to fall.
    #[must_use]
    pub fn pending(&self, most: usize) -> Vec<CheckedTx> {
        self.core().query().pending(most)
    }

    /// The transactions of one sender.
    #[must_use]
    pub fn content_from(&self, address: Address) -> SenderContent {
        self.core().query().content_from(address)
    }

    /// Drops everything, for an operator; answers how much it was. A restart does not undo it once the
    /// journal has been written again ([`Pool::write_journal`]).
    ///
    /// # Errors
    /// [`PoolFault`] if the ledger failed.
    pub fn clear(&self, now_ms: u64) -> Result<usize, PoolFault> {
        let (got, expected) = ("emptied by the operator", "the transaction to be sent again");
        let reason = Rejection::new(Code::PoolFull, "pool", got, expected);
        self.operate(|core| core.clear(&reason, now_ms))
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock()
    }

    /// Runs an operation under the lock, publishes what it did, and hands the lock to whoever waits for it.
    fn operate<T>(&self, operation: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.core.lock();
        let answer = operation(&mut core);
        let has_offers = core.query().has_offers();
        self.pending.store(core.query().pending_count(), Ordering::Release);
        self.has_unsettled.store(core.has_unsettled(), Ordering::Release);
        if !self.has_offers.swap(has_offers, Ordering::AcqRel) && has_offers {
            self.events.executable();
        }
        let events = core.take_events();
        if !events.is_empty() {
            self.events.publish(events);
        }
        MutexGuard::unlock_fair(core);
        answer
    }
}

/// How many of the transactions, which are some, are taken before others get the lock.
fn slice_of(txs: &[CheckedTx]) -> usize {
    let mut bytes = 0_usize;
    let fit = txs.iter().take(TAKEN_AT_ONCE).take_while(|tx| {
        bytes = bytes.saturating_add(tx.content_bytes());
        bytes <= BYTES_AT_ONCE
    });
    fit.count().max(1)
}
