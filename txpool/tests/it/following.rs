//! What a committed block does to the pool.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use txpool::{Committed, Config, Touched};
use types::call::CallChange;
use types::{
    Amount, BlockEvents, CheckedTx, Code, Credit, Event, Hash, Params, Settlement, TxEvent,
};

use crate::support::ledger::{REWARD, params};
use crate::support::make::{hashes, run_of};
use crate::support::world::NOW;
use crate::support::{Wallet, World};

#[test]
fn included_transactions_leave_and_the_rest_needs_no_new_execution() {
    let (world, [a, b, _]) = World::of_three();
    let txs = a.each(0..3, |it| it.transfer(&b, 10));
    world.pending(&txs);
    let before = world.admits();
    world.commit(&[&txs[0], &txs[1]]);
    assert_eq!(hashes(&[&txs[2]]), world.order());
    assert_eq!(before, world.admits());
    assert_eq!(3, world.account(&a).nonce);
    assert_eq!(None, world.drop_code(&txs[0]));
}

#[test]
fn a_block_may_take_senders_in_another_order() {
    let (world, [a, b, c]) = World::of_three();
    let txs = [a.at(0).transfer(&b, 10), b.at(0).transfer(&c, 10), c.at(0).transfer(&a, 10)];
    world.pending(&txs);
    let before = world.admits();
    world.commit(&[&txs[2], &txs[1]]);
    assert_eq!(hashes(&[&txs[0]]), world.order());
    assert_eq!(before, world.admits());
    world.commit(&[&txs[0]]);
    assert_eq!(world.chain.account(a.address()), world.account(&a));
}

/// A pool where a miner gives back the run that it claims, and the next one claims it; all of it is executable.
fn given_back_and_claimed() -> (World, [Wallet; 4], [CheckedTx; 4]) {
    let wallets = [1, 2, 3, 4].map(Wallet::new);
    let balances = wallets.each_ref().map(|wallet| (wallet, 1_000_000));
    let params = Params { max_reopens: 3, ..params() };
    let world = World::v7_with(0, params, Config::default(), &balances);
    let [a, miners @ ..] = &wallets;
    let bonds = miners.each_ref().map(|miner| miner.at(0).bond(10_000));
    world.commit(&bonds);
    let request = a.at(0).request_with_bond(5_000);
    let run = run_of(&request);
    world.commit(&[&request]);
    let [b, c, _] = miners;
    let txs =
        [b.at(1).claim(run), b.at(2).give_back(run), c.at(1).claim(run), c.at(2).give_back(run)];
    world.pending(&txs);
    (world, wallets, txs)
}

#[test]
fn a_claim_that_gives_its_run_back_is_dropped_when_a_block_has_the_next_claim_alone() {
    let (world, [a, b, _, _], [claim, back, next, next_back]) = given_back_and_claimed();
    let other = b.at(3).transfer(&a, 5);
    world.pending(&[&other]);
    world.commit(&[&next]);
    assert_eq!(Some(Code::RunNotPending), world.drop_code(&claim));
    assert_eq!(Some(Code::RunNotPending), world.drop_code(&back));
    assert!(world.is_queued(&other));
    assert_eq!(hashes(&[&next_back]), world.order());
    world.pending(&[&b.at(1).transfer(&a, 1)]);
}

#[test]
fn claims_that_give_their_run_back_are_dropped_when_a_block_has_a_claim_that_nobody_sent_here() {
    let (world, [_, _, _, d], [claim, _, next, _]) = given_back_and_claimed();
    let run = claim.body().agent_run_id().unwrap();
    world.commit(&[&d.at(1).claim(run)]);
    assert_eq!(Some(Code::RunNotPending), world.drop_code(&claim));
    assert_eq!(Some(Code::RunNotPending), world.drop_code(&next));
    assert_eq!(0, world.order().len());
}

#[test]
fn a_claim_that_gives_its_run_back_is_dropped_when_a_block_cancels_the_run() {
    let (world, [a, _, _, _], [claim, _, next, _]) = given_back_and_claimed();
    let run = claim.body().agent_run_id().unwrap();
    let cancel = a.at(1).cancel(run);
    world.pending(&[&cancel]);
    world.commit(&[&cancel]);
    assert_eq!(Some(Code::RunNotPending), world.drop_code(&claim));
    assert_eq!(Some(Code::RunNotPending), world.drop_code(&next));
    assert_eq!(0, world.order().len());
}

#[test]
fn a_claim_lost_to_another_miner_is_dropped_at_once_with_all_that_hangs_on_it() {
    let (world, [a, b, c]) = World::of_three();
    let request = a.at(0).request();
    let run = run_of(&request);
    world.pending(&[&request]);
    world.commit(&[&request]);
    let (claim, step, finish) = (b.at(0).claim(run), b.at(1).step(run, 0), b.at(2).finish(run, 1));
    let other = b.at(3).transfer(&a, 5);
    world.pending(&[&claim, &step, &finish, &other]);
    world.events();
    world.commit(&[&c.at(0).claim(run)]);
    for tx in [&claim, &step, &finish] {
        assert_eq!(Some(Code::RunNotPending), world.drop_code(tx));
    }
    assert!(world.is_queued(&other));
    let lost = world.events();
    assert!(lost.contains(&("dropped", finish.hash())));
    assert!(lost.contains(&("demoted", other.hash())));
    // The miner goes on with the nonces that are free again.
    let turns = b.each(0..3, |it| it.turn(None));
    world.pending(&turns);
    assert!(world.is_pending(&other));
}

#[test]
fn a_foreign_transaction_closes_a_gap() {
    let (world, [a, b, _]) = World::of_three();
    let (stale, waiting) = (a.at(1).transfer(&b, 10), a.at(2).transfer(&b, 10));
    world.queued(&[&stale, &waiting]);
    world.commit(&[&a.at(0).transfer(&b, 1), &a.at(1).transfer(&b, 1)]);
    assert_eq!(Some(Code::NonceStale), world.drop_code(&stale));
    assert_eq!(hashes(&[&waiting]), world.order());
}

#[test]
fn what_a_block_makes_executable_is_promoted_in_the_order_of_acceptance() {
    let (world, [a, b, c]) = World::of_three();
    let queued = [b.at(1).turn(None), a.at(1).turn(None), c.at(1).turn(None), a.at(2).turn(None)];
    world.queued(&queued);
    world.commit(&[&a.at(0).turn(None), &b.at(0).turn(None), &c.at(0).turn(None)]);
    assert_eq!(hashes(&queued), world.order());
}

#[test]
fn a_queued_transaction_that_another_node_included_leaves_quietly() {
    let (world, [a, b, _]) = World::of_three();
    let queued = a.at(1).transfer(&b, 10);
    world.queued(&[&queued]);
    world.commit(&[&a.at(0).transfer(&b, 1), &queued]);
    assert_eq!(None, world.pool.find(queued.hash()));
    assert_eq!(0, world.pool.stats().senders);
}

#[test]
fn a_foreign_spend_drops_what_cannot_be_paid_any_more() {
    let (a, b) = (Wallet::new(1), Wallet::new(2));
    let world = World::new(Config::default(), &[(&a, 100)]);
    let (ours, after) = (a.at(1).transfer(&b, 60), a.at(2).transfer(&b, 10));
    world.queued(&[&ours, &after]);
    world.commit(&[&a.at(0).transfer(&b, 50)]);
    assert_eq!(Some(Code::InsufficientBalance), world.drop_code(&ours));
    assert!(world.is_queued(&after));
}

#[test]
fn a_refund_by_a_sweep_can_be_spent_although_other_things_are_pending() {
    let (a, b) = (Wallet::new(1), Wallet::new(2));
    let world = World::new(Config::default(), &[(&a, 1_000), (&b, 1_000)]);
    let request = a.at(0).request();
    world.pending(&[&request]);
    world.commit(&[&request]);
    let (kept, included) = (b.at(1).transfer(&a, 1), b.at(0).transfer(&a, 1));
    world.pending(&[&included, &kept]);
    // The block takes one of ours, so the draft would be kept but for the refund.
    world.commit_time_out(run_of(&request), &[&included]);
    world.pending(&[&a.at(1).transfer(&b, 1_002)]);
    assert_eq!(Amount::ZERO, world.account(&a).balance);
}

#[test]
fn a_run_that_a_sweep_ended_is_over_although_other_things_are_pending() {
    let (world, [a, b, c]) = World::of_three();
    let request = a.at(0).request();
    let run = run_of(&request);
    let others = c.each(0..3, |it| it.turn(None));
    world.pending(&[&request, &b.at(0).claim(run), &others[0], &others[1], &others[2]]);
    world.commit(&[&request, &b.at(0).claim(run)]);
    // One of ours is in the block of the sweep, so nothing is executed again yet.
    let admits = world.admits();
    world.commit_time_out(run, &[&others[0]]);
    // Nor for what can be answered without the run: a used nonce, one that is not next.
    assert_eq!(Code::NonceStale, world.rejection(&b.at(0).step(run, 0)));
    world.queued(&[&b.at(2).step(run, 1)]);
    assert_eq!(admits, world.admits());
    assert_eq!(Code::RunNotActive, world.rejection(&b.at(1).step(run, 0)));
}

#[test]
fn a_credited_account_shows_its_whole_balance() {
    let (world, [a, b, c]) = World::of_three();
    let (included, kept) = (b.at(0).transfer(&c, 1), b.at(1).transfer(&c, 1));
    world.pending(&[&included, &kept]);
    let admits = world.admits();
    let made_by_a = world.chain.begin_by(&a);
    world.commit_in(made_by_a, &[&included]);
    assert_eq!(Amount::new(1_000_000 + REWARD), world.account(&a).balance);
    assert_eq!(admits, world.admits(), "asking for an account executes nothing");
}

#[test]
fn what_never_gets_into_a_block_is_looked_at_again() {
    let (world, [a, b, _]) = World::of_three();
    let tx = a.at(0).transfer(&b, 10);
    world.pending(&[&tx]);
    // The state changes behind the pool's back, and nobody says so.
    world.chain.lose_account(a.address());
    world.commit_empty();
    assert_eq!(Some(Code::InsufficientBalance), world.drop_code(&tx));
}

#[test]
fn a_dropped_transaction_that_another_node_included_is_not_dropped_any_more() {
    let (world, [a, b, _]) = World::of_three();
    let tx = a.at(0).transfer(&b, 10);
    world.pending(&[&tx]);
    world.pool.clear(NOW).unwrap();
    assert_eq!(Some(Code::PoolFull), world.drop_code(&tx));
    world.commit(&[&tx]);
    assert_eq!(None, world.pool.find(tx.hash()));
}

#[test]
fn events_say_which_runs_and_blobs_a_block_touched_and_whom_it_credited() {
    let (run, address) = (Hash::digest(b"run"), Wallet::new(1).address());
    let none = Amount::ZERO;
    let settlement = Settlement { miner_reward: none, user_refund: none, network_fee: none };
    let chunks = [("part", None), ("right", Some(true)), ("wrong", Some(false))];
    let chunks = chunks.map(|(blob_id, is_as_announced)| {
        let blob_id = blob_id.to_owned();
        Event::BlobChunkStored { blob_id, index: 0, is_as_announced }
    });
    let transactions = (0..).zip(chunks).map(|(position, event)| TxEvent { position, event });
    let credit = |amount| Credit { address, amount: Amount::new(amount) };
    let (call, agent) = (Hash::digest(b"call"), Hash::digest(b"agent"));
    let of_call = |call_id, change| Event::CallChanged { call_id, change };
    let events = BlockEvents {
        transactions: transactions.collect(),
        end: vec![
            Event::AgentRetired { agent_id: agent },
            Event::RunReopened { agent_run_id: Hash::ZERO, miner: address },
            Event::RunTimedOut { agent_run_id: run, submitter: address, miner: None, settlement },
            Event::BlobDropped { blob_id: "dropped".to_owned() },
            of_call(call, CallChange::Revealing { until: 1 }),
            // What a transaction did to it is no reason.
            of_call(Hash::ZERO, CallChange::Committed { round: 0, member: address }),
        ],
        credits: vec![credit(2), credit(3)],
    };
    let touched = Touched {
        runs: [Hash::ZERO, run].into(),
        blobs: ["dropped".to_owned(), "wrong".to_owned()].into(),
        calls: [call].into(),
        agents: [agent].into(),
        credits: [(address, Amount::new(5))].into(),
        bonds: BTreeMap::new(),
        validators: false,
    };
    assert_eq!(touched, Touched::by(&events));
}

#[test]
fn what_is_queued_for_too_long_is_dropped() {
    let config = Config { queued_age_max_ms: 6_400, ..Config::default() };
    let (world, [a, b, _]) = World::of_three_with(config);
    let (pending, queued) = (a.at(0).transfer(&b, 10), b.at(1).transfer(&a, 10));
    world.pending(&[&pending]);
    world.queued(&[&queued]);
    let (included, touched) = (&[], &Touched::default());
    world.pool.committed(&Committed { included, touched }, NOW + 6_300).unwrap();
    assert!(world.is_queued(&queued));
    world.pool.committed(&Committed { included, touched }, NOW + 6_400).unwrap();
    assert_eq!(Some(Code::NonceTooHigh), world.drop_code(&queued));
    assert!(world.is_pending(&pending));
    assert_eq!(1, world.pool.stats().senders);
}

#[test]
fn the_pool_says_when_it_begins_to_have_something_executable_and_only_then() {
    let (world, [a, b, _]) = World::of_three();
    let txs = a.each(0..3, |it| it.transfer(&b, 10));
    world.queued(&[&txs[1]]);
    assert_eq!(0, world.starts());
    world.pending(&[&txs[0], &txs[2]]);
    assert_eq!(1, world.starts());
    world.commit(&[&txs[0]]);
    assert_eq!(1, world.starts());
    world.commit(&[&txs[1], &txs[2]]);
    world.pending(&[&b.at(0).transfer(&a, 10)]);
    assert_eq!(2, world.starts());
}

#[test]
fn a_decided_change_of_the_validators_is_told_to_the_pool() {
    let public_key = Wallet::new(1).0.public_key();
    let changed = Event::ValidatorChanged { public_key, power: 0, height: 9 };
    let touched = Touched { validators: true, ..Touched::default() };
    for event in [changed, Event::ValidatorSetActivated { height: 9 }] {
        let events = BlockEvents { end: vec![event], ..BlockEvents::default() };
        assert_eq!(touched, Touched::by(&events));
    }
}

#[test]
fn votes_of_a_validator_that_has_left_are_dropped_at_once() {
    let [a, b, c] = [1, 2, 3].map(Wallet::new);
    let rich = [&a, &b, &c].map(|wallet| (wallet, 1_000_000));
    let validators = [(&a, 10), (&b, 1), (&c, 1)];
    let world = World::with(Config::default(), params(), &rich, &validators);
    // Decided by the end of this block, so `b` votes for one block more.
    world.commit(&[&a.at(0).vote_out(&b)]);
    let (stays, goes, other) =
        (a.at(1).vote_out(&c), b.at(0).vote_out(&c), c.at(0).transfer(&a, 1));
    world.pending(&[&stays, &goes, &other]);
    world.commit(&[&other]);
    assert_eq!(hashes(&[&stays]), world.order());
    assert_eq!(Some(Code::NotValidator), world.drop_code(&goes));
}

#[test]
fn after_many_blocks_at_once_what_they_hold_is_forgotten_and_the_rest_is_judged_anew() {
    let (world, [a, b, c]) = World::of_three();
    let ours = a.each(0..4, |it| it.transfer(&b, 10));
    world.pending(&ours);
    let (lost, stays) = (b.at(0).transfer(&a, 1), c.at(0).transfer(&a, 1));
    world.pending(&[&lost, &stays]);
    // Blocks of which the pool hears nothing: two of ours, and another with the nonce of `lost`.
    let other = b.at(0).transfer(&c, 2);
    for tx in [&ours[0], &other, &ours[1]] {
        let mut block = world.chain.begin();
        block.push(tx).unwrap();
        world.chain.append(block);
    }
    world.pool.chain_moved(NOW).unwrap();
    assert_eq!(hashes(&[&ours[2], &ours[3], &stays]), world.order());
    assert_eq!(None, world.drop_code(&ours[0]));
    assert_eq!(Some(Code::NonceStale), world.drop_code(&lost));
    assert_eq!(4, world.account(&a).nonce);
    // It goes on as ever.
    world.commit(&[&ours[2], &stays]);
    assert_eq!(hashes(&[&ours[3]]), world.order());
}

#[test]
fn the_pool_answers_while_the_blocks_of_a_moved_chain_are_looked_through() {
    let (world, [a, b, _]) = World::of_three();
    world.pending(&[&a.at(0).transfer(&b, 1)]);
    // Looking up what blocks hold takes as long as the test keeps this.
    let looking_up = world.chain.included.lock();
    std::thread::scope(|scope| {
        let world = &world;
        let moved = scope.spawn(|| world.pool.chain_moved(NOW).unwrap());
        let (answer, answered) = mpsc::channel();
        scope.spawn(move || {
            while !world.chain.is_asked.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            answer.send(world.pool.status().total.pending.count)
        });
        let told = answered.recv_timeout(Duration::from_secs(20));
        assert!(!moved.is_finished());
        drop(looking_up);
        assert_eq!(Ok(1), told);
    });
}

#[test]
fn what_waits_when_v7_begins_keeps_its_place_unless_it_cannot_pay_for_it() {
    let [a, b, c] = [1, 2, 3].map(Wallet::new);
    let balances = [(&a, 1_000_000), (&b, 500), (&c, 1_000_000)];
    let world = World::v7_from(3, Config::default(), &balances);
    let (first, all, gap) =
        (a.at(0).transfer(&c, 1), b.at(0).transfer(&c, 500), c.at(1).turn(None));
    let second = a.at(1).transfer(&b, 1);
    world.pending(&[&first, &all, &second]);
    world.queued(&[&gap]);
    world.commit_empty();
    assert_eq!(hashes(&[&first, &all, &second]), world.order());
    // The next block is the first one of v7.
    world.commit_empty();
    assert_eq!(hashes(&[&first, &second]), world.order());
    assert_eq!(Some(Code::InsufficientBalance), world.drop_code(&all));
    assert!(world.is_queued(&gap));
    // Its sender may use the nonce for less.
    let less = b.at(0).transfer(&c, 400);
    world.pending(&[&less]);
    world.commit(&[&first, &second, &less]);
    assert_eq!(Vec::<Hash>::new(), world.order());
}
