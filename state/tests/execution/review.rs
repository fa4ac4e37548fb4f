//! What a hostile reader found in the rules of v7 before they were released, and what held.

use fixtures::{plain_step, tool_call};
use state::tables::{Accounts, Bonds, Deadlines, Supplies, Unbondings};
use state::{Forks, PendingState, PushError, TxError};
use types::tx::{AgentStep, Protection, ToolCall};
use types::{Account, Address, Amount, Bid, Body, CheckedTx, Event, Hash, Params, Supply};

use crate::bodies::{bid, bond, claim_bond, fork, param, protected, refuse, unbond};
use crate::world::{
    ALICE, BOB, FUNDS, MINER, OTHER_MINER, PROPOSER, SECOND, START, V7, Who, World, answer, cancel,
    chat, claim, finish_body, request_body, step, transfer,
};

fn with(params: Params, validators: &[Who]) -> World {
    let powers: Vec<_> = validators.iter().map(|who| (*who, 1)).collect();
    World::with_forks(params, V7, &powers)
}

/// A transaction with a bid that is high enough, and no tip.
fn rich_tx(world: &World, nonce: u64, who: Who, body: &Body) -> CheckedTx {
    world.bidding_tx(who, nonce, body, bid(1_000_000_000, 0)).unwrap()
}

/// Gives an account all the money that there can be.
fn enrich(world: &mut World, who: Who, balance: u64) {
    let account = Account { balance: Amount::new(balance), nonce: 0 };
    // There are four others.
    let supply = Supply { genesis: Amount::new(balance + 4 * FUNDS), ..Supply::default() };
    world.write(|draft| {
        draft.put::<Accounts>(&who.address(), &account);
        draft.put::<Supplies>(&(), &supply);
    });
}

/// A proposer that tips itself gets each tip back at once, so the sum of a block's tips passes 2^64 long
/// before anybody's money does. The fault is one of the storage, in every node that executes the block.
#[test]
fn tips_that_go_round_within_a_block_stop_nobody() {
    let mut world = with(Params::default(), &[PROPOSER]);
    let half = 1_u64 << 63;
    enrich(&mut world, PROPOSER, half + 10_000_000);
    for _ in 0..2 {
        let nonce = world.account(PROPOSER).nonce;
        let tx = world.bidding_tx(PROPOSER, nonce, &chat("hello"), bid(50, half)).unwrap();
        assert_eq!(answer(world.builder().push(&tx)), "ok");
    }
}

/// The step of a miner with just so many bytes that its place costs nothing.
fn padded_step(run: Hash, index: u64, calls: usize) -> Body {
    let call = ToolCall { duration_ms: 0, ..tool_call(&"n".repeat(170)) };
    AgentStep { tool_calls: Some(vec![call; calls]), ..plain_step(run, index, 0) }.into()
}

const BOND: u64 = 1_000_000;
const CLAIM_BOND: u64 = 100_000;

/// What MINER has bonded.
fn bonded(world: &World) -> u64 {
    world.state().get::<Bonds>(&MINER.address()).unwrap().unwrap().bonded.get()
}

/// Steps cost the same whatever the base fee is, so whoever mines for itself fills blocks with them for
/// about 50 micro per KiB. That raises the base fee for nobody, and a miner can still report its work.
#[test]
fn a_flood_of_steps_does_not_cost_other_miners_their_bonds() {
    let params = Params { max_block_bytes: 40_960, step_ttl_ms: 86_400_000, ..Params::default() };
    let mut world = with(params, &[PROPOSER]);
    world.must(MINER, &bond(BOND));
    let run = world.request_protected(claim_bond(CLAIM_BOND));
    world.next_block();
    let free = |world: &mut World, who: Who, body: &Body| {
        let tx = rich_tx(world, world.account(who).nonce, who, body);
        world.builder().push(&tx).map(|()| tx)
    };
    // The attacker is BOB: it asks and mines.
    let mut open: Vec<Hash> = Vec::new();
    for _ in 0..40 {
        let body = world.request_body(BOB, 20_000, 200);
        free(&mut world, BOB, &body).unwrap();
        open.push(body.agent_run_id().unwrap());
        if open.len().is_multiple_of(5) {
            world.next_block_after(200);
        }
    }
    for id in &open {
        free(&mut world, BOB, &claim(BOB, *id)).unwrap();
    }
    world.next_block_after(200);
    let base_fee = |world: &World| world.context().rules.price.unwrap().base_fee;
    let mut steps = open.iter().flat_map(|id| (0..200).map(|index| (*id, index)));
    let floor = Params::default().base_fee_floor;
    for _ in 0..40 {
        loop {
            let (id, index) = steps.next().unwrap();
            let before = world.balance(BOB);
            match free(&mut world, BOB, &padded_step(id, index, 4)) {
                Ok(tx) => {
                    let bytes = tx.content_bytes();
                    assert!((1_800..=2_048).contains(&bytes), "{bytes}");
                    assert_eq!(world.balance(BOB), before, "a step pays nothing for its place");
                }
                Err(PushError::Full { .. }) => break,
                Err(other) => panic!("{other}"),
            }
        }
        world.next_block_after(200);
        assert_eq!(base_fee(&world), floor, "nobody pays more for it");
    }
    // MINER has claimed before and wants to report its work.
    free(&mut world, MINER, &claim(MINER, run)).unwrap();
    world.must(MINER, &step(run, 0, 10));
    world.next_block();
    world.wait(Params::default().claim_ttl_ms + SECOND);
    assert_eq!(bonded(&world), BOND);
}

/// The draft has of each account what one has that is begun anew.
fn assert_as_anew(world: &World, draft: &PendingState, waiting: &[&CheckedTx]) {
    let mut anew = world.pool();
    for tx in waiting {
        anew.admit(tx).unwrap();
    }
    for who in [ALICE, BOB, MINER] {
        let of = |pool: &PendingState| pool.account(who.address()).unwrap();
        assert_eq!(of(&anew), of(draft));
    }
}

/// A chain of validators that vote, and the draft of a pool.
fn voters() -> (World, PendingState) {
    let world = with(Params { fork_delay_blocks: 5, ..Params::default() }, &[ALICE, BOB, MINER]);
    let draft = world.pool();
    (world, draft)
}

/// The draft admits what ALICE sends.
fn admit(world: &World, draft: &mut PendingState, body: &Body) -> CheckedTx {
    let tx = world.pool_tx(draft, ALICE, body);
    draft.admit(&tx).unwrap();
    tx
}

/// The same with what ALICE sends: two votes, and something after them.
fn voting() -> (World, PendingState, [CheckedTx; 3]) {
    let (world, mut draft) = voters();
    let bodies = [fork("v8", 50), param("baseFeeFloor", 20, 60), chat("after the votes")];
    let txs = bodies.map(|body| admit(&world, &mut draft, &body));
    (world, draft, txs)
}

#[test]
fn the_draft_of_the_pool_outlives_blocks_while_votes_wait_and_when_they_are_taken() {
    let (mut world, mut draft, [first, second, after]) = voting();
    let executed = world.next_block();
    assert!(world.tell(&mut draft, &[], &executed), "two wait");
    assert_as_anew(&world, &draft, &[&first, &second, &after]);
    world.must(BOB, &fork("v8", 50));
    let executed = world.next_block();
    assert!(world.tell(&mut draft, &[], &executed), "somebody else's was taken");
    assert_as_anew(&world, &draft, &[&first, &second, &after]);
    for tx in [&first, &second] {
        world.builder().push(tx).unwrap();
    }
    let executed = world.next_block();
    let taken = [first, second];
    assert!(world.tell(&mut draft, &taken, &executed), "one was free, and one was paid for");
    assert_as_anew(&world, &draft, &[&after]);
}

#[test]
fn what_was_set_aside_for_a_vote_that_was_free_in_its_block_comes_back() {
    let (mut world, mut draft, [first, second, after]) = voting();
    for tx in [first, second] {
        world.builder().push(&tx).unwrap();
        let executed = world.next_block();
        assert!(world.tell(&mut draft, &[tx], &executed));
    }
    assert_as_anew(&world, &draft, &[&after]);
}

#[test]
fn a_vote_that_comes_while_another_waits_has_its_fee_set_aside_whatever_blocks_come_before() {
    let (mut world, mut draft) = voters();
    let first = admit(&world, &mut draft, &fork("v8", 50));
    let free = draft.account(ALICE.address()).unwrap().balance;
    let executed = world.next_block();
    assert!(world.tell(&mut draft, &[], &executed));
    let second = admit(&world, &mut draft, &param("baseFeeFloor", 20, 60));
    assert!(draft.account(ALICE.address()).unwrap().balance < free, "one block may take both");
    let after = admit(&world, &mut draft, &chat("after the votes"));
    for tx in [&first, &second] {
        world.builder().push(tx).unwrap();
    }
    let executed = world.next_block();
    assert!(world.tell(&mut draft, &[first, second], &executed));
    assert_as_anew(&world, &draft, &[&after]);
}

/// A vote for a height that has come is in no block. The draft keeps it, and says so when it is asked.
#[test]
fn the_pool_learns_that_a_vote_comes_too_late() {
    let mut world = with(Params::default(), &[ALICE, BOB, MINER]);
    let mut pool = world.pool();
    let height = world.context().height + 1;
    let vote = admit(&world, &mut pool, &param("baseFeeFloor", 20, height));
    assert!(!pool.is_late(&vote));
    let executed = world.next_block();
    assert!(world.tell(&mut pool, &[], &executed));
    let refused = world.push(&vote).unwrap_err();
    assert_eq!((refused.code().as_str(), refused.field()), ("INVALID_FIELD", "height"));
    assert!(pool.is_late(&vote));
}

/// Members of v7's limit on unknown ones, one level deeper.
#[test]
fn unknown_members_of_elements_count() {
    let mut world = with(Params { min_max_fee: Amount::new(1), ..Params::default() }, &[PROPOSER]);
    let run = world.request(ALICE, 1_000, 5);
    world.must(MINER, &claim(MINER, run));
    let junk = format!(r#""ok":true,"junk":"{}""#, "j".repeat(1_000));
    let add = |payload: &str| payload.replace(r#""ok":true"#, &junk);
    let tx = world.edited_tx(MINER, &padded_step(run, 0, 1), Bid::default(), add);
    let refused = world.push(&tx).unwrap_err();
    assert_eq!((refused.code().as_str(), refused.field()), ("INVALID_FIELD", "transaction"));
}

/// What others took out of bonds, 64 and more in each of 512 blocks, hides the deadlines of runs behind it.
#[test]
fn a_backlog_of_unbonding_keeps_no_reward_from_being_paid() {
    const BLOCKS: u64 = 600;
    const EACH: u64 = 64;
    let mut world = with(Params::default(), &[PROPOSER]);
    // As if other accounts had sent MINER_UNBOND, and the budget of a block had not sufficed to pay them.
    let unbonding = BLOCKS * EACH;
    let genesis = Amount::new(5 * FUNDS + unbonding);
    let supply = Supply { genesis, unbonding: Amount::new(unbonding), ..Supply::default() };
    world.write(|draft| {
        for number in 0..unbonding {
            let mut bytes = [0_u8; 20];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            let (miner, at) = (Address::new(bytes), START + 1 + number / EACH);
            draft.put::<Unbondings>(&(miner, at), &Amount::new(1));
            draft.put::<Deadlines>(&state::bonds::deadline_key(at, &miner), &());
        }
        draft.put::<Supplies>(&(), &supply);
    });
    let run = world.request(ALICE, 1_000, 5);
    world.next_block();
    let swept = world.wait(Params::default().pending_ttl_ms + SECOND);
    let is_it = |event: &Event| event.agent_run_id() == Some(run);
    assert!(swept.iter().any(is_it), "the run has not timed out; {} others were paid", swept.len());
}

/// What a simulation counts starts in the middle, so more than half of 2^64 has no room.
#[test]
fn a_large_bond_can_be_simulated() {
    let mut world = with(Params::default(), &[PROPOSER]);
    let half = 1_u64 << 63;
    enrich(&mut world, MINER, half + 10_000_000);
    let pool = world.pool();
    let tx = world.pool_tx(&pool, MINER, &bond(half + 1));
    pool.check(&tx).unwrap();
    let simulated = pool.simulate(&tx, 1, world.parent.timestamp + SECOND);
    assert_eq!(answer(simulated), "ok");
}

/// A step of no tokens is no work, and costs the submitter 100 micro beside.
#[test]
fn an_answer_with_an_empty_step_costs_the_claim_bond_too() {
    let mut world = with(Params::default(), &[PROPOSER]);
    world.must(MINER, &bond(BOND));
    let run = world.request_protected(claim_bond(CLAIM_BOND));
    world.must(MINER, &claim(MINER, run));
    world.must(MINER, &step(run, 0, 0));
    world.finish(MINER, run, "completed");
    world.next_block();
    assert_eq!(bonded(&world), BOND - CLAIM_BOND);
}

/// Holds: what is taken out at different times may be due at the same one.
#[test]
fn unbonding_that_is_due_together_is_paid_together() {
    let params = Params { unbond_ms: 70_000, ..Params::default() };
    let mut world = with(params, &[ALICE]);
    world.must(MINER, &bond(BOND));
    world.must(ALICE, &param("unbondMs", 69_000, 3));
    world.next_block();
    world.must(MINER, &unbond(1_000));
    world.next_block();
    world.must(MINER, &unbond(BOND - 1_000));
    world.next_block();
    let events = world.wait(70_000 + SECOND);
    let paid = Event::UnbondingPaid { miner: MINER.address(), amount: Amount::new(BOND) };
    assert_eq!(events, [paid]);
}

/// Numbers without any order that are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        let sides = u64::try_from(choices.len()).unwrap();
        choices[usize::try_from(self.roll(sides)).unwrap()]
    }
}

/// How much of its bond the draft lets a miner take out.
fn free_bond(world: &World, pool: &PendingState, who: Who) -> u64 {
    let (mut low, mut high) = (0, 20_000_000);
    while low < high {
        let middle = u64::div_ceil(low + high, 2);
        let nonce = pool.account(who.address()).unwrap().nonce;
        match answer(pool.check(&rich_tx(world, nonce, who, &unbond(middle)))) {
            "ok" => low = middle,
            "BOND_TOO_SMALL" => high = middle - 1,
            "INSUFFICIENT_BALANCE" | "FORK_NOT_ACTIVE" => return u64::MAX,
            other => panic!("{other}"),
        }
    }
    low
}

fn some_act(pool: &PendingState, dice: &mut Dice, runs: &mut Vec<Hash>) -> (Who, Body) {
    let anybody = dice.of(&[ALICE, BOB, MINER, OTHER_MINER, PROPOSER]);
    let miner = dice.of(&[MINER, OTHER_MINER, PROPOSER, ALICE]);
    let known = |dice: &mut Dice| {
        let count = u64::try_from(runs.len()).unwrap().clamp(1, 6);
        let back = usize::try_from(dice.roll(count)).unwrap() + 1;
        runs.len().checked_sub(back).map(|at| runs[at])
    };
    let choice = dice.roll(16);
    match choice {
        0 => (miner, bond(1 + dice.roll(400_000))),
        1 => (miner, unbond(1 + dice.roll(300_000))),
        2 => (anybody, transfer(ALICE, dice.roll(1_000), dice.roll(50))),
        3 => (anybody, chat("so it goes")),
        4..=6 => {
            let nonce = pool.account(anybody.address()).unwrap().nonce;
            let body = request_body(anybody, nonce, 500 + dice.roll(5_000), 5);
            let claim_bond = (dice.roll(4) > 0).then(|| Amount::new(dice.roll(200_000)));
            let refuse_ms = Some(dice.of(&[0, 1, 3_000, 10_000]));
            let protection = Protection { claim_bond, refuse_ms, ..Protection::default() };
            let body = protected(body, protection);
            runs.push(body.agent_run_id().unwrap());
            (anybody, body)
        }
        _ => {
            let Some(id) = known(dice) else { return (anybody, chat("nothing to do")) };
            let Some(run) = pool.run(&id).unwrap() else { return (anybody, chat("gone")) };
            let who =
                |address: Address| (1..7).map(Who).find(|it| it.address() == address).unwrap();
            let submitter = who(run.submitter);
            match (run.miner.map(who), choice) {
                (None, 7) => (submitter, cancel(id)),
                (None, _) => (miner, claim(miner, id)),
                (Some(_), 8 | 9) if run.status.is_terminal() => (submitter, refuse(id)),
                (Some(own), 10..=12) => {
                    (own, step(id, run.last_step_index.map_or(0, |it| it + 1), dice.roll(700)))
                }
                (Some(own), 13) => (own, finish_body(&run, "failed")),
                (Some(own), _) if !run.status.is_terminal() => {
                    (own, finish_body(&run, "completed"))
                }
                (Some(_), _) => (submitter, refuse(id)),
            }
        }
    }
}

fn play(seed: u64, params: Params, forks: Forks) {
    let mut dice = Dice(seed);
    let mut world = World::with_forks(params, forks, &[(PROPOSER, 1)]);
    let mut pool = world.pool();
    let (mut waiting, mut runs): (Vec<CheckedTx>, Vec<Hash>) = (Vec::new(), Vec::new());
    for turn in 0..400 {
        if dice.roll(6) > 0 {
            let (who, body) = some_act(&pool, &mut dice, &mut runs);
            let nonce = pool.account(who.address()).unwrap().nonce;
            let is_transfer = matches!(body, Body::Transfer(_));
            let tip = (!is_transfer && dice.roll(3) == 0).then(|| Amount::new(dice.roll(100)));
            let offer = Bid { max_base_fee: Some(Amount::new(1_000_000_000)), tip };
            let tx = world.bidding_tx(who, nonce, &body, offer).unwrap();
            match pool.admit(&tx) {
                Ok(()) => waiting.push(tx),
                Err(TxError::Rejected(_)) => {}
                Err(TxError::Storage(fault)) => panic!("seed {seed}, turn {turn}: {fault}"),
            }
            continue;
        }
        let left_out = Who(u8::try_from(dice.roll(8)).unwrap()).address();
        let (mut included, mut rest) = (Vec::new(), Vec::new());
        for tx in waiting {
            if tx.from() == left_out {
                rest.push(tx);
                continue;
            }
            match world.builder().push(&tx) {
                Ok(()) => included.push(tx),
                Err(PushError::Storage(fault)) => panic!("seed {seed}, turn {turn}: {fault}"),
                Err(_) => rest.push(tx),
            }
        }
        let executed = world.next_block_after(dice.of(&[200, 1_000, 5_000, 40_000]));
        let is_right = world.tell(&mut pool, &included, &executed);
        let is_of_run = |event: &&Event| {
            matches!(
                event,
                Event::RunReopened { .. } | Event::RunTimedOut { .. } | Event::RewardPaid { .. }
            )
        };
        let end = executed.events.end.iter();
        let touched: Vec<Hash> = end.filter(is_of_run).filter_map(Event::agent_run_id).collect();
        let is_hit =
            rest.iter().filter_map(|tx| tx.body().agent_run_id()).any(|it| touched.contains(&it));
        let mut again = world.pool();
        waiting = Vec::new();
        for tx in rest {
            match again.admit(&tx) {
                Ok(()) => waiting.push(tx),
                Err(other) if is_right && !is_hit => {
                    panic!("seed {seed}, turn {turn}: {} {other}", tx.body().type_name())
                }
                Err(_) => {}
            }
        }
        if is_right && !is_hit {
            // The reserve of a new draft is another one, so only balances without waiting ones are equal
            // unless the base fee stands still.
            for who in (1..7).map(Who) {
                let [ours, theirs] = [&pool, &again].map(|it| it.account(who.address()).unwrap());
                assert_eq!(ours.nonce, theirs.nonce, "seed {seed}, turn {turn}, {who:?}");
                let has_waiting = waiting.iter().any(|tx| tx.from() == who.address());
                let same_price = pool.rules().price == again.rules().price;
                if !has_waiting || same_price {
                    assert_eq!(ours.balance, theirs.balance, "seed {seed}, turn {turn}, {who:?}");
                }
            }
            for who in [MINER, OTHER_MINER, ALICE].into_iter().filter(|_| dice.roll(4) == 0) {
                let [ours, theirs] = [&pool, &again].map(|it| free_bond(&world, it, who));
                assert_eq!(ours, theirs, "free bond, seed {seed}, turn {turn}, {who:?}");
            }
        } else {
            pool = again;
        }
    }
}

#[test]
fn drafts_agree_with_executing_everything_again_whatever_bonds_and_rewards_do() {
    let short = || Params {
        pending_ttl_ms: 30_000,
        claim_ttl_ms: 10_000,
        step_ttl_ms: 10_000,
        max_reopens: 1,
        ..Params::default()
    };
    let (stake, max_block_bytes) = (Amount::new(9_000_000), 4_096);
    let (max_expiries_per_block, register_fee) = (1, Amount::MAX);
    let all = [
        Params { unbond_ms: 1, refuse_stake: Amount::ZERO, ..short() },
        Params { unbond_ms: 10_000, refuse_stake: stake, ..short() },
        Params { max_block_bytes, max_expiries_per_block, unbond_ms: 3_000, ..short() },
        Params { base_fee_floor: 1_000, max_block_bytes, register_fee, ..short() },
    ];
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let all = all.clone();
            scope.spawn(move || all.into_iter().for_each(|params| play(seed, params, V7)));
        }
    });
}

/// Holds: runs that were asked for before the fork and end behind it.
#[test]
fn drafts_agree_across_the_fork() {
    for seed in 100..104 {
        let params = Params { pending_ttl_ms: 90_000, unbond_ms: 2_000, ..Params::default() };
        play(seed, params, Forks { v7: Some(12), ..V7 });
    }
}
