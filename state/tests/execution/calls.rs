//! Calls from AGENT_CALL to their settlement (docs/protocol.md sections 5.21 to 5.24 and 18).

use state::sweep;
use types::call::{CallChange, CallStatus};
use types::tx::{AgentCall, HexBytes, OnResult, WorkLimits};
use types::{Amount, Body, Bond, Event, Hash, Params};

use crate::bodies::unbond;
use crate::market_world::{
    BOND, BUDGET, DISSENT, Market, OWNER, ROYALTY, WAGE, appeal, commit, fails, free_offer, offer,
    params, reveal, reveal_failure, says,
};
use crate::world::{ALICE, BOB, MINER, PROPOSER, STRANGER, Who, transfer};

fn code(market: &Market, who: Who, body: &AgentCall) -> &'static str {
    market.world.code(who, &Body::AgentCall(body.clone()))
}

/// A market of five miners, and a call whose three members are drawn.
fn elected() -> (Market, Hash, Vec<Who>) {
    let mut market = Market::of(5);
    let id = market.elected_three();
    let members = market.members(id, 0);
    (market, id, members)
}

#[test]
fn members_are_drawn_before_the_transactions_of_the_next_block() {
    let mut market = Market::of(5);
    let id = market.called(market.body(ALICE, 3));
    assert_eq!(market.status(id), CallStatus::Electing);
    market.world.next_block();
    // The next block is open, and has drawn.
    assert_eq!(market.status(id), CallStatus::Committing);
    let members = market.members(id, 0);
    assert_eq!(members.len(), 3);
    for member in &members {
        assert_eq!(market.bond(*member).locked, Amount::new(10_000), "unrevealedPenalty");
    }
    let events = market.world.next_block().events.end;
    let drawn = events.iter().find_map(|event| match event {
        Event::CallChanged { change: CallChange::Elected { members, .. }, .. } => Some(members),
        _ => None,
    });
    let addresses: Vec<_> = members.iter().map(|who| who.address()).collect();
    assert_eq!(drawn, Some(&addresses));
}

#[test]
fn members_commit_reveal_and_are_paid() {
    let mut market = Market::of(5);
    let before = market.world.balance(ALICE);
    let id = market.elected_three();
    let members = market.members(id, 0);
    let balances: Vec<u64> = members.iter().map(|who| market.world.balance(*who)).collect();
    let burned = market.world.supply().burned.get();
    market.all_answer(id, b"yes");
    let call = market.call(id);
    assert_eq!(call.status, CallStatus::Success);
    let (bill, max_fee) = (call.bill.unwrap(), call.max_fee.get());
    assert_eq!((bill.wages.get(), bill.royalty.get()), (3 * WAGE, ROYALTY));
    assert_eq!((bill.burned.get(), bill.agreeing), (3 * 200, 3));
    assert_eq!(bill.refund.get(), max_fee - 3 * WAGE - ROYALTY - 3 * 200);
    assert_eq!(bill.bond_behind.get(), 3 * BOND);
    assert_eq!(market.world.balance(OWNER), ROYALTY);
    let fees = before - market.world.balance(ALICE) - (max_fee - bill.refund.get());
    assert!(fees < 100, "the inclusion fee of the call: {fees}");
    for (member, balance) in members.iter().zip(balances) {
        let paid = market.world.balance(*member) + 100 - balance;
        assert!(paid > WAGE, "{paid}");
        let (bonded, locked) = (Amount::new(BOND), Amount::ZERO);
        assert_eq!(market.bond(*member), Bond { bonded, locked });
    }
    assert!(market.world.supply().burned.get() > burned + 600);
}

#[test]
fn reveals_are_taken_once_all_have_committed() {
    let (mut market, id, members) = elected();
    for member in &members[..2] {
        market.commit(id, *member, says(b"yes"));
    }
    market.world.next_block();
    assert_eq!(market.status(id), CallStatus::Committing);
    assert_eq!(market.world.code(members[0], &reveal(id, 0, b"yes")), "CALL_PHASE");
    market.commit(id, members[2], says(b"yes"));
    let refused = market.world.send(members[0], &reveal(id, 0, b"yes")).unwrap_err();
    assert_eq!(refused.code().as_str(), "CALL_PHASE", "not within the block");
    market.world.next_block();
    assert_eq!(market.status(id), CallStatus::Revealing);
    market.reveal(id, members[0], b"yes");
}

#[test]
fn a_phase_lasts_its_time_and_ten_blocks() {
    // Ten seconds are over in the first block, and nothing ends before the tenth.
    let (mut market, id, members) = elected();
    market.commit(id, members[0], says(b"yes"));
    let over = market.call(id).deadline.unwrap().at;
    market.world.next_block_after(20_000);
    for _ in 0..8 {
        assert_eq!(market.status(id), CallStatus::Committing);
        assert!(sweep::is_due(&*market.world.memory, over).unwrap(), "blocks are due");
        market.world.next_block_after(100);
    }
    // The block of the election counts: this one is the tenth.
    assert_eq!(market.status(id), CallStatus::Committing);
    market.world.next_block_after(100);
    assert_eq!(market.status(id), CallStatus::Revealing);
    // In many blocks the time decides.
    let (mut market, id, members) = elected();
    market.commit(id, members[0], says(b"yes"));
    let start = market.call(id).rounds[0].elected_at;
    while market.world.parent.timestamp + 500 < start + 10_000 {
        assert_eq!(market.status(id), CallStatus::Committing);
        market.world.next_block_after(500);
    }
    market.world.next_block_after(500);
    assert_eq!(market.status(id), CallStatus::Revealing);
}

#[test]
fn a_call_that_nobody_answers_times_out_and_costs_the_members() {
    let (mut market, id, members) = elected();
    let call = market.settle(id);
    assert_eq!(call.status, CallStatus::TimedOut);
    assert_eq!(call.bill.unwrap().refund.get(), call.max_fee.get() - 3 * 200);
    for member in members {
        let (bonded, locked) = (Amount::new(BOND - 1_000), Amount::ZERO);
        assert_eq!(market.bond(member), Bond { bonded, locked });
    }
}

#[test]
fn a_member_for_whom_nothing_is_locked_may_take_its_whole_bond_out() {
    let free = Params { unrevealed_penalty: Amount::ZERO, ..params() };
    let mut market = Market::with(free, &[(PROPOSER, 1)], 5);
    let id = market.elected_three();
    let members = market.members(id, 0);
    market.world.must(members[0], &unbond(BOND));
    assert_eq!(market.bond(members[0]), Bond::default());
    market.commit(id, members[1], says(b"yes"));
    market.commit(id, members[2], says(b"yes"));
    let call = market.settle(id);
    assert_eq!(call.status, CallStatus::TimedOut, "nobody revealed");
    for member in &members[1..] {
        assert_eq!(market.bond(*member).bonded.get(), BOND, "nothing was there to lose");
    }
}

#[test]
fn who_withholds_loses_more_than_who_stays_away() {
    let (mut market, id, members) = elected();
    market.commit(id, members[0], says(b"yes"));
    let call = market.settle(id);
    assert_eq!(call.status, CallStatus::Failed, "one could not have decided");
    assert_eq!(market.bond(members[0]).bonded.get(), BOND - 10_000);
    assert_eq!(market.bond(members[1]).bonded.get(), BOND - 1_000);
}

#[test]
fn the_escrow_goes_back_where_too_few_can_be_drawn() {
    let mut market = Market::of(2);
    let before = market.world.balance(ALICE);
    let id = market.elected_three();
    let call = market.call(id);
    assert_eq!((call.status, call.is_settled()), (CallStatus::Unassigned, true));
    assert_eq!(call.bill.unwrap().refund, call.max_fee);
    assert!(before - market.world.balance(ALICE) < 100);
    let credits = market.world.next_block().events.credits;
    assert!(credits.iter().any(|credit| credit.amount == call.max_fee));
    // An appealable call needs enough for the second round, too.
    for (miners, status) in [(9, CallStatus::Unassigned), (10, CallStatus::Committing)] {
        let mut market = Market::of(miners);
        let id = market.appealable();
        assert_eq!(market.status(id), status, "{miners} miners");
    }
}

#[test]
fn a_miner_is_at_no_more_calls_than_its_capacity_until_their_rounds_are_decided() {
    let mut market = Market::of(3);
    let ids = [(); 3].map(|()| market.elected_three());
    let statuses = ids.map(|id| market.status(id));
    let expected = [CallStatus::Committing, CallStatus::Committing, CallStatus::Unassigned];
    assert_eq!(statuses, expected, "each works at two calls at once");
    market.all_answer(ids[0], b"yes");
    let id = market.elected_three();
    assert_eq!(market.status(id), CallStatus::Committing);
}

#[test]
fn calls_are_refused_in_the_order_of_the_codes() {
    let mut market = Market::of(3);
    let good = market.body(BOB, 3);
    let [id, agent] = [Hash::new([1; 32]), Hash::new([2; 32])];
    let limits = WorkLimits { input_tokens: 262_145, ..good.limits };
    let mut bad = AgentCall {
        call_id: id,
        agent_id: agent,
        payload: HexBytes(vec![0x26, 0x12, 0x1f]),
        limits,
        max_fee: Amount::new(1),
        ..good.clone()
    };
    assert_eq!(code(&market, BOB, &bad), "AGENT_NOT_FOUND");
    bad.agent_id = good.agent_id;
    bad.agent_version = "1.0.1".to_owned();
    assert_eq!(code(&market, BOB, &bad), "AGENT_NOT_FOUND");
    bad.agent_version.clone_from(&good.agent_version);
    assert_eq!(code(&market, BOB, &bad), "CALL_ID_MISMATCH");
    bad.call_id = good.call_id;
    assert_eq!(code(&market, BOB, &bad), "SELECTOR_UNKNOWN");
    bad.payload = HexBytes(vec![0x26, 0x12, 0x1f, 0xf1]);
    assert_eq!(code(&market, BOB, &bad), "SELECTOR_UNKNOWN");
    bad.payload = good.payload.clone();
    assert_eq!(code(&market, BOB, &bad), "CALL_LIMITS");
    bad.limits = good.limits.clone();
    assert_eq!(code(&market, BOB, &bad), "MAX_FEE_TOO_LOW");
    bad.max_fee = Amount::new(ROYALTY + 3 * (BUDGET + 200) - 1);
    assert_eq!(code(&market, BOB, &bad), "MAX_FEE_TOO_LOW");
    bad.max_fee = Amount::new(ROYALTY + 3 * (BUDGET + 200));
    market.world.must(BOB, &Body::AgentCall(bad));
    market.world.next_block();
    market.retire();
    let again = AgentCall { call_id: id, ..market.body(BOB, 3) };
    assert_eq!(code(&market, BOB, &again), "AGENT_RETIRED");
}

#[test]
fn limits_are_those_of_the_chain() {
    let market = Market::of(3);
    let good = market.body(BOB, 3);
    let with = |change: fn(&mut WorkLimits)| {
        let mut limits = good.limits.clone();
        change(&mut limits);
        let max_fee = Amount::new(5_000_000);
        code(&market, BOB, &AgentCall { limits, max_fee, ..good.clone() })
    };
    assert_eq!(with(|limits| limits.input_tokens = 262_145), "CALL_LIMITS");
    assert_eq!(with(|limits| limits.output_tokens = 65_537), "CALL_LIMITS");
    assert_eq!(with(|limits| limits.fuel = 100_000_000_001), "CALL_LIMITS");
    assert_eq!(with(|limits| limits.result_bytes = 16_385), "CALL_LIMITS");
}

#[test]
fn conditional_payments_are_bounded_and_made_when_the_call_is_settled() {
    let mut market = Market::of(10);
    let with = |market: &Market, amount| {
        let (to, amount) = (MINER.address().into(), Amount::new(amount));
        let on_result = Some(vec![OnResult { when: "success".to_owned(), to, amount }]);
        let max_fee = Amount::new(1_000_000);
        AgentCall { appealable: Some(true), on_result, max_fee, ..market.body(ALICE, 3) }
    };
    // Two of three members have D at stake.
    assert_eq!(code(&market, ALICE, &with(&market, 2 * DISSENT + 1)), "CALL_LIMITS");
    let before = market.world.balance(MINER);
    let id = market.elected(with(&market, 2 * DISSENT));
    market.all_answer(id, b"yes");
    assert_eq!(market.world.balance(MINER), before, "the decision may be appealed");
    market.settle(id);
    assert_eq!(market.world.balance(MINER), before + 2 * DISSENT);
}

#[test]
fn an_appeal_needs_models_whose_answers_are_the_same_everywhere() {
    let none = Params { slashable_models: types::params::Models::NONE, ..params() };
    let market = Market::with(none, &[(PROPOSER, 1)], 3);
    let body = AgentCall { appealable: Some(true), ..market.body(ALICE, 3) };
    assert_eq!(code(&market, ALICE, &body), "CALL_LIMITS");
}

#[test]
fn commits_and_reveals_are_refused_in_the_order_of_the_codes() {
    let (mut market, id, members) = elected();
    let outsider = *market.miners.iter().find(|who| !members.contains(who)).unwrap();
    market.world.next_block();
    let (nothing, yes) = (Hash::new([7; 32]), says(b"yes"));
    for (code, who, body) in [
        ("CALL_NOT_FOUND", members[0], commit(nothing, 0, members[0], yes)),
        ("NOT_MEMBER", outsider, commit(id, 0, outsider, yes)),
        ("NOT_MEMBER", members[0], commit(id, 1, members[0], yes)),
        ("CALL_PHASE", members[0], reveal(id, 0, b"yes")),
    ] {
        assert_eq!(market.world.code(who, &body), code, "{who:?} {body:?}");
    }
    market.commit(id, members[0], yes);
    market.commit(id, members[1], says(b"no"));
    market.world.next_block();
    assert_eq!(market.world.code(members[0], &commit(id, 0, members[0], yes)), "COMMIT_EXISTS");
    while market.status(id) == CallStatus::Committing {
        market.world.next_block_after(2_000);
    }
    market.world.next_block();
    for (code, who, body) in [
        ("CALL_PHASE", members[2], commit(id, 0, members[2], yes)),
        ("CALL_LIMITS", members[0], reveal(id, 0, b"more than 8")),
        ("REVEAL_MISMATCH", members[0], reveal(id, 0, b"no")),
        ("REVEAL_MISMATCH", members[2], reveal(id, 0, b"no")),
    ] {
        assert_eq!(market.world.code(who, &body), code, "{who:?} {body:?}");
    }
    market.reveal(id, members[0], b"yes");
    market.world.next_block();
    assert_eq!(market.world.code(members[0], &reveal(id, 0, b"no")), "REVEAL_EXISTS");
}

/// Three say yes, and the call waits for an appeal.
pub fn decided(miners: u8) -> (Market, Hash) {
    let mut market = Market::of(miners);
    let id = market.appealable();
    for member in market.members(id, 0) {
        assert_eq!(market.bond(member).locked, Amount::new(DISSENT));
    }
    market.all_answer(id, b"yes");
    assert_eq!(market.status(id), CallStatus::Success);
    assert!(!market.call(id).is_settled());
    (market, id)
}

#[test]
fn an_appealable_call_is_settled_when_nobody_has_appealed_in_time() {
    let (mut market, id) = decided(10);
    let deadline = market.call(id).deadline.unwrap();
    let decided = market.world.parent.timestamp;
    assert_eq!(deadline.at, decided + 120_000);
    let bill = market.settle(id).bill.unwrap();
    assert_eq!(bill.wages.get(), 3 * WAGE);
    assert_eq!(market.world.code(BOB, &appeal(id)), "APPEAL_CLOSED");
}

#[test]
fn an_appeal_draws_a_round_twice_as_large_of_others() {
    let (mut market, id) = decided(12);
    let member = market.members(id, 0)[0];
    assert_eq!(market.world.code(member, &appeal(id)), "INSUFFICIENT_BALANCE");
    market.world.must(ALICE, &transfer(member, 200_000, 0));
    market.world.next_block();
    assert_eq!(market.world.code(member, &appeal(id)), "APPEAL_CLOSED");
    assert_eq!(market.world.code(BOB, &appeal(Hash::ZERO)), "CALL_NOT_FOUND");
    assert_eq!(market.world.code(STRANGER, &appeal(id)), "INSUFFICIENT_BALANCE");
    let before = market.world.balance(BOB);
    market.world.must(BOB, &appeal(id));
    let staked = before - market.world.balance(BOB);
    let appealed = market.call(id).appeal.unwrap();
    assert_eq!(appealed.size, 7);
    assert_eq!(appealed.payment.get(), 7 * (BUDGET + 200));
    assert_eq!(appealed.deposit.get(), 3 * DISSENT);
    assert!(staked >= appealed.payment.get() + appealed.deposit.get());
    assert_eq!(market.status(id), CallStatus::Electing);
    market.world.next_block();
    assert_eq!(market.status(id), CallStatus::Committing);
    let (first, second) = (market.members(id, 0), market.members(id, 1));
    assert_eq!(second.len(), 7);
    assert!(second.iter().all(|who| !first.contains(who)));
    assert_eq!(market.world.code(MINER, &appeal(id)), "APPEAL_CLOSED", "once");
}

#[test]
fn an_overturned_decision_costs_those_who_were_wrong_and_pays_the_appellant() {
    let (mut market, id) = decided(10);
    let before = market.world.balance(BOB);
    market.world.must(BOB, &appeal(id));
    market.world.next_block();
    let (first, second) = (market.members(id, 0), market.members(id, 1));
    market.all_answer(id, b"no");
    let call = market.call(id);
    assert_eq!((call.status, call.is_settled()), (CallStatus::Success, true));
    for member in first {
        assert_eq!(market.bond(member).bonded.get(), BOND - DISSENT);
    }
    for member in second {
        assert_eq!(market.member(id, member).unwrap().paid.get(), WAGE);
    }
    assert!(market.world.balance(BOB) > before, "who is right gains");
}

#[test]
fn an_upheld_decision_burns_the_deposit() {
    let (mut market, id) = decided(10);
    let before = market.world.balance(BOB);
    let first = market.members(id, 0);
    market.world.must(BOB, &appeal(id));
    market.world.next_block();
    market.all_answer(id, b"yes");
    assert!(market.call(id).is_settled());
    assert!(market.world.balance(BOB) + 3 * DISSENT <= before, "who is wrong loses the deposit");
    for member in first {
        assert_eq!(market.bond(member).bonded.get(), BOND);
    }
}

/// Bob appeals, and in the same block all but so many miners that could be drawn take their offers back.
/// Answers the fee for the appeal's place.
fn appealed_while_miners_leave(market: &mut Market, id: Hash, left: usize) -> u64 {
    let before = market.world.balance(BOB);
    market.world.must(BOB, &appeal(id));
    let stakes = market.call(id).appeal.map(|it| it.payment.get() + it.deposit.get());
    let fee = before - market.world.balance(BOB) - stakes.unwrap();
    let members = market.members(id, 0);
    let others = market.miners.clone().into_iter().filter(|miner| !members.contains(miner));
    for miner in others.skip(left) {
        market.world.must(miner, &offer(0));
    }
    market.world.next_block();
    fee
}

#[test]
fn an_appeal_that_miners_prevent_costs_a_little_and_leaves_the_decision_open_to_others() {
    let (mut market, id) = decided(10);
    let before = market.world.balance(BOB);
    // A round of five needs five.
    let fee = appealed_while_miners_leave(&mut market, id, 4);
    let call = market.call(id);
    assert_eq!((call.status, call.is_settled()), (CallStatus::Success, false));
    assert_eq!((call.rounds.len(), call.appeal), (1, None));
    assert_eq!(market.world.balance(BOB), before - fee - 7 * 200);
    // The time for an appeal begins again, with the block of the election.
    assert_eq!(call.deadline.unwrap().at, market.world.context().timestamp + 120_000);
    // The miners come back, and somebody appeals for whom they stay.
    let miners = market.miners.clone();
    market.world.all(&miners, &offer(2));
    market.world.must(BOB, &appeal(id));
    market.world.next_block();
    assert_eq!(market.members(id, 1).len(), 7);
    market.all_answer(id, b"no");
    let call = market.call(id);
    assert!(call.is_settled());
    assert_eq!(call.rounds[1].agreeing, 7);
}

#[test]
fn miners_that_leave_after_an_appeal_make_its_round_smaller() {
    let (mut market, id) = decided(10);
    let before = market.world.balance(BOB);
    // One of the seven leaves.
    let fee = appealed_while_miners_leave(&mut market, id, 6);
    let call = market.call(id);
    assert_eq!((call.rounds[1].size, call.rounds[1].members), (5, 5));
    market.all_answer(id, b"yes");
    assert!(market.call(id).is_settled());
    let paid = before - fee - market.world.balance(BOB);
    assert_eq!(paid, 3 * DISSENT + 5 * (WAGE + 200), "the deposit, and five who were right");
}

#[test]
fn a_decision_whose_appeal_failed_is_settled_when_nobody_appeals_again() {
    let (mut market, id) = decided(10);
    appealed_while_miners_leave(&mut market, id, 0);
    let bill = market.settle(id).bill.unwrap();
    assert_eq!((bill.wages.get(), bill.appellant.get()), (3 * WAGE, 0));
}

#[test]
fn an_election_waits_for_another_proposer_and_no_longer_than_eleven_blocks() {
    // The world lets one of the two propose every block.
    let mut market = Market::with(params(), &[(PROPOSER, 1), (BOB, 1)], 3);
    let id = market.called(market.body(ALICE, 3));
    for _ in 0..10 {
        market.world.next_block();
        assert_eq!(market.status(id), CallStatus::Electing);
        assert!(sweep::is_due(&*market.world.memory, 1).unwrap(), "blocks are due");
    }
    market.world.next_block();
    assert_eq!(market.status(id), CallStatus::Committing);
}

#[test]
fn members_answer_at_the_lowest_base_fee() {
    let (mut market, id, members) = elected();
    let member = members[0];
    market.world.next_block();
    market.raise_base_fee(1_000_000);
    let before = market.world.balance(member);
    market.commit(id, member, says(b"yes"));
    let paid = before - market.world.balance(member);
    assert!((1..20).contains(&paid), "{paid}");
    assert_eq!(market.world.code(member, &offer(1)), "FEE_ABOVE_MAX");
}

#[test]
fn who_is_full_keeps_its_chance_and_its_seat_stays_empty() {
    let mut market = Market::of(8);
    // What is left of the bonds of the first four is too little.
    for nth in 0..4 {
        market.lock_most(market.miners[nth]);
    }
    market.world.next_block();
    let (mut whole, mut partly, mut none) = (0, 0, 0);
    for _ in 0..40 {
        let id = market.elected_three();
        let members = market.members(id, 0);
        let is_full = |who: &Who| market.miners[..4].contains(who);
        assert!(!members.iter().any(is_full));
        match members.len() {
            3 => whole += 1,
            2 => partly += 1,
            _ => none += 1,
        }
        let decides = members.len() >= 2;
        assert_eq!(market.status(id) == CallStatus::Committing, decides);
        assert_eq!(market.status(id) == CallStatus::Unassigned, !decides);
        if decides {
            market.all_answer(id, b"yes");
            assert_eq!(market.status(id), CallStatus::Success);
        }
    }
    assert!(whole > 0 && partly > 0 && none > 0, "{whole} {partly} {none}");
}

#[test]
fn a_block_ends_no_more_calls_than_it_may() {
    let few = Params { max_expiries_per_block: 1, ..params() };
    let mut market = Market::with(few, &[(PROPOSER, 1)], 6);
    let ids = [(); 2].map(|()| market.called(market.body(ALICE, 3)));
    for _ in 0..10 {
        market.world.next_block_after(10_000);
    }
    let settled = |market: &Market| ids.iter().filter(|id| market.call(**id).is_settled()).count();
    assert_eq!(settled(&market), 0);
    market.world.next_block();
    assert_eq!(settled(&market), 1, "one in each block");
    market.world.next_block();
    assert_eq!(settled(&market), 2);
}

#[test]
fn the_last_reveals_of_many_calls_end_no_more_of_them_in_a_block_than_it_may() {
    let few = Params { max_expiries_per_block: 1, ..params() };
    let mut market = Market::with(few, &[(PROPOSER, 1)], 6);
    let ids = [(); 3].map(|()| market.called(market.body(ALICE, 3)));
    market.world.next_block();
    for id in ids {
        market.all_commit(id, b"yes");
    }
    market.world.next_block();
    for id in ids {
        assert_eq!(market.status(id), CallStatus::Revealing);
        for member in market.members(id, 0) {
            market.reveal(id, member, b"yes");
        }
    }
    let settled = |market: &Market| ids.iter().filter(|id| market.call(**id).is_settled()).count();
    market.world.next_block();
    assert_eq!(settled(&market), 2, "the second begins before the work is used up");
    let waiting = ids.into_iter().find(|id| !market.call(*id).is_settled()).unwrap();
    let member = market.members(waiting, 0)[0];
    assert_eq!(market.world.code(member, &reveal(waiting, 0, b"yes")), "REVEAL_EXISTS");
    assert!(sweep::is_due(&*market.world.memory, u64::MAX).unwrap());
    market.world.next_block();
    assert_eq!(settled(&market), 3);
}

#[test]
fn a_full_block_asks_for_no_more_elections_than_two_blocks_hold() {
    let wide = Params { max_block_work: 2_000_000, ..params() };
    let mut market = Market::with(wide, &[(PROPOSER, 1)], 6);
    let before = market.world.builder().work_room();
    market.called(market.body(ALICE, 3));
    assert_eq!(before - market.world.builder().work_room(), 3_907);
}

#[test]
fn a_call_allows_no_result_that_no_reveal_can_have() {
    let small = Params { max_tx_bytes: 20_480, ..params() };
    let mut market = Market::with(small, &[(PROPOSER, 1)], 6);
    let mut body = market.body(ALICE, 3);
    body.limits.result_bytes = 9_217;
    assert_eq!(market.world.code(ALICE, &body.clone().into()), "CALL_LIMITS");
    body.limits.result_bytes = 9_216;
    market.called(body);
}

#[test]
fn a_failed_call_pays_the_price_of_the_call_and_no_royalty() {
    let (mut market, id, members) = elected();
    for member in &members {
        market.commit(id, *member, fails());
    }
    market.world.next_block();
    market.world.all(&members, &reveal_failure(id));
    market.world.next_block();
    let call = market.call(id);
    assert_eq!(call.status, CallStatus::Failed);
    let bill = call.bill.unwrap();
    assert_eq!((bill.wages.get(), bill.royalty.get()), (3 * 1_000, 0));
}

#[test]
fn a_threshold_counts_successes_whatever_they_say() {
    let mut market = Market::of(5);
    let mut body = market.body(ALICE, 3);
    body.consensus = "threshold".to_owned();
    body.threshold = Some(2);
    body.prices.prompt_per_m = Amount::ZERO;
    // These miners want to be paid for tokens, too.
    let id = market.elected(body.clone());
    assert_eq!(market.status(id), CallStatus::Unassigned);
    market.world.all(&market.miners, &free_offer(2));
    market.world.next_block();
    body.call_id = market.body(ALICE, 3).call_id;
    let id = market.elected(body);
    let members = market.members(id, 0);
    let results: [&[u8]; 3] = [b"a", b"b", b"c"];
    let said: Vec<(Who, &[u8])> = members.iter().copied().zip(results).collect();
    market.answer(id, &said);
    let call = market.call(id);
    assert_eq!((call.status, call.bill.unwrap().agreeing), (CallStatus::Success, 3));
    assert_eq!(call.bill.unwrap().wages.get(), 3 * 1_000);
}
