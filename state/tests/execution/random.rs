//! Random valid and invalid sequences over many wallets and runs: the ledger and the model must
//! give the same answers, balances and statuses, and the invariants hold after every block.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use proptest::prelude::*;
use state::table::TableId;
use state::tables::{Fees, ForkRows, ParamRows, READ_BY_CHECKS};
use state::view::{self, Range, RawRow};
use state::{Forks, PushError, Read, Resource, StorageError, TxError, check, validators};
use types::{
    Address, Amount, Bid, CheckedTx, EscrowChange, Event, Params, PublicKey, SetMember, Settlement,
};

use crate::acts::{Act, acts_and_all_votes, acts_and_votes};
use crate::model::{Life, Model, ModelValidators};
use crate::model_rules::{ModelParam, ModelRules, Place, size};
use crate::world::{FUNDS, PROPOSER, Swept, Who, World};

/// The first validators.
const VALIDATORS: [(Who, u64); 3] = [(Who(1), 10), (Who(2), 10), (Who(3), 10)];

fn params() -> Params {
    Params {
        pending_ttl_ms: 5_000,
        claim_ttl_ms: 3_000,
        step_ttl_ms: 4_000,
        blob_ttl_ms: 6_000,
        max_reopens: 1,
        max_expiries_per_block: 2,
        max_output_tokens_per_step: 1_000,
        block_reward: Amount::new(7),
        ..Params::default()
    }
}

/// Blocks so small that the base fee moves by the bytes that are in them.
fn small_blocks() -> Params {
    Params {
        max_block_bytes: 20_000,
        base_fee_floor: 1_000,
        heartbeat_ms: 1_000,
        fork_delay_blocks: 1,
        ..params()
    }
}

fn world(params: Params, v7: Option<u64>) -> World {
    let forks = Forks { validator_vote: Some(0), v7, ..Forks::default() };
    World::with_forks(params, forks, &VALIDATORS)
}

fn model(world: &World) -> Model {
    let funded = (1..6).map(|who| (Who(who).address(), i128::from(FUNDS)));
    let chain = &world.chain;
    let mut model = Model::new(chain.params.clone(), PROPOSER.address(), funded.collect());
    model.validators = ModelValidators::new(&VALIDATORS);
    model.rules = ModelRules::new(chain.forks.v7);
    model.now = world.parent.timestamp + 1_000;
    model.proposer = world.proposer.address();
    model.begin_block();
    model
}

fn agree(mut world: World, acts: Vec<Act>) {
    let mut model = model(&world);
    for act in acts {
        if act.ends_block() {
            end_block(&mut world, &mut model, u64::from(act.amount) % 2_500 + 1);
        } else {
            act_on_both(&mut world, &mut model, act);
        }
    }
    end_block(&mut world, &mut model, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_agrees_with_the_model(acts in acts_and_votes(250)) {
        agree(world(params(), None), acts);
    }
}

proptest! {
    // There are more kinds of acts, and longer blocks.
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_agrees_with_the_model_from_v7_on(acts in acts_and_all_votes(250)) {
        // Here it moves by their work, too.
        let params = Params { max_block_work: 800, ..small_blocks() };
        agree(world(params, Some(0)), acts);
    }

    #[test]
    fn the_ledger_agrees_with_the_model_before_and_after_v7_begins(
        acts in acts_and_all_votes(250)
    ) {
        let params = Params { fork_delay_blocks: 2, ..small_blocks() };
        agree(world(params, Some(4)), acts);
    }
}

fn act_on_both(world: &mut World, model: &mut Model, act: Act) {
    let sender = act.sender(model);
    let nonce = act.nonce(model.nonce(sender.address()));
    let body = act.body(model, sender, nonce);
    let bid = if world.chain.forks.v7.is_some() { act.bid() } else { Bid::default() };
    let tx = world.bidding_tx(sender, nonce, &body, bid.clone()).expect("the static checks hold");
    let checked = spied_check(world, &tx);
    let place = Place { payload: tx.payload().len(), bid: &bid };
    let room = i128::from(model.params.max_block_bytes) - model.rules.used;
    let work = model.work(&body, &place);
    let work_room = i128::from(model.params.max_block_work) - model.rules.worked;
    let answer = match world.builder().push(&tx) {
        Ok(()) => "ok",
        Err(PushError::Rejected(rejection)) => rejection.code().as_str(),
        Err(PushError::Full { resource: Resource::Bytes, .. }) => {
            return assert!(size(place.payload) > room);
        }
        Err(PushError::Full { resource: Resource::Work, .. }) => return assert!(work > work_room),
        Err(PushError::Storage(fault)) => panic!("{fault}"),
    };
    assert!(size(place.payload) <= room && (answer != "ok" || work <= work_room));
    let expected = model.send(sender.address(), nonce, &body, tx.hash(), &place);
    assert_eq!(answer, expected, "{body:?} of {sender:?}");
    assert_eq!(checked, expected, "check and execute differ");
}

/// The answer of a mere check, which must not read any table but those that the pool keeps.
fn spied_check(world: &World, tx: &CheckedTx) -> &'static str {
    let spy = Spy { state: world.state(), seen: Mutex::default() };
    let answer = match check(tx, &spy, &world.context()) {
        Ok(()) => "ok",
        Err(TxError::Rejected(rejection)) => rejection.code().as_str(),
        Err(TxError::Storage(fault)) => panic!("{fault}"),
    };
    for table in spy.seen.into_inner().unwrap() {
        assert!(READ_BY_CHECKS.contains(&table), "a check read {}", table.name);
    }
    answer
}

struct Spy<'a> {
    state: &'a dyn Read,
    seen: Mutex<BTreeSet<TableId>>,
}

impl Read for Spy<'_> {
    fn get_raw(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.seen.lock().unwrap().insert(table);
        self.state.get_raw(table, key)
    }

    fn scan_raw(&self, table: TableId, range: Range<'_>) -> Result<Vec<RawRow>, StorageError> {
        self.seen.lock().unwrap().insert(table);
        self.state.scan_raw(table, range)
    }
}

fn end_block(world: &mut World, model: &mut Model, next_after_ms: u64) {
    let escrowed = i128::from(world.supply_before_the_block().escrowed.get());
    let executed = world.next_block_after(next_after_ms);
    let moved: i128 =
        executed.events.iter().filter_map(|(_, event)| event.escrow_change()).map(held).sum();
    assert_eq!(escrowed + moved, i128::from(world.supply().escrowed.get()));
    let swept: Vec<String> = executed.swept().iter().map(swept_id).collect();
    assert_eq!(swept, model.end_block());
    assert_same(world, model);
    assert_same_rules(world, model);
    model.begin_block();
    model.now = world.parent.timestamp + next_after_ms;
    model.proposer = world.proposer.address();
}

fn held((_, change): (Address, EscrowChange)) -> i128 {
    match change {
        EscrowChange::Held(amount) => i128::from(amount.get()),
        EscrowChange::Released(settlement) => -i128::from(settlement.total().unwrap().get()),
    }
}

fn swept_id(event: &Event) -> String {
    if let Event::BlobDropped { blob_id } = event {
        return blob_id.clone();
    }
    if let Event::ValidatorChanged { public_key, power, .. } = event {
        return format!("{public_key}={power}");
    }
    if let Event::ForkFixed { fork, height } = event {
        return format!("{fork}@{height}");
    }
    if let Event::ParamFixed { name, value, height } = event {
        return format!("{name}={value}@{height}");
    }
    event
        .agent_run_id()
        .expect("the end of a block is about runs, blobs, validators and rules")
        .to_string()
}

/// The rules that stand in the state after a block.
fn assert_same_rules(world: &World, model: &Model) {
    let state = &*world.memory;
    let all = || Range { from: &[], to: None, limit: usize::MAX };
    let rules = &model.rules;
    let base_fee = view::get::<Fees>(state, &()).unwrap().map(|row| i128::from(row.base_fee));
    let is_active = rules.are_active(world.parent.height);
    assert_eq!(base_fee, is_active.then_some(rules.base_fee));
    let forks = view::scan::<ForkRows>(state, all()).unwrap();
    let forks: BTreeMap<String, (u64, u64)> =
        forks.into_iter().map(|(name, row)| (name, (row.height, row.since))).collect();
    assert_eq!(forks, rules.forks);
    let params = view::scan::<ParamRows>(state, all()).unwrap();
    let params: BTreeMap<String, ModelParam> = params
        .into_iter()
        .map(|(name, row)| (name, (row.value, row.next.map(|next| (next.value, next.height)))))
        .collect();
    assert_eq!(params, rules.values);
}

fn assert_same(world: &World, model: &Model) {
    for who in (1..7).map(Who) {
        let account = world.account(who);
        assert_eq!(i128::from(account.balance.get()), model.balance(who.address()), "{who:?}");
        assert_eq!(account.nonce, model.nonce(who.address()));
    }
    assert_eq!(i128::from(world.supply().burned.get()), model.burned);
    let sets = validators::sets(&*world.base()).unwrap().unwrap();
    let powers = |set: &[SetMember]| -> BTreeMap<PublicKey, u64> {
        set.iter().map(|member| (member.public_key, member.power)).collect()
    };
    assert_eq!(powers(&sets.current), model.validators.current);
    assert_eq!(sets.next.as_deref().map(powers), model.validators.next);
    for (id, expected) in &model.runs {
        let run = world.run(*id);
        assert_eq!(run.status.as_str(), expected.word());
        assert_eq!(run.excluded_miners, expected.excluded);
        assert_eq!(i128::from(run.tokens_out), expected.tokens());
        assert_eq!(run.step_count, u64::try_from(expected.steps.len()).unwrap());
        let parts = run.settlement.map(|Settlement { miner_reward, user_refund, network_fee }| {
            [miner_reward, user_refund, network_fee].map(|part| i128::from(part.get()))
        });
        match expected.life {
            Life::Ended { reward, refund, fee, .. } => {
                assert_eq!(parts, Some([reward, refund, fee]));
            }
            Life::Pending { .. } | Life::Claimed { .. } | Life::Running { .. } => {
                assert_eq!(parts, None);
            }
        }
    }
}
