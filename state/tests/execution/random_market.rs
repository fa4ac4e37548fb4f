//! Random calls over many miners, offers and agents: the ledger and the model must give the same answers,
//! draws, decisions and bills, and every call ends settled with nothing left in escrow.

use std::collections::BTreeMap;

use fixtures::{prices, retire};
use state::tables::{Calls, Fees};
use types::call::Call;
use types::ids::compute_agent_id;
use types::params::Models;
use types::tx::{AgentCall, CallCommit, CallReveal, HexBytes, OnResult, WorkLimits};
use types::{Amount, Bid, Body, Hash, Params};

use crate::agent_metadata::Sheet;
use crate::bodies::{bond, offer, unbond};
use crate::market_world::{appeal, call_body};
use crate::model::Model;
use crate::model_calls::{Begins, ModelCall, ModelMember};
use crate::model_rules::{ModelPlace, ModelRules};
use crate::model_validators::ModelValidators;
use crate::random::{
    Answers, Dice, TRANSACTIONS, assert_seen, first_chain, is_in_a_database, number_in, spied_check,
};
use crate::world::{
    ALICE, BOB, FUNDS, MINER, OTHER_MINER, PROPOSER, V8, Who, World, answer, transfer,
};

/// A million takes some hours without optimisation.
const USUALLY: u64 = 12_000;
/// Acts of one chain.
const LIFE: usize = 500;
const MANIFESTS: [Hash; 2] = [Hash::new([0xaa; 32]), Hash::new([0xbb; 32])];
const MINERS: u8 = 14;
/// Of each agent.
const ROYALTY: u64 = 500;
const PAYERS: [Who; 4] = [ALICE, BOB, MINER, OTHER_MINER];

/// Of the seeds one in five has no penalties, so that nothing is locked for most calls, and one in five has
/// such a penalty for dissent that second rounds lock what is left of bonds.
fn params(seed: u64) -> Params {
    let penalty = |micro| Amount::new(if seed % 5 == 4 { 0 } else { micro });
    Params {
        min_bond: Amount::new(100_000),
        dissent_penalty: penalty(if seed % 5 == 3 { 100_001 } else { 9_001 }),
        absence_penalty: penalty(1_000),
        unrevealed_penalty: penalty(10_000),
        outside_penalty: penalty(200),
        max_expiries_per_block: 2,
        slashable_models: Models::All,
        unbond_ms: 4_000,
        offers_per_executor_max: 16,
        max_block_bytes: 60_000,
        max_block_work: 20_000,
        base_fee_floor: 20,
        block_reward: Amount::new(7),
        ..Params::default()
    }
}

/// What a member committed to.
#[derive(Clone)]
struct Secret {
    result: Vec<u8>,
    outcome: &'static str,
    usage: [u64; 3],
}

struct Trial {
    world: World,
    model: Model,
    secrets: BTreeMap<(Hash, u64, Who), Secret>,
    /// In the order in which they were made.
    calls: Vec<Hash>,
    answers: Answers,
}

/// Random numbers, taken off one after the other.
struct Luck<'a>(&'a mut Dice);

impl Luck<'_> {
    fn below(&mut self, most: usize) -> usize {
        let bits = self.0.next().unwrap();
        usize::try_from(bits % u64::try_from(most.max(1)).unwrap()).unwrap()
    }

    /// One time in so many.
    fn rarely(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

fn miners() -> impl Iterator<Item = Who> + Clone {
    (20..20 + MINERS).map(Who)
}

fn everybody() -> impl Iterator<Item = Who> {
    (1..=6).map(Who).chain(miners())
}

impl Trial {
    /// Of the seeds two in three have several validators, who take turns.
    fn new(seed: u64) -> Self {
        let validators = [(PROPOSER, 1), (ALICE, 1), (BOB, 1)];
        let (some, turns): (&[_], &[Who]) = match seed % 3 {
            0 => (&validators[..1], &[]),
            1 => (&validators, &[PROPOSER, PROPOSER, ALICE, BOB]),
            // Nobody ever follows somebody else.
            _ => (&validators, &[PROPOSER]),
        };
        let mut world = World::with_forks(params(seed), V8, some);
        if is_in_a_database(seed) {
            world = world.in_a_database();
        }
        world.turns = turns.to_vec();
        world.reopen();
        let funded = (1..6).map(|who| (Who(who).address(), i128::from(FUNDS)));
        let mut model =
            Model::new(world.chain.params.clone(), PROPOSER.address(), funded.collect());
        model.validators = ModelValidators::new(some);
        model.rules = ModelRules::with_market();
        let (secrets, calls, answers) = Default::default();
        let mut trial = Self { world, model, secrets, calls, answers };
        trial.begin();
        trial.found();
        trial
    }

    fn begin(&mut self) {
        let Self { world, model, .. } = self;
        model.begin_block();
        model.proposer = world.proposer.address();
        model.elect(&Begins {
            height: model.height,
            now: model.now,
            randomness: world.randomness(),
            is_others: world.is_of_another(),
        });
    }

    /// Miners with bonds and offers, and three agents.
    fn found(&mut self) {
        self.model.now = self.world.parent.timestamp + 1_000;
        for (nth, miner) in (0_u64..).zip(miners()) {
            let from = PAYERS[usize::try_from(nth % 4).unwrap()];
            self.send(from, &transfer(miner, 900_000, 0));
            self.send(miner, &bond(300_000 + nth % 5 * 20_000));
            for (at, manifest) in MANIFESTS.iter().enumerate() {
                if at == 0 || nth % 4 != 0 {
                    self.send(miner, &offer(&format!("model-1:{manifest}"), 2 + nth % 2, 900));
                }
            }
            let image = Hash::digest(b"ipfs://x");
            self.send(miner, &offer(&format!("container:{image}"), 2, 900));
            if nth % 5 == 4 {
                self.end_block(1_000);
            }
        }
        let judge = agent("judge", &[]);
        self.send(BOB, &judge.by(BOB));
        self.end_block(1_000);
        self.send(BOB, &agent("clerk", &[]).by(BOB));
        self.send(BOB, &agent("court", &[judge.tool(BOB)]).by(BOB));
        self.end_block(1_000);
    }

    /// Sends to both; the answers must be the same.
    fn send(&mut self, who: Who, body: &Body) -> &'static str {
        let nonce = self.model.nonce(who.address());
        let bid = Bid::default();
        let tx = self.world.bidding_tx(who, nonce, body, bid.clone()).expect("static checks hold");
        let place = ModelPlace { payload: tx.payload().len(), bid: &bid };
        let checked = spied_check(&self.world, &tx);
        let pushed = self.world.builder().push(&tx);
        if let Err(state::PushError::Full { .. }) = pushed {
            self.end_block(1_000);
            return self.send(who, body);
        }
        let answer = answer(pushed);
        let expected = self.model.send(who.address(), nonce, body, tx.hash(), &place);
        assert_eq!((answer, checked), (expected, expected), "{body:?} of {who:?}");
        *self.answers.entry((body.type_name(), answer)).or_default() += 1;
        if let ("ok", Body::AgentCall(call)) = (answer, body) {
            self.calls.push(call.call_id);
        }
        answer
    }

    fn end_block(&mut self, next_after_ms: u64) {
        self.world.next_block_after(next_after_ms);
        self.model.end_block();
        self.assert_same();
        self.model.now = self.world.parent.timestamp + next_after_ms;
        self.begin();
    }

    fn call(&self, id: Hash) -> &ModelCall {
        &self.model.calls.all[&id]
    }

    /// One of the latest calls that are in a status.
    fn pick(&self, luck: &mut Luck<'_>, words: &[&str]) -> Option<Hash> {
        let calls = self.calls.iter().rev().take(12).copied();
        let fitting: Vec<Hash> = calls.filter(|id| words.contains(&self.call(*id).word)).collect();
        (!fitting.is_empty()).then(|| luck.of(&fitting))
    }

    fn act(&mut self, luck: &mut Luck<'_>) {
        match luck.below(40) {
            0..=8 => {
                let who = luck.of(&PAYERS);
                let body = self.ask(who, luck);
                self.send(who, &Body::AgentCall(body));
            }
            9..=16 => self.commit_some(luck),
            17..=24 => self.reveal_some(luck),
            25..=27 => {
                let words: &[&str] = if luck.rarely(6) {
                    &["committing", "revealing", "timedOut", "unassigned"]
                } else {
                    &["success", "failed"]
                };
                let Some(call_id) = self.pick(luck, words) else { return };
                let any: Vec<Who> = everybody().collect();
                let who = if luck.rarely(3) { luck.of(&any) } else { luck.of(&PAYERS) };
                let answer = self.send(who, &appeal(call_id));
                match answer {
                    "ok" if luck.rarely(6) => self.strike(),
                    "ok" if luck.rarely(2) => self.drain(),
                    _ => {}
                }
            }
            28 => self.stray(luck),
            29 => self.stake(luck),
            _ => self.end_block(luck.of(&[500, 1_000, 1_000, 4_000, 25_000, 130_000])),
        }
    }

    fn second_election_waits(&self) -> bool {
        let waits = |call: &ModelCall| call.word == "electing" && call.appeal.is_some();
        self.model.calls.all.values().any(waits)
    }

    /// All miners take out what they can and be drawn nevertheless, until no second election waits any more.
    fn drain(&mut self) {
        let least = i128::from(self.world.chain.params.min_bond.get());
        let mut taken = Vec::new();
        for miner in miners() {
            let (bonded, locked) = self.model.stakes.of(miner.address());
            let amount = u64::try_from(bonded - locked.max(least)).unwrap_or_default().max(1);
            if self.send(miner, &unbond(amount)) == "ok" {
                taken.push((miner, amount));
            }
        }
        while self.second_election_waits() {
            self.end_block(1_000);
        }
        for (miner, amount) in taken {
            self.send(miner, &bond(amount));
        }
    }

    /// All miners take their offers back until no second election waits any more.
    fn strike(&mut self) {
        for capacity in [0, 2] {
            for (miner, manifest) in miners().flat_map(|who| MANIFESTS.map(|it| (who, it))) {
                self.send(miner, &offer(&format!("model-1:{manifest}"), capacity, 900));
            }
            while self.second_election_waits() {
                self.end_block(1_000);
            }
        }
    }

    /// A call, mostly a good one.
    fn ask(&self, who: Who, luck: &mut Luck<'_>) -> AgentCall {
        let nonce = self.model.nonce(who.address()) + u64::from(luck.rarely(40));
        let name = luck.of(&["judge", "judge", "court", "clerk"]);
        let size = luck.of(&[1_u64, 1, 3, 3, 3, 5]);
        let threshold = luck.rarely(4).then(|| 1 + u64::try_from(luck.below(3)).unwrap() % size);
        let is_majority = threshold.is_none();
        let appealable = luck.of(&[None, Some(false), Some(true), Some(true)]);
        let appealable = appealable.filter(|_| is_majority);
        let free = |price: u64| if is_majority { price } else { 0 };
        let mut body = AgentCall {
            agent_id: compute_agent_id(&BOB.address(), name),
            agent_version: if luck.rarely(40) { "1.0.1" } else { "1.0.0" }.to_owned(),
            payload: HexBytes(vec![0x26, 0x12, 0x1f, u8::from(!luck.rarely(40)) * 0xf0]),
            consensus: if is_majority { "majority" } else { "threshold" }.to_owned(),
            committee_size: size,
            prices: prices([
                luck.of(&[899, 900, 1_000, 1_000, 1_003]),
                free(luck.of(&[0, 999_999, 1_500_000])),
                free(luck.of(&[0, 7])),
                free(luck.of(&[0, 3_000_000_000])),
            ]),
            limits: WorkLimits {
                input_tokens: luck.of(&[100, 100, 100, 262_145]),
                output_tokens: 100,
                fuel: 50,
                result_bytes: 5,
            },
            timeout_ms: luck.of(&[10_000, 20_000]),
            threshold,
            appealable,
            ..call_body(who, nonce)
        };
        if appealable == Some(true) && size >= 3 && luck.rarely(2) {
            body.on_result = Some(self.promises(size, luck));
        }
        body.max_fee = Amount::new(least_fee(&body) + luck.of(&[0, 0, 1, 777]));
        if luck.rarely(30) {
            body.max_fee = Amount::new(least_fee(&body) - 1);
        }
        body
    }

    fn promises(&self, size: u64, luck: &mut Luck<'_>) -> Vec<OnResult> {
        let most = (size / 2 + 1) * 9_001;
        let count = 1 + luck.below(3);
        let promise = |luck: &mut Luck<'_>| {
            let result = luck.of(&[b"yes".as_slice(), b"no"]);
            let when = if luck.rarely(2) {
                "success".to_owned()
            } else {
                format!("result:{}", Hash::digest(result))
            };
            let amount = Amount::new(luck.of(&[0, 1, most / 3, most / 3, most]));
            OnResult { when, to: luck.of(&PAYERS).address().into(), amount }
        };
        (0..count).map(|_| promise(luck)).collect()
    }

    /// Members of a round that is open commit, most of them to the same.
    fn commit_some(&mut self, luck: &mut Luck<'_>) {
        let Some(id) = self.pick(luck, &["committing"]) else { return };
        let round = u64::try_from(self.call(id).rounds.len() - 1).unwrap();
        // A second round often says something else than the first one.
        let favourite = if luck.rarely(4) { luck.below(4) } else { usize::from(round == 1) };
        for member in self.call(id).rounds.last().unwrap().members.clone() {
            let Some(who) = miners().find(|it| it.address() == member.who) else { continue };
            if luck.rarely(9) {
                continue;
            }
            let choice = if luck.rarely(5) { luck.below(6) } else { favourite };
            let secret = secret(choice);
            let wrong = u64::from(luck.rarely(40));
            let commitment = commitment(id, round, who, &secret);
            let body = CallCommit { call_id: id, round: round ^ wrong, commitment };
            if self.send(who, &Body::CallCommit(body)) == "ok" {
                self.secrets.insert((id, round, who), secret);
            }
        }
    }

    fn reveal_some(&mut self, luck: &mut Luck<'_>) {
        let words: &[&str] = if luck.rarely(15) { &["committing"] } else { &["revealing"] };
        let Some(id) = self.pick(luck, words) else { return };
        let round = u64::try_from(self.call(id).rounds.len() - 1).unwrap();
        for member in self.call(id).rounds.last().unwrap().members.clone() {
            let Some(who) = miners().find(|it| it.address() == member.who) else { continue };
            let secret = self.secrets.get(&(id, round, who)).cloned();
            let Some(mut secret) = secret.or_else(|| luck.rarely(5).then(|| self::secret(0)))
            else {
                continue;
            };
            if luck.rarely(9) {
                continue;
            }
            if luck.rarely(30) {
                secret.usage[0] += 1;
            }
            if luck.rarely(60) && secret.outcome == "success" {
                secret.result = b"much more".to_vec();
            }
            self.send(who, &reveal(id, round, &secret));
        }
    }

    /// Somebody commits or reveals who has no business there.
    fn stray(&mut self, luck: &mut Luck<'_>) {
        let any: Vec<Who> = everybody().collect();
        let who = luck.of(&any);
        let known = self.calls.last().copied().filter(|_| !luck.rarely(3));
        let (id, secret) = (known.unwrap_or(Hash::ZERO), secret(0));
        let body = if luck.rarely(2) {
            let commitment = commitment(id, 0, who, &secret);
            Body::CallCommit(CallCommit { call_id: id, round: 0, commitment })
        } else {
            reveal(id, 0, &secret)
        };
        self.send(who, &body);
    }

    /// Bonds and offers change, and agents come and go.
    fn stake(&mut self, luck: &mut Luck<'_>) {
        let all: Vec<Who> = miners().collect();
        let who = luck.of(&all);
        let free = u64::try_from(self.model.stakes.free(who.address())).unwrap();
        let amount = luck.of(&[1, 5_000, 40_000, 200_000, free.max(1)]);
        let body = match luck.below(8) {
            0 | 1 => unbond(amount),
            2 | 3 => bond(amount),
            4 | 5 => {
                let manifest = luck.of(&MANIFESTS);
                let capacity = luck.of(&[0, 1, 2, 3]);
                offer(&format!("model-1:{manifest}"), capacity, luck.of(&[900, 901, 1_001]))
            }
            6 => {
                let agent_id = compute_agent_id(&BOB.address(), luck.of(&["clerk", "court"]));
                self.send(BOB, &retire(agent_id));
                return;
            }
            _ => {
                self.send(BOB, &higher(luck.of(&["clerk", "court"]), &self.model));
                return;
            }
        };
        self.send(who, &body);
    }

    fn assert_same(&self) {
        let Self { world, model, .. } = self;
        let fees = state::view::get::<Fees>(&*world.memory, &()).unwrap().unwrap();
        assert_eq!(i128::from(fees.base_fee), model.rules.base_fee);
        for who in everybody() {
            let account = world.account_committed(who);
            assert_eq!(i128::from(account.balance.get()), model.balance(who.address()), "{who:?}");
            let bond = world.bond_committed(who);
            let bond = (i128::from(bond.bonded.get()), i128::from(bond.locked.get()));
            assert_eq!(bond, model.stakes.of(who.address()), "{who:?}");
        }
        let supply = world.supply_before_the_block();
        assert_eq!(i128::from(supply.burned.get()), model.burned);
        let held = model.calls.all.values().filter(|call| call.bill.is_none()).map(escrow);
        assert_eq!(i128::from(supply.escrowed.get()), held.sum::<i128>());
        for id in self.calls.iter().rev().take(40) {
            let call = state::view::get::<Calls>(&*world.memory, id).unwrap().unwrap();
            assert_same_call(&call, self.call(*id));
            for (round, members) in (0_u8..).zip(&self.call(*id).rounds) {
                for (seat, member) in members.members.iter().enumerate() {
                    assert_same_member(world, &call, (round, seat), member);
                }
            }
        }
    }
}

fn escrow(call: &ModelCall) -> i128 {
    let stakes = call.appeal.as_ref().map_or(0, |appeal| appeal.payment + appeal.deposit);
    i128::from(call.asked.max_fee.get()) + stakes
}

fn assert_same_call(call: &Call, expected: &ModelCall) {
    assert_eq!(call.status.as_str(), expected.word, "{call:?}");
    let size = |number: usize| u8::try_from(number).unwrap();
    let rounds: Vec<_> = call.rounds.iter().map(|it| (it.size, it.members, it.agreeing)).collect();
    let wanted = expected.rounds.iter();
    let wanted: Vec<_> =
        wanted.map(|it| (size(it.size), size(it.members.len()), size(it.agreeing()))).collect();
    assert_eq!(rounds, wanted);
    assert_eq!(i128::from(call.terms.dissent_penalty.get()), expected.terms.dissent);
    let Some(bill) = &call.bill else { return assert!(expected.bill.is_none(), "{call:?}") };
    let wanted = expected.bill.as_ref().expect("it is settled");
    let promised: i128 = wanted.conditional.iter().map(|(_, amount)| amount).sum();
    let parts =
        [bill.wages, bill.royalty, bill.conditional, bill.refund, bill.appellant, bill.burned];
    let wanted =
        [wanted.wages, wanted.royalty, promised, wanted.refund, wanted.appellant, wanted.burned];
    assert_eq!(parts.map(|part| i128::from(part.get())), wanted, "{call:?}");
}

fn assert_same_member(world: &World, call: &Call, at: (u8, usize), expected: &ModelMember) {
    let member = world.member_committed(call.call_id, expected.who).expect("it was drawn");
    assert_eq!((member.round, usize::from(member.seat) >= at.1), (at.0, true));
    let money = [member.bond, member.lock, member.paid, member.penalty];
    let wanted = [expected.bond, expected.lock, expected.paid, expected.penalty];
    assert_eq!(money.map(|amount| i128::from(amount.get())), wanted, "{call:?}");
}

/// What a call needs at least, by the figures of the agents here.
fn least_fee(body: &AgentCall) -> u64 {
    let prices = &body.prices;
    let up = |units: u64, price: Amount, parts: u64| (units * price.get()).div_ceil(parts);
    let budget = prices.per_call.get()
        + up(body.limits.input_tokens, prices.prompt_per_m, 1_000_000)
        + up(body.limits.output_tokens, prices.completion_per_m, 1_000_000)
        + up(body.limits.fuel, prices.fuel_per_g, 1_000_000_000);
    let promised: u64 = body.on_result.iter().flatten().map(|it| it.amount.get()).sum();
    ROYALTY + promised + body.committee_size * (budget + 200)
}

/// One of BOB's agents.
pub fn agent(name: &str, tools: &[String]) -> Sheet {
    let sheet = match name {
        "clerk" => Sheet::container(name),
        "court" => Sheet::model(name, 0xbb, tools),
        _ => Sheet::model(name, 0xaa, tools),
    };
    sheet.royalty(ROYALTY)
}

/// The next version of an agent.
fn higher(name: &str, model: &Model) -> Body {
    let agent = &model.agents.all[&compute_agent_id(&BOB.address(), name)];
    let [major, minor, patch] = *agent.versions.keys().last().unwrap();
    self::agent(name, &[]).version(&format!("{major}.{minor}.{}", patch + 2)).by(BOB)
}

const SALT: Hash = Hash::new([0x5a; 32]);

/// One of six answers: the first four are successes and a failure, the fifth uses less, the last is none.
fn secret(choice: usize) -> Secret {
    let (result, outcome): (&[u8], _) = match choice {
        0 | 4 => (b"yes", "success"),
        1 => (b"no", "success"),
        2 => (b"", "failure"),
        3 => (b"maybe", "success"),
        _ => (b"", "unable"),
    };
    let usage = match choice {
        2 => [100, 100, 50],
        3 => [5_000, 100, 50],
        4 => [9, 5, 1],
        _ => [10, 5, 1],
    };
    Secret { result: result.to_vec(), outcome, usage }
}

/// Written as the protocol has it.
fn commitment(id: Hash, round: u64, who: Who, secret: &Secret) -> Hash {
    let Secret { result, outcome, usage: [read, written, fuel] } = secret;
    let (member, result, receipt) = (who.address(), Hash::digest(result), Hash::ZERO);
    let text = format!(
        "commit|{id}|{round}|{member}|{SALT}|{outcome}|{result}|{read}|{written}|{fuel}|{receipt}"
    );
    Hash::digest(text.as_bytes())
}

fn reveal(call_id: Hash, round: u64, secret: &Secret) -> Body {
    let [input_tokens, output_tokens, fuel] = secret.usage;
    Body::CallReveal(CallReveal {
        round,
        salt: SALT,
        outcome: secret.outcome.to_owned(),
        input_tokens,
        output_tokens,
        fuel,
        receipt_hash: Hash::ZERO,
        ..fixtures::reveal(call_id, &secret.result)
    })
}

/// What must have happened, so that an agreement says something.
const SEEN: [(&str, &[&str]); 6] = [
    ("AGENT_CALL", &["AGENT_NOT_FOUND", "AGENT_RETIRED", "CALL_ID_MISMATCH", "CALL_LIMITS"]),
    ("AGENT_CALL", &["MAX_FEE_TOO_LOW", "SELECTOR_UNKNOWN", "ok"]),
    ("CALL_APPEAL", &["APPEAL_CLOSED", "ok"]),
    ("CALL_COMMIT", &["CALL_NOT_FOUND", "COMMIT_EXISTS", "NOT_MEMBER", "ok"]),
    ("CALL_REVEAL", &["CALL_LIMITS", "CALL_PHASE", "NOT_MEMBER"]),
    ("CALL_REVEAL", &["REVEAL_EXISTS", "REVEAL_MISMATCH", "ok"]),
];

/// How calls ended: the word, and what the second round did.
type Ends = BTreeMap<(&'static str, &'static str), u64>;

fn end_of(call: &ModelCall) -> (&'static str, &'static str) {
    let groups: Vec<_> = call.rounds.iter().map(|round| round.group.as_ref()).collect();
    let appeal = match groups.as_slice() {
        [_] if call.failed_appeals > 0 => "no round",
        [_] => "no appeal",
        [_, None] => "no group",
        [first, last] if first == last => "upheld",
        _ => "overturned",
    };
    (call.word, appeal)
}

#[test]
fn the_ledger_agrees_with_the_model_over_many_calls() {
    let wanted = number_in(TRANSACTIONS, USUALLY);
    let (mut answers, mut ends) = (Answers::new(), Ends::new());
    let (mut tried, mut seed, mut postponed, mut short) = (0, first_chain(), 0, 0);
    while tried < wanted {
        println!("chain {seed}");
        let mut dice = Dice(seed);
        let mut trial = Trial::new(seed);
        for _ in 0..LIFE {
            trial.act(&mut Luck(&mut dice));
        }
        while trial.model.calls.all.values().any(|call| call.bill.is_none()) {
            trial.end_block(130_000);
        }
        trial.end_block(1_000);
        assert!(trial.world.supply_before_the_block().escrowed.is_zero());
        assert!(miners().all(|who| trial.world.bond_committed(who).locked.is_zero()));
        postponed += trial.model.calls.postponed;
        for call in trial.model.calls.all.values() {
            *ends.entry(end_of(call)).or_default() += 1;
            short += usize::from(call.has_short_locks());
        }
        for (answer, times) in trial.answers {
            *answers.entry(answer).or_default() += times;
            tried += times;
        }
        seed += 1;
    }
    println!("{tried} transactions before chain {seed}");
    answers.iter().for_each(|((kind, answer), times)| println!("{kind:16} {answer:22} {times:9}"));
    ends.iter().for_each(|((word, appeal), times)| println!("{word:16} {appeal:22} {times:9}"));
    assert_seen(&answers, &SEEN);
    assert!(postponed > 0, "no phase ever waited for a later block");
    assert!(short > 0, "no second round ever locked less than the penalty for dissent");
    for appeal in ["no round", "no appeal", "no group", "upheld", "overturned"] {
        assert!(ends.keys().any(|(_, it)| *it == appeal), "never seen: {appeal}");
    }
    for word in ["success", "failed", "timedOut", "unassigned"] {
        assert!(ends.keys().any(|(it, _)| *it == word), "never seen: {word}");
    }
}
