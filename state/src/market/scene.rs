//! Calls for tests: rounds of members that say something, decided and settled by the real rules.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

use std::sync::Arc;

use types::agent::ExecutorId;
use types::call::{
    Answer, Appeal, Call, CallLimits, CallMember, CallRound, CallStatus, CallTerms, Commitment,
    Conditional, Consensus, Outcome, Reveal, When,
};
use types::{Address, Amount, Hash, Prices, Supply, TxLocation, Usage};

use super::appeal;
use super::decision::decide;
use super::settlement::{Settled, settle};
use crate::draft::Draft;
use crate::memory::Memory;
use crate::tables::Supplies;

/// A state without anything but money.
pub(super) fn draft() -> Draft {
    let mut draft = Draft::new(Arc::new(Memory::default()));
    draft.put::<Supplies>(&(), &Supply { genesis: Amount::MAX, ..Supply::default() });
    draft
}

pub(super) fn model(number: u8) -> ExecutorId {
    ExecutorId::Model { manifest: Hash::new([number; 32]) }
}

/// What a member does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Does {
    /// It does not commit.
    Nothing,
    /// It commits and does not reveal.
    Withholds,
    /// It reveals this.
    Says(Answer),
}

const AT: TxLocation = TxLocation { height: 1, position: 0 };
/// What the penalties and fees of the scenes are, those that do not depend on the prices.
pub(super) const ABSENCE: u64 = 10_000;
pub(super) const UNREVEALED: u64 = 100_000;
pub(super) const OUTSIDE: u64 = 2_000;
pub(super) const REVEAL_FEE: u64 = 200;
/// The work that [`success`] bills, and its price.
const USAGE: Usage = Usage { input_tokens: 100, output_tokens: 10, fuel: 0 };
pub(super) const WAGE: u64 = 1_000 + 100 * 3 + 10 * 20;
/// The price of a failure.
pub(super) const PER_CALL: u64 = 1_000;

/// The success with this result.
pub(super) fn success(result: u8) -> Answer {
    Answer {
        outcome: Outcome::Success,
        result_hash: Hash::new([result; 32]),
        usage: USAGE,
        receipt_hash: Hash::new([result; 32]),
    }
}

/// The agent says no.
pub(super) fn failure() -> Answer {
    Answer { outcome: Outcome::Failure, ..success(0) }
}

/// A member that says the success with this result.
pub(super) fn says(result: u8) -> Does {
    Does::Says(success(result))
}

/// A member that could not.
pub(super) fn unable() -> Does {
    Does::Says(Answer { outcome: Outcome::Unable, ..success(0) })
}

/// A member as the rules see it.
pub(super) fn member(round: u8, does: Does, lock: Amount) -> CallMember {
    let commitment = Some(Commitment { hash: Hash::ZERO, tx: AT });
    let (commitment, reveal) = match does {
        Does::Nothing => (None, None),
        Does::Withholds => (commitment, None),
        Does::Says(answer) => (commitment, Some(Reveal { answer, tx: AT })),
    };
    let bond = Amount::new(10_000_000);
    let (paid, penalty) = (Amount::ZERO, Amount::ZERO);
    CallMember { round, seat: 0, bond, lock, commitment, reveal, paid, penalty }
}

/// A call and its members.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) call: Call,
    pub(super) members: Vec<CallMember>,
}

impl Scene {
    /// An appealable call of a committee of this size, which pays a royalty of 500 and has as much as it
    /// needs.
    pub(super) fn of(committee_size: u8) -> Self {
        let amount = Amount::new;
        let prices = Prices {
            per_call: amount(PER_CALL),
            prompt_per_m: amount(3_000_000),
            completion_per_m: amount(20_000_000),
            fuel_per_g: Amount::ZERO,
        };
        let usage = Usage { input_tokens: 1_000, output_tokens: 100, fuel: 0 };
        let call = Call {
            call_id: Hash::new([1; 32]),
            agent_id: Hash::new([2; 32]),
            agent_version: "1.0.0".to_owned(),
            owner: Address::new([3; 20]),
            requester: Address::new([4; 20]),
            request: AT,
            created_at: 0,
            payload_hash: Hash::ZERO,
            conversation_id: None,
            consensus: Consensus::Majority,
            committee_size,
            is_appealable: true,
            prices,
            limits: CallLimits { usage, result_bytes: 100 },
            max_fee: Amount::ZERO,
            timeout_ms: 10_000,
            on_result: Vec::new(),
            terms: CallTerms {
                royalty: amount(500),
                min_bond: amount(10_000_000),
                absence_penalty: amount(ABSENCE),
                unrevealed_penalty: amount(UNREVEALED),
                outside_penalty: amount(OUTSIDE),
                reveal_fee: amount(REVEAL_FEE),
                ..CallTerms::default()
            },
            status: CallStatus::Revealing,
            deadline: None,
            rounds: Vec::new(),
            appeal: None,
            bill: None,
            members_digest: Hash::ZERO,
        };
        Self { call, members: Vec::new() }.priced(prices)
    }

    /// The same call at other prices.
    pub(super) fn priced(mut self, prices: Prices) -> Self {
        let call = &mut self.call;
        call.prices = prices;
        let budget = u64::try_from(prices.price(&call.limits.usage)).unwrap();
        call.terms.budget = Amount::new(budget);
        let seat = budget + call.terms.reveal_fee.get();
        call.terms.dissent_penalty = Amount::new((4 * seat).max(1_000_000));
        call.max_fee =
            Amount::new(call.terms.royalty.get() + u64::from(call.committee_size) * seat);
        self
    }

    /// The same call, decided by so many members, at a price for the call alone.
    pub(super) fn threshold(mut self, needed: u8) -> Self {
        self.call.consensus = Consensus::Threshold(needed);
        self.call.is_appealable = false;
        let per_call = self.call.prices.per_call;
        self.priced(Prices { per_call, ..Prices::default() })
    }

    /// The same call, whose answer cannot be appealed.
    pub(super) fn final_at_once(mut self) -> Self {
        self.call.is_appealable = false;
        self
    }

    /// The same call with a conditional payment, which is escrowed.
    pub(super) fn pays(mut self, when: When, to: u8, amount: u64) -> Self {
        let (to, amount) = (Address::new([to; 20]), Amount::new(amount));
        self.call.on_result.push(Conditional { when, to, amount });
        self.call.max_fee = self.call.max_fee.checked_add(amount).unwrap();
        self
    }

    /// What is locked of each member's bond.
    pub(super) fn lock(&self) -> Amount {
        let terms = &self.call.terms;
        if self.call.is_appealable { terms.dissent_penalty } else { terms.unrevealed_penalty }
    }

    /// D.
    pub(super) fn dissent(&self) -> u64 {
        self.call.terms.dissent_penalty.get()
    }

    /// The next round of the call, in which these members do this; seats without one are empty.
    pub(super) fn round(mut self, does: &[Does]) -> Self {
        let round = u8::try_from(self.call.rounds.len()).unwrap();
        let size = self.call.appeal.map_or(self.call.committee_size, |appeal| appeal.size);
        let lock = self.lock();
        let members: Vec<CallMember> = does.iter().map(|does| member(round, *does, lock)).collect();
        let count = |is: &dyn Fn(&CallMember) -> bool| {
            u8::try_from(members.iter().filter(|member| is(member)).count()).unwrap()
        };
        let decision = decide(self.call.consensus, size, &members);
        self.call.status = decision.status;
        self.call.rounds.push(CallRound {
            size,
            members: u8::try_from(members.len()).unwrap(),
            committed: count(&|member| member.commitment.is_some()),
            revealed: count(&|member| member.reveal.is_some()),
            elected_in: 1,
            elected_at: 1,
            candidates_hash: Hash::ZERO,
            decided_at: Some(2),
            group: decision.group,
            agreeing: decision.agreeing,
        });
        self.members.extend(members);
        self
    }

    /// The same call, appealed, with as many miners as it takes.
    pub(super) fn appealed(self) -> Self {
        self.appealed_among(usize::MAX)
    }

    /// The same call, appealed while so many miners are eligible.
    pub(super) fn appealed_among(mut self, eligible: usize) -> Self {
        let size = appeal::size(self.call.committee_size, eligible).unwrap();
        let appeal::Stakes { payment, deposit } = appeal::stakes(&self.call, size).unwrap();
        let appellant = Address::new([5; 20]);
        self.call.appeal = Some(Appeal { appellant, tx: AT, size, payment, deposit });
        self
    }

    /// What the settlement does.
    pub(super) fn settled(&self) -> Settled {
        settle(&self.call, &self.members).unwrap()
    }

    /// What each member loses.
    pub(super) fn lost(&self) -> Vec<u64> {
        self.dues().iter().map(|due| due.1).collect()
    }

    /// What each member gets and loses.
    pub(super) fn dues(&self) -> Vec<(u64, u64)> {
        let dues = self.settled().dues;
        dues.iter().map(|due| (due.paid.get(), due.penalty.get())).collect()
    }
}
