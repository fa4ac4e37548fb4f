//! Who pays and who gets what when a call is settled (docs/protocol.md sections 18.6 and 18.7).
//!
//! ```text
//!   escrow ─────────▶ members of round 0, reveal fees, royalty, conditional payments, the rest back
//!   payment ────────▶ members of round 1, reveal fees, the rest back to the appellant
//!   deposit ────────▶ back to the appellant, or burned
//!   penalties ──────▶ burned; of wrong answers, where a decision was overturned, first round 1, then half
//!                     to the appellant
//! ```
//!
//! What goes in comes out: [`settle`] checks the sum of every bill.

use types::Amount;
use types::call::{Bill, Call, CallMember, CallRound, Conditional, Group, Outcome, Said};

use super::decision::answer;
use crate::error::StorageError;

/// What the settlement of a call does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// The sums.
    pub bill: Bill,
    /// For each member, in the order of the call's members, what it gets and what it loses of its bond;
    /// what is locked of it beyond that is free again.
    pub dues: Vec<Due>,
    /// The conditional payments that are made.
    pub conditional: Vec<Conditional>,
}

/// What the settlement does to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Due {
    /// What it gets.
    pub paid: Amount,
    /// What it loses of its bond.
    pub penalty: Amount,
}

const BROKEN: StorageError =
    StorageError::Inconsistent { what: "the money of a call does not cover what it owes" };
const UNEQUAL: StorageError =
    StorageError::Inconsistent { what: "a call's settlement is not what was paid in" };
const UNDECIDED: StorageError =
    StorageError::Inconsistent { what: "a call is settled that has no decided round" };

/// What the rounds of a call come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// No group decided, and no round follows.
    None,
    /// A group decided, and nobody appealed.
    Standing(Group),
    /// A group decided, and the second round came to nothing.
    NoGroup(Group),
    /// The second round says the same.
    Upheld(Group),
    /// The second round says something else.
    Overturned {
        /// What the first round said.
        first: Group,
        /// What holds.
        last: Group,
    },
}

impl Verdict {
    fn of(rounds: &[CallRound]) -> Result<Self, StorageError> {
        match rounds {
            [CallRound { group: None, .. }] => Ok(Self::None),
            [CallRound { group: Some(group), .. }] => Ok(Self::Standing(*group)),
            [CallRound { group: Some(first), .. }, second] => Ok(match second.group {
                None => Self::NoGroup(*first),
                Some(last) if last == *first => Self::Upheld(last),
                Some(last) => Self::Overturned { first: *first, last },
            }),
            _ => Err(UNDECIDED),
        }
    }

    /// The group whose answer is the call's.
    const fn group(&self) -> Option<&Group> {
        match self {
            Self::None => None,
            Self::Standing(group) | Self::NoGroup(group) | Self::Upheld(group) => Some(group),
            Self::Overturned { last, .. } => Some(last),
        }
    }
}

/// What becomes of the money of a call whose last round is decided. `members` are those of both rounds.
///
/// # Errors
/// [`StorageError::Inconsistent`] if the call has no decided round or its money does not suffice, which
/// the checks of AGENT_CALL and CALL_APPEAL rule out.
pub fn settle(call: &Call, members: &[CallMember]) -> Result<Settled, StorageError> {
    let verdict = Verdict::of(&call.rounds)?;
    let dues: Vec<Due> = members.iter().map(|member| due(call, &verdict, member)).collect();
    let conditional: Vec<Conditional> = match verdict.group() {
        Some(group) => call.on_result.iter().filter(|it| it.when.fires(group)).copied().collect(),
        None => Vec::new(),
    };
    let costs = Costs::of(call, members, &dues).ok_or(BROKEN)?;
    let bill = bill(call, &verdict, &costs, &conditional).ok_or(BROKEN)?;
    let bill = Bill { penalties: sum(dues.iter().map(|due| due.penalty)).ok_or(BROKEN)?, ..bill };
    let bill = with_agreement(bill, &verdict, members).ok_or(BROKEN)?;
    let paid_in = paid_in(call, &bill).ok_or(BROKEN)?;
    if paid_out(&bill) != Some(paid_in) {
        return Err(UNEQUAL);
    }
    Ok(Settled { bill, dues, conditional })
}

fn paid_in(call: &Call, bill: &Bill) -> Option<Amount> {
    let stakes = call.appeal.map_or([Amount::ZERO; 2], |it| [it.payment, it.deposit]);
    sum([call.max_fee, bill.penalties].into_iter().chain(stakes))
}

fn paid_out(bill: &Bill) -> Option<Amount> {
    let Bill { wages, royalty, conditional, refund, appellant, burned, .. } = *bill;
    sum([wages, royalty, conditional, refund, appellant, burned])
}

fn sum(amounts: impl IntoIterator<Item = Amount>) -> Option<Amount> {
    amounts.into_iter().try_fold(Amount::ZERO, Amount::checked_add)
}

/// What a member of the group gets.
fn wage(call: &Call, group: &Group) -> Amount {
    let (budget, per_call) = (call.terms.budget, call.prices.per_call);
    match group {
        // Usage is unproved there.
        Group::Of(_) => per_call,
        Group::Same(answer) => {
            let price = call.prices.price(&answer.usage);
            let price = u64::try_from(price).map_or(Amount::MAX, Amount::new).min(budget);
            // Failing needs no work.
            if answer.outcome == Outcome::Failure { price.min(per_call) } else { price }
        }
    }
}

fn due(call: &Call, verdict: &Verdict, member: &CallMember) -> Due {
    let agrees = |group: &Group| answer(member).is_some_and(|answer| group.has(answer));
    let wage_of = verdict.group().filter(|group| agrees(group));
    let paid = wage_of.map_or(Amount::ZERO, |group| wage(call, group));
    let penalty = if wage_of.is_some() { Amount::ZERO } else { penalty(call, verdict, member) };
    Due { paid, penalty: penalty.min(member.lock) }
}

/// What a member loses that did not give the answer that stands.
fn penalty(call: &Call, verdict: &Verdict, member: &CallMember) -> Amount {
    let terms = &call.terms;
    // What silence costs in an appeal that comes to nothing, where nobody loses for an answer.
    let no_group = match verdict {
        Verdict::NoGroup(_) => Some(Amount::new(terms.dissent_penalty.get() / 2)),
        Verdict::None | Verdict::Standing(_) | Verdict::Upheld(_) | Verdict::Overturned { .. } => {
            None
        }
    };
    match member.said() {
        Said::Nothing => no_group.unwrap_or(terms.absence_penalty),
        Said::Withheld => no_group.unwrap_or(terms.unrevealed_penalty),
        Said::Unable => no_group.unwrap_or(Amount::ZERO),
        Said::Answered(_) => match verdict {
            Verdict::None | Verdict::NoGroup(_) => Amount::ZERO,
            Verdict::Standing(_) => terms.outside_penalty,
            Verdict::Upheld(_) | Verdict::Overturned { .. } => terms.dissent_penalty,
        },
    }
}

/// What the rounds cost and bring.
struct Costs {
    /// What the members of each round get.
    wages: [Amount; 2],
    /// What the reveals of each round burn.
    fees: [Amount; 2],
    /// What members lose for an answer.
    wrong: Amount,
    /// What members lose for none.
    silent: Amount,
}

impl Costs {
    fn of(call: &Call, members: &[CallMember], dues: &[Due]) -> Option<Self> {
        let mut costs = Self {
            wages: [Amount::ZERO; 2],
            fees: [Amount::ZERO; 2],
            wrong: Amount::ZERO,
            silent: Amount::ZERO,
        };
        for (member, due) in members.iter().zip(dues) {
            let wages = costs.wages.get_mut(usize::from(member.round))?;
            *wages = wages.checked_add(due.paid)?;
            let lost = match member.said() {
                Said::Answered(_) => &mut costs.wrong,
                Said::Nothing | Said::Withheld | Said::Unable => &mut costs.silent,
            };
            *lost = lost.checked_add(due.penalty)?;
        }
        for (round, fees) in call.rounds.iter().zip(&mut costs.fees) {
            *fees = reveal_fees(call, round)?;
        }
        Some(costs)
    }
}

/// What a round burns: a fee for each reveal, and for each seat if no group decided.
fn reveal_fees(call: &Call, round: &CallRound) -> Option<Amount> {
    let count = if round.group.is_some() { round.revealed } else { round.size };
    call.terms.reveal_fee.checked_mul(count.into())
}

/// What becomes of the appellant's stakes, and of the penalties.
struct Stakes {
    /// Of the second round, what the escrow pays.
    from_escrow: Amount,
    /// To the appellant.
    back: Amount,
    /// Burned, of the deposit and of penalties.
    burned: Amount,
}

fn bill(
    call: &Call,
    verdict: &Verdict,
    costs: &Costs,
    conditional: &[Conditional],
) -> Option<Bill> {
    let [wages_0, wages_1] = costs.wages;
    let [fees_0, fees_1] = costs.fees;
    let stakes = stakes(call, verdict, costs)?;
    let is_success = verdict.group().is_some_and(|group| group.outcome() == Outcome::Success);
    let royalty = if is_success { call.terms.royalty } else { Amount::ZERO };
    let conditional = sum(conditional.iter().map(|it| it.amount))?;
    let spent = sum([wages_0, fees_0, royalty, conditional, stakes.from_escrow])?;
    Some(Bill {
        wages: wages_0.checked_add(wages_1)?,
        royalty,
        conditional,
        refund: call.max_fee.checked_sub(spent)?,
        appellant: stakes.back,
        burned: sum([fees_0, fees_1, stakes.burned])?,
        ..Bill::default()
    })
}

fn stakes(call: &Call, verdict: &Verdict, costs: &Costs) -> Option<Stakes> {
    let Costs { wages: [_, wages], fees: [_, fees], wrong, silent } = costs;
    let penalties = wrong.checked_add(*silent)?;
    let Some(appeal) = call.appeal else {
        return Some(Stakes { from_escrow: Amount::ZERO, back: Amount::ZERO, burned: penalties });
    };
    let cost = wages.checked_add(*fees)?;
    match verdict {
        // An appeal whose second round did not take place is not one any more.
        Verdict::None | Verdict::Standing(_) => None,
        Verdict::NoGroup(_) => {
            let lost = penalties.min(appeal.deposit);
            let kept = appeal.deposit.checked_sub(lost)?;
            let back = appeal.payment.checked_sub(cost)?.checked_add(kept)?;
            let burned = penalties.checked_add(lost)?;
            Some(Stakes { from_escrow: Amount::ZERO, back, burned })
        }
        Verdict::Upheld(_) => {
            let back = appeal.payment.checked_sub(cost)?;
            let burned = penalties.checked_add(appeal.deposit)?;
            Some(Stakes { from_escrow: Amount::ZERO, back, burned })
        }
        Verdict::Overturned { first, .. } => {
            let agreed = u64::from(call.rounds.first()?.agreeing);
            let spared = wage(call, first).checked_mul(agreed)?;
            let from_escrow = cost.min(spared);
            let rest = cost.checked_sub(from_escrow)?;
            let from_wrong = rest.min(*wrong);
            let from_payment = rest.checked_sub(from_wrong)?;
            let left = wrong.checked_sub(from_wrong)?;
            let reward = Amount::new(left.get() / 2);
            let burned = left.checked_sub(reward)?.checked_add(*silent)?;
            let kept = appeal.payment.checked_sub(from_payment)?;
            let back = sum([appeal.deposit, kept, reward])?;
            Some(Stakes { from_escrow, back, burned })
        }
    }
}

/// The bill with who stands behind the answer.
fn with_agreement(bill: Bill, verdict: &Verdict, members: &[CallMember]) -> Option<Bill> {
    let Some(group) = verdict.group() else { return Some(bill) };
    let agree = |member: &&CallMember| answer(member).is_some_and(|it| group.has(it));
    let mut bill = bill;
    for member in members.iter().filter(agree) {
        bill.agreeing = bill.agreeing.checked_add(1)?;
        // Each bond is as it was when its member was drawn. Money can leave one bond and be in another when
        // the second round is drawn, so the sum can be more than there is, and must not stop the chain.
        let sum = bill.bond_behind.get().saturating_add(member.bond.get());
        bill.bond_behind = Amount::new(sum);
    }
    Some(bill)
}

#[cfg(test)]
mod tests;
