//! The pool against a naive one that executes everything again at every step.
//!
//! Random wallets send random transactions, valid or not; blocks take some of them in an order of
//! their own, hold foreign ones, come when time has run out and pay a wallet that made them. After
//! every step the answers, the content, the order, the accounts and the reasons must be those of the
//! naive pool. Both execute by the rules of the ledger; the naive one does so as in a block.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use state::BlockBuilder;
use state::tables::Runs;
use txpool::{Config, TxStanding};
use types::{Account, Address, Body, CheckedTx, Code, Hash, Params};

use crate::support::ledger::{TestChain, account_in, execute, params, stranger};
use crate::support::make::{hashes, run_of};
use crate::support::world::NOW;
use crate::support::{Wallet, World};

const WALLETS: u8 = 4;
const WINDOW: u64 = 6;
/// Small, so that spends collide and refunds matter.
const BALANCE: u64 = 2_500;

#[derive(Clone, Copy, Debug)]
enum What {
    Transfer {
        to: u8,
        amount: u64,
    },
    Request,
    Claim(Index),
    Step(Index, u64),
    /// With the amounts of the steps so far, or of one more.
    Finish(Index, u64),
    Cancel(Index),
    Turn(Index),
    Blob(u8),
}

#[derive(Clone, Debug)]
enum Action {
    /// Submit with a nonce so far from the next one (from two below).
    Submit { wallet: u8, offset: u64, what: What },
    /// Submit a transaction again that was made before.
    Again(Index),
    /// Make a block: a seed for its order, how many of ten candidates it takes, what others sent,
    /// the run that it comes too late for, and which wallet makes it, if there is such a wallet.
    Block { order: u64, taken: u8, foreign: Vec<(u8, What)>, time_out: Option<Index>, proposer: u8 },
    /// Ask for an account.
    Look(u8),
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        3 => (0..WALLETS, 1..1_500_u64).prop_map(|(to, amount)| What::Transfer { to, amount }),
        3 => Just(What::Request),
        4 => any::<Index>().prop_map(What::Claim),
        3 => (any::<Index>(), 0..4_u64).prop_map(|(run, step)| What::Step(run, step)),
        2 => (any::<Index>(), prop_oneof![4 => Just(0), 1 => Just(1)])
            .prop_map(|(run, more)| What::Finish(run, more)),
        2 => any::<Index>().prop_map(What::Cancel),
        1 => any::<Index>().prop_map(What::Turn),
        1 => (0..3_u8).prop_map(What::Blob),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let offset = prop_oneof![6 => Just(2), 2 => Just(3), 1 => 0..10_u64];
    let submit = (0..WALLETS, offset, what()).prop_map(|(wallet, offset, what)| Action::Submit {
        wallet,
        offset,
        what,
    });
    let foreign = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec((0..WALLETS, what()), 1..3)
    ];
    let time_out = prop::option::weighted(0.2, any::<Index>());
    let block = (any::<u64>(), 0..=10_u8, foreign, time_out, 0..3 * WALLETS).prop_map(
        |(order, taken, foreign, time_out, proposer)| Action::Block {
            order,
            taken,
            foreign,
            time_out,
            proposer,
        },
    );
    prop_oneof![
        12 => submit,
        1 => any::<Index>().prop_map(Action::Again),
        2 => block,
        1 => (0..WALLETS).prop_map(Action::Look),
    ]
}

/// The naive pool: two lists, and the rules written down once more.
#[derive(Default)]
struct Naive {
    pending: Vec<CheckedTx>,
    queued: BTreeMap<(Address, u64), CheckedTx>,
    dropped: BTreeMap<Hash, Code>,
    /// The order of acceptance, which is the order of promotion, too.
    arrivals: BTreeMap<Hash, usize>,
    accepted: usize,
}

impl Naive {
    fn draft(&self, chain: &TestChain) -> BlockBuilder {
        let mut draft = chain.begin();
        for tx in &self.pending {
            execute(&mut draft, tx).expect("pending transactions are valid in order");
        }
        draft
    }

    /// The account after everything pending.
    fn account(&self, address: Address, chain: &TestChain) -> Account {
        account_in(self.draft(chain).state(), address)
    }

    fn submit(&mut self, tx: &CheckedTx, chain: &TestChain) -> Result<TxStanding, Code> {
        if self.pending.contains(tx) {
            return Ok(TxStanding::Pending);
        }
        let key = (tx.from(), tx.nonce());
        if self.queued.get(&key) == Some(tx) {
            return Ok(TxStanding::Queued);
        }
        let mut draft = self.draft(chain);
        let next = account_in(draft.state(), tx.from()).nonce;
        if tx.nonce() < chain.account(tx.from()).nonce {
            let is_included = chain.included.lock().contains(&tx.hash());
            return if is_included { Ok(TxStanding::Included) } else { Err(Code::NonceStale) };
        }
        if tx.nonce() < next {
            return Err(Code::NonceTaken);
        }
        if tx.nonce() >= next + WINDOW {
            return Err(Code::NonceTooHigh);
        }
        if self.queued.contains_key(&key) {
            return Err(Code::NonceTaken);
        }
        if tx.nonce() > next {
            self.accept(tx);
            self.queued.insert(key, tx.clone());
            return Ok(TxStanding::Queued);
        }
        execute(&mut draft, tx)?;
        self.accept(tx);
        self.pending.push(tx.clone());
        self.promote(chain, &[tx.from()]);
        Ok(TxStanding::Pending)
    }

    /// Admits what has become executable, the earliest accepted first.
    fn promote(&mut self, chain: &TestChain, senders: &[Address]) {
        loop {
            let mut draft = self.draft(chain);
            let next = |sender: &Address| account_in(draft.state(), *sender).nonce;
            let keys = senders.iter().map(|sender| (*sender, next(sender)));
            let ready = keys.filter(|key| self.queued.contains_key(key));
            let first = ready.min_by_key(|key| self.arrivals[&self.queued[key].hash()]);
            let Some(tx) = first.and_then(|key| self.queued.remove(&key)) else { return };
            match execute(&mut draft, &tx) {
                Ok(()) => self.pending.push(tx),
                Err(code) => self.lose(&tx, code),
            }
        }
    }

    fn accept(&mut self, tx: &CheckedTx) {
        self.dropped.remove(&tx.hash());
        self.accepted += 1;
        self.arrivals.insert(tx.hash(), self.accepted);
    }

    /// Drops a transaction, and what its sender has queued about the same thing.
    fn lose(&mut self, tx: &CheckedTx, code: Code) {
        self.dropped.insert(tx.hash(), code);
        self.lose_queued_like(tx, code);
    }

    fn lose_queued_like(&mut self, tx: &CheckedTx, code: Code) {
        let means_all = !matches!(
            code,
            Code::StepOutOfOrder
                | Code::SettlementMismatch
                | Code::InsufficientBalance
                | Code::NonceStale
                | Code::TurnNotFound
        );
        let lost: Vec<_> = self
            .queued
            .iter()
            .filter(|((sender, nonce), _)| *sender == tx.from() && *nonce > tx.nonce())
            .filter(|(_, other)| means_all && is_about_the_same(tx, other))
            .map(|(key, other)| (*key, other.hash()))
            .collect();
        for (key, hash) in lost {
            self.queued.remove(&key);
            self.dropped.insert(hash, code);
        }
    }

    fn committed(&mut self, chain: &TestChain) {
        let included = chain.included.lock();
        self.pending.retain(|tx| !included.contains(&tx.hash()));
        self.queued.retain(|_, tx| !included.contains(&tx.hash()));
        drop(included);
        let mut draft = chain.begin();
        let mut lost = Vec::new();
        for tx in std::mem::take(&mut self.pending) {
            let next = account_in(draft.state(), tx.from()).nonce;
            if tx.nonce() > next {
                self.queued.insert((tx.from(), tx.nonce()), tx);
                continue;
            }
            match execute(&mut draft, &tx) {
                Ok(()) => self.pending.push(tx),
                Err(code) => {
                    self.dropped.insert(tx.hash(), code);
                    lost.push((tx, code));
                }
            }
        }
        for (tx, code) in lost {
            self.lose_queued_like(&tx, code);
        }
    }

    fn settle_queues(&mut self, chain: &TestChain, senders: &[Address]) {
        for sender in senders {
            let next = self.account(*sender, chain).nonce;
            let stale: Vec<_> =
                self.queued.range((*sender, 0)..(*sender, next)).map(|(key, _)| *key).collect();
            for key in stale {
                let tx = self.queued.remove(&key).unwrap();
                self.dropped.insert(tx.hash(), Code::NonceStale);
            }
        }
        self.promote(chain, senders);
    }
}

fn is_about_the_same(one: &CheckedTx, other: &CheckedTx) -> bool {
    let blob = |tx: &CheckedTx| {
        if let Body::BlobInit(body) = tx.body() { Some(body.blob_id.clone()) } else { None }
    };
    let run = one.body().agent_run_id();
    (run.is_some() && run == other.body().agent_run_id())
        || (blob(one).is_some() && blob(one) == blob(other))
}

/// Both pools, and what was made so far.
struct Trial {
    world: World,
    naive: Naive,
    wallets: Vec<Wallet>,
    made: Vec<CheckedTx>,
    runs: Vec<Hash>,
    clock: u64,
}

impl Trial {
    fn new() -> Self {
        let wallets: Vec<Wallet> = (1..=WALLETS).map(Wallet::new).collect();
        let balances: Vec<_> = wallets.iter().map(|wallet| (wallet, BALANCE)).collect();
        let config = Config { nonce_window: WINDOW, ..Config::default() };
        let params = Params { max_reopens: 1, ..params() };
        let world = World::with(config, params, &balances, &[]);
        let (made, runs) = (Vec::new(), vec![Hash::ZERO]);
        Self { world, naive: Naive::default(), wallets, made, runs, clock: 0 }
    }

    /// A transaction by what the sender knows, which is everything in `draft`.
    fn make(&mut self, wallet: u8, nonce: u64, what: What, draft: &BlockBuilder) -> CheckedTx {
        self.clock += 1;
        let from = &self.wallets[usize::from(wallet)];
        let make = from.at(nonce).time(self.clock);
        let run = |index: Index| *index.get(&self.runs);
        let tx = match what {
            What::Transfer { to, amount } => make.transfer(&self.wallets[usize::from(to)], amount),
            What::Request => make.request(),
            What::Claim(index) => make.claim(run(index)),
            What::Step(index, step) => make.step(run(index), step),
            What::Finish(index, more) => {
                let known = draft.state().get::<Runs>(&run(index)).unwrap();
                make.finish(run(index), known.map_or(0, |run| run.step_count) + more)
            }
            What::Cancel(index) => make.cancel(run(index)),
            What::Turn(index) => make.turn(self.parent(index)),
            What::Blob(id) => make.blob(&format!("blob{id}"), 1),
        };
        if matches!(what, What::Request) {
            self.runs.push(run_of(&tx));
        }
        self.made.push(tx.clone());
        tx
    }

    /// Some turn made before, or none.
    fn parent(&self, index: Index) -> Option<Hash> {
        let is_turn = |tx: &&CheckedTx| matches!(tx.body(), Body::ChatTurn(_));
        let turns: Vec<Hash> = self.made.iter().filter(is_turn).map(|tx| tx.hash()).collect();
        turns.get(index.index(turns.len() + 1)).copied()
    }

    fn act(&mut self, action: &Action) -> Result<(), TestCaseError> {
        match action {
            Action::Submit { wallet, offset, what } => {
                let address = self.wallets[usize::from(*wallet)].address();
                let draft = self.naive.draft(&self.world.chain);
                let next = account_in(draft.state(), address).nonce;
                let tx = self.make(*wallet, (next + offset).saturating_sub(2), *what, &draft);
                self.submit(&tx)?;
            }
            Action::Again(index) if !self.made.is_empty() => {
                let tx = index.get(&self.made).clone();
                self.submit(&tx)?;
            }
            Action::Again(_) => {}
            Action::Block { order, taken, foreign, time_out, proposer } => {
                let stranger = stranger();
                let proposer = self.wallets.get(usize::from(*proposer)).unwrap_or(&stranger);
                let late = time_out.and_then(|it| self.world.chain.sweep_of(*it.get(&self.runs)));
                let mut block = self.world.chain.begin_at(late.unwrap_or(0), proposer);
                self.fill(&mut block, *order, *taken, foreign);
                self.commit(block);
            }
            Action::Look(wallet) => self.compare_account(*wallet)?,
        }
        self.compare()
    }

    fn submit(&mut self, tx: &CheckedTx) -> Result<(), TestCaseError> {
        let expected = self.naive.submit(tx, &self.world.chain);
        let answer = self.world.submit(tx);
        let answer = answer.map(|a| a.standing).map_err(|rejection| rejection.code());
        prop_assert_eq!(expected, answer, "{} {}", tx.body().type_name(), tx.nonce());
        Ok(())
    }

    /// Puts some candidates and some foreign transactions into a block.
    fn fill(&mut self, block: &mut BlockBuilder, order: u64, taken: u8, foreign: &[(u8, What)]) {
        let mut candidates = self.naive.pending.clone();
        // An order of the block's own: by a hash of hash and seed.
        candidates
            .sort_by_key(|tx| Hash::digest_parts(&[tx.hash().as_bytes(), &order.to_le_bytes()]));
        let room = candidates.len() * usize::from(taken) / 10;
        for (wallet, what) in foreign {
            let address = self.wallets[usize::from(*wallet)].address();
            let tx = self.make(*wallet, account_in(block.state(), address).nonce, *what, block);
            // What is refused is not in the block.
            execute(block, &tx).ok();
        }
        // Again and again, because what builds on others comes after them.
        for _ in 0..room {
            let fits = candidates.iter().position(|tx| execute(block, tx).is_ok());
            let Some(position) = fits else { break };
            candidates.remove(position);
        }
    }

    fn commit(&mut self, block: BlockBuilder) {
        self.world.commit_block(block);
        self.naive.committed(&self.world.chain);
        let senders: Vec<Address> = self.wallets.iter().map(Wallet::address).collect();
        self.naive.settle_queues(&self.world.chain, &senders);
    }

    fn compare_account(&self, wallet: u8) -> Result<(), TestCaseError> {
        let wallet = &self.wallets[usize::from(wallet)];
        let expected = self.naive.account(wallet.address(), &self.world.chain);
        prop_assert_eq!(expected, self.world.account(wallet));
        Ok(())
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(hashes(&self.naive.pending), self.world.order());
        for wallet in &self.wallets {
            let mut nonces = self.world.pool.content_from(wallet.address()).pending;
            nonces.dedup_by_key(|tx| tx.nonce());
            let of_sender = |tx: &&CheckedTx| tx.from() == wallet.address();
            let naive: Vec<_> = self.naive.pending.iter().filter(of_sender).cloned().collect();
            prop_assert_eq!(naive, nonces);
            let queued: Vec<_> = self.naive.queued.values().filter(of_sender).cloned().collect();
            prop_assert_eq!(queued, self.world.pool.content_from(wallet.address()).queued);
        }
        for tx in &self.made {
            let dropped = self.naive.dropped.get(&tx.hash()).copied();
            prop_assert_eq!(dropped, self.world.drop_code(tx));
        }
        let status = self.world.pool.status();
        prop_assert_eq!(self.naive.pending.len(), status.total.pending.count);
        prop_assert_eq!(self.naive.queued.len(), status.total.queued.count);
        Ok(())
    }

    /// At the end everything executable fits, in the pool's order, on the committed state; and an
    /// emptied pool has counted everything away.
    fn finish(&self) -> Result<(), TestCaseError> {
        for wallet in 0..WALLETS {
            self.compare_account(wallet)?;
        }
        let mut block = self.world.chain.begin();
        for hash in self.world.order() {
            let tx = self.world.pool.lookup(hash).unwrap();
            prop_assert_eq!(Ok(()), execute(&mut block, &tx));
        }
        self.world.pool.clear(NOW).unwrap();
        let stats = self.world.pool.stats();
        prop_assert_eq!((0, 0, 0, 0), (stats.pending, stats.queued, stats.bytes, stats.senders));
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_pool_is_the_naive_pool(actions in prop::collection::vec(action(), 1..60)) {
        let mut trial = Trial::new();
        for action in &actions {
            trial.act(action)?;
        }
        trial.finish()?;
    }
}
