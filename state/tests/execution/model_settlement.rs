//! How the model settles a call: who pays and who gets what (docs/protocol.md sections 18.6 to 18.8).

use types::Address;

use crate::model_calls::{ModelCall, ModelGroup, ModelMember, price};

/// What became of the money of a call.
#[derive(Clone, Default, Debug)]
pub struct Bill {
    pub wages: i128,
    pub royalty: i128,
    pub conditional: Vec<(Address, i128)>,
    pub refund: i128,
    pub appellant: i128,
    /// Penalties that went to the appellant or paid for the second round are not in it.
    pub burned: i128,
}

/// How the rounds ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Undecided,
    Standing,
    NoGroup,
    Upheld,
    Overturned,
}

fn verdict(call: &ModelCall) -> (Verdict, Option<ModelGroup>) {
    let groups: Vec<_> = call.rounds.iter().map(|round| round.group.clone()).collect();
    match groups.as_slice() {
        [None] => (Verdict::Undecided, None),
        [Some(first)] => (Verdict::Standing, Some(first.clone())),
        [Some(first), None] => (Verdict::NoGroup, Some(first.clone())),
        [Some(first), Some(last)] if first == last => (Verdict::Upheld, Some(last.clone())),
        [Some(_), Some(last)] => (Verdict::Overturned, Some(last.clone())),
        other => panic!("{other:?}"),
    }
}

/// What a member of a group gets.
fn wage(call: &ModelCall, group: &ModelGroup) -> i128 {
    let per_call = i128::from(call.prices()[0]);
    match group {
        ModelGroup::All(_) => per_call,
        ModelGroup::Same(answer) => {
            let work = price(call.prices(), answer.usage).min(call.terms.budget);
            if answer.outcome == "failure" { work.min(per_call) } else { work }
        }
    }
}

fn penalty(call: &ModelCall, verdict: Verdict, member: &ModelMember) -> i128 {
    let terms = &call.terms;
    let in_vain = (verdict == Verdict::NoGroup).then_some(terms.dissent / 2);
    match (&member.commitment, &member.answer) {
        (None, _) => in_vain.unwrap_or(terms.absence),
        (Some(_), None) => in_vain.unwrap_or(terms.unrevealed),
        (Some(_), Some(answer)) if answer.outcome == "unable" => in_vain.unwrap_or(0),
        (Some(_), Some(_)) => match verdict {
            Verdict::Undecided | Verdict::NoGroup => 0,
            Verdict::Standing => terms.outside,
            Verdict::Upheld | Verdict::Overturned => terms.dissent,
        },
    }
}

fn has_answered(member: &ModelMember) -> bool {
    member.answer.as_ref().is_some_and(|answer| answer.outcome != "unable")
}

/// Decides of each member what it gets and loses, and answers what becomes of the rest.
pub fn settle(call: &mut ModelCall) -> Bill {
    let (verdict, group) = verdict(call);
    let mut dues = Vec::new();
    for member in call.rounds.iter().flat_map(|round| &round.members) {
        let agrees = group.as_ref().filter(|group| group.has(member));
        let paid = agrees.map_or(0, |group| wage(call, group));
        let lost = if agrees.is_some() { 0 } else { penalty(call, verdict, member) };
        dues.push((paid, lost.min(member.lock)));
    }
    let members = call.rounds.iter_mut().flat_map(|round| &mut round.members);
    for (member, (paid, lost)) in members.zip(dues) {
        (member.paid, member.penalty) = (paid, lost);
    }
    let count = |number: usize| i128::try_from(number).unwrap();
    let cost = |nth: usize| {
        let Some(round) = call.rounds.get(nth) else { return (0, 0) };
        let fees = if round.group.is_some() { round.revealed() } else { round.size };
        let wages = round.members.iter().map(|member| member.paid).sum::<i128>();
        (wages, count(fees) * call.terms.fee)
    };
    let ((wages, fees), (more_wages, more_fees)) = (cost(0), cost(1));
    let members = || call.rounds.iter().flat_map(|round| &round.members);
    let wrong: i128 = members().filter(|it| has_answered(it)).map(|member| member.penalty).sum();
    let silent: i128 = members().filter(|it| !has_answered(it)).map(|member| member.penalty).sum();
    let is_success = group.as_ref().is_some_and(|group| group.outcome() == "success");
    let conditional = conditional(call, group.as_ref());
    let promised: i128 = conditional.iter().map(|(_, amount)| amount).sum();
    let royalty = if is_success { call.terms.royalty } else { 0 };
    let mut bill = Bill {
        wages: wages + more_wages,
        royalty,
        conditional,
        refund: i128::from(call.asked.max_fee.get()) - wages - fees - royalty - promised,
        appellant: 0,
        burned: fees + more_fees + wrong + silent,
    };
    let Some(appeal) = &call.appeal else { return bill };
    let second = more_wages + more_fees;
    match verdict {
        Verdict::Undecided | Verdict::Standing => bill.appellant = appeal.payment + appeal.deposit,
        Verdict::NoGroup => {
            let lost = (wrong + silent).min(appeal.deposit);
            bill.burned += lost;
            bill.appellant = appeal.payment - second + appeal.deposit - lost;
        }
        Verdict::Upheld => {
            bill.burned += appeal.deposit;
            bill.appellant = appeal.payment - second;
        }
        Verdict::Overturned => {
            let first = call.rounds[0].group.as_ref().unwrap();
            let spared = count(call.rounds[0].agreeing()) * wage(call, first);
            let by_first = second.min(spared);
            let by_wrong = (second - by_first).min(wrong);
            let by_payment = second - by_first - by_wrong;
            let reward = (wrong - by_wrong) / 2;
            bill.refund -= by_first;
            bill.burned -= by_wrong + reward;
            bill.appellant = appeal.deposit + appeal.payment - by_payment + reward;
        }
    }
    bill
}

/// The payments whose condition holds.
fn conditional(call: &ModelCall, group: Option<&ModelGroup>) -> Vec<(Address, i128)> {
    let Some(ModelGroup::Same(answer)) = group.filter(|it| it.outcome() == "success") else {
        return Vec::new();
    };
    let of_result = format!("result:{}", answer.result);
    let payments = call.asked.on_result.iter().flatten();
    let made = payments.filter(|it| it.when == "success" || it.when == of_result);
    made.map(|it| (it.to.address, i128::from(it.amount.get()))).collect()
}
