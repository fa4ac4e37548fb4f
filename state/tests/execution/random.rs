//! Random valid and invalid sequences over many wallets and runs: the ledger and the model must
//! give the same answers, balances and statuses, and the invariants hold after every block.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::Mutex;

use proptest::prelude::*;
use state::table::{Table, TableId};
use state::tables::{
    AgentTexts, AgentVersions, Agents, AgentsByOwner, Bonds, Fees, FiguresOfSubmitters, ForkRows,
    Offers, OffersByExecutor, ParamRows, READ_BY_CHECKS, Unbondings,
};
use state::view::{self, Range, RawRow};
use state::{Forks, PushError, Read, Resource, StorageError, check, market};
use types::{
    Address, Amount, Bid, Body, CheckedTx, EscrowChange, Event, Offer, Params, Prices, PublicKey,
    SetMember, Settlement,
};

use crate::acts::{Act, EXECUTORS, acts_and_votes, acts_of_v7};
use crate::model::{Life, Model, ModelRun};
use crate::model_agents::numbers;
use crate::model_rules::{ModelParam, ModelPlace, ModelRules, size};
use crate::model_validators::ModelValidators;
use crate::world::{FUNDS, PROPOSER, Swept, Who, World, answer};

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
        refuse_stake: Amount::new(700),
        unbond_ms: 4_000,
        min_bond: Amount::new(3_000),
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

/// How often each answer was given to each kind.
pub type Answers = BTreeMap<(&'static str, &'static str), u64>;

fn agree(mut world: World, acts: impl IntoIterator<Item = Act>) -> Answers {
    let mut model = model(&world);
    let mut answers = Answers::new();
    for act in acts {
        if act.ends_block() {
            end_block(&mut world, &mut model, u64::from(act.amount) % 2_500 + 1);
        } else if let Some(answer) = act_on_both(&mut world, &mut model, act) {
            *answers.entry(answer).or_default() += 1;
        }
    }
    end_block(&mut world, &mut model, 1);
    answers
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
    fn the_ledger_agrees_with_the_model_from_v7_on(acts in acts_of_v7(250)) {
        // Here it moves by their work, too.
        let params = Params { max_block_work: 800, ..small_blocks() };
        agree(world(params, Some(0)), acts);
    }

    #[test]
    fn the_ledger_agrees_with_the_model_before_and_after_v7_begins(
        acts in acts_of_v7(250)
    ) {
        let params = Params { fork_delay_blocks: 2, ..small_blocks() };
        agree(world(params, Some(4)), acts);
    }
}

/// How many transactions the long test tries; a million takes about half an hour.
pub const TRANSACTIONS: &str = "OMBRA_MODEL_TRANSACTIONS";
const TRANSACTIONS_USUALLY: u64 = 20_000;
/// The seed of the first chain, to repeat a failure or to divide the chains among processes.
const FIRST_CHAIN: &str = "OMBRA_MODEL_FIRST_CHAIN";

/// The number in an environment variable, if it is set.
pub fn number_in(variable: &str, usually: u64) -> u64 {
    env::var(variable).map_or(usually, |text| text.parse().unwrap())
}

/// The seed with which a long test begins.
pub fn first_chain() -> u64 {
    number_in(FIRST_CHAIN, 0)
}

/// Whether the chain of a seed is in a database that restarts: each one if somebody asked for a number of
/// transactions, else one in four, because each block of it waits for the disk.
pub fn is_in_a_database(seed: u64) -> bool {
    seed.is_multiple_of(4) || env::var_os(TRANSACTIONS).is_some()
}
/// Acts of one chain.
const LIFE: usize = 1_500;

/// Random numbers that are the same for a seed each time (`SplitMix64`).
pub struct Dice(pub u64);

impl Iterator for Dice {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(mixed ^ (mixed >> 31))
    }
}

/// What must have happened, so that an agreement says something.
const SEEN: [(&str, &[&str]); 14] = [
    ("AGENT_CLAIM", &["BOND_TOO_SMALL", "MINER_EXCLUDED", "MINER_NOT_ALLOWED", "ok"]),
    ("AGENT_FINISH", &["SETTLEMENT_MISMATCH", "ok"]),
    ("AGENT_REFUSE", &["INSUFFICIENT_BALANCE", "NOT_SUBMITTER", "REFUSE_CLOSED", "ok"]),
    ("AGENT_REGISTER", &["AGENT_ID_MISMATCH", "AGENT_METADATA", "FORK_NOT_ACTIVE", "ok"]),
    ("AGENT_REQUEST", &["FEE_ABOVE_MAX", "ok"]),
    ("AGENT_RETIRE", &["AGENT_NOT_FOUND", "AGENT_RETIRED", "NOT_AGENT_OWNER", "ok"]),
    ("AGENT_STEP", &["TOKENS_LIMIT", "ok"]),
    ("FORK_VOTE", &["ok"]),
    ("MINER_BOND", &["INSUFFICIENT_BALANCE", "ok"]),
    ("MINER_OFFER", &["BOND_TOO_SMALL", "FORK_NOT_ACTIVE", "ok"]),
    ("MINER_UNBOND", &["BOND_TOO_SMALL", "ok"]),
    ("PARAM_VOTE", &["ok"]),
    ("TRANSFER", &["FEE_ABOVE_MAX"]),
    ("VALIDATOR_VOTE", &["ok"]),
];

/// Each of these answers was given to the kind.
pub fn assert_seen(answers: &Answers, kinds: &[(&'static str, &[&'static str])]) {
    let all = kinds.iter().flat_map(|(kind, wanted)| wanted.iter().map(move |it| (*kind, *it)));
    let missing: Vec<_> = all.filter(|answer| !answers.contains_key(answer)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}");
}

/// One chain after the other, each of a seed: the first is the number in the message of a failure.
#[test]
fn the_ledger_agrees_with_the_model_over_many_transactions() {
    let wanted = number_in(TRANSACTIONS, TRANSACTIONS_USUALLY);
    let mut answers = Answers::new();
    let (mut tried, mut seed) = (0, first_chain());
    while tried < wanted {
        let v7 = [Some(0), Some(4), Some(0), Some(0)][usize::try_from(seed % 4).unwrap()];
        let max_block_work = if seed % 2 == 0 { 800 } else { Params::default().max_block_work };
        let mut world = world(Params { max_block_work, ..small_blocks() }, v7);
        if is_in_a_database(seed) {
            world = world.in_a_database();
        }
        println!("chain {seed}");
        for (answer, times) in agree(world, Dice(seed).take(LIFE).map(Act::of_bits)) {
            *answers.entry(answer).or_default() += times;
            tried += times;
        }
        seed += 1;
    }
    let accepted: u64 =
        answers.iter().filter(|((_, answer), _)| *answer == "ok").map(|(_, times)| times).sum();
    println!("{tried} transactions before chain {seed}, of which {accepted} were accepted");
    for ((kind, answer), times) in &answers {
        println!("{kind:22} {answer:22} {times:9}");
    }
    assert_seen(&answers, &SEEN);
}

/// The kind and the answer to it; none if the block had no room.
fn act_on_both(
    world: &mut World,
    model: &mut Model,
    act: Act,
) -> Option<(&'static str, &'static str)> {
    let sender = act.sender(model);
    let nonce = act.nonce(model.nonce(sender.address()));
    let body = act.body(model, sender, nonce);
    let bid = if world.chain.forks.v7.is_some() { act.bid() } else { Bid::default() };
    let tx = world.bidding_tx(sender, nonce, &body, bid.clone()).expect("the static checks hold");
    let checked = spied_check(world, &tx);
    let place = ModelPlace { payload: tx.payload().len(), bid: &bid };
    let room = i128::from(model.params.max_block_bytes) - model.rules.used;
    let work = model.work(sender.address(), &body, &place);
    let work_room = i128::from(model.params.max_block_work) - model.rules.worked;
    let answer = match world.builder().push(&tx) {
        Err(PushError::Full { resource: Resource::Bytes, .. }) => {
            assert!(size(place.payload) > room);
            return None;
        }
        Err(PushError::Full { resource: Resource::Work, .. }) => {
            assert!(work > work_room);
            return None;
        }
        pushed => answer(pushed),
    };
    assert!(size(place.payload) <= room && (answer != "ok" || work <= work_room));
    let expected = model.send(sender.address(), nonce, &body, tx.hash(), &place);
    assert_eq!(answer, expected, "{body:?} of {sender:?}");
    assert_eq!(checked, expected, "check and execute differ");
    Some((body.type_name(), answer))
}

/// The answer of a mere check, which must not read any table but those that the pool keeps.
pub fn spied_check(world: &World, tx: &CheckedTx) -> &'static str {
    let spy = Spy { state: world.state(), seen: Mutex::default() };
    let answer = answer(check(tx, &spy, &world.context()));
    // Who may be a member after an appeal the pool finds by the order of before its own transactions.
    let is_appeal = matches!(tx.body(), Body::CallAppeal(_));
    for table in spy.seen.into_inner().unwrap() {
        let is_kept = READ_BY_CHECKS.contains(&table);
        let is_order = is_appeal && table == OffersByExecutor::ID;
        assert!(is_kept || is_order, "a check read {}", table.name);
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
    assert_same_stakes(world, model);
    assert_same_agents(world, model);
    assert_same_offers(world, model);
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
    match event {
        Event::BlobDropped { blob_id } => blob_id.clone(),
        Event::ValidatorChanged { public_key, power, .. } => format!("{public_key}={power}"),
        Event::ForkFixed { fork, height } => format!("{fork}@{height}"),
        Event::ParamFixed { name, value, height } => format!("{name}={value}@{height}"),
        Event::BondUnlocked { agent_run_id, unlocked, burned, .. } => {
            format!("{agent_run_id} unlocks {unlocked}, burns {burned}")
        }
        Event::UnbondingPaid { miner, amount } => format!("{miner} gets {amount}"),
        other => other
            .agent_run_id()
            .expect("the end of a block is about runs, blobs, validators and rules")
            .to_string(),
    }
}

/// The rules that stand in the state after a block.
fn assert_same_rules(world: &World, model: &Model) {
    let (state, rules) = (&*world.memory, &model.rules);
    let base_fee = view::get::<Fees>(state, &()).unwrap().map(|row| i128::from(row.base_fee));
    let is_active = rules.are_active(world.parent.height);
    assert_eq!(base_fee, is_active.then_some(rules.base_fee));
    let forks = world.rows::<ForkRows>().into_iter();
    let forks: BTreeMap<String, (u64, u64)> =
        forks.map(|(name, row)| (name, (row.height, row.since))).collect();
    assert_eq!(forks, rules.forks);
    let params = world.rows::<ParamRows>().into_iter();
    let params: BTreeMap<String, ModelParam> = params
        .map(|(name, row)| (name, (row.value, row.next.map(|next| (next.value, next.height)))))
        .collect();
    assert_eq!(params, rules.values);
}

/// What everybody has at stake, and what waits to be paid.
fn assert_same_stakes(world: &World, model: &Model) {
    let (state, stakes) = (&*world.memory, &model.stakes);
    let money = |amount: Amount| i128::from(amount.get());
    for who in (1..7).map(|who| Who(who).address()) {
        let bond = view::get::<Bonds>(state, &who).unwrap().unwrap_or_default();
        assert_eq!((money(bond.bonded), money(bond.locked)), stakes.of(who));
        let figures = view::get::<FiguresOfSubmitters>(state, &who).unwrap().unwrap_or_default();
        let expected = stakes.figures.get(&who).copied().unwrap_or_default();
        assert_eq!((figures.held, figures.refused), expected);
    }
    let waiting = world.rows::<Unbondings>().into_iter();
    let waiting: BTreeMap<(u64, Address), i128> =
        waiting.map(|((miner, due), amount)| ((due, miner), money(amount))).collect();
    assert_eq!(waiting, stakes.waiting);
    let supply = world.supply();
    assert_eq!(money(supply.bonded), stakes.bonded());
    assert_eq!(money(supply.unbonding), stakes.waiting.values().sum());
    assert_eq!(money(supply.escrowed), model.runs.values().map(ModelRun::escrow).sum());
}

/// Who offers what, and whose offers an election would read.
fn assert_same_offers(world: &World, model: &Model) {
    let state = &*world.memory;
    let offer = |offer: Offer| {
        let Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g } = offer.prices;
        let prices = [per_call, prompt_per_m, completion_per_m, fuel_per_g];
        (offer.capacity, prices.map(Amount::get))
    };
    let offers = world.rows::<Offers>().into_iter();
    let offers: BTreeMap<_, _> =
        offers.map(|((miner, executor), it)| ((miner, executor.to_string()), offer(it))).collect();
    assert_eq!(offers, model.offers.all);
    let params = Params { offers_per_executor_max: 3, ..model.params.clone() };
    let limits = (i128::from(params.min_bond.get()), 3);
    for executor in EXECUTORS {
        let counting = market::offers::counting(state, executor, &params).unwrap();
        let counting: Vec<_> = counting
            .into_iter()
            .map(|it| (it.miner, i128::from(it.bond.get()), offer(it.offer)))
            .collect();
        let bonded = |miner| model.stakes.of(miner).0;
        assert_eq!(counting, model.offers.counting(&executor.to_string(), bonded, limits));
    }
}

/// Every agent with its versions, by their numbers, and what runs them.
fn assert_same_agents(world: &World, model: &Model) {
    let agents = world.rows::<Agents>();
    assert_eq!(agents.len(), model.agents.all.len());
    for (id, agent) in &agents {
        let expected = &model.agents.all[id];
        assert_eq!((agent.owner, &agent.name), (expected.owner, &expected.name));
        assert_eq!(agent.is_retired, expected.is_retired);
        assert_eq!(agent.versions, u64::try_from(expected.versions.len()).unwrap());
        assert_eq!(Some(&numbers(&agent.latest)), expected.versions.keys().last());
    }
    let versions = world.rows::<AgentVersions>();
    let count: usize = model.agents.all.values().map(|agent| agent.versions.len()).sum();
    assert_eq!(versions.len(), count);
    for ((id, name), version) in &versions {
        let versions = &model.agents.all[id].versions;
        let expected = &versions[&numbers(name)];
        let before = versions.range(..numbers(name)).last().map(|(numbers, _)| *numbers);
        assert_eq!(version.previous.as_deref().map(numbers), before);
        assert_eq!(version.executors.iter().cloned().collect::<BTreeSet<_>>(), expected.executors);
        assert_eq!(version.nesting, expected.depth);
        assert_eq!(version.is_deterministic, expected.is_deterministic);
        assert_eq!(version.royalty.get(), expected.royalty);
        let text = view::get::<AgentTexts>(&*world.memory, &(*id, name.clone())).unwrap();
        assert_eq!(text.as_ref(), Some(&expected.text));
    }
    let owners = world.rows::<AgentsByOwner>().into_iter();
    let owners: BTreeSet<_> = owners.map(|(key, ())| key).collect();
    let expected = model.agents.all.iter().map(|(id, agent)| (agent.owner, *id));
    assert_eq!(owners, expected.collect());
}

fn assert_same(world: &World, model: &Model) {
    for who in (1..7).map(Who) {
        let account = world.account(who);
        assert_eq!(i128::from(account.balance.get()), model.balance(who.address()), "{who:?}");
        assert_eq!(account.nonce, model.nonce(who.address()));
    }
    assert_eq!(i128::from(world.supply().burned.get()), model.burned);
    let sets = world.sets();
    let powers = |set: &[SetMember]| -> BTreeMap<PublicKey, u64> {
        set.iter().map(|member| (member.public_key, member.power)).collect()
    };
    assert_eq!(powers(&sets.current), model.validators.current);
    assert_eq!(sets.next.as_deref().map(powers), model.validators.next);
    for (id, expected) in &model.runs {
        let run = world.run(*id);
        assert_eq!(run.status.as_str(), expected.word());
        assert_eq!(run.excluded_miners, expected.excluded);
        assert_eq!(run.locked_bond.map_or(0, |bond| i128::from(bond.get())), expected.locked);
        assert_eq!((run.is_held(), run.is_refused), (expected.held.is_some(), expected.is_refused));
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
