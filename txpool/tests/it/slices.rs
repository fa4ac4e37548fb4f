//! The draft is built anew in slices: what the pool says meanwhile, and that nothing is lost.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;
use txpool::{BlockLimits, Config, Found};
use types::{Account, Amount, CheckedTx, Code, Hash};

use crate::support::make::{hashes, run_of};
use crate::support::world::NOW;
use crate::support::{Wallet, World};

const EVERYTHING: BlockLimits = BlockLimits { bytes: usize::MAX, count: usize::MAX };

/// Looks at so many transactions with a block, and at a time in between.
fn slices_of(count: usize) -> Config {
    Config { rebuild_slice: 4 * count, ..Config::default() }
}

/// Settles everything; answers in how many calls.
fn settle_all(world: &World) -> usize {
    (1..).find(|_| !world.pool.settle(NOW).unwrap()).unwrap()
}

/// A block that has nothing of the pool although the pool has something: the draft is built anew.
fn force_rebuild(world: &World) {
    world.commit_empty();
}

/// A pool that looks at so many at a time and builds its draft anew, with so many of the first wallet.
fn rebuilding(slice: usize, count: u64) -> (World, [Wallet; 3], Vec<CheckedTx>) {
    let (world, wallets) = World::of_three_with(slices_of(slice));
    let txs = transfers(&wallets[0], &wallets[1], count);
    world.pending(&txs);
    force_rebuild(&world);
    (world, wallets, txs)
}

fn transfers(from: &Wallet, to: &Wallet, count: u64) -> Vec<CheckedTx> {
    from.each(0..count, |it| it.transfer(to, 1))
}

#[test]
fn a_commit_executes_no_more_than_a_slice_and_the_rest_follows() {
    let (world, [a, b, _]) = World::of_three_with(slices_of(8));
    let txs = transfers(&a, &b, 20);
    world.pending(&txs);
    let before = world.admits();
    force_rebuild(&world);
    assert_eq!(before + 8, world.admits());
    assert_eq!(20, world.pool.pending_count());
    assert_eq!(8, world.order().len(), "what was executed again can be proposed");
    assert_eq!(2, settle_all(&world), "eight at a time");
    assert_eq!(hashes(&txs), world.order());
    assert_eq!(before + 20, world.admits());
}

#[test]
fn the_first_slice_has_something_of_everybody() {
    let config = Config { sender_count_max: 1_000, block_share: 2, ..slices_of(130) };
    let (world, [a, b, c]) = World::of_three_with(config);
    let many = transfers(&a, &b, 300);
    let few = [b.at(0).transfer(&a, 1), c.at(0).transfer(&a, 1)];
    world.pending(&many);
    world.pending(&few);
    force_rebuild(&world);
    let order = world.order();
    assert!(few.iter().all(|tx| order.contains(&tx.hash())), "the last ones are there");
    assert_eq!(130, order.len());
}

#[test]
fn meanwhile_a_sender_goes_on_with_its_next_nonce() {
    let (world, [a, b, c], _) = rebuilding(4, 10);
    assert_eq!(10, world.account(&a).nonce);
    assert_eq!(Code::NonceTaken, world.rejection(&a.at(9).transfer(&b, 2)));
    let (next, after) = (a.at(10).transfer(&b, 1), a.at(11).transfer(&b, 1));
    world.queued(&[&after]);
    world.pending(&[&next]);
    assert!(world.is_pending(&after), "the gap has closed");
    let other = c.at(0).transfer(&b, 1);
    world.pending(&[&other]);
    assert!(world.order().contains(&other.hash()), "it is executed at once");
    settle_all(&world);
    assert_eq!(13, world.order().len());
    assert_eq!(12, world.account(&a).nonce);
}

#[test]
fn what_was_taken_unseen_is_dropped_with_its_reason() {
    let (world, [a, b, _], _) = rebuilding(4, 10);
    let (dear, after) = (a.at(10).transfer(&b, 5_000_000), a.at(11).transfer(&b, 1));
    world.pending(&[&dear, &after]);
    settle_all(&world);
    assert_eq!(Some(Code::InsufficientBalance), world.drop_code(&dear));
    assert!(world.is_queued(&after));
    assert_eq!(10, world.account(&a).nonce);
}

#[test]
fn a_block_with_what_is_to_be_executed_again_is_followed_without_beginning_anew() {
    let (world, [a, _, _], txs) = rebuilding(8, 20);
    let rebuilds = world.pool.stats().rebuilds_total;
    // Eight are settled; the block has two more.
    world.commit(&txs[..10]);
    assert_eq!(rebuilds, world.pool.stats().rebuilds_total);
    settle_all(&world);
    assert_eq!(hashes(&txs[10..]), world.order());
    assert_eq!(20, world.account(&a).nonce);
}

#[test]
fn foreign_transactions_that_fit_need_no_rebuild() {
    let (world, [a, b, c]) = World::of_three();
    let ours = [a.at(0).transfer(&b, 10), a.at(1).transfer(&b, 10)];
    world.pending(&ours);
    let foreign = [b.at(0).transfer(&c, 5), c.at(0).request(), c.at(1).transfer(&a, 1)];
    let before = world.admits();
    world.commit(&[&foreign[0], &ours[0], &foreign[1], &foreign[2]]);
    assert_eq!(0, world.pool.stats().rebuilds_total);
    assert_eq!(before + 3, world.admits());
    for wallet in [&b, &c] {
        let Account { balance, nonce } = world.chain.account(wallet.address());
        let pending = if wallet.address() == b.address() { 10 } else { 0 };
        let balance = balance.checked_add(Amount::new(pending)).unwrap();
        assert_eq!(Account { balance, nonce }, world.account(wallet));
    }
}

#[test]
fn a_fault_while_building_anew_loses_nothing() {
    use std::sync::atomic::Ordering;
    let (world, ..) = rebuilding(4, 10);
    world.chain.is_broken.store(true, Ordering::SeqCst);
    world.pool.settle(NOW).unwrap_err();
    world.chain.is_broken.store(false, Ordering::SeqCst);
    settle_all(&world);
    assert_eq!(10, world.order().len());
}

#[test]
fn a_run_that_a_sweep_ended_drops_what_is_about_it_in_its_turn() {
    let (world, [a, b, c]) = World::of_three_with(slices_of(2));
    let request = a.at(0).request();
    let run = run_of(&request);
    let claim = b.at(0).claim(run);
    world.pending(&[&request, &claim]);
    world.commit(&[&request, &claim]);
    let others = transfers(&c, &a, 6);
    world.pending(&others);
    let (step, finish) = (b.at(1).step(run, 0), b.at(2).finish(run, 1));
    world.pending(&[&step, &finish]);
    world.commit_time_out(run, &[]);
    settle_all(&world);
    assert_eq!([Some(Code::RunNotActive); 2], [world.drop_code(&step), world.drop_code(&finish)]);
    assert_eq!(6, world.order().len());
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Transfer {
        from: u8,
        to: u8,
        amount: u64,
    },
    Request(u8),
    Turn(u8, Index),
    /// A block takes so many of ten candidates.
    Block(u8),
    /// A block takes what others sent, of this wallet, if that is valid beside the pool.
    Foreign(u8),
    Settle,
}

const WALLETS: u8 = 4;

fn action() -> impl Strategy<Value = Action> {
    let wallet = || 0..WALLETS;
    prop_oneof![
        6 => (wallet(), wallet(), 1..400_u64)
            .prop_map(|(from, to, amount)| Action::Transfer { from, to, amount }),
        2 => wallet().prop_map(Action::Request),
        2 => (wallet(), any::<Index>()).prop_map(|(from, parent)| Action::Turn(from, parent)),
        3 => (0..=10_u8).prop_map(Action::Block),
        1 => wallet().prop_map(Action::Foreign),
        2 => Just(Action::Settle),
    ]
}

/// A pool whose draft is built anew all the time, and what was executed on it once.
struct Trial {
    world: World,
    wallets: Vec<Wallet>,
    executed: BTreeSet<Hash>,
    included: BTreeSet<Hash>,
    turns: Vec<Hash>,
    clock: u64,
}

impl Trial {
    fn new(slice: usize) -> Self {
        let wallets: Vec<Wallet> = (1..=WALLETS).map(Wallet::new).collect();
        let balances: Vec<_> = wallets.iter().map(|wallet| (wallet, 2_500)).collect();
        let world = World::new(slices_of(slice), &balances);
        let (executed, included, turns) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        Self { world, wallets, executed, included, turns, clock: 0 }
    }

    fn submit(&mut self, from: u8, make: impl FnOnce(&Self, &Wallet, u64, u64) -> CheckedTx) {
        self.clock += 1;
        let wallet = &self.wallets[usize::from(from)];
        let tx = make(self, wallet, self.world.account(wallet).nonce, self.clock);
        if self.world.submit(&tx).is_ok() && matches!(tx.body(), types::Body::ChatTurn(_)) {
            self.turns.push(tx.hash());
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Transfer { from, to, amount } => {
                self.submit(from, |this, wallet, nonce, time| {
                    wallet.at(nonce).time(time).transfer(&this.wallets[usize::from(to)], amount)
                });
            }
            Action::Request(from) => {
                self.submit(from, |_, wallet, nonce, time| wallet.at(nonce).time(time).request());
            }
            Action::Turn(from, parent) => self.submit(from, |this, wallet, nonce, time| {
                let parent = this.turns.get(parent.index(this.turns.len() + 1)).copied();
                wallet.at(nonce).time(time).turn(parent)
            }),
            Action::Block(tenths) => {
                let mut taken = self.world.pool.candidates(EVERYTHING);
                taken.truncate(taken.len() * usize::from(tenths) / 10);
                self.commit(&taken);
            }
            Action::Foreign(from) => {
                // Only a sender of whom the pool has nothing: everything else is a contradiction.
                let wallet = &self.wallets[usize::from(from)];
                let has_none = self.world.pool.content_from(wallet.address()).pending.is_empty();
                let nonce = self.world.chain.account(wallet.address()).nonce;
                let tx = wallet.at(nonce).time(1).transfer(&self.wallets[0], 1);
                let is_valid = self.world.chain.begin().push(&tx).is_ok();
                if has_none && is_valid {
                    self.commit(&[tx]);
                }
            }
            Action::Settle => drop(self.world.pool.settle(NOW).unwrap()),
        }
    }

    /// Candidates are valid in their order.
    fn commit(&mut self, included: &[CheckedTx]) {
        self.included.extend(included.iter().map(|tx| tx.hash()));
        self.world.commit(included);
    }

    /// Everything that was executed once is in a block or still executable.
    fn check(&mut self) -> Result<(), TestCaseError> {
        self.executed.extend(self.world.order());
        for hash in self.executed.difference(&self.included) {
            let found = self.world.pool.find(*hash);
            let is_there = matches!(found, Some(Found::Pending(_)));
            prop_assert!(is_there, "{found:?}");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Transfers, requests and turns contend for nothing, so what was executed once may not be lost,
    /// whatever is executed again and when; and all of it gets into a block at last.
    #[test]
    fn building_anew_in_slices_loses_nothing(
        slice in 1..6_usize,
        actions in prop::collection::vec(action(), 1..80),
    ) {
        let mut trial = Trial::new(slice);
        for action in actions {
            trial.act(action);
            trial.check()?;
        }
        settle_all(&trial.world);
        let everything = trial.world.pool.candidates(EVERYTHING);
        prop_assert_eq!(everything.len(), trial.world.pool.pending_count());
        trial.commit(&everything);
        trial.check()?;
        prop_assert_eq!(0, trial.world.pool.pending_count());
    }
}
