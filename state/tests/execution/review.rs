//! What a hostile reader found in the rules of v7 before they were released, and what held.

use std::collections::BTreeMap;

use state::table::{Key, Table, encode_value};
use state::tables::{Accounts, Bonds, Supplies};
use state::{Changes, Forks, PendingState, PushError, TxError};
use types::tx::{
    AgentRefuse, AgentStep, ForkVote, MinerBond, MinerUnbond, ParamVote, Protection, ToolCall,
};
use types::{
    Account, Address, Amount, Bid, Body, BondChange, CheckedTx, Credit, Hash, Late, Params, Supply,
};

use crate::world::{
    ALICE, BOB, FUNDS, MINER, OTHER_MINER, PROPOSER, SECOND, Who, World, cancel, chat, claim, step,
    transfer,
};

const V7: Forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0), v8: None };

fn with(params: Params, validators: &[Who]) -> World {
    let powers: Vec<_> = validators.iter().map(|who| (*who, 1)).collect();
    World::with_forks(params, V7, &powers)
}

fn bid(max_base_fee: u64, tip: u64) -> Bid {
    Bid { max_base_fee: Some(Amount::new(max_base_fee)), tip: Some(Amount::new(tip)) }
}

fn param(name: &str, value: u64, height: u64) -> Body {
    Body::ParamVote(ParamVote { name: name.to_owned(), value, height })
}

fn fork(name: &str, height: u64) -> Body {
    Body::ForkVote(ForkVote { fork: name.to_owned(), height })
}

fn pool(world: &World) -> PendingState {
    PendingState::new(world.still(), world.chain.clone()).unwrap()
}

fn pool_tx(world: &World, pool: &PendingState, who: Who, body: &Body) -> CheckedTx {
    let nonce = pool.account(who.address()).unwrap().nonce;
    world.tx(who, nonce, body).unwrap()
}

/// What the pool is told of a block, as `txpool::Touched` sums it up.
fn advance(
    world: &World,
    pool: &mut PendingState,
    included: &[CheckedTx],
    executed: &state::Executed,
) -> bool {
    let mut credits: BTreeMap<Address, Amount> = BTreeMap::new();
    for Credit { address, amount } in &executed.events.credits {
        let sum = credits.entry(*address).or_default();
        *sum = sum.checked_add(*amount).unwrap();
    }
    let mut bonds: BTreeMap<Address, BondChange> = BTreeMap::new();
    for (miner, change) in executed.events.iter().filter_map(|(_, event)| event.bond_change()) {
        let sum = bonds.entry(miner).or_default();
        sum.unlocked = sum.unlocked.checked_add(change.unlocked).unwrap();
        sum.burned = sum.burned.checked_add(change.burned).unwrap();
    }
    pool.advance(world.still(), included, &credits, &bonds).unwrap()
}

/// Gives an account all the money that there can be.
fn enrich(world: &mut World, who: Who, balance: u64) {
    let mut changes = Changes::new();
    let mut total = balance;
    for other in [ALICE, BOB, MINER, OTHER_MINER, PROPOSER] {
        if other != who {
            total += FUNDS;
        }
    }
    let account = Account { balance: Amount::new(balance), nonce: 0 };
    let row = (who.address().to_bytes(), Some(encode_value::<Accounts>(&account)));
    changes.insert(Accounts::ID, [row].into());
    let supply = Supply { genesis: Amount::new(total), ..Supply::default() };
    changes.insert(Supplies::ID, [(Vec::new(), Some(encode_value::<Supplies>(&supply)))].into());
    world.memory.apply(&changes);
    world.reopen();
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
        let pushed = world.builder().push(&tx);
        assert!(!matches!(pushed, Err(PushError::Storage(_))), "{pushed:?}");
    }
}

/// The step of a miner with just so many bytes that its place costs nothing.
fn padded_step(run: Hash, index: u64, calls: usize) -> Body {
    let call = || ToolCall {
        name: "n".repeat(170),
        args_hash: Hash::ZERO,
        result_hash: Hash::ZERO,
        duration_ms: 0,
        ok: true,
    };
    Body::AgentStep(AgentStep {
        agent_run_id: run,
        step_index: index,
        output_tokens: 0,
        output_hash: Hash::ZERO,
        thought_blob_id: None,
        tool_calls: Some((0..calls).map(|_| call()).collect()),
        output_blob_id: None,
    })
}

const BOND: u64 = 1_000_000;
const CLAIM_BOND: u64 = 100_000;

fn bond(amount: u64) -> Body {
    Body::MinerBond(MinerBond { amount: Amount::new(amount) })
}

fn unbond(amount: u64) -> Body {
    Body::MinerUnbond(MinerUnbond { amount: Amount::new(amount) })
}

fn refuse(agent_run_id: Hash) -> Body {
    Body::AgentRefuse(AgentRefuse { agent_run_id })
}

fn protected_body(world: &World, who: Who, protection: Protection) -> Body {
    let mut body = world.request_body(who, 5_000, 5);
    let Body::AgentRequest(request) = &mut body else { panic!("not a request") };
    request.protection = Late::from(protection);
    body
}

fn protection(refuse_ms: u64) -> Protection {
    Protection {
        miners: None,
        claim_bond: Some(Amount::new(CLAIM_BOND)),
        max_tokens_per_step: None,
        refuse_ms: Some(refuse_ms),
    }
}

/// Steps cost the same whatever the base fee is, so whoever mines for itself fills blocks with them for
/// about 50 micro per KiB. That raises the base fee for nobody, and a miner can still report its work.
#[test]
fn a_flood_of_steps_does_not_cost_other_miners_their_bonds() {
    let params = Params { max_block_bytes: 40_960, step_ttl_ms: 86_400_000, ..Params::default() };
    let mut world = with(params, &[PROPOSER]);
    world.must(MINER, &bond(BOND));
    let run = {
        let body = protected_body(&world, ALICE, protection(0));
        world.must(ALICE, &body);
        body.agent_run_id().unwrap()
    };
    world.next_block();
    // The attacker is BOB: it asks and mines.
    let rich = || bid(1_000_000_000, 0);
    let free = |world: &mut World, who: Who, body: &Body| {
        let tx = world.bidding_tx(who, world.account(who).nonce, body, rich()).unwrap();
        world.builder().push(&tx).map(|()| tx)
    };
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
                    assert!(
                        (1_800..=2_048).contains(&tx.content_bytes()),
                        "{}",
                        tx.content_bytes()
                    );
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
    let own = world.bidding_tx(MINER, world.account(MINER).nonce, &claim(MINER, run), rich());
    world.builder().push(&own.unwrap()).unwrap();
    let answer = world.send(MINER, &step(run, 0, 10)).map(drop);
    world.next_block();
    world.wait(Params::default().claim_ttl_ms + SECOND);
    let left = world.state().get::<Bonds>(&MINER.address()).unwrap().unwrap();
    assert_eq!((answer.map_err(|it| it.code().as_str()), left.bonded.get()), (Ok(()), BOND));
}

/// The draft has of each account what one has that is begun anew.
fn assert_as_anew(world: &World, draft: &PendingState, waiting: &[&CheckedTx]) {
    let mut anew = pool(world);
    for tx in waiting {
        anew.admit(tx).unwrap();
    }
    for who in [ALICE, BOB, MINER] {
        let of = |pool: &PendingState| pool.account(who.address()).unwrap();
        assert_eq!(of(&anew), of(draft));
    }
}

/// A draft of validators that vote, and what Alice sends: two votes, and something after them.
fn voting() -> (World, PendingState, [CheckedTx; 3]) {
    let world = with(Params { fork_delay_blocks: 5, ..Params::default() }, &[ALICE, BOB, MINER]);
    let mut draft = pool(&world);
    let mut admit = |body: &Body| {
        let tx = pool_tx(&world, &draft, ALICE, body);
        draft.admit(&tx).unwrap();
        tx
    };
    let txs = [
        admit(&fork("v8", 50)),
        admit(&param("baseFeeFloor", 20, 60)),
        admit(&chat("after the votes")),
    ];
    (world, draft, txs)
}

#[test]
fn the_draft_of_the_pool_outlives_blocks_while_votes_wait_and_when_they_are_taken() {
    let (mut world, mut draft, [first, second, after]) = voting();
    let executed = world.next_block();
    assert!(advance(&world, &mut draft, &[], &executed), "two wait");
    assert_as_anew(&world, &draft, &[&first, &second, &after]);
    world.must(BOB, &fork("v8", 50));
    let executed = world.next_block();
    assert!(advance(&world, &mut draft, &[], &executed), "somebody else's was taken");
    assert_as_anew(&world, &draft, &[&first, &second, &after]);
    for tx in [&first, &second] {
        world.builder().push(tx).unwrap();
    }
    let executed = world.next_block();
    let taken = [first, second];
    assert!(advance(&world, &mut draft, &taken, &executed), "one was free, and one was paid for");
    assert_as_anew(&world, &draft, &[&after]);
}

#[test]
fn what_was_set_aside_for_a_vote_that_was_free_in_its_block_comes_back() {
    let (mut world, mut draft, [first, second, after]) = voting();
    for tx in [first, second] {
        world.builder().push(&tx).unwrap();
        let executed = world.next_block();
        assert!(advance(&world, &mut draft, &[tx], &executed));
    }
    assert_as_anew(&world, &draft, &[&after]);
}

#[test]
fn a_vote_that_comes_while_another_waits_has_its_fee_set_aside_whatever_blocks_come_before() {
    let mut world =
        with(Params { fork_delay_blocks: 5, ..Params::default() }, &[ALICE, BOB, MINER]);
    let mut draft = pool(&world);
    let first = pool_tx(&world, &draft, ALICE, &fork("v8", 50));
    draft.admit(&first).unwrap();
    let free = draft.account(ALICE.address()).unwrap().balance;
    let executed = world.next_block();
    assert!(advance(&world, &mut draft, &[], &executed));
    let second = pool_tx(&world, &draft, ALICE, &param("baseFeeFloor", 20, 60));
    draft.admit(&second).unwrap();
    assert!(draft.account(ALICE.address()).unwrap().balance < free, "one block may take both");
    let after = pool_tx(&world, &draft, ALICE, &chat("after the votes"));
    draft.admit(&after).unwrap();
    for tx in [&first, &second] {
        world.builder().push(tx).unwrap();
    }
    let executed = world.next_block();
    assert!(advance(&world, &mut draft, &[first, second], &executed));
    assert_as_anew(&world, &draft, &[&after]);
}

/// A vote for a height that has come is in no block. The draft keeps it, and says so when it is asked.
#[test]
fn the_pool_learns_that_a_vote_comes_too_late() {
    let mut world = with(Params::default(), &[ALICE, BOB, MINER]);
    let mut pool = pool(&world);
    let height = world.context().height + 1;
    let vote = pool_tx(&world, &pool, ALICE, &param("baseFeeFloor", 20, height));
    pool.admit(&vote).unwrap();
    assert!(!pool.is_late(&vote));
    let executed = world.next_block();
    assert!(advance(&world, &mut pool, &[], &executed));
    let refused = matches!(world.builder().push(&vote), Err(PushError::Rejected(_)));
    assert!(refused && pool.is_late(&vote));
}

/// Members of v7's limit on unknown ones, one level deeper.
#[test]
fn unknown_members_of_elements_count() {
    use types::build::{Envelope, Unsigned};
    use types::{SizeLimits, Transaction};
    let mut world = with(Params { min_max_fee: Amount::new(1), ..Params::default() }, &[PROPOSER]);
    let run = world.request(ALICE, 1_000, 5);
    world.must(MINER, &claim(MINER, run));
    let body = padded_step(run, 0, 1);
    let envelope = Envelope::new(world.account(MINER).nonce, crate::world::START, None);
    let key = MINER.public_key();
    let unsigned = Unsigned::build(&body, &MINER.address().to_string(), &key, &envelope);
    let junk = format!(r#""ok":true,"junk":"{}""#, "j".repeat(1_000));
    let payload = unsigned.payload().replace(r#""ok":true"#, &junk);
    let limits = SizeLimits::from(&Params::default());
    let tx = Transaction::parse_unsigned(payload.as_bytes(), &limits).unwrap();
    let pushed = world.builder().push(&CheckedTx::trust(tx));
    assert!(matches!(pushed, Err(PushError::Rejected(_))), "{pushed:?}");
}

/// What others took out of bonds, 64 and more in each of 512 blocks, hides the deadlines of runs behind it.
#[test]
fn a_backlog_of_unbonding_keeps_no_reward_from_being_paid() {
    use state::tables::{Deadlines, Unbondings};
    const BLOCKS: u64 = 600;
    const EACH: u64 = 64;
    let mut world = with(Params::default(), &[PROPOSER]);
    // As if other accounts had sent MINER_UNBOND, and the budget of a block had not sufficed to pay them.
    let (mut due, mut amounts) = (BTreeMap::new(), BTreeMap::new());
    for block in 0..BLOCKS {
        for number in 0..EACH {
            let mut bytes = [0_u8; 20];
            bytes[..8].copy_from_slice(&(block * EACH + number).to_be_bytes());
            let (miner, at) = (Address::new(bytes), crate::world::START + 1 + block);
            amounts
                .insert((miner, at).to_bytes(), Some(encode_value::<Unbondings>(&Amount::new(1))));
            let key = state::bonds::deadline_key(at, &miner).to_bytes();
            due.insert(key, Some(encode_value::<Deadlines>(&())));
        }
    }
    let unbonding = BLOCKS * EACH;
    let genesis = Amount::new(5 * FUNDS + unbonding);
    let supply = Supply { genesis, unbonding: Amount::new(unbonding), ..Supply::default() };
    let supply = [(Vec::new(), Some(encode_value::<Supplies>(&supply)))].into();
    let rows = [(Deadlines::ID, due), (Unbondings::ID, amounts), (Supplies::ID, supply)];
    world.memory.apply(&rows.into());
    world.reopen();
    let run = world.request(ALICE, 1_000, 5);
    world.next_block();
    let swept = world.wait(Params::default().pending_ttl_ms + SECOND);
    let is_it = |event: &types::Event| event.agent_run_id() == Some(run);
    assert!(swept.iter().any(is_it), "the run has not timed out; {} others were paid", swept.len());
}

/// What a simulation counts starts in the middle, so more than half of 2^64 has no room.
#[test]
fn a_large_bond_can_be_simulated() {
    let mut world = with(Params::default(), &[PROPOSER]);
    let half = 1_u64 << 63;
    enrich(&mut world, MINER, half + 10_000_000);
    let pool = pool(&world);
    let tx = pool_tx(&world, &pool, MINER, &bond(half + 1));
    pool.check(&tx).unwrap();
    let simulated = pool.simulate(&tx, 1, world.parent.timestamp + SECOND);
    assert!(!matches!(simulated, Err(TxError::Storage(_))), "{:?}", simulated.err());
}

/// A step of no tokens is no work, and costs the submitter 100 micro beside.
#[test]
fn an_answer_with_an_empty_step_costs_the_claim_bond_too() {
    let mut world = with(Params::default(), &[PROPOSER]);
    world.must(MINER, &bond(BOND));
    let body = protected_body(&world, ALICE, protection(0));
    world.must(ALICE, &body);
    let run = body.agent_run_id().unwrap();
    world.must(MINER, &claim(MINER, run));
    world.must(MINER, &step(run, 0, 0));
    let end = world.finish_body(run, "completed");
    world.must(MINER, &end);
    world.next_block();
    let left = world.state().get::<Bonds>(&MINER.address()).unwrap().unwrap();
    assert_eq!(left.bonded.get(), BOND - CLAIM_BOND);
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
    let paid = types::Event::UnbondingPaid { miner: MINER.address(), amount: Amount::new(BOND) };
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
}

/// How much of its bond the draft lets a miner take out.
fn free_bond(world: &World, pool: &PendingState, who: Who) -> u64 {
    let (mut low, mut high) = (0, 20_000_000);
    while low < high {
        let middle = u64::div_ceil(low + high, 2);
        let nonce = pool.account(who.address()).unwrap().nonce;
        let tx = world.bidding_tx(who, nonce, &unbond(middle), bid(1_000_000_000, 0)).unwrap();
        match pool.check(&tx) {
            Err(TxError::Rejected(it)) if it.code().as_str() == "BOND_TOO_SMALL" => {
                high = middle - 1;
            }
            Err(TxError::Rejected(it))
                if matches!(it.code().as_str(), "INSUFFICIENT_BALANCE" | "FORK_NOT_ACTIVE") =>
            {
                return u64::MAX;
            }
            Err(other) => panic!("{other}"),
            Ok(()) => low = middle,
        }
    }
    low
}

fn finish_of(run: &types::Run, status: &str) -> Body {
    let totals = state::settlement(run).unwrap();
    let types::Settlement { miner_reward, user_refund, network_fee } = totals.settlement;
    Body::AgentFinish(types::tx::AgentFinish {
        agent_run_id: run.agent_run_id,
        total_tokens_out: totals.total_tokens_out,
        status: status.to_owned(),
        miner_reward,
        user_refund,
        network_fee,
        final_answer_inline: None,
        final_answer_blob_id: None,
    })
}

fn some_act(pool: &PendingState, dice: &mut Dice, runs: &mut Vec<Hash>) -> (Who, Body) {
    let anybody =
        [ALICE, BOB, MINER, OTHER_MINER, PROPOSER][usize::try_from(dice.roll(5)).unwrap()];
    let miner = [MINER, OTHER_MINER, PROPOSER, ALICE][usize::try_from(dice.roll(4)).unwrap()];
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
            let mut body = crate::world::request_body(anybody, nonce, 500 + dice.roll(5_000), 5);
            let Body::AgentRequest(request) = &mut body else { panic!("not a request") };
            request.protection = Late::from(Protection {
                miners: None,
                claim_bond: (dice.roll(4) > 0).then(|| Amount::new(dice.roll(200_000))),
                max_tokens_per_step: None,
                refuse_ms: Some([0, 1, 3_000, 10_000][usize::try_from(dice.roll(4)).unwrap()]),
            });
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
                (Some(own), 13) => (own, finish_of(&run, "failed")),
                (Some(own), _) if !run.status.is_terminal() => (own, finish_of(&run, "completed")),
                (Some(_), _) => (submitter, refuse(id)),
            }
        }
    }
}

fn play(seed: u64, params: Params, forks: Forks) {
    let mut dice = Dice(seed);
    let mut world = World::with_forks(params, forks, &[(PROPOSER, 1)]);
    let mut pool = pool(&world);
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
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
        let later = [200, 1_000, 5_000, 40_000][usize::try_from(dice.roll(4)).unwrap()];
        let executed = world.next_block_after(later);
        let is_right = advance(&world, &mut pool, &included, &executed);
        for (_, event) in executed.events.iter() {
            let name = format!("{event:?}");
            *seen.entry(name.split([' ', '{']).next().unwrap().to_owned()).or_default() += 1;
            if event.bond_change().is_some_and(|(_, change)| !change.burned.is_zero()) {
                *seen.entry("burned".to_owned()).or_default() += 1;
            }
        }
        *seen.entry(format!("followed {is_right}")).or_default() += 1;
        let touched: Vec<Hash> = executed
            .events
            .end
            .iter()
            .filter(|event| {
                matches!(
                    event,
                    types::Event::RunReopened { .. }
                        | types::Event::RunTimedOut { .. }
                        | types::Event::RewardPaid { .. }
                )
            })
            .filter_map(types::Event::agent_run_id)
            .collect();
        let is_hit =
            rest.iter().filter_map(|tx| tx.body().agent_run_id()).any(|it| touched.contains(&it));
        let mut again = self::pool(&world);
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
    let short = |params: Params| Params {
        pending_ttl_ms: 30_000,
        claim_ttl_ms: 10_000,
        step_ttl_ms: 10_000,
        max_reopens: 1,
        ..params
    };
    std::thread::scope(|scope| {
        for lane in 0..4 {
            scope.spawn(move || {
                for seed in (0..4).filter(|seed| seed % 4 == lane) {
                    let stake = Amount::new(9_000_000);
                    let all = [
                        Params { unbond_ms: 1, refuse_stake: Amount::ZERO, ..Params::default() },
                        Params { unbond_ms: 10_000, refuse_stake: stake, ..Params::default() },
                        Params {
                            max_block_bytes: 4_096,
                            max_expiries_per_block: 1,
                            unbond_ms: 3_000,
                            ..Params::default()
                        },
                        Params {
                            base_fee_floor: 1_000,
                            max_block_bytes: 4_096,
                            register_fee: Amount::MAX,
                            ..Params::default()
                        },
                    ];
                    for params in all {
                        play(seed, short(params), V7);
                    }
                }
            });
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
