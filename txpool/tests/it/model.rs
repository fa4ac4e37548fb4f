//! The pool against a naive one that executes everything again at every step.
//!
//! Random wallets send random transactions, valid or not; blocks take some of them in an order of
//! their own, hold foreign ones, time runs out and credit accounts. After every step the answers,
//! the content, the order, the accounts and the reasons must be those of the naive pool.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use txpool::{Config, Found, Standing, Touched};
use types::{Account, Address, Amount, Body, CheckedTx, Code, Hash};

use crate::support::ledger::MAX_FEE;
use crate::support::make::run_of;
use crate::support::world::{Block, NOW};
use crate::support::{Ledger, Wallet, World};

const WALLETS: u8 = 4;
const WINDOW: u64 = 6;
/// Small, so that spends collide and refunds matter.
const BALANCE: u64 = 2_500;

#[derive(Clone, Copy, Debug)]
enum What {
    Transfer { to: u8, amount: u64 },
    Request,
    Claim(Index),
    Step(Index, u64),
    Finish(Index),
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
    /// Make a block: a seed for its order, how many of ten candidates it takes, what others sent.
    Block { order: u64, taken: u8, foreign: Vec<(u8, What)>, time_out: Option<Index>, credit: u8 },
    /// Ask for an account.
    Look(u8),
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        3 => (0..WALLETS, 1..1_500_u64).prop_map(|(to, amount)| What::Transfer { to, amount }),
        3 => Just(What::Request),
        4 => any::<Index>().prop_map(What::Claim),
        3 => (any::<Index>(), 0..4_u64).prop_map(|(run, step)| What::Step(run, step)),
        2 => any::<Index>().prop_map(What::Finish),
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
        |(order, taken, foreign, time_out, credit)| Action::Block {
            order,
            taken,
            foreign,
            time_out,
            credit,
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
    fn draft(&self, committed: &Ledger) -> Ledger {
        let mut draft = committed.clone();
        for tx in &self.pending {
            draft.execute(tx).expect("pending transactions are valid in order");
        }
        draft
    }

    fn submit(&mut self, tx: &CheckedTx, world: &World) -> Result<Standing, Code> {
        let committed = world.chain.state.lock().clone();
        if self.pending.contains(tx) {
            return Ok(Standing::Pending);
        }
        let key = (tx.from(), tx.nonce());
        if self.queued.get(&key) == Some(tx) {
            return Ok(Standing::Queued);
        }
        let mut draft = self.draft(&committed);
        let next = draft.account(tx.from()).nonce;
        if tx.nonce() < committed.account(tx.from()).nonce {
            let is_included = world.chain.included.lock().contains(&tx.hash());
            return if is_included { Ok(Standing::Included) } else { Err(Code::NonceStale) };
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
            return Ok(Standing::Queued);
        }
        draft.execute(tx).map_err(|rejection| rejection.code())?;
        self.accept(tx);
        self.pending.push(tx.clone());
        self.promote(&committed, &[tx.from()]);
        Ok(Standing::Pending)
    }

    /// Admits what has become executable, the earliest accepted first.
    fn promote(&mut self, committed: &Ledger, senders: &[Address]) {
        loop {
            let mut draft = self.draft(committed);
            let keys = senders.iter().map(|sender| (*sender, draft.account(*sender).nonce));
            let ready = keys.filter(|key| self.queued.contains_key(key));
            let first = ready.min_by_key(|key| self.arrivals[&self.queued[key].hash()]);
            let Some(tx) = first.and_then(|key| self.queued.remove(&key)) else { return };
            match draft.execute(&tx) {
                Ok(()) => self.pending.push(tx),
                Err(rejection) => self.lose(&tx, rejection.code()),
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

    fn committed(&mut self, committed: &Ledger, included: &[CheckedTx]) {
        self.pending.retain(|tx| !included.contains(tx));
        self.queued.retain(|_, tx| !included.contains(tx));
        let mut draft = committed.clone();
        let mut lost = Vec::new();
        for tx in std::mem::take(&mut self.pending) {
            let next = draft.account(tx.from()).nonce;
            if tx.nonce() > next {
                self.queued.insert((tx.from(), tx.nonce()), tx);
                continue;
            }
            match draft.execute(&tx) {
                Ok(()) => self.pending.push(tx),
                Err(rejection) => {
                    self.dropped.insert(tx.hash(), rejection.code());
                    lost.push((tx, rejection.code()));
                }
            }
        }
        for (tx, code) in lost {
            self.lose_queued_like(&tx, code);
        }
    }

    fn settle_queues(&mut self, committed: &Ledger, senders: &[Address]) {
        for sender in senders {
            let next = self.draft(committed).account(*sender).nonce;
            let stale: Vec<_> =
                self.queued.range((*sender, 0)..(*sender, next)).map(|(key, _)| *key).collect();
            for key in stale {
                let tx = self.queued.remove(&key).unwrap();
                self.dropped.insert(tx.hash(), Code::NonceStale);
            }
        }
        self.promote(committed, senders);
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
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        let wallets: Vec<Wallet> = (1..=WALLETS).map(Wallet::new).collect();
        let balances: Vec<_> = wallets.iter().map(|wallet| (wallet, BALANCE)).collect();
        let config = Config { nonce_window: WINDOW, ..config };
        let world = World::new(config, &balances);
        let (made, runs) = (Vec::new(), vec![Hash::ZERO]);
        Self { world, naive: Naive::default(), wallets, made, runs, clock: 0 }
    }

    fn make(&mut self, wallet: u8, nonce: u64, what: What) -> CheckedTx {
        self.clock += 1;
        let from = &self.wallets[usize::from(wallet)];
        let make = from.at(nonce).time(self.clock);
        let run = |index: Index| *index.get(&self.runs);
        let tx = match what {
            What::Transfer { to, amount } => make.transfer(&self.wallets[usize::from(to)], amount),
            What::Request => make.request(),
            What::Claim(index) => make.claim(run(index)),
            What::Step(index, step) => make.step(run(index), step),
            What::Finish(index) => make.finish(run(index)),
            What::Cancel(index) => make.cancel(run(index)),
            What::Turn(index) => make.turn(self.parent(index)),
            What::Blob(id) => make.blob(&format!("blob{id}")),
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
                let committed = self.world.chain.state.lock().clone();
                let next = self.naive.draft(&committed).account(address).nonce;
                let tx = self.make(*wallet, (next + offset).saturating_sub(2), *what);
                self.submit(&tx)?;
            }
            Action::Again(index) if !self.made.is_empty() => {
                let tx = index.get(&self.made).clone();
                self.submit(&tx)?;
            }
            Action::Again(_) => {}
            Action::Block { order, taken, foreign, time_out, credit } => {
                let included = self.execute_block(*order, *taken, foreign);
                let mut touched = Touched::default();
                let mut state = self.world.chain.state.lock();
                if let Some(run) = time_out.map(|index| *index.get(&self.runs))
                    && let Some(submitter) = state.time_out(run)
                {
                    touched.runs.insert(run);
                    touched.credit(submitter, Amount::new(MAX_FEE));
                }
                if let Some(wallet) = self.wallets.get(usize::from(*credit)) {
                    state.credit(wallet.address(), 900);
                    touched.credit(wallet.address(), Amount::new(900));
                }
                drop(state);
                self.commit(Block { included, touched });
            }
            Action::Look(wallet) => self.compare_account(*wallet)?,
        }
        self.compare()
    }

    fn submit(&mut self, tx: &CheckedTx) -> Result<(), TestCaseError> {
        let expected = self.naive.submit(tx, &self.world);
        let answer = self.world.submit(tx);
        let answer = answer.map(|a| a.standing).map_err(|rejection| rejection.code());
        prop_assert_eq!(expected, answer, "{} {}", tx.body().type_name(), tx.nonce());
        Ok(())
    }

    /// Executes a valid block of some candidates and some foreign transactions.
    fn execute_block(&mut self, order: u64, taken: u8, foreign: &[(u8, What)]) -> Vec<CheckedTx> {
        let mut candidates = self.naive.pending.clone();
        // An order of the block's own: by a hash of hash and seed.
        candidates
            .sort_by_key(|tx| Hash::digest_parts(&[tx.hash().as_bytes(), &order.to_le_bytes()]));
        let room = candidates.len() * usize::from(taken) / 10;
        let mut state = self.world.chain.state.lock().clone();
        let mut included = Vec::new();
        for (wallet, what) in foreign {
            let address = self.wallets[usize::from(*wallet)].address();
            let tx = self.make(*wallet, state.account(address).nonce, *what);
            if state.execute(&tx).is_ok() {
                included.push(tx);
            }
        }
        // Again and again, because what builds on others comes after them.
        for _ in 0..room {
            let fits = candidates.iter().position(|tx| state.clone().execute(tx).is_ok());
            let Some(position) = fits else { break };
            let tx = candidates.remove(position);
            state.execute(&tx).unwrap();
            included.push(tx);
        }
        *self.world.chain.state.lock() = state;
        included
    }

    fn commit(&mut self, block: Block) {
        let committed = self.world.chain.state.lock().clone();
        self.naive.committed(&committed, &block.included);
        let senders: Vec<Address> = self.wallets.iter().map(Wallet::address).collect();
        self.naive.settle_queues(&committed, &senders);
        self.world.commit_block(&block);
    }

    fn compare_account(&self, wallet: u8) -> Result<(), TestCaseError> {
        let wallet = &self.wallets[usize::from(wallet)];
        let committed = self.world.chain.state.lock().clone();
        let expected: Account = self.naive.draft(&committed).account(wallet.address());
        prop_assert_eq!(expected, self.world.account(wallet));
        Ok(())
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        let expected: Vec<Hash> = self.naive.pending.iter().map(|tx| tx.hash()).collect();
        prop_assert_eq!(expected, self.world.order());
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
            let dropped = match self.world.pool.find(tx.hash()) {
                Some(Found::Dropped(dropped)) => Some(dropped.reason.code()),
                Some(Found::Pending(_) | Found::Queued(_)) | None => None,
            };
            prop_assert_eq!(self.naive.dropped.get(&tx.hash()).copied(), dropped);
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
        let mut state = self.world.chain.state.lock().clone();
        for hash in self.world.order() {
            let tx = self.world.pool.lookup(hash).unwrap();
            prop_assert!(state.execute(&tx).is_ok(), "an executable transaction does not execute");
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
