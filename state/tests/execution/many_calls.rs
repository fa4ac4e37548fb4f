//! Very many calls over forty miners: who is drawn follows the bonds and the randomness of headers, and a
//! proposer that withholds a block has no say in what is drawn instead.

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;

use fixtures::{judge_of, prices, unsigned};
use state::market::election::{Candidate, candidates_hash};
use state::tables::Calls;
use state::{BlockBuilder, ChainRules, Executed, MemoryChain, view};
use types::build::Envelope;
use types::call::{Call, CallChange, CallStatus};
use types::randomness::Input;
use types::tx::AgentCall;
use types::{Address, Amount, Body, CheckedTx, Event, Hash, Params};

use crate::bodies::{bond, offer};
use crate::market_world::{call_body, commit, reveal, says};
use crate::model_calls::draw;
use crate::random_market::agent;
use crate::world::{BOB, START, V8, Who, chat, member};

/// How many calls are made; ten thousand take some minutes without optimisation.
const CALLS: &str = "OMBRA_MANY_CALLS";
const CALLS_USUALLY: usize = 1_000;
const CALLS_TOGETHER: usize = 50;
const MINERS: u8 = 40;
const MEMBERS: usize = 3;
const MANIFEST: Hash = Hash::new([0xaa; 32]);
/// Whoever makes blocks, one after the other.
const VALIDATORS: [Who; 3] = [Who(201), Who(202), Who(203)];
const REQUESTER: Who = Who(100);
const LEAST: u64 = 100_000_000;
/// Of 39 degrees of freedom a greater sum has a chance of one in a thousand.
const CHI_SQUARE_MAX: f64 = 72.06;

fn miners() -> impl Iterator<Item = Who> {
    (20..20 + MINERS).map(Who)
}

/// Bonds from the least one to four times as much.
fn weight(miner: Who) -> u64 {
    LEAST + u64::from(miner.0 % 4) * LEAST
}

struct Town {
    chain: MemoryChain,
    nonces: BTreeMap<Who, u64>,
    /// By address, as candidates stand.
    candidates: BTreeMap<Address, (i128, bool)>,
    /// How often each miner was drawn, and how often it should have been.
    seats: BTreeMap<Address, (f64, f64)>,
}

impl Town {
    fn new() -> Self {
        let validators = VALIDATORS.map(|who| member(who, 1));
        let rules = Arc::new(ChainRules {
            chain_id: "test".to_owned(),
            genesis_hash: Hash::ZERO,
            params: Params { min_bond: Amount::new(LEAST), ..Params::default() },
            forks: V8,
            validators: validators.into(),
        });
        let rich = |who: Who| (who.address(), Amount::new(10 * LEAST));
        let accounts = miners().chain([REQUESTER, BOB]).map(rich).collect();
        let chain = MemoryChain::new(rules, Hash::ZERO, START, &accounts).unwrap();
        let (nonces, seats) = Default::default();
        let candidates = miners().map(|who| (who.address(), (weight(who).into(), false))).collect();
        let mut town = Self { chain, nonces, candidates, seats };
        let mut txs = vec![town.tx(BOB, &agent("judge", &[]).by(BOB))];
        for miner in miners() {
            txs.push(town.tx(miner, &bond(weight(miner))));
            txs.push(town.tx(miner, &offer(&format!("model-1:{MANIFEST}"), 64, 900)));
        }
        town.block(&txs);
        town
    }

    fn tx(&mut self, who: Who, body: &Body) -> CheckedTx {
        let nonce = self.nonces.entry(who).or_default();
        let envelope = Envelope::new(*nonce, START, Some("test".to_owned()));
        *nonce += 1;
        CheckedTx::trust(unsigned(&who.key(), body, &envelope))
    }

    /// Begins the next block, by whoever has its turn, or by one whose turn is so much later.
    fn begin(&self, withheld: usize) -> (Who, BlockBuilder) {
        let height = usize::try_from(self.chain.tip().height).unwrap();
        let who = VALIDATORS[(height + withheld) % VALIDATORS.len()];
        let now = self.chain.tip().timestamp + 1_000;
        (who, self.chain.begin(&who.key(), now).unwrap())
    }

    fn block(&mut self, txs: &[CheckedTx]) -> Executed {
        let (who, mut block) = self.begin(0);
        for tx in txs {
            block.push(tx).unwrap();
        }
        let executed = block.finish().unwrap();
        self.check_randomness(who, &executed);
        self.chain.append(&executed).unwrap();
        executed
    }

    /// It is what the proposer's key gives for the randomness before, and nothing else.
    fn check_randomness(&self, who: Who, executed: &Executed) {
        let tip = self.chain.tip();
        let input = Input { chain_id: "test", previous: tip.randomness, height: tip.height + 1 };
        let made = executed.block.header.randomness.as_ref().unwrap();
        assert_eq!(input.verify(&who.public_key(), &made.proof), Some(made.value));
    }

    fn call(&mut self) -> (Hash, CheckedTx) {
        let nonce = self.nonces.get(&REQUESTER).copied().unwrap_or_default();
        let body = AgentCall {
            agent_id: judge_of(BOB.address()),
            prices: prices([900, 0, 0, 0]),
            max_fee: Amount::new(500 + 3 * 1_100),
            timeout_ms: 600_000,
            ..call_body(REQUESTER, nonce)
        };
        (body.call_id, self.tx(REQUESTER, &Body::AgentCall(body)))
    }

    /// Each seat goes by weight among those who are left; sums up what is and what should be.
    fn count_seats(&mut self, members: &[Address]) {
        let mut left: BTreeMap<Address, f64> =
            miners().map(|who| (who.address(), weight(who) as f64)).collect();
        for member in members {
            let sum: f64 = left.values().sum();
            for (miner, weight) in &left {
                self.seats.entry(*miner).or_default().1 += weight / sum;
            }
            self.seats.entry(*member).or_default().0 += 1.0;
            left.remove(member);
        }
    }

    fn call_of(&self, id: Hash) -> Call {
        view::get::<Calls>(&**self.chain.state(), &id).unwrap().unwrap()
    }
}

/// Whom a block drew for which call.
fn drawn(executed: &Executed) -> Vec<(Hash, Vec<Address>)> {
    let of_event = |event: &Event| match event {
        Event::CallChanged { call_id, change: CallChange::Elected { members, .. } } => {
            Some((*call_id, members.clone()))
        }
        _ => None,
    };
    executed.events.iter().filter_map(|(_, event)| of_event(event)).collect()
}

fn who_is(address: Address) -> Who {
    miners().find(|who| who.address() == address).unwrap()
}

fn commit_yes(town: &mut Town, call_id: Hash, member: Address) -> CheckedTx {
    let who = who_is(member);
    town.tx(who, &commit(call_id, 0, who, says(b"yes")))
}

#[test]
fn very_many_elections_follow_the_bonds_and_the_randomness_of_headers() {
    let wanted = env::var(CALLS).map_or(CALLS_USUALLY, |text| text.parse().unwrap());
    let mut town = Town::new();
    let everybody: Vec<Candidate> = town
        .candidates
        .iter()
        .map(|(miner, (weight, is_full))| {
            let weight = Amount::new(u64::try_from(*weight).unwrap());
            Candidate { miner: *miner, weight, is_full: *is_full }
        })
        .collect();
    let all = candidates_hash(&everybody);
    let (mut ids, mut committed): (Vec<Hash>, Vec<(Hash, Vec<Address>)>) = Default::default();
    let mut waiting = 0;
    while ids.len() < wanted || waiting > 0 || !committed.is_empty() {
        let mut txs = Vec::new();
        for (id, members) in std::mem::take(&mut committed) {
            txs.extend(members.iter().map(|it| town.tx(who_is(*it), &reveal(id, 0, b"yes"))));
        }
        // The open block has drawn: what it will say is found by drawing again.
        let (_, open) = town.begin(0);
        let randomness = open.finish().unwrap().block.header.randomness.unwrap().value;
        let mut expected = Vec::new();
        for id in &ids[ids.len() - waiting..] {
            let members = draw(*id, 0, randomness, &town.candidates, MEMBERS);
            txs.extend(members.iter().map(|it| commit_yes(&mut town, *id, *it)));
            expected.push((*id, members));
        }
        waiting = CALLS_TOGETHER.min(wanted - ids.len());
        for _ in 0..waiting {
            let (id, tx) = town.call();
            ids.push(id);
            txs.push(tx);
        }
        let executed = town.block(&txs);
        assert_eq!(drawn(&executed), expected);
        for (id, members) in expected {
            town.count_seats(&members);
            assert_eq!(town.call_of(id).rounds[0].candidates_hash, all);
            committed.push((id, members));
        }
    }
    for id in &ids {
        let call = town.call_of(*id);
        assert_eq!((call.status, call.is_settled()), (CallStatus::Success, true));
    }
    let chi_square: f64 =
        town.seats.values().map(|(seen, due)| (seen - due) * (seen - due) / due).sum();
    println!("{} calls, chi-square {chi_square:.1} of 39 degrees of freedom", ids.len());
    assert!(chi_square < CHI_SQUARE_MAX, "{chi_square}");
    let supply = state::supply(&**town.chain.state()).unwrap();
    assert!(supply.escrowed.is_zero());
}

#[test]
fn a_proposer_that_withholds_a_block_loses_its_turn_and_draws_nothing_else() {
    let mut town = Town::new();
    let friend = miners().max_by_key(|who| weight(*who)).unwrap();
    let (mut withheld, mut seated, mut usually) = (0_u32, 0_u32, 0_u32);
    // The friend has places for all of them: the calls go on, and each miner takes 64 at once.
    let rounds = 200_u32;
    for _ in 0..rounds {
        let (id, call) = town.call();
        town.block(&[call]);
        let of = |block: BlockBuilder| drawn(&block.finish().unwrap())[0].1.clone();
        let (own, block) = town.begin(0);
        let own_draw = of(block);
        // Whatever it puts into its block, and whenever: it has this one draw to show or to withhold.
        let mut later = town.chain.begin(&own.key(), town.chain.tip().timestamp + 9_999).unwrap();
        let note = town.tx(REQUESTER, &chat("hello"));
        later.push(&note).unwrap();
        town.nonces.entry(REQUESTER).and_modify(|nonce| *nonce -= 1);
        assert_eq!(of(later), own_draw);
        // The next one's draw is that of its own key, whether or not there was a block before it.
        let (next, block) = town.begin(1);
        let tip = town.chain.tip();
        let input = Input { chain_id: "test", previous: tip.randomness, height: tip.height + 1 };
        let randomness = input.prove(&next.key()).value;
        assert_eq!(of(block), draw(id, 0, randomness, &town.candidates, MEMBERS));
        usually += u32::from(own_draw.contains(&friend.address()));
        if !own_draw.contains(&friend.address()) {
            withheld += 1;
            let (_, block) = town.begin(1);
            let executed = block.finish().unwrap();
            assert_eq!(executed.block.header.proposer, next.address(), "the turn is lost");
            seated += u32::from(drawn(&executed)[0].1.contains(&friend.address()));
            town.chain.append(&executed).unwrap();
        } else {
            town.block(&[]);
        }
    }
    // A friend is no likelier to be drawn after a block that was withheld than otherwise.
    let share = f64::from(usually) / f64::from(rounds);
    let due = share * f64::from(withheld);
    let spread = (due * (1.0 - share)).sqrt();
    println!("{usually} of {rounds}; {seated} of {withheld} that were withheld, {due:.1} expected");
    assert!((f64::from(seated) - due).abs() < 4.0 * spread);
}
