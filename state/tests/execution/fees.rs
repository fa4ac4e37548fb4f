//! What a place in a block costs from v7 on, to the micro, and that nothing changes before.

use fixtures::{plain_step, tool_call};
use state::fees::{charged_bytes, check_base_fee, highest_base_fee, inclusion_fee, is_vote};
use state::tables::Fees;
use state::{Executed, Forks, PendingState};
use types::tx::AgentStep;
use types::{Bid, BlockFees, Body, CheckedTx, Params};

use crate::bodies::{bid, register_miner};
use crate::world::{
    ALICE, BOB, FUNDS, MINER, PROPOSER, STRANGER, V7, Who, World, answer, blob_init, chat, claim,
    evidence, step, transfer, vote,
};

/// The base fee of an empty chain.
const FLOOR: u64 = 10;

fn with(params: Params) -> World {
    World::with_forks(params, V7, &[(PROPOSER, 1)])
}

fn world() -> World {
    with(Params::default())
}

/// A chain whose blocks are small, and whose base fee is so much at least.
fn of_small_blocks(base_fee_floor: u64) -> World {
    with(Params { max_block_bytes: 65_536, base_fee_floor, ..Params::default() })
}

/// A transaction with this bid and these further members before its key.
pub fn tx(world: &World, who: Who, body: &Body, bid: Bid, more: &str) -> CheckedTx {
    let key = r#","publicKey""#;
    world.edited_tx(who, body, bid, |payload| payload.replace(key, &format!("{more}{key}")))
}

fn size(tx: &CheckedTx) -> u64 {
    u64::try_from(tx.payload().len()).unwrap() + 64
}

/// What the event of a block says: base fee, what was burned, tips, and the next base fee.
fn fees(executed: &Executed) -> (u64, u64, u64, u64) {
    let fees = executed.events.fees().expect("every block from v7 on says what its places cost");
    let BlockFees { base_fee, burned, tips, next_base_fee } = fees;
    (base_fee, burned.get(), tips.get(), next_base_fee)
}

#[test]
fn each_transaction_burns_its_size_times_the_base_fee_and_tips_the_proposer() {
    let mut world = world();
    let tx = tx(&world, ALICE, &chat("hello"), bid(50, 7), "");
    let fee = inclusion_fee(size(&tx), FLOOR).get();
    world.push(&tx).unwrap();
    assert_eq!(world.balance(ALICE), FUNDS - fee - 7 - 100);
    assert_eq!(world.balance(PROPOSER), FUNDS + 7);
    assert_eq!(world.supply().burned.get(), fee + 100);
    let executed = world.next_block();
    assert_eq!(executed.block.header.tokens_burned.get(), fee + 100);
    assert_eq!(fees(&executed), (FLOOR, fee, 7, FLOOR));
}

#[test]
fn what_each_transaction_of_a_block_paid_can_be_told_afterwards() {
    let mut world = world();
    let run = world.claimed(1_000, 3);
    world.must(MINER, &step(run, 0, 300));
    // The first vote of a validator in a block is free, also behind other transactions.
    world.must(PROPOSER, &transfer(ALICE, 5, 1));
    world.must(PROPOSER, &vote(BOB, 1));
    world.must(PROPOSER, &vote(MINER, 1));
    world.must(BOB, &chat("hello"));
    let executed = world.next_block();
    let transactions = &executed.block.transactions;
    let paid = |position: usize| {
        let (tx, before) = (&transactions[position], &transactions[..position]);
        let has_voted = || before.iter().any(|other| other.from() == tx.from() && is_vote(other));
        inclusion_fee(charged_bytes(tx, has_voted), FLOOR).get()
    };
    let all: Vec<u64> = (0..7).map(paid).collect();
    assert_eq!(all[1..3], [0, 0], "the request paid for claim and step");
    assert!(all[3] > 0 && all[4] == 0 && all[5] > 0, "{all:?}");
    assert_eq!(fees(&executed).1, all.iter().sum::<u64>());
}

#[test]
fn a_run_pays_for_its_claim_and_its_steps_with_the_request() {
    let mut world = world();
    let request = world.request_body(ALICE, 1_000, 3);
    let run = request.agent_run_id().unwrap();
    let request = world.must(ALICE, &request);
    let fee = inclusion_fee(size(&request) + 2_048, FLOOR).get();
    assert_eq!(world.balance(ALICE), FUNDS - 1_000 - fee);
    // A miner without an account needs no money to begin, and what it is paid is as published.
    world.must(STRANGER, &claim(STRANGER, run));
    world.must(STRANGER, &step(run, 0, 300));
    world.finish(STRANGER, run, "completed");
    assert_eq!(world.balance(STRANGER), 300);
    assert_eq!(world.balance(ALICE), FUNDS - 300 - 100 - fee);
}

#[test]
fn what_of_a_step_is_over_2048_bytes_is_paid_for() {
    let mut world = world();
    let run = world.claimed(1_000, 3);
    let tool_calls = Some(vec![tool_call("calculator"); 20]);
    let long = AgentStep { tool_calls, ..plain_step(run, 0, 1) };
    let before = world.balance(MINER);
    let tx = world.must(MINER, &long.into());
    assert!(size(&tx) > 2_048, "the step is long enough for the test");
    assert_eq!(before - world.balance(MINER), inclusion_fee(size(&tx) - 2_048, FLOOR).get());
}

#[test]
fn who_cannot_pay_for_the_place_is_refused() {
    let mut world = world();
    let tx = tx(&world, STRANGER, &transfer(BOB, 0, 0), Bid::default(), "");
    let rejection = world.push(&tx).unwrap_err();
    assert_eq!(rejection.code().as_str(), "INSUFFICIENT_BALANCE");
    let fee = inclusion_fee(size(&tx), FLOOR).to_string();
    assert!(rejection.extra().any(|(key, value)| key == "inclusionFee" && value == fee));
}

#[test]
fn members_of_the_bid_are_checked_from_v7_on_and_mean_nothing_before() {
    let bids = [
        (r#","tip":7"#, "MALFORMED"),
        (r#","tip":"-7""#, "MALFORMED"),
        (r#","maxBaseFee":null"#, "MALFORMED"),
        (r#","maxBaseFee":"9""#, "FEE_ABOVE_MAX"),
        (r#","maxBaseFee":"0""#, "FEE_ABOVE_MAX"),
        (r#","tip":"18446744073709551615""#, "INSUFFICIENT_BALANCE"),
    ];
    for (members, expected) in bids {
        let mut now = world();
        let refused = tx(&now, ALICE, &chat("hello"), Bid::default(), members);
        assert_eq!(answer(now.builder().push(&refused)), expected, "{members}");
        let mut before = World::new();
        before.push(&refused).unwrap();
        assert_eq!(before.balance(ALICE), FUNDS - 100, "{members}");
    }
}

#[test]
fn the_fee_of_a_transfer_is_its_tip_so_it_has_no_other() {
    let mut world = world();
    let two = tx(&world, ALICE, &transfer(BOB, 1, 5), bid(50, 7), "");
    assert_eq!(answer(world.builder().push(&two)), "INVALID_FIELD");
    let one = tx(&world, ALICE, &transfer(BOB, 1, 5), Bid::default(), "");
    world.push(&one).unwrap();
    let fee = inclusion_fee(size(&one), FLOOR).get();
    assert_eq!(world.balance(ALICE), FUNDS - 6 - fee);
    assert_eq!(world.balance(PROPOSER), FUNDS + 5);
}

#[test]
fn members_that_nobody_knows_may_take_256_bytes_together() {
    let mut world = world();
    let more = |bytes: usize| format!(r#","memo":"{}""#, "x".repeat(bytes - r#","memo":"""#.len()));
    let fits = tx(&world, ALICE, &chat("a"), Bid::default(), &more(256));
    let too_long = tx(&world, ALICE, &chat("a"), Bid::default(), &more(257));
    assert_eq!((fits.unknown_bytes(), too_long.unknown_bytes()), (256, 257));
    assert_eq!(answer(world.builder().push(&too_long)), "INVALID_FIELD");
    world.push(&fits).unwrap();
    World::new().push(&too_long).unwrap();
}

#[test]
fn registering_costs_once_and_announcing_a_blob_each_time() {
    let mut world = world();
    for (body, expected) in [
        (register_miner("a"), 10_000),
        (register_miner("b"), 0),
        (blob_init("a", b"bytes"), 1_000),
        (blob_init("b", b"bytes"), 1_000),
    ] {
        let before = world.balance(MINER);
        let tx = world.must(MINER, &body);
        let paid = before - world.balance(MINER) - inclusion_fee(size(&tx), FLOOR).get();
        assert_eq!(paid, expected, "{body:?}");
    }
    world.next_block();
}

#[test]
fn what_pays_for_no_place_waits_for_no_base_fee() {
    let world = world();
    let with = |body: &Body, bid| tx(&world, ALICE, body, bid, "");
    let evidence = Body::Evidence(evidence(BOB, 1));
    let free = [claim(ALICE, types::Hash::ZERO), vote(BOB, 1), evidence.clone()];
    for body in &free {
        assert_eq!(highest_base_fee(&with(body, bid(50, 0))), None, "{body:?}");
    }
    let paid = with(&chat("hello"), bid(50, 0));
    assert_eq!(highest_base_fee(&paid), Some(50));
    assert_eq!(highest_base_fee(&with(&chat("hello"), Bid::default())), Some(2_000));
    check_base_fee(&paid, 50).unwrap();
    assert_eq!(check_base_fee(&paid, 51).unwrap_err().code().as_str(), "FEE_ABOVE_MAX");
    assert!(is_vote(&with(&vote(BOB, 1), Bid::default())));
    assert!(!is_vote(&with(&evidence, Bid::default())), "anybody sends it");
}

#[test]
fn steps_that_pay_for_no_bytes_raise_no_base_fee() {
    let mut world = of_small_blocks(1_000);
    let run = world.claimed(1_000_000, 200);
    world.next_block();
    for index in 0..110 {
        world.must(MINER, &step(run, index, 1));
    }
    assert!(world.builder().room() < 32_768, "the block is more than half full");
    assert_eq!(fees(&world.next_block()), (1_000, 0, 0, 1_000));
}

#[test]
fn full_blocks_raise_the_base_fee_and_empty_ones_lower_it() {
    let mut world = of_small_blocks(1_000);
    world.all(&[ALICE; 4], &chat(&"x".repeat(16_000)));
    let (.., next) = fees(&world.next_block());
    assert!((1_014..=1_015).contains(&next), "{next}");
    assert_eq!(world.state().get::<Fees>(&()).unwrap().unwrap().base_fee, next);
    assert_eq!(fees(&world.next_block()), (next, 0, 0, 1_000));
}

#[test]
fn the_pool_sets_four_base_fees_aside_and_a_block_gives_the_rest_back() {
    let mut world = world();
    let mut pending = world.pool();
    let first = tx(&world, ALICE, &chat("a"), Bid::default(), "");
    pending.admit(&first).unwrap();
    let set_aside = inclusion_fee(size(&first), 4 * FLOOR).get();
    let balance = |pending: &PendingState| pending.account(ALICE.address()).unwrap().balance.get();
    assert_eq!(balance(&pending), FUNDS - 100 - set_aside);
    world.push(&first).unwrap();
    let second = tx(&world, ALICE, &chat("b"), Bid::default(), "");
    pending.admit(&second).unwrap();
    let executed = world.next_block();
    assert!(world.tell(&mut pending, std::slice::from_ref(&first), &executed));
    let taken = inclusion_fee(size(&first), FLOOR).get();
    let waits = inclusion_fee(size(&second), 4 * FLOOR).get();
    assert_eq!(balance(&pending), FUNDS - 200 - taken - waits);
}

#[test]
fn a_pool_begins_anew_when_the_base_fee_passes_what_it_set_aside() {
    let mut world = of_small_blocks(1);
    let mut pending = world.pool();
    // The base fee goes up by one a block, from 1 to 6.
    for is_right in [true, true, true, false, false] {
        world.all(&[BOB; 4], &chat(&"x".repeat(16_000)));
        let executed = world.next_block();
        assert_eq!(world.tell(&mut pending, &[], &executed), is_right);
    }
}

#[test]
fn the_fork_writes_its_rows_at_its_height_and_not_before() {
    let forks = Forks { v6: 0, validator_vote: None, v7: Some(3), v8: None };
    let validators = [(PROPOSER, 1)];
    let mut with = World::with_forks(Params::default(), forks, &validators);
    let never = Forks { v7: None, ..forks };
    let mut without = World::with_forks(Params::default(), never, &validators);
    for _ in 0..2 {
        for world in [&mut with, &mut without] {
            world.must(ALICE, &chat("hello"));
            world.next_block();
        }
        assert_eq!(with.memory.rows(), without.memory.rows());
    }
    with.next_block();
    without.next_block();
    let new: Vec<_> =
        with.memory.rows().into_iter().filter(|row| !without.memory.rows().contains(row)).collect();
    let tables: std::collections::BTreeSet<_> = new.iter().map(|(table, ..)| *table).collect();
    let expected = ["fees", "forks", "params", "validator_history", "validators"];
    assert_eq!(tables.into_iter().collect::<Vec<_>>(), expected);
}
