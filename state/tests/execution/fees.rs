//! What a place in a block costs from v7 on, to the micro, and that nothing changes before.

use state::fees::{charged_bytes, check_base_fee, highest_base_fee, inclusion_fee, is_vote};
use state::tables::Fees;
use state::{Forks, PendingState};
use types::build::{Envelope, Unsigned};
use types::{Amount, Bid, Body, CheckedTx, Event, Params, Rejection, SizeLimits, Transaction};

use crate::world::{
    ALICE, BOB, FUNDS, MINER, PROPOSER, START, STRANGER, Who, World, chat, claim, evidence, step,
    transfer, vote,
};

const V7: Forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0), v8: None };
/// The base fee of an empty chain.
const FLOOR: u64 = 10;

fn with(params: Params) -> World {
    World::with_forks(params, V7, &[(PROPOSER, 1)])
}

fn world() -> World {
    with(Params::default())
}

/// A transaction with this bid and these further members before its key.
pub fn tx(world: &World, who: Who, body: &Body, bid: Bid, more: &str) -> CheckedTx {
    let (nonce, timestamp, chain_id) = (world.account(who).nonce, START, None);
    let envelope = Envelope { nonce, timestamp, chain_id, bid };
    let from = who.address().to_string();
    let unsigned = Unsigned::build(body, &from, &who.public_key(), &envelope);
    let payload = unsigned.payload().replace(r#","publicKey""#, &format!(r#"{more},"publicKey""#));
    let limits = SizeLimits::from(&Params::default());
    CheckedTx::trust(Transaction::parse_unsigned(payload.as_bytes(), &limits).unwrap())
}

fn push(world: &mut World, tx: &CheckedTx) -> Result<(), Rejection> {
    world.builder().push(tx).map_err(|error| match error {
        state::PushError::Rejected(rejection) => *rejection,
        other => panic!("{other}"),
    })
}

fn code(world: &mut World, tx: &CheckedTx) -> &'static str {
    push(world, tx).expect_err("it was accepted").code().as_str()
}

fn size(tx: &CheckedTx) -> u64 {
    u64::try_from(tx.payload().len()).unwrap() + 64
}

fn bid(max_base_fee: u64, tip: u64) -> Bid {
    Bid { max_base_fee: Some(Amount::new(max_base_fee)), tip: Some(Amount::new(tip)) }
}

fn fee_event(events: &[Event]) -> (u64, u64, u64, u64) {
    let of_fees = events.iter().find_map(|event| match event {
        Event::FeesCharged { base_fee, burned, tips, next_base_fee } => {
            Some((*base_fee, burned.get(), tips.get(), *next_base_fee))
        }
        _ => None,
    });
    of_fees.expect("every block from v7 on says what its places cost")
}

#[test]
fn each_transaction_burns_its_size_times_the_base_fee_and_tips_the_proposer() {
    let mut world = world();
    let tx = tx(&world, ALICE, &chat("hello"), bid(50, 7), "");
    let fee = inclusion_fee(size(&tx), FLOOR).get();
    push(&mut world, &tx).unwrap();
    assert_eq!(world.balance(ALICE), FUNDS - fee - 7 - 100);
    assert_eq!(world.balance(PROPOSER), FUNDS + 7);
    assert_eq!(world.supply().burned.get(), fee + 100);
    let executed = world.next_block();
    assert_eq!(executed.block.header.tokens_burned.get(), fee + 100);
    assert_eq!(fee_event(&executed.events.end), (FLOOR, fee, 7, FLOOR));
}

#[test]
fn what_each_transaction_of_a_block_paid_can_be_told_afterwards() {
    let mut world = world();
    let run = world.request(ALICE, 1_000, 3);
    world.must(MINER, &claim(MINER, run));
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
    assert_eq!(fee_event(&executed.events.end).1, all.iter().sum::<u64>());
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
    let end = world.finish_body(run, "completed");
    world.must(STRANGER, &end);
    assert_eq!(world.balance(STRANGER), 300);
    assert_eq!(world.balance(ALICE), FUNDS - 300 - 100 - fee);
}

#[test]
fn what_of_a_step_is_over_2048_bytes_is_paid_for() {
    let mut world = world();
    let run = world.request(ALICE, 1_000, 3);
    world.must(MINER, &claim(MINER, run));
    let mut long = step(run, 0, 1);
    let Body::AgentStep(body) = &mut long else { panic!("not a step") };
    let call = types::tx::ToolCall {
        name: "calculator".to_owned(),
        args_hash: run,
        result_hash: run,
        duration_ms: 1,
        ok: true,
    };
    body.tool_calls = Some(vec![call; 20]);
    let before = world.balance(MINER);
    let tx = world.must(MINER, &long);
    assert!(size(&tx) > 2_048, "the step is long enough for the test");
    assert_eq!(before - world.balance(MINER), inclusion_fee(size(&tx) - 2_048, FLOOR).get());
}

#[test]
fn who_cannot_pay_for_the_place_is_refused() {
    let mut world = world();
    let tx = tx(&world, STRANGER, &transfer(BOB, 0, 0), Bid::default(), "");
    let rejection = push(&mut world, &tx).unwrap_err();
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
        assert_eq!(code(&mut now, &refused), expected, "{members}");
        let mut before = World::new();
        push(&mut before, &refused).unwrap();
        assert_eq!(before.balance(ALICE), FUNDS - 100, "{members}");
    }
}

#[test]
fn the_fee_of_a_transfer_is_its_tip_so_it_has_no_other() {
    let mut world = world();
    let two = tx(&world, ALICE, &transfer(BOB, 1, 5), bid(50, 7), "");
    assert_eq!(code(&mut world, &two), "INVALID_FIELD");
    let one = tx(&world, ALICE, &transfer(BOB, 1, 5), Bid::default(), "");
    push(&mut world, &one).unwrap();
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
    assert_eq!(code(&mut world, &too_long), "INVALID_FIELD");
    push(&mut world, &fits).unwrap();
    let mut before = World::new();
    push(&mut before, &too_long).unwrap();
}

#[test]
fn registering_costs_once_and_announcing_a_blob_each_time() {
    let mut world = world();
    let body = |name: &str| {
        Body::MinerRegister(types::tx::MinerRegister {
            name: name.to_owned(),
            capabilities: Vec::new(),
            model_info: "model".to_owned(),
        })
    };
    let paid = |world: &mut World, body: &Body| {
        let before = world.balance(MINER);
        let tx = world.must(MINER, body);
        before - world.balance(MINER) - inclusion_fee(size(&tx), FLOOR).get()
    };
    assert_eq!(paid(&mut world, &body("a")), 10_000);
    assert_eq!(paid(&mut world, &body("b")), 0);
    assert_eq!(paid(&mut world, &crate::world::blob_init("a", b"bytes")), 1_000);
    assert_eq!(paid(&mut world, &crate::world::blob_init("b", b"bytes")), 1_000);
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
    let params = Params { max_block_bytes: 65_536, base_fee_floor: 1_000, ..Params::default() };
    let mut world = with(params);
    let run = world.request(ALICE, 1_000_000, 200);
    world.must(MINER, &claim(MINER, run));
    world.next_block();
    for index in 0..110 {
        world.must(MINER, &step(run, index, 1));
    }
    assert!(world.builder().room() < 32_768, "the block is more than half full");
    let executed = world.next_block();
    assert_eq!(fee_event(&executed.events.end), (1_000, 0, 0, 1_000));
}

#[test]
fn full_blocks_raise_the_base_fee_and_empty_ones_lower_it() {
    let params = Params { max_block_bytes: 65_536, base_fee_floor: 1_000, ..Params::default() };
    let mut world = with(params);
    let text = "x".repeat(16_000);
    for _ in 0..4 {
        world.must(ALICE, &chat(&text));
    }
    let executed = world.next_block();
    let (.., next) = fee_event(&executed.events.end);
    assert!((1_014..=1_015).contains(&next), "{next}");
    assert_eq!(world.state().get::<Fees>(&()).unwrap().unwrap().base_fee, next);
    let executed = world.next_block();
    assert_eq!(fee_event(&executed.events.end), (next, 0, 0, 1_000));
}

#[test]
fn the_pool_sets_four_base_fees_aside_and_a_block_gives_the_rest_back() {
    let mut world = world();
    let mut pending = PendingState::new(world.still(), world.chain.clone()).unwrap();
    let first = tx(&world, ALICE, &chat("a"), Bid::default(), "");
    pending.admit(&first).unwrap();
    let set_aside = inclusion_fee(size(&first), 4 * FLOOR).get();
    let balance = |pending: &PendingState| pending.account(ALICE.address()).unwrap().balance.get();
    assert_eq!(balance(&pending), FUNDS - 100 - set_aside);
    push(&mut world, &first).unwrap();
    let second = tx(&world, ALICE, &chat("b"), Bid::default(), "");
    pending.admit(&second).unwrap();
    world.next_block();
    let credits = std::collections::BTreeMap::new();
    assert!(
        pending.advance(world.still(), std::slice::from_ref(&first), &credits, &[].into()).unwrap()
    );
    let taken = inclusion_fee(size(&first), FLOOR).get();
    let waits = inclusion_fee(size(&second), 4 * FLOOR).get();
    assert_eq!(balance(&pending), FUNDS - 200 - taken - waits);
}

#[test]
fn a_pool_begins_anew_when_the_base_fee_passes_what_it_set_aside() {
    let params = Params { max_block_bytes: 65_536, base_fee_floor: 1, ..Params::default() };
    let mut world = with(params);
    let mut pending = PendingState::new(world.still(), world.chain.clone()).unwrap();
    let text = "x".repeat(16_000);
    let mut answers = Vec::new();
    for _ in 0..5 {
        for _ in 0..4 {
            world.must(BOB, &chat(&text));
        }
        world.next_block();
        answers.push(pending.advance(world.still(), &[], &[].into(), &[].into()).unwrap());
    }
    // The base fee goes up by one a block, from 1 to 6.
    assert_eq!(answers, [true, true, true, false, false]);
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
