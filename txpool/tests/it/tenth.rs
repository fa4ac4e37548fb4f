//! The tenth of the pool that is kept for steps and ends of runs: who has how much of it.

use proptest::prelude::*;
use txpool::{BlockLimits, Config};
use types::{CheckedTx, Code, Hash, Params};

use crate::support::ledger::params;
use crate::support::make::{Make, run_of};
use crate::support::{Wallet, World};

/// The tenth has room for so many steps.
const PLACES: u64 = 10;
const COUNT_MAX: usize = 100;

/// A pool of a hundred, and miners that have each claimed a run of their own in a block.
struct Mine {
    world: World,
    miners: Vec<Wallet>,
    runs: Vec<Hash>,
    /// Somebody with money and nothing else.
    rich: Wallet,
}

impl Mine {
    fn new(miners: u8) -> Self {
        Self::of(miners, COUNT_MAX, params(), |make| make.request_of(50_000, 200))
    }

    fn of(
        miners: u8,
        count_max: usize,
        params: Params,
        request: impl Fn(Make<'_>) -> CheckedTx,
    ) -> Self {
        let config = Config { count_max, ..Config::default() };
        let miners: Vec<Wallet> = (1..=miners).map(Wallet::new).collect();
        let rich = Wallet::new(100);
        let mut balances: Vec<_> = miners.iter().map(|miner| (miner, 1_000_000)).collect();
        balances.push((&rich, 1_000_000));
        let world = World::v7_with(0, params, config, &balances);
        let requests: Vec<CheckedTx> = miners.iter().map(|miner| request(miner.at(0))).collect();
        let runs: Vec<Hash> = requests.iter().map(run_of).collect();
        world.commit(&requests);
        let claims = miners.iter().zip(&runs).map(|(miner, run)| miner.at(1).claim(*run));
        world.commit(&claims.collect::<Vec<_>>());
        Self { world, miners, runs, rich }
    }

    /// The miner's step of this number, with the nonce that it has if nothing but steps come before it.
    fn step(&self, miner: usize, step: u64) -> CheckedTx {
        self.miners[miner].at(2 + step).step(self.runs[miner], step)
    }

    fn steps(&self, miner: usize, count: u64) -> Vec<CheckedTx> {
        (0..count).map(|step| self.step(miner, step)).collect()
    }

    fn send(&self, txs: &[CheckedTx]) {
        self.world.pending(txs);
    }

    /// Fills what is left of the nine tenths with transfers that tip so much each.
    fn fill(&self, tip: u64) {
        let nonce = self.world.account(&self.rich).nonce;
        for nonce in nonce.. {
            let tx = self.rich.at(nonce).tip(tip).transfer(&self.miners[0], 1);
            if let Err(reason) = self.world.submit(&tx) {
                assert_eq!(Code::PoolFull, reason.code());
                return;
            }
        }
    }

    /// How many transactions of the miner the pool has.
    fn count(&self, miner: usize) -> usize {
        self.world.pool.content_from(self.miners[miner].address()).pending.len()
    }

    fn total(&self) -> usize {
        self.world.pool.status().total.total().count
    }
}

#[test]
fn whoever_has_the_most_in_the_full_tenth_makes_room_for_who_has_less() {
    let mine = Mine::new(2);
    let many = mine.steps(0, PLACES);
    mine.send(&many);
    mine.fill(50);
    let one = mine.step(1, 0);
    mine.send(std::slice::from_ref(&one));
    assert_eq!(Some(Code::Evicted), mine.world.drop_code(&many[9]));
    assert!(many[..9].iter().chain([&one]).all(|tx| mine.world.is_pending(tx)));
    assert_eq!(COUNT_MAX, mine.total());
    // Nobody evicts it, however much is offered.
    mine.fill(5_000);
    assert!(mine.world.is_pending(&one));
}

#[test]
fn each_sender_comes_to_its_share_of_the_tenth_and_to_no_more() {
    let mine = Mine::new(3);
    mine.send(&mine.steps(0, PLACES));
    mine.fill(50);
    mine.send(&mine.steps(1, 5));
    assert_eq!(Code::PoolFull, mine.world.rejection(&mine.step(1, 5)));
    mine.send(&mine.steps(2, 3));
    assert_eq!(Code::PoolFull, mine.world.rejection(&mine.step(2, 3)));
    let mut counts = [mine.count(0), mine.count(1), mine.count(2)];
    counts.sort_unstable();
    assert_eq!([3, 3, 4], counts);
    assert_eq!(COUNT_MAX, mine.total());
}

#[test]
fn whoever_gave_way_cannot_come_back_for_nothing() {
    let mine = Mine::new(2);
    mine.send(&mine.steps(0, PLACES));
    mine.fill(50);
    mine.send(&mine.steps(1, 5));
    let before = mine.world.pool.stats();
    for _ in 0..3 {
        assert_eq!(Code::PoolFull, mine.world.rejection(&mine.step(0, 5)));
        assert_eq!(Code::PoolFull, mine.world.rejection(&mine.step(1, 5)));
    }
    assert_eq!(before.evicted_total, mine.world.pool.stats().evicted_total);
    // Whoever offers more than others gets in as everybody does.
    let dear = mine.miners[1].at(7).tip(100).step(mine.runs[1], 5);
    assert_eq!(Code::PoolFull, mine.world.rejection(&dear), "it is worth what comes before it");
}

#[test]
fn a_tip_gets_a_step_in_where_everybody_has_no_more_than_one() {
    let mine = Mine::new(11);
    for miner in 0..10 {
        mine.send(&mine.steps(miner, 1));
    }
    mine.fill(50);
    assert_eq!(Code::PoolFull, mine.world.rejection(&mine.step(10, 0)));
    let dear = mine.miners[10].at(2).tip(500).step(mine.runs[10], 0);
    mine.send(std::slice::from_ref(&dear));
    assert!((0..10).all(|miner| mine.count(miner) == 1));
}

#[test]
fn what_came_before_the_pool_was_full_shares_the_tenth_as_well() {
    let mine = Mine::new(2);
    let many = mine.steps(0, 2 * PLACES);
    mine.send(&many);
    let one = mine.step(1, 0);
    mine.send(std::slice::from_ref(&one));
    assert_eq!(21, mine.total(), "there is room for all");
    mine.fill(50);
    assert!(mine.world.is_pending(&one), "those with the most are to go first");
    assert_eq!(9, mine.count(0));
    assert_eq!(COUNT_MAX, mine.total());
}

#[test]
fn nothing_behind_its_steps_keeps_a_sender_from_giving_way() {
    let mine = Mine::new(2);
    mine.send(&mine.steps(0, PLACES));
    let nonces = (2 + PLACES..).take(80);
    let behind = mine.miners[0].each(nonces, |it| it.tip(5_000).transfer(&mine.rich, 1));
    mine.send(&behind);
    mine.fill(0);
    for step in 0..5 {
        mine.send(&[mine.step(1, step)]);
    }
    assert_eq!(Code::PoolFull, mine.world.rejection(&mine.step(1, 5)));
    assert_eq!(85, mine.count(0));
    assert_eq!(Some(Code::Evicted), mine.world.drop_code(&behind[79]));
    assert_eq!(COUNT_MAX, mine.total());
}

#[test]
fn a_step_comes_to_its_share_when_what_was_before_it_is_in_a_block() {
    let mine = Mine::new(2);
    let first = mine.miners[1].at(2).tip(50).turn(None);
    let step = mine.miners[1].at(3).step(mine.runs[1], 0);
    mine.send(&[first.clone(), step.clone()]);
    mine.send(&mine.steps(0, PLACES));
    mine.world.commit(&[&first]);
    mine.fill(50);
    assert!(mine.world.is_pending(&step));
    assert_eq!(9, mine.count(0));
}

#[test]
fn a_place_in_the_tenth_that_a_block_has_freed_goes_to_a_step_that_has_none() {
    let mine = Mine::new(2);
    let many = mine.steps(0, PLACES + 2);
    mine.send(&many);
    mine.world.commit(&[&many[0], &many[1]]);
    mine.fill(50);
    assert_eq!(10, mine.count(0), "all of them have places");
    assert_eq!(COUNT_MAX, mine.total());
}

#[test]
fn a_queued_step_has_no_place_in_the_tenth() {
    let mine = Mine::new(2);
    mine.world.queued(&mine.rich.each(1..61, |it| it.turn(None)));
    mine.send(&mine.miners[0].each(2..32, |it| it.tip(50).turn(None)));
    assert_eq!(90, mine.total());
    for step in 1..20 {
        mine.world.submit(&mine.step(1, step)).unwrap();
        assert_eq!(90, mine.total(), "a queued step makes room as others do");
    }
}

#[test]
fn an_end_that_waits_for_the_base_fee_gives_way_to_whoever_can_be_executed() {
    let params = Params { max_block_bytes: 30_000, ..params() };
    let mine = Mine::of(12, COUNT_MAX, params, |make| make.request());
    let answer = "a".repeat(3_000);
    let end = |miner: usize| {
        let make = mine.miners[miner].at(2).max_base_fee(10).tip(5);
        make.answer(mine.runs[miner], &answer)
    };
    let ends: Vec<_> = (0..10).map(end).collect();
    mine.send(&ends);
    // More than half of a block is used, so the base fee rises to 11.
    mine.world.commit(&mine.rich.each(0..60, |it| it.transfer(&mine.rich, 1)));
    assert_eq!(10, mine.world.pool.stats().waiting);
    mine.fill(50);
    for miner in [10, 11] {
        mine.send(&mine.steps(miner, 3));
    }
    assert_eq!((3, 3), (mine.count(10), mine.count(11)));
    assert_eq!(4, mine.world.pool.stats().waiting);
    assert_eq!(COUNT_MAX, mine.total());
}

#[derive(Clone, Copy, Debug)]
enum Action {
    /// The miner's next step, with such a tip.
    Step { miner: usize, tip: u64 },
    /// Something else of the miner.
    Turn { miner: usize, tip: u64 },
    /// A transfer of somebody else.
    Pay(u64),
    /// A block with so much room.
    Block(usize),
}

const MINERS: usize = 4;
const SMALL: usize = 40;

fn action() -> impl Strategy<Value = Action> {
    let tip = || prop_oneof![2 => Just(0), 1 => 0..50_u64];
    prop_oneof![
        12 => (0..MINERS, tip()).prop_map(|(miner, tip)| Action::Step { miner, tip }),
        3 => (0..MINERS, tip()).prop_map(|(miner, tip)| Action::Turn { miner, tip }),
        12 => tip().prop_map(Action::Pay),
        1 => (0..12_usize).prop_map(Action::Block),
    ]
}

/// Whether a miner without a transaction in the pool gets a step in.
fn check_share(mine: &Mine, steps: &[u64]) {
    for (miner, step) in steps.iter().enumerate() {
        let nonce = mine.world.account(&mine.miners[miner]).nonce;
        let has_none = mine.count(miner) == 0;
        if !has_none {
            continue;
        }
        let step = mine.miners[miner].at(nonce).step(mine.runs[miner], *step);
        assert!(mine.world.submit(&step).is_ok(), "a miner without anything is kept out");
        return;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_a_miner_that_has_nothing_in_the_pool_gets_a_step_in(
        actions in prop::collection::vec(action(), 1..150)
    ) {
        let miners = u8::try_from(MINERS).unwrap();
        let mine = Mine::of(miners, SMALL, params(), |make| make.request_of(50_000, 200));
        mine.fill(5);
        let mut stamp = 0;
        let executed = |miner: usize| {
            let content = mine.world.pool.content_from(mine.miners[miner].address());
            let is_step = |tx: &&CheckedTx| tx.body().agent_run_id().is_some();
            u64::try_from(content.pending.iter().filter(is_step).count()).unwrap()
        };
        let mut committed = [0; MINERS];
        for action in actions {
            stamp += 1;
            match action {
                Action::Step { miner, tip } => {
                    let nonce = mine.world.account(&mine.miners[miner]).nonce;
                    let step = committed[miner] + executed(miner);
                    let make = mine.miners[miner].at(nonce).time(stamp).tip(tip);
                    mine.world.submit(&make.step(mine.runs[miner], step)).ok();
                }
                Action::Turn { miner, tip } => {
                    let nonce = mine.world.account(&mine.miners[miner]).nonce;
                    mine.world.submit(&mine.miners[miner].at(nonce).time(stamp).tip(tip).turn(None)).ok();
                }
                Action::Pay(tip) => {
                    let nonce = mine.world.account(&mine.rich).nonce;
                    mine.world.submit(&mine.rich.at(nonce).time(stamp).tip(tip).turn(None)).ok();
                }
                Action::Block(count) => {
                    let block = mine.world.pool.candidates(BlockLimits { bytes: usize::MAX, count });
                    for (miner, sum) in committed.iter_mut().enumerate() {
                        let own = |tx: &&CheckedTx| {
                            tx.from() == mine.miners[miner].address() && tx.body().agent_run_id().is_some()
                        };
                        *sum += u64::try_from(block.iter().filter(own).count()).unwrap();
                    }
                    mine.world.commit(&block);
                }
            }
            prop_assert!(mine.total() <= SMALL);
            let steps: Vec<u64> =
                (0..MINERS).map(|miner| committed[miner] + executed(miner)).collect();
            check_share(&mine, &steps);
            prop_assert!(mine.total() <= SMALL);
        }
    }
}
