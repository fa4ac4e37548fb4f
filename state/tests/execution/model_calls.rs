//! What the model knows of calls: their draws, phases, decisions and settlements. Written from the protocol,
//! in lists and 128-bit sums, without a look at the ledger.

use std::collections::{BTreeMap, BTreeSet};

use types::tx::{AgentCall, CallCommit, CallReveal};
use types::{Address, Hash, Params};

use crate::model_agents::{ModelVersion, Numbers};
use crate::model_bonds::ModelBonds;
use crate::model_offers::ModelOffers;
use crate::model_settlement::{Bill, settle};

/// Blocks that a phase has at least.
const BLOCKS: u64 = 10;

/// Outcome, hash of the result, tokens read and written, fuel, and the receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelAnswer {
    pub outcome: String,
    pub result: Hash,
    pub usage: [u64; 3],
    pub receipt: Hash,
}

#[derive(Clone, Debug)]
pub struct ModelMember {
    pub who: Address,
    pub bond: i128,
    pub lock: i128,
    pub commitment: Option<Hash>,
    pub answer: Option<ModelAnswer>,
    pub paid: i128,
    pub penalty: i128,
}

/// A group that decides: the same answer, or the same outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModelGroup {
    Same(ModelAnswer),
    All(String),
}

impl ModelGroup {
    pub fn outcome(&self) -> &str {
        match self {
            Self::Same(answer) => &answer.outcome,
            Self::All(outcome) => outcome,
        }
    }

    pub fn has(&self, member: &ModelMember) -> bool {
        member.answer.as_ref().is_some_and(|answer| match self {
            Self::Same(it) => it == answer,
            Self::All(outcome) => *outcome == answer.outcome,
        })
    }
}

#[derive(Clone, Debug)]
pub struct ModelRound {
    pub size: usize,
    pub members: Vec<ModelMember>,
    pub group: Option<ModelGroup>,
}

impl ModelRound {
    pub fn committed(&self) -> usize {
        self.members.iter().filter(|it| it.commitment.is_some()).count()
    }

    pub fn revealed(&self) -> usize {
        self.members.iter().filter(|it| it.answer.is_some()).count()
    }

    pub fn agreeing(&self) -> usize {
        self.group.as_ref().map_or(0, |it| self.members.iter().filter(|one| it.has(one)).count())
    }
}

#[derive(Clone, Debug)]
pub struct ModelAppeal {
    pub appellant: Address,
    pub size: usize,
    pub payment: i128,
    pub deposit: i128,
}

/// The numbers of the block with the AGENT_CALL.
#[derive(Clone, Debug)]
pub struct Terms {
    pub budget: i128,
    pub dissent: i128,
    pub absence: i128,
    pub unrevealed: i128,
    pub outside: i128,
    pub fee: i128,
    pub royalty: i128,
    least_bond: i128,
    reveal_ms: u64,
    appeal_ms: u64,
}

#[derive(Clone, Debug)]
pub struct ModelCall {
    pub id: Hash,
    pub asked: AgentCall,
    pub requester: Address,
    pub owner: Address,
    pub executors: BTreeSet<String>,
    pub terms: Terms,
    pub word: &'static str,
    /// The block and the place in it for which an election waits.
    waits_since: Option<(u64, usize)>,
    /// The time and the block at which the phase ends.
    deadline: Option<(u64, u64)>,
    pub rounds: Vec<ModelRound>,
    pub appeal: Option<ModelAppeal>,
    /// Appeals whose second round could not be.
    pub failed_appeals: usize,
    pub bill: Option<Bill>,
}

impl ModelCall {
    pub fn prices(&self) -> [u64; 4] {
        prices(&self.asked)
    }

    pub fn is_appealable(&self) -> bool {
        self.asked.appealable == Some(true)
    }

    fn lock(&self) -> i128 {
        if self.is_appealable() { self.terms.dissent } else { self.terms.unrevealed }
    }

    /// Whether somebody has less at stake than others.
    pub fn has_short_locks(&self) -> bool {
        self.rounds.iter().flat_map(|round| &round.members).any(|it| it.lock < self.lock())
    }

    /// How many of a round decide it.
    fn needed(&self, size: usize) -> usize {
        self.asked.threshold.map_or(size / 2 + 1, |needed| usize::try_from(needed).unwrap())
    }

    fn member(&self, round: u64, who: Address) -> Option<&ModelMember> {
        let round = self.rounds.get(usize::try_from(round).unwrap())?;
        round.members.iter().find(|member| member.who == who)
    }

    fn is_last(&self, round: u64) -> bool {
        u64::try_from(self.rounds.len()).unwrap() == round + 1
    }

    fn everybody(&self) -> impl Iterator<Item = Address> {
        self.rounds.iter().flat_map(|round| round.members.iter().map(|member| member.who))
    }

    fn can_be_appealed(&self) -> bool {
        let has_group = self.rounds.last().is_some_and(|round| round.group.is_some());
        self.is_appealable()
            && matches!(self.word, "success" | "failed")
            && has_group
            && self.bill.is_none()
            && self.appeal.is_none()
    }

    /// Whether all members have done what the phase waits for.
    fn is_complete(&self) -> bool {
        let Some(round) = self.rounds.last() else { return false };
        match self.word {
            "committing" => round.committed() == round.members.len(),
            "revealing" => round.revealed() == round.committed(),
            _ => false,
        }
    }

    /// What each seat of a second round costs, and what each member of the group is worth as a deposit.
    fn stakes(&self, size: usize) -> (i128, i128) {
        let agreeing = self.rounds[0].agreeing();
        let seat = self.terms.budget + self.terms.fee;
        let times = |amount: i128, by: usize| amount * i128::try_from(by).unwrap();
        (times(seat, size), times(self.terms.dissent, agreeing))
    }
}

/// What work at these prices costs: for the call, and for tokens and fuel, each rounded up.
pub fn price(prices: [u64; 4], usage: [u64; 3]) -> i128 {
    let [call, prompt, completion, fuel] = prices.map(i128::from);
    let [read, written, burned] = usage.map(i128::from);
    let up = |sum: i128, parts: i128| (sum + parts - 1) / parts;
    call + up(read * prompt, 1_000_000)
        + up(written * completion, 1_000_000)
        + up(burned * fuel, 1_000_000_000)
}

/// What an election sees beside calls.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    pub offers: &'a ModelOffers,
    pub stakes: &'a ModelBonds,
    pub params: &'a Params,
}

/// What an election and the end of a block see and change beside calls.
pub struct Around<'a> {
    pub offers: &'a ModelOffers,
    pub stakes: &'a mut ModelBonds,
    pub params: &'a Params,
}

impl Around<'_> {
    const fn look(&self) -> Look<'_> {
        Look { offers: self.offers, stakes: &*self.stakes, params: self.params }
    }
}

/// The block that begins.
#[derive(Clone, Copy)]
pub struct Begins {
    pub height: u64,
    pub now: u64,
    pub randomness: Hash,
    /// Whether another validator makes it than the block before, or there is one validator.
    pub is_others: bool,
}

/// Money that moves without a transaction.
pub type Moves = (Vec<(Address, i128)>, i128);

#[derive(Default)]
pub struct ModelCalls {
    pub all: BTreeMap<Hash, ModelCall>,
    /// Calls and appeals in the open block.
    asked: usize,
    /// Calls whose last member has committed or revealed in the open block.
    noted: BTreeSet<Hash>,
    /// Phases that had to wait although all members had done what they could.
    pub postponed: u64,
}

fn budget(body: &AgentCall) -> i128 {
    let limits = &body.limits;
    price(prices(body), [limits.input_tokens, limits.output_tokens, limits.fuel])
}

fn prices(body: &AgentCall) -> [u64; 4] {
    let prices = &body.prices;
    [prices.per_call, prices.prompt_per_m, prices.completion_per_m, prices.fuel_per_g]
        .map(types::Amount::get)
}

/// D.
fn dissent(body: &AgentCall, params: &Params) -> i128 {
    let seat = budget(body) + i128::from(params.reveal_fee.get());
    i128::from(params.dissent_penalty.get()).max(4 * seat).min(i128::from(u64::MAX))
}

fn conditional(body: &AgentCall) -> i128 {
    body.on_result.iter().flatten().map(|it| i128::from(it.amount.get())).sum()
}

impl ModelCalls {
    /// The rejection of an AGENT_CALL of a version that is there.
    pub fn obstacle(
        who: Address,
        nonce: u64,
        body: &AgentCall,
        (version, params): (&ModelVersion, &Params),
    ) -> Option<&'static str> {
        let id = format!("call|test|{who}|{nonce}");
        if body.call_id != Hash::digest(id.as_bytes()) {
            return Some("CALL_ID_MISMATCH");
        }
        // The one method of all agents here is `f()`.
        if body.payload.0.get(..4) != Some(&[0x26, 0x12, 0x1f, 0xf0]) {
            return Some("SELECTOR_UNKNOWN");
        }
        let limits = &body.limits;
        let size = i128::from(body.committee_size);
        let is_within = limits.input_tokens <= 262_144
            && limits.output_tokens <= 65_536
            && limits.fuel <= 100_000_000_000
            && limits.result_bytes <= 16_384;
        let may_be_appealed = body.appealable != Some(true) || version.is_deterministic;
        let at_stake = (size / 2 + 1) * dissent(body, params);
        if !is_within || !may_be_appealed || conditional(body) > at_stake {
            return Some("CALL_LIMITS");
        }
        let seats = size * (budget(body) + i128::from(params.reveal_fee.get()));
        let least = i128::from(version.royalty) + conditional(body) + seats;
        (i128::from(body.max_fee.get()) < least).then_some("MAX_FEE_TOO_LOW")
    }

    pub fn ask(
        &mut self,
        who: Address,
        body: &AgentCall,
        (owner, version): (Address, &ModelVersion),
        (params, height): (&Params, u64),
    ) {
        let money = |amount: types::Amount| i128::from(amount.get());
        let terms = Terms {
            budget: budget(body),
            dissent: dissent(body, params),
            absence: money(params.absence_penalty),
            unrevealed: money(params.unrevealed_penalty),
            outside: money(params.outside_penalty),
            fee: money(params.reveal_fee),
            royalty: version.royalty.into(),
            least_bond: money(params.min_bond),
            reveal_ms: params.reveal_ms,
            appeal_ms: params.appeal_ms,
        };
        let call = ModelCall {
            id: body.call_id,
            asked: body.clone(),
            requester: who,
            owner,
            executors: version.executors.clone(),
            terms,
            word: "electing",
            waits_since: Some((height, self.asked)),
            deadline: None,
            rounds: Vec::new(),
            appeal: None,
            failed_appeals: 0,
            bill: None,
        };
        self.asked += 1;
        self.all.insert(body.call_id, call);
    }

    /// The member of a round, or why the sender is none.
    fn find(
        &self,
        id: &Hash,
        round: u64,
        who: Address,
    ) -> Result<(&ModelCall, &ModelMember), &'static str> {
        let call = self.all.get(id).ok_or("CALL_NOT_FOUND")?;
        let member = call.member(round, who).filter(|_| call.bill.is_none());
        member.map(|member| (call, member)).ok_or("NOT_MEMBER")
    }

    pub fn may_commit(&self, who: Address, body: &CallCommit) -> Result<(), &'static str> {
        let (call, member) = self.find(&body.call_id, body.round, who)?;
        if call.word != "committing" || !call.is_last(body.round) {
            return Err("CALL_PHASE");
        }
        if member.commitment.is_some() { Err("COMMIT_EXISTS") } else { Ok(()) }
    }

    pub fn may_reveal(&self, who: Address, body: &CallReveal) -> Result<(), &'static str> {
        let (call, member) = self.find(&body.call_id, body.round, who)?;
        if call.word != "revealing" || !call.is_last(body.round) {
            return Err("CALL_PHASE");
        }
        if u64::try_from(body.result.0.len()).unwrap() > call.asked.limits.result_bytes {
            return Err("CALL_LIMITS");
        }
        if member.answer.is_some() {
            return Err("REVEAL_EXISTS");
        }
        let result = Hash::digest(&body.result.0);
        let text = format!(
            "commit|{}|{}|{who}|{}|{}|{result}|{}|{}|{}|{}",
            body.call_id,
            body.round,
            body.salt,
            body.outcome,
            body.input_tokens,
            body.output_tokens,
            body.fuel,
            body.receipt_hash
        );
        let opens = member.commitment == Some(Hash::digest(text.as_bytes()));
        if opens { Ok(()) } else { Err("REVEAL_MISMATCH") }
    }

    /// What an appeal takes of its sender at least; nothing of a call that cannot be appealed.
    pub fn least_cost(&self, id: &Hash) -> i128 {
        let Some(call) = self.all.get(id).filter(|call| call.can_be_appealed()) else { return 0 };
        let (payment, deposit) = call.stakes(call.rounds[0].size + 2);
        payment + deposit
    }

    /// The members that a second round would have, and what it takes; or why there is none.
    pub fn second_round(
        &self,
        who: Address,
        id: &Hash,
        look: &Look<'_>,
    ) -> Result<ModelAppeal, &'static str> {
        let call = self.all.get(id).ok_or("CALL_NOT_FOUND")?;
        if !call.can_be_appealed() || call.everybody().any(|member| member == who) {
            return Err("APPEAL_CLOSED");
        }
        let eligible = self.candidates(call, Some(who), look).len();
        let first = call.rounds[0].size;
        let size = second_size(first, eligible).ok_or("APPEAL_CLOSED")?;
        let (payment, deposit) = call.stakes(size);
        Ok(ModelAppeal { appellant: who, size, payment, deposit })
    }

    pub fn appeal(&mut self, id: &Hash, appeal: ModelAppeal, height: u64) {
        let call = self.all.get_mut(id).unwrap();
        call.appeal = Some(appeal);
        call.word = "electing";
        call.deadline = None;
        call.waits_since = Some((height, self.asked));
        self.asked += 1;
    }

    pub fn commit(&mut self, who: Address, body: &CallCommit) {
        let round = self.all.get_mut(&body.call_id).unwrap().rounds.last_mut().unwrap();
        let member = round.members.iter_mut().find(|member| member.who == who).unwrap();
        member.commitment = Some(body.commitment);
        if round.committed() == round.members.len() {
            self.noted.insert(body.call_id);
        }
    }

    pub fn reveal(&mut self, who: Address, body: &CallReveal) {
        let round = self.all.get_mut(&body.call_id).unwrap().rounds.last_mut().unwrap();
        let member = round.members.iter_mut().find(|member| member.who == who).unwrap();
        member.answer = Some(ModelAnswer {
            outcome: body.outcome.clone(),
            result: Hash::digest(&body.result.0),
            usage: [body.input_tokens, body.output_tokens, body.fuel],
            receipt: body.receipt_hash,
        });
        if round.revealed() == round.committed() {
            self.noted.insert(body.call_id);
        }
    }

    /// At how many calls a miner works for an executor.
    fn assigned(&self, who: Address, executor: &str) -> u64 {
        let works = |call: &&ModelCall| {
            let is_open = matches!(call.word, "committing" | "revealing");
            let last = call.rounds.last().filter(|_| is_open);
            call.executors.contains(executor)
                && last.is_some_and(|round| round.members.iter().any(|it| it.who == who))
        };
        u64::try_from(self.all.values().filter(works).count()).unwrap()
    }

    /// Who takes part in a draw, by address: bond, and whether the seat stays empty. With an appellant it is
    /// the second one.
    fn candidates(
        &self,
        call: &ModelCall,
        appellant: Option<Address>,
        look: &Look<'_>,
    ) -> BTreeMap<Address, (i128, bool)> {
        let most = usize::try_from(look.params.offers_per_executor_max).unwrap();
        let limits = (call.terms.least_bond, most);
        let bonded = |miner| look.stakes.of(miner).0;
        let mut candidates = BTreeMap::new();
        let miners: BTreeSet<Address> = look.offers.all.keys().map(|(miner, _)| *miner).collect();
        for miner in miners {
            let excluded = [Some(call.requester), appellant].contains(&Some(miner))
                || call.everybody().any(|member| member == miner);
            let mut offers = call.executors.iter().map(|executor| {
                let counting = look.offers.counting(executor, bonded, limits);
                let own = counting.into_iter().find(|(who, ..)| *who == miner);
                own.map(|(_, _, offer)| (executor, offer))
            });
            let Some(offers) = offers.by_ref().collect::<Option<Vec<_>>>() else { continue };
            let is_paid = |asked: &[u64; 4]| {
                asked.iter().zip(call.prices()).all(|(least, paid)| *least <= paid)
            };
            if excluded || !offers.iter().all(|(_, (_, prices))| is_paid(prices)) {
                continue;
            }
            let is_busy = |(executor, (capacity, _)): &(&String, (u64, [u64; 4]))| {
                self.assigned(miner, executor) >= *capacity
            };
            let (whole, locked) = look.stakes.of(miner);
            let has_lock = locked + call.lock() <= whole / 2 || call.lock() == 0;
            let is_full = appellant.is_none() && (offers.iter().any(is_busy) || !has_lock);
            candidates.insert(miner, (whole, is_full));
        }
        candidates
    }

    /// Before the transactions of a block: the elections that may be held, the oldest first.
    pub fn begin_block(&mut self, begins: &Begins, around: &mut Around<'_>) -> Moves {
        self.asked = 0;
        let mut waiting: Vec<_> = self
            .all
            .values()
            .filter_map(|call| Some((call.waits_since?, call.id)))
            .filter(|((height, _), _)| begins.is_others || begins.height >= height + 11)
            .collect();
        waiting.sort_unstable();
        let mut moves = Moves::default();
        for (_, id) in waiting {
            self.elect(id, begins, around, &mut moves);
        }
        moves
    }

    fn elect(&mut self, id: Hash, begins: &Begins, around: &mut Around<'_>, moves: &mut Moves) {
        let call = &self.all[&id];
        let second = call.appeal.as_ref();
        let first_size = usize::try_from(call.asked.committee_size).unwrap();
        let candidates = self.candidates(call, second.map(|it| it.appellant), &around.look());
        let eligible = candidates.values().filter(|(_, is_full)| !is_full).count();
        let is_first = second.is_none();
        let size = match second {
            None => first_size,
            Some(appeal) => match second_size(first_size, eligible) {
                Some(size) => size.min(appeal.size),
                None => return self.fail_appeal(id, begins, moves),
            },
        };
        let wanted = if is_first && call.is_appealable() { 3 * size + 1 } else { size };
        let drawn = draw(id, u8::from(!is_first), begins.randomness, &candidates, size);
        let seated: Vec<_> = drawn.into_iter().filter(|who| !candidates[who].1).collect();
        let is_possible = eligible >= wanted && seated.len() >= call.needed(size);
        let whole_lock = call.lock();
        let call = self.all.get_mut(&id).unwrap();
        call.waits_since = None;
        if !is_possible {
            assert!(is_first, "no seat of a second round stays empty");
            call.word = "unassigned";
            call.rounds.push(ModelRound { size, members: Vec::new(), group: None });
            let refund = i128::from(call.asked.max_fee.get());
            call.bill = Some(Bill { refund, ..Bill::default() });
            moves.0.push((call.requester, refund));
            return;
        }
        let mut members = Vec::new();
        for who in seated {
            // A second round locks what is left.
            let lock = if is_first { whole_lock } else { whole_lock.min(around.stakes.free(who)) };
            around.stakes.lock(who, lock);
            let bond = candidates[&who].0;
            let (commitment, answer, paid, penalty) = (None, None, 0, 0);
            members.push(ModelMember { who, bond, lock, commitment, answer, paid, penalty });
        }
        call.rounds.push(ModelRound { size, members, group: None });
        call.word = "committing";
        // The block of the election is the first of the phase.
        call.deadline = Some((begins.now + call.asked.timeout_ms, begins.height + BLOCKS - 1));
    }

    /// The appellant gets back most of what it laid down, and all may appeal again.
    fn fail_appeal(&mut self, id: Hash, begins: &Begins, moves: &mut Moves) {
        let call = self.all.get_mut(&id).unwrap();
        let appeal = call.appeal.take().unwrap();
        let fees = call.terms.fee * i128::try_from(appeal.size).unwrap();
        let burned = fees.max(appeal.deposit / 256);
        moves.0.push((appeal.appellant, appeal.payment + appeal.deposit - burned));
        moves.1 += burned;
        call.failed_appeals += 1;
        call.waits_since = None;
        call.word = word_of(call.rounds[0].group.as_ref());
        call.deadline = Some((begins.now + call.terms.appeal_ms, begins.height + BLOCKS - 1));
    }

    /// The end of a block.
    pub fn end_block(&mut self, (height, now): (u64, u64), around: &mut Around<'_>) -> Moves {
        let is_over = |at: u64, from: u64| at <= now && from <= height;
        let mut due: Vec<_> = self
            .all
            .values()
            .filter_map(|call| Some((call.deadline?, call.id)))
            .filter(|((at, from), _)| is_over(*at, *from))
            .collect();
        due.sort_by_key(|((at, from), id)| (*at, *from, id.to_string()));
        let most = around.params.max_expiries_per_block;
        due.truncate(usize::try_from(most).unwrap());
        let mut moves = Moves::default();
        let mut taken = 0;
        for (_, id) in due {
            if taken < 64 * i128::from(most) {
                taken += self.advance(id, (height, now), around, &mut moves);
            }
        }
        for id in std::mem::take(&mut self.noted) {
            if taken < 64 * i128::from(most) {
                taken += self.advance(id, (height, now), around, &mut moves);
                continue;
            }
            let call = self.all.get_mut(&id).unwrap();
            let is_due = call.deadline.is_some_and(|(at, from)| is_over(at, from));
            if call.is_complete() && !is_due {
                self.postponed += 1;
                call.deadline = Some((now, height));
            }
        }
        moves
    }

    fn advance(
        &mut self,
        id: Hash,
        (height, now): (u64, u64),
        around: &mut Around<'_>,
        moves: &mut Moves,
    ) -> i128 {
        let call = self.all.get_mut(&id).unwrap();
        if call.bill.is_some() {
            return 0;
        }
        let is_over = call.deadline.is_some_and(|(at, from)| at <= now && from <= height);
        let after = |ms: u64| Some((now + ms, height + BLOCKS));
        match call.word {
            "committing" => {
                if !call.is_complete() && !is_over {
                    return 0;
                }
                if call.rounds.last().unwrap().committed() > 0 {
                    call.word = "revealing";
                    call.deadline = after(call.terms.reveal_ms);
                    return 16;
                }
            }
            "revealing" => {
                if !call.is_complete() && !is_over {
                    return 0;
                }
            }
            // Decided: nobody appeals any more.
            "success" | "failed" | "timedOut" => {
                return if is_over { 16 + pay(call, around, moves) } else { 0 };
            }
            _ => return 0,
        }
        let decision = 2 * call.rounds.last().unwrap().members.len() * call.executors.len();
        let decision = 16 + i128::try_from(decision).unwrap();
        decide(call);
        if call.rounds.len() == 1 && call.is_appealable() && call.rounds[0].group.is_some() {
            call.deadline = after(call.terms.appeal_ms);
            return decision;
        }
        decision + pay(call, around, moves)
    }
}

/// The size of the round after one of this size while so many are eligible: an odd number, or none.
fn second_size(first: usize, eligible: usize) -> Option<usize> {
    let odd = if eligible % 2 == 1 { eligible } else { eligible.saturating_sub(1) };
    Some(odd.min(2 * first + 1)).filter(|size| *size > first)
}

/// The draw of these seats among candidates by address: each by a number modulo the weights of those who are left.
pub fn draw(
    id: Hash,
    round: u8,
    randomness: Hash,
    candidates: &BTreeMap<Address, (i128, bool)>,
    seats: usize,
) -> Vec<Address> {
    let mut left: Vec<(Address, i128)> =
        candidates.iter().map(|(who, (weight, _))| (*who, *weight)).collect();
    let mut drawn = Vec::new();
    for nth in 0..seats {
        let sum: i128 = left.iter().map(|(_, weight)| weight).sum();
        if sum == 0 {
            break;
        }
        let hash = Hash::digest(format!("elect|{id}|{round}|{randomness}|{nth}").as_bytes());
        let number = u128::from_str_radix(&hash.to_string()[..32], 16).unwrap();
        let mut at = i128::try_from(number % u128::try_from(sum).unwrap()).unwrap();
        let place = left.iter().position(|(_, weight)| {
            at -= weight;
            at < 0
        });
        drawn.push(left.remove(place.unwrap()).0);
    }
    drawn
}

fn word_of(group: Option<&ModelGroup>) -> &'static str {
    match group {
        Some(group) if group.outcome() == "success" => "success",
        _ => "failed",
    }
}

/// The last round is decided.
fn decide(call: &mut ModelCall) {
    let first = call.rounds[0].group.clone();
    let has_threshold = call.asked.threshold.is_some();
    let needed = call.needed(call.rounds.last().unwrap().size);
    let round = call.rounds.last_mut().unwrap();
    let answers = round.members.iter().filter_map(|member| member.answer.clone());
    let answers = answers.filter(|answer| answer.outcome != "unable");
    let groups: Vec<ModelGroup> = if has_threshold {
        ["success", "failure"].map(|word| ModelGroup::All(word.to_owned())).into()
    } else {
        answers.map(ModelGroup::Same).collect()
    };
    let count = |group: &ModelGroup| round.members.iter().filter(|it| group.has(it)).count();
    let sizes: Vec<usize> = groups.iter().map(count).collect();
    let winner = sizes.iter().position(|size| *size >= needed);
    let withheld = round.committed() - round.revealed();
    let could_be = sizes.iter().max().copied().unwrap_or(0) + withheld >= needed;
    let is_silent = round.committed() == 0;
    round.group = winner.map(|at| groups[at].clone());
    call.deadline = None;
    call.word = match &round.group {
        Some(group) => word_of(Some(group)),
        None if first.is_some() => word_of(first.as_ref()),
        None if is_silent || could_be => "timedOut",
        None => "failed",
    };
}

/// All money of a call moves. Answers the work of it.
fn pay(call: &mut ModelCall, around: &mut Around<'_>, moves: &mut Moves) -> i128 {
    let bill = settle(call);
    let mut work = 0;
    for member in call.rounds.iter().flat_map(|round| &round.members) {
        let moved = if member.penalty > 0 { around.offers.count(member.who) } else { 0 };
        work += 12 + 4 * i128::try_from(moved).unwrap();
        moves.0.push((member.who, member.paid));
        around.stakes.release(call.id, member.who, member.lock, member.penalty);
    }
    moves.0.push((call.owner, bill.royalty));
    moves.0.push((call.requester, bill.refund));
    moves.0.extend(bill.conditional.iter().copied());
    if let Some(appeal) = &call.appeal {
        moves.0.push((appeal.appellant, bill.appellant));
    }
    // What is burned of bonds is counted with the bonds.
    let of_bonds: i128 =
        call.rounds.iter().flat_map(|round| &round.members).map(|member| member.penalty).sum();
    moves.1 += bill.burned - of_bonds;
    call.deadline = None;
    call.bill = Some(bill);
    work
}

/// The version that an AGENT_CALL names.
pub fn version_of(body: &AgentCall) -> Option<Numbers> {
    let parts: Vec<u64> =
        body.agent_version.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    parts.try_into().ok()
}
