//! A pool, its chain, and what it published.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use state::BlockBuilder;
use txpool::ports::{AdmitError, EventSink};
use txpool::{
    Accepted, BlockLimits, Committed, Config, Found, Offered, Pool, PoolEvent, Ports, Touched,
    TxStanding,
};
use types::{Account, Amount, BondChange, CheckedTx, Code, Forks, Hash, Params, Rejection};

use super::ledger::{TestChain, TestDraft, execute, params, stranger};
use super::make::Wallet;

pub(crate) const NOW: u64 = 2_000_000;
pub(crate) const SKEW: u64 = 120_000;
const NO_LIMITS: BlockLimits = BlockLimits { bytes: usize::MAX, count: usize::MAX };

/// Keeps every event.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    events: Mutex<Vec<PoolEvent>>,
    /// How often the pool began to have something executable.
    starts: AtomicUsize,
}

impl EventSink for Recorder {
    fn publish(&self, events: Vec<PoolEvent>) {
        self.events.lock().extend(events);
    }

    fn executable(&self) {
        self.starts.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) struct World {
    pub(crate) pool: Pool,
    pub(crate) chain: Arc<TestChain>,
    recorder: Arc<Recorder>,
}

fn ports(chain: &Arc<TestChain>, recorder: &Arc<Recorder>) -> Ports {
    let ledger = Box::new(TestDraft::new(Arc::clone(chain)));
    let (chain, events) = (Arc::clone(chain), Arc::clone(recorder));
    Ports { ledger, chain, events }
}

impl World {
    /// A pool over a chain on which each wallet has so much.
    pub(crate) fn new(config: Config, balances: &[(&Wallet, u64)]) -> Self {
        Self::with(config, params(), balances, &[])
    }

    /// The same on a chain with these parameters and validators.
    pub(crate) fn with(
        config: Config,
        params: Params,
        balances: &[(&Wallet, u64)],
        validators: &[(&Wallet, u64)],
    ) -> Self {
        Self::over(config, &TestChain::new(params, balances, validators))
    }

    /// A pool over a chain with the rules of v7 from this height on.
    pub(crate) fn v7_from(height: u64, config: Config, balances: &[(&Wallet, u64)]) -> Self {
        Self::v7_with(height, params(), config, balances)
    }

    /// The same on a chain with these parameters.
    pub(crate) fn v7_with(
        height: u64,
        params: Params,
        config: Config,
        balances: &[(&Wallet, u64)],
    ) -> Self {
        let forks = Forks { v7: Some(height), validator_vote: Some(0), ..Forks::default() };
        let validators = [(&Wallet::new(201), 1)];
        Self::over(config, &TestChain::with_forks(params, forks, balances, &validators))
    }

    /// A pool over a chain with the rules of v8, on which 5,000 are enough for an offer.
    pub(crate) fn v8(balances: &[(&Wallet, u64)]) -> Self {
        Self::v8_with(params(), balances)
    }

    /// The same on a chain with these parameters.
    pub(crate) fn v8_with(params: Params, balances: &[(&Wallet, u64)]) -> Self {
        let params = Params { min_bond: Amount::new(5_000), ..params };
        let forks = Forks { v7: Some(0), v8: Some(0), validator_vote: Some(0), ..Forks::default() };
        let validators = [(&Wallet::new(201), 1)];
        let chain = TestChain::with_forks(params, forks, balances, &validators);
        Self::over(Config::default(), &chain)
    }

    /// A pool over a chain that a test has made.
    pub(crate) fn over(config: Config, chain: &Arc<TestChain>) -> Self {
        let recorder = Arc::new(Recorder::default());
        let pool = Pool::new(config, SKEW, ports(chain, &recorder));
        Self { pool, chain: Arc::clone(chain), recorder }
    }

    /// Rich wallets of these numbers and a pool with the rules of v7.
    pub(crate) fn v7<const N: usize>(config: Config) -> (Self, [Wallet; N]) {
        let wallets: [Wallet; N] = Wallet::first();
        (Self::v7_from(0, config, &wallets.each_ref().map(|wallet| (wallet, 1_000_000))), wallets)
    }

    /// Rich wallets 1, 2, 3 and a pool with default limits.
    pub(crate) fn of_three() -> (Self, [Wallet; 3]) {
        Self::of_three_with(Config::default())
    }

    pub(crate) fn of_three_with(config: Config) -> (Self, [Wallet; 3]) {
        let wallets: [Wallet; 3] = Wallet::first();
        (Self::new(config, &wallets.each_ref().map(|wallet| (wallet, 1_000_000))), wallets)
    }

    /// The node starts again: the same chain, another pool, with a journal.
    pub(crate) fn restarted(&self, config: Config, journal: &Path) -> Self {
        let (chain, recorder) = (Arc::clone(&self.chain), Arc::new(Recorder::default()));
        let pool = Pool::with_journal(config, SKEW, ports(&chain, &recorder), journal).unwrap();
        Self { pool, chain, recorder }
    }

    pub(crate) fn submit(&self, tx: &CheckedTx) -> Result<Accepted, Rejection> {
        let mut answers = self.pool.submit(std::slice::from_ref(tx), NOW);
        answers.remove(0).map_err(|error| match error {
            AdmitError::Rejected(reason) => reason,
            AdmitError::Fault(fault) => unreachable!("the store of a test does not fail: {fault}"),
        })
    }

    /// Submits all; each must be accepted so.
    pub(crate) fn accept<T: Borrow<CheckedTx>>(&self, standing: TxStanding, txs: &[T]) {
        for tx in txs {
            let tx: &CheckedTx = tx.borrow();
            let expected = Accepted { hash: tx.hash(), standing, is_new: true };
            assert_eq!(Ok(expected), self.submit(tx), "nonce {}", tx.nonce());
        }
    }

    pub(crate) fn pending<T: Borrow<CheckedTx>>(&self, txs: &[T]) {
        self.accept(TxStanding::Pending, txs);
    }

    pub(crate) fn queued<T: Borrow<CheckedTx>>(&self, txs: &[T]) {
        self.accept(TxStanding::Queued, txs);
    }

    pub(crate) fn rejection(&self, tx: &CheckedTx) -> Code {
        self.submit(tx).unwrap_err().code()
    }

    /// All executable transactions in order.
    pub(crate) fn order(&self) -> Vec<Hash> {
        self.pool.candidates(NO_LIMITS).iter().map(|tx| tx.hash()).collect()
    }

    pub(crate) fn account(&self, wallet: &Wallet) -> Account {
        self.pool.account(wallet.address()).unwrap()
    }

    /// Commits a block of these transactions, which must be valid.
    pub(crate) fn commit<T: Borrow<CheckedTx>>(&self, txs: &[T]) {
        self.commit_in(self.chain.begin(), txs);
    }

    /// Commits a block of nothing.
    pub(crate) fn commit_empty(&self) {
        self.commit_block(self.chain.begin());
    }

    /// The same as [`Self::commit`] in a block that was begun.
    pub(crate) fn commit_in<T: Borrow<CheckedTx>>(&self, mut block: BlockBuilder, txs: &[T]) {
        for tx in txs {
            execute(&mut block, tx.borrow()).unwrap();
        }
        self.commit_block(block);
    }

    /// Offers so many to a block, until the pool has no more for it; answers what it has taken.
    pub(crate) fn fill(&self, block: &mut BlockBuilder, count: usize) -> Vec<Hash> {
        let (mut offered, mut included) = (Offered::default(), Vec::new());
        loop {
            let count = count.saturating_sub(block.len());
            let limits = BlockLimits { bytes: usize::MAX, count };
            let some = self.pool.more_candidates(limits, &mut offered);
            if some.is_empty() {
                self.pool.built(&offered);
                return included;
            }
            for tx in some {
                match execute(block, &tx) {
                    Ok(()) => included.push(tx.hash()),
                    Err(_) => offered.refuse(&tx),
                }
            }
        }
    }

    /// Commits a block and tells the pool.
    pub(crate) fn commit_block(&self, block: BlockBuilder) {
        self.commit_block_at(block, NOW);
    }

    /// Commits a block of these transactions that besides changes a miner's bond.
    pub(crate) fn commit_touching(&self, txs: &[&CheckedTx], miner: &Wallet, change: BondChange) {
        let mut block = self.chain.begin();
        for tx in txs {
            execute(&mut block, tx).unwrap();
        }
        let executed = self.chain.append(block);
        self.chain.change_bond(miner.address(), change);
        let mut touched = Touched::by(&executed.events);
        touched.bonds.insert(miner.address(), change);
        let block = Committed { included: &executed.block.transactions, touched: &touched };
        self.pool.committed(&block, NOW).unwrap();
    }

    pub(crate) fn commit_block_at(&self, block: BlockBuilder, now_ms: u64) {
        let executed = self.chain.append(block);
        let touched = Touched::by(&executed.events);
        let block = Committed { included: &executed.block.transactions, touched: &touched };
        self.pool.committed(&block, now_ms).unwrap();
    }

    /// A block of these transactions, so late that it sweeps a run.
    pub(crate) fn commit_time_out(&self, run: Hash, txs: &[&CheckedTx]) {
        let late = self.chain.sweep_of(run).unwrap();
        self.commit_in(self.chain.begin_at(late, &stranger()), txs);
    }

    /// The code for which the transaction was dropped.
    pub(crate) fn drop_code(&self, tx: &CheckedTx) -> Option<Code> {
        match self.pool.find(tx.hash()) {
            Some(Found::Dropped(dropped)) => Some(dropped.reason.code()),
            Some(Found::Pending(_) | Found::Waiting { .. } | Found::Queued(_)) | None => None,
        }
    }

    pub(crate) fn is_pending(&self, tx: &CheckedTx) -> bool {
        matches!(self.pool.find(tx.hash()), Some(Found::Pending(_)))
    }

    pub(crate) fn is_queued(&self, tx: &CheckedTx) -> bool {
        matches!(self.pool.find(tx.hash()), Some(Found::Queued(_)))
    }

    pub(crate) fn admits(&self) -> usize {
        self.chain.admits.load(Ordering::SeqCst)
    }

    /// How often the pool said that it has something executable now.
    pub(crate) fn starts(&self) -> usize {
        self.recorder.starts.load(Ordering::SeqCst)
    }

    /// What happened since the last call, in words.
    pub(crate) fn events(&self) -> Vec<(&'static str, Hash)> {
        let events = std::mem::take(&mut *self.recorder.events.lock());
        let word = |event: &PoolEvent| match event {
            PoolEvent::Accepted { tx, standing: TxStanding::Queued } => ("queued", tx.hash()),
            PoolEvent::Accepted { tx, .. } => ("pending", tx.hash()),
            PoolEvent::Promoted(tx) => ("promoted", tx.hash()),
            PoolEvent::Demoted(tx) => ("demoted", tx.hash()),
            PoolEvent::Dropped(dropped) => ("dropped", dropped.tx.hash()),
        };
        events.iter().map(word).collect()
    }
}
