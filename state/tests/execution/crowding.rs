//! What a ring of miners wins by locking the bonds of others with cheap calls: neither another miner's bond,
//! nor the end of an appeal (docs/protocol.md sections 17.2 and 18.7).

use types::call::{Answer, CallStatus};
use types::tx::{AgentCall, CallReveal, WorkLimits};
use types::{Amount, Body, Hash, Params, Usage};

use crate::market_world::{
    BOND, DISSENT, Market, ROYALTY, WAGE, appeal, commit, offer, params, says, shown,
};
use crate::world::{ALICE, BOB, PROPOSER, Who};

/// Of the miners, the last ones work together with a requester and an appellant.
const RING: usize = 4;
const HONEST: usize = 8;

/// A call of one member, for which honest work costs nearly nothing: at the limit of tokens, it costs as many
/// micro and a bit.
fn dear(market: &Market, input_tokens: u64) -> AgentCall {
    let call = market.body(ALICE, 1);
    let limits = WorkLimits { input_tokens, ..call.limits };
    let max_fee = Amount::new(ROYALTY + 1_000 + input_tokens + 200);
    AgentCall { appealable: Some(true), limits, max_fee, ..call }
}

/// The ring, its calls, and what its people have.
struct Ring {
    market: Market,
    input_tokens: u64,
}

impl Ring {
    /// Decisions stay open for appeals for long.
    fn new(input_tokens: u64) -> Self {
        let slow = Params { appeal_ms: 3_600_000, ..params() };
        let market = Market::with(slow, &[(PROPOSER, 1)], u8::try_from(HONEST + RING).unwrap());
        Self { market, input_tokens }
    }

    fn is_in(&self, who: Who) -> bool {
        self.market.miners[HONEST..].contains(&who)
    }

    fn wealth(&self) -> i64 {
        let miners = self.market.miners[HONEST..].iter();
        let people = miners.chain([&ALICE, &BOB]);
        let sum =
            people.map(|who| self.market.world.balance(*who) + self.market.bond(*who).bonded.get());
        i64::try_from(sum.sum::<u64>()).unwrap()
    }

    /// Calls until each honest miner has answered one of them, or for long. Those that the ring's own miners
    /// are drawn for time out.
    fn call(&mut self) -> Vec<Hash> {
        let mut decided = Vec::new();
        for _ in 0..400 {
            let id = self.market.elected(dear(&self.market, self.input_tokens));
            if self.market.members(id, 0).first().is_some_and(|member| !self.is_in(*member)) {
                self.market.all_answer(id, b"yes");
                decided.push(id);
            }
            if decided.len() == HONEST {
                break;
            }
        }
        // The ring's own calls time out.
        for _ in 0..10 {
            self.market.world.next_block_after(10_000);
        }
        decided
    }

    /// The ring appeals a right answer. Its members lie if they have the majority, and else earn their wage.
    /// Answers how many of the judges are honest, and how many are not.
    fn appeal(&mut self, id: Hash) -> (usize, usize) {
        self.market.world.must(BOB, &appeal(id));
        self.market.world.next_block();
        let judges = self.market.members(id, 1);
        let own = judges.iter().filter(|who| self.is_in(**who)).count();
        let is_won = own > judges.len() / 2;
        for judge in &judges {
            let answer = if is_won && self.is_in(*judge) { self.lie() } else { says(b"yes") };
            self.market.world.must(*judge, &commit(id, 1, *judge, answer));
        }
        self.market.world.next_block();
        for judge in &judges {
            let result: &[u8] = if is_won && self.is_in(*judge) { b"no" } else { b"yes" };
            let mut reveal = shown(id, 1, result);
            if result == b"no" {
                reveal = CallReveal { input_tokens: self.input_tokens, ..reveal };
            }
            self.market.world.must(*judge, &Body::CallReveal(reveal));
        }
        self.market.world.next_block();
        assert!(self.market.call(id).is_settled());
        (judges.len() - own, own)
    }

    fn lie(&self) -> Answer {
        let honest = says(b"no");
        Answer { usage: Usage { input_tokens: self.input_tokens, ..honest.usage }, ..honest }
    }

    fn honest_bonds(&self) -> Vec<u64> {
        let honest = self.market.miners[..HONEST].iter();
        honest.map(|who| self.market.bond(*who).bonded.get()).collect()
    }
}

#[test]
fn nobody_is_drawn_for_a_call_that_locks_more_than_half_of_each_bond() {
    let mut ring = Ring::new(40_000);
    let before = ring.wealth();
    let decided = ring.call();
    for id in &decided {
        ring.appeal(*id);
    }
    assert_eq!(ring.honest_bonds(), [BOND; HONEST]);
    assert!(ring.wealth() < before, "the ring gained {}", ring.wealth() - before);
    assert_eq!(decided, []);
}

#[test]
fn a_ring_that_locks_all_others_is_not_among_itself_in_second_rounds() {
    let mut ring = Ring::new(34_000);
    let before = ring.wealth();
    let decided = ring.call();
    assert_eq!(decided.len(), HONEST);
    for who in &ring.market.miners[..HONEST] {
        let locked = ring.market.bond(*who).locked.get();
        assert_eq!(locked, 4 * (1_000 + 34_000 + 200), "no first round may lock more");
    }
    let judges = decided.into_iter().map(|id| ring.appeal(id));
    let (honest, own) = judges.fold((0, 0), |sum, judges| (sum.0 + judges.0, sum.1 + judges.1));
    assert!(honest > own, "{honest} honest judges, {own} of the ring");
    assert!(ring.wealth() < before, "the ring gained {}", ring.wealth() - before);
}

#[test]
fn an_appeal_is_open_and_decided_though_the_bonds_of_all_others_are_locked() {
    let mut market = Market::of(12);
    let id = market.appealable();
    market.all_answer(id, b"no");
    let liars = market.members(id, 0);
    let others: Vec<Who> =
        market.miners.iter().copied().filter(|miner| !liars.contains(miner)).collect();
    for miner in &others {
        market.lock_most(*miner);
    }
    market.world.next_block();
    market.world.must(BOB, &appeal(id));
    market.world.next_block();
    let judges = market.members(id, 1);
    assert_eq!(judges.len(), 7);
    for judge in &judges {
        assert_eq!(market.member(id, *judge).unwrap().lock.get(), 5_000, "what was free");
        assert_eq!(market.bond(*judge).free().get(), 0);
    }
    // One of them lies as well, and loses what it has at stake.
    let says: Vec<(Who, &[u8])> = judges.iter().map(|judge| (*judge, b"yes".as_slice())).collect();
    let mut says = says;
    says[6].1 = b"no";
    market.answer(id, &says);
    let call = market.call(id);
    assert_eq!((call.status, call.is_settled()), (CallStatus::Success, true));
    for liar in liars {
        assert_eq!(market.bond(liar).bonded.get(), BOND - DISSENT);
    }
    let dues = judges.iter().map(|judge| market.member(id, *judge).unwrap());
    let dues: Vec<(u64, u64)> = dues.map(|it| (it.paid.get(), it.penalty.get())).collect();
    assert_eq!(dues[..6], [(WAGE, 0); 6]);
    assert_eq!(dues[6], (0, 5_000));
    for judge in judges {
        assert_eq!(market.bond(judge).locked.get(), BOND - 5_000, "for the run");
    }
}

#[test]
fn first_rounds_lock_no_more_than_half_of_a_bond() {
    let mut market = Market::of(10);
    let miners = market.miners.clone();
    market.world.all(&miners, &offer(64));
    market.world.next_block();
    let ids = [(); 12].map(|()| {
        let body = AgentCall { appealable: Some(true), ..market.body(ALICE, 3) };
        market.called(body)
    });
    market.world.next_block();
    let most = miners.iter().map(|who| market.bond(*who).locked.get()).max();
    assert_eq!(most, Some(BOND / 2), "three times the penalty for dissent");
    let last = market.call(ids[11]);
    assert_eq!(last.status, CallStatus::Unassigned, "{last:?}");
}
