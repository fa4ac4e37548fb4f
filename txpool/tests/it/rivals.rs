//! From v7 on: what keeps others out of the pool although no block takes it gives way to what a block can
//! take.

use fixtures::{EXECUTOR, MANIFEST, judge, prices, register_judge};
use txpool::{Config, Found};
use types::params::Models;
use types::sign_bytes::Domain;
use types::tx::{AgentCall, CallReveal};
use types::{Amount, Body, CheckedTx, Code, Forks, Hash, Params};

use crate::support::ledger::{TestChain, execute, params};
use crate::support::make::run_of;
use crate::support::world::NOW;
use crate::support::{Wallet, World};
use crate::waits::{build, raise, small_blocks};

/// A request in a block, and its run.
fn requested(world: &World, requester: &Wallet) -> Hash {
    let request = requester.at(0).request();
    world.commit(&[&request]);
    run_of(&request)
}

/// The wallet has a transaction with nonce 1 that waits for the base fee to fall, so that what comes after it
/// is executable and in no block. The one before it is in a block.
fn let_wait(world: &World, wallet: &Wallet) -> CheckedTx {
    let waiting = wallet.at(1).max_base_fee(10).transfer(wallet, 1);
    world.queued(&[&waiting]);
    (0..4).for_each(|_| raise(world));
    let first = wallet.at(0).transfer(wallet, 1);
    world.pending(&[&first]);
    world.commit(&[&first]);
    assert!(is_waiting(world, &waiting));
    waiting
}

fn is_waiting(world: &World, tx: &CheckedTx) -> bool {
    matches!(world.pool.find(tx.hash()), Some(Found::Waiting { .. }))
}

/// Why the transaction was dropped, and whether for the sake of another one.
fn why_dropped(world: &World, tx: &CheckedTx) -> Option<(Code, bool)> {
    let Some(Found::Dropped(dropped)) = world.pool.find(tx.hash()) else { return None };
    let is_for_another = dropped.reason.extra().any(|(key, _)| key == "after");
    Some((dropped.reason.code(), is_for_another))
}

#[test]
fn a_claim_behind_what_waits_gives_way_to_one_that_a_block_can_take() {
    let (world, [a, b, c]) = small_blocks(Config::default());
    let run = requested(&world, &a);
    let waiting = let_wait(&world, &b);
    let (rival, after) = (b.at(2).claim(run), b.at(3).step(run, 0));
    world.pending(&[&rival, &after]);
    world.events();
    let claim = c.at(0).claim(run);
    world.pending(&[&claim]);
    let dropped = [("dropped", after.hash()), ("dropped", rival.hash())];
    assert_eq!([&dropped[..], &[("pending", claim.hash())]].concat(), world.events());
    assert_eq!(Some((Code::Evicted, false)), why_dropped(&world, &rival));
    assert_eq!(Some((Code::Evicted, true)), why_dropped(&world, &after));
    assert!(is_waiting(&world, &waiting));
    assert_eq!(Code::RunNotPending, world.rejection(&b.at(2).claim(run)), "it cannot come back");
    assert_eq!(vec![claim.hash()], build(&world));
    assert_eq!(0, world.pool.stats().rebuilds_total);
}

#[test]
fn a_cancellation_and_a_blob_displace_what_waits_as_a_claim_does() {
    let (world, [a, b, c]) = small_blocks(Config::default());
    let run = requested(&world, &a);
    let_wait(&world, &b);
    let rivals = [b.at(2).claim(run), b.at(3).blob("x", 1)];
    world.pending(&rivals);
    world.pending(&[&c.at(0).blob("x", 1)]);
    assert!(world.pool.find(rivals[0].hash()).is_some_and(|it| !matches!(it, Found::Dropped(_))));
    world.pending(&[&a.at(1).cancel(run)]);
    assert!(rivals.iter().all(|it| world.drop_code(it) == Some(Code::Evicted)));
}

#[test]
fn evidence_that_waits_does_not_protect_whoever_it_accuses() {
    let [b, c, bad, good] = [1, 2, 201, 202].map(Wallet::new);
    let forks = Forks { v7: Some(0), validator_vote: Some(0), ..Forks::default() };
    let chain = TestChain::with_forks(
        Params { max_block_bytes: 2_000, ..params() },
        forks,
        &[(&b, 1_000_000), (&c, 1_000_000), (&Wallet::new(100), 1_000_000)],
        &[(&bad, 1), (&good, 1)],
    );
    let world = World::over(Config::default(), &chain);
    let_wait(&world, &b);
    let domain = Domain { chain_id: "test".into(), genesis_hash: Hash::ZERO, v7_from: Some(0) };
    let evidence = |values: [u8; 2]| {
        let values = values.map(|value| Hash::new([value; 32]).to_string());
        let unsigned = fixtures::evidence(bad.0.public_key(), 1, "prevote", values);
        Body::Evidence(fixtures::sign_evidence(&bad.0, &domain, unsigned))
    };
    let rival = b.at(2).tx(&evidence([1, 2]));
    world.pending(&[&rival]);
    let mut spoilt = fixtures::evidence(bad.0.public_key(), 1, "prevote", ["1".into(), "2".into()]);
    spoilt.round = 7;
    assert_eq!(Code::EvidenceInvalid, world.rejection(&c.at(0).tx(&Body::Evidence(spoilt))));
    assert_eq!(None, world.drop_code(&rival), "what no block takes displaces nobody");
    let newcomer = c.at(0).tx(&evidence([3, 4]));
    world.pending(&[&newcomer]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&rival));
    assert_eq!(vec![newcomer.hash()], build(&world));
}

#[test]
fn what_is_paid_with_money_that_waits_gives_way_and_what_its_sender_pays_for_does_not() {
    let (world, [a, b, c, d]) = small_blocks(Config::default());
    let run = requested(&world, &a);
    let poor = Wallet::new(50);
    world.pending(&[&b.at(0).transfer(&poor, 500_000)]);
    let phantom = poor.at(0).tip(9).claim(run);
    world.pending(&[&phantom]);
    let claim = c.at(0).claim(run);
    world.pending(&[&claim]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&phantom));
    assert_eq!(Code::RunNotPending, world.rejection(&phantom));
    assert_eq!(Code::RunNotPending, world.rejection(&d.at(0).tip(99).claim(run)), "who came first");
    assert!(world.is_pending(&claim));
}

#[test]
fn what_two_blocks_with_room_have_left_out_gives_way() {
    let (world, [a, b, c]) = small_blocks(Config::default());
    let run = requested(&world, &a);
    let rival = b.at(0).claim(run);
    world.pending(&[&rival]);
    world.commit_empty();
    assert_eq!(Code::RunNotPending, world.rejection(&c.at(0).claim(run)));
    // A full block says nothing of those that are not in it.
    raise(&world);
    assert_eq!(Code::RunNotPending, world.rejection(&c.at(0).claim(run)));
    world.commit_empty();
    while world.pool.settle(NOW).unwrap() {}
    let claim = c.at(0).claim(run);
    world.pending(&[&claim]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&rival));
    assert_eq!(vec![claim.hash()], build(&world));
}

#[test]
fn a_newcomer_that_no_block_takes_now_displaces_nobody() {
    let (world, [a, b, c, d]) = small_blocks(Config::default());
    let run = requested(&world, &a);
    let waiting = c.at(1).max_base_fee(10).transfer(&c, 1);
    world.queued(&[&waiting]);
    let_wait(&world, &b);
    world.pending(&[&c.at(0).transfer(&c, 1)]);
    assert!(is_waiting(&world, &waiting));
    let rival = b.at(2).claim(run);
    world.pending(&[&rival]);
    assert_eq!(Code::RunNotPending, world.rejection(&c.at(2).claim(run)), "it would wait itself");
    let poor = Wallet::new(50);
    world.pending(&[&d.at(0).transfer(&poor, 500_000)]);
    assert_eq!(
        Code::RunNotPending,
        world.rejection(&poor.at(0).tip(1).claim(run)),
        "its money waits"
    );
    assert_eq!(None, world.drop_code(&rival));
}

#[test]
fn what_its_sender_has_before_a_newcomer_counts() {
    let (world, [a, b, c]) = small_blocks(Config::default());
    let request = a.at(0).request_with_bond(200_000);
    world.commit(&[&request, &c.at(0).bond(200_000)]);
    let run = run_of(&request);
    let_wait(&world, &b);
    let (bond, rival) = (b.at(2).bond(200_000), b.at(3).claim(run));
    let unbond = c.at(1).unbond(200_000);
    world.pending(&[&bond, &rival, &unbond]);
    // In the committed state it has the bond, and after what it has in the pool it has not.
    assert_eq!(Code::RunNotPending, world.rejection(&c.at(2).claim(run)));
    assert!(is_waiting(&world, &rival));
    let admits = world.admits();
    assert_eq!(Code::RunNotPending, world.rejection(&c.at(2).claim(run)), "once in each block");
    assert_eq!((admits + 1, 0), (world.admits(), world.pool.stats().rebuilds_total));
}

#[test]
fn a_newcomer_is_queued_while_a_long_line_gives_way_bit_by_bit() {
    let (world, [a, b, c]) = small_blocks(Config { rebuild_slice: 400, ..Config::default() });
    let run = requested(&world, &a);
    let_wait(&world, &b);
    let rival = b.at(2).claim(run);
    world.pending(&[&rival]);
    world.pending(&b.each(3..303, |it| it.transfer(&a, 1)));
    let claim = c.at(0).claim(run);
    world.queued(&[&claim]);
    assert_eq!(Code::NonceTaken, world.rejection(&c.at(0).turn(None)));
    assert!(world.pool.has_unsettled());
    assert!(world.pool.settle(NOW).unwrap(), "it takes several goes");
    assert!(world.is_queued(&claim));
    while world.pool.settle(NOW).unwrap() {}
    assert!(world.is_pending(&claim));
    assert_eq!(Some(Code::Evicted), world.drop_code(&rival));
    assert_eq!(0, world.pool.stats().rebuilds_total);
    assert_eq!(vec![claim.hash()], build(&world));
}

#[test]
fn what_a_proposer_could_not_take_gives_way_at_once() {
    let (world, [a, b, c]) = small_blocks(Config::default());
    let run = requested(&world, &a);
    let waiting = a.at(1).max_base_fee(11).request();
    world.pending(&[&waiting]);
    (0..4).for_each(|_| raise(&world));
    // The run of a request that waits: in a block this is refused, and so is what comes after it.
    let first = b.at(0).claim(run_of(&waiting));
    let (many, rival) = (b.each(1..17, |it| it.turn(None)), b.at(17).claim(run));
    world.pending(&[&first]);
    world.pending(&many);
    world.pending(&[&rival]);
    assert_eq!(Code::RunNotPending, world.rejection(&c.at(0).claim(run)), "nobody knows yet");
    assert_eq!(Vec::<Hash>::new(), build(&world));
    world.pending(&[&c.at(0).claim(run)]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&rival));
}

#[test]
fn what_comes_after_something_that_no_block_takes_gives_way_and_displaces_nobody() {
    let (world, [a, b, c, d]) = small_blocks(Config::default());
    let run = requested(&world, &a);
    let waiting = [1, 2].map(|nonce| a.at(nonce).max_base_fee(11).request());
    world.pending(&waiting);
    (0..4).for_each(|_| raise(&world));
    let rival = b.at(1).claim(run);
    let needing = [b.at(0).claim(run_of(&waiting[0])), d.at(0).claim(run_of(&waiting[1]))];
    world.pending(&needing);
    world.pending(&[&rival]);
    assert_eq!(Code::RunNotPending, world.rejection(&d.at(1).claim(run)));
    assert!(world.is_pending(&rival));
    // What it has before it, a block takes.
    world.pending(&[&c.at(0).turn(None), &c.at(1).claim(run)]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&rival));
    assert!(world.is_pending(&needing[0]));
}

#[test]
fn what_no_base_fee_suits_does_not_get_in_front_of_others() {
    let (world, [a, b]) = small_blocks(Config::default());
    let never = a.at(1).max_base_fee(9).transfer(&b, 1);
    assert_eq!(Code::FeeAboveMax, world.rejection(&never));
    world.queued(&[&a.at(1).max_base_fee(10).transfer(&b, 1)]);
}

/// A call that its members have decided and that can be appealed, with its requester, on a chain with enough
/// miners for a second round.
fn decided_call() -> (World, Wallet, Hash) {
    let [owner, requester, rich] = [90, 91, 92].map(Wallet::new);
    let miners: Vec<Wallet> = (1..=12).map(Wallet::new).collect();
    let mut balances: Vec<(&Wallet, u64)> = miners.iter().map(|it| (it, 1_000_000)).collect();
    balances.extend([(&owner, 10_000_000), (&requester, 1_000_000), (&rich, 1_000_000)]);
    let params = Params {
        slashable_models: Models::All,
        dissent_penalty: Amount::new(50_000),
        absence_penalty: Amount::new(1_000),
        unrevealed_penalty: Amount::new(10_000),
        ..params()
    };
    let world = World::v8_with(params, &balances);
    let mut txs = vec![owner.at(0).tx(&register_judge(owner.address(), judge(MANIFEST, "")))];
    let begin = |it: &Wallet| [it.at(0).bond(300_000), it.at(1).offer(&EXECUTOR.to_string(), 9)];
    txs.extend(miners.iter().flat_map(begin));
    let agent = fixtures::judge_of(owner.address());
    let body = AgentCall {
        appealable: Some(true),
        prices: prices([0; 4]),
        ..fixtures::call("test", requester.address(), 0, agent)
    };
    let call = body.call_id;
    txs.push(requester.at(0).tx(&body.into()));
    world.commit(&txs);
    world.commit_empty();
    let yes = fixtures::reveal(call, b"yes");
    let commit = |it: &Wallet| Body::from(fixtures::commit(it.address(), &yes));
    let reveal = |_: &Wallet| Body::from(CallReveal { ..yes.clone() });
    let acts: [&dyn Fn(&Wallet) -> Body; 2] = [&commit, &reveal];
    for act in acts {
        let mut block = world.chain.begin();
        for miner in &miners {
            let nonce = world.chain.account(miner.address()).nonce;
            // Only the members may.
            execute(&mut block, &miner.at(nonce).tx(&act(miner))).ok();
        }
        world.commit_block(block);
    }
    (world, requester, call)
}

#[test]
fn an_appeal_that_no_block_takes_does_not_make_a_decision_final() {
    let (world, requester, call) = decided_call();
    let (rich, poor) = (Wallet::new(92), Wallet::new(50));
    world.pending(&[&rich.at(0).transfer(&poor, 500_000)]);
    let rival = poor.at(0).tx(&fixtures::appeal(call));
    world.pending(&[&rival]);
    let appeal = requester.at(1).tx(&fixtures::appeal(call));
    world.pending(&[&appeal]);
    assert_eq!(Some(Code::Evicted), world.drop_code(&rival));
    world.commit(&[&appeal]);
    assert_eq!(0, world.pool.stats().rebuilds_total);
}
