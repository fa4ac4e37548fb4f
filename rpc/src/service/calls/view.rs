//! A call with what its transactions say: the payload, results, and why members gave none.

use std::collections::BTreeMap;

use types::call::{Call, CallMember, Consensus, Group, Outcome, Said};
use types::tx::CallReveal;
use types::{Address, Amount, Body, CheckedTx, TxLocation};

use crate::error::RpcError;
use crate::ports::{CallEntry, Ports};
use crate::wire::{
    AnswerView, CallState, CallView, CommitmentView, MemberAnswer, MemberView, RevealView,
};

/// The bytes of transactions that are read for a call: a payload and some results of the largest size.
/// Each of 46 members may reveal 16 KiB, and anybody may ask.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// The transactions of a call that were read, by their places.
type Texts = BTreeMap<TxLocation, CheckedTx>;

/// A call with its members and the texts of its transactions.
pub(super) fn call_view(ports: &Ports, entry: CallEntry) -> Result<CallView, RpcError> {
    let CallEntry { call, members } = entry;
    let (texts, notes) = texts_of_call(ports, &call, &members)?;
    let mut state = CallState::from(&call);
    for (number, round) in (0_u8..).zip(&mut state.rounds) {
        let of_round = members.iter().filter(|(_, member)| member.round == number);
        let view = |(address, member): &(Address, CallMember)| {
            member_view(&call, *address, member, &texts)
        };
        round.members = Some(of_round.map(view).collect());
    }
    if let Some(answer) = &mut state.answer {
        let mut agreeing = members.iter().filter(|(_, member)| agrees(&call, member));
        answer.result = agreeing.find_map(|(_, member)| result(member, &texts));
    }
    state.bond_behind = state.bond_behind.or_else(|| bond_behind(&call, &members));
    let request = texts.get(&call.request).map(|tx| (tx.hash(), payload(tx)));
    let (request_tx, payload) = request.unzip();
    Ok(CallView {
        answers: answers(&call, &members, &texts),
        state,
        request_tx,
        payload: payload.flatten(),
        notes,
    })
}

/// The transactions whose texts are told, as many as are here and have room, and why others are left
/// out.
fn texts_of_call(
    ports: &Ports,
    call: &Call,
    members: &[(Address, CallMember)],
) -> Result<(Texts, Vec<String>), RpcError> {
    let earliest = ports.chain.tip().earliest;
    let mut notes = Vec::new();
    if call.is_settled() && members.is_empty() && call.rounds.iter().any(|it| it.members > 0) {
        notes.push(format!(
            "the node does not know the members, because it began with a snapshot of block {}",
            earliest.saturating_sub(1)
        ));
    }
    let mut places = places(call, members);
    let all = places.len();
    places.retain(|place| place.height >= earliest);
    if places.len() < all {
        notes.push(format!("texts of transactions before block {earliest} are not on this node"));
    }
    let included = ports.transactions.at_within(&places, TEXT_BYTES_MAX)?;
    if included.len() < places.len() {
        let left = places.len().saturating_sub(included.len());
        notes.push(format!(
            "{left} results do not fit here: they are in the transactions of their reveals"
        ));
    }
    let texts = included.into_iter().map(|included| (included.location, included.tx));
    Ok((texts.collect(), notes))
}

/// The locations of a call's texts, in the order of importance: the request, the standing answer,
/// and everything else that was revealed. One member is enough of those who gave the same result.
fn places(call: &Call, members: &[(Address, CallMember)]) -> Vec<TxLocation> {
    let is_answer = |member: &CallMember| agrees(call, member) && is_success(member);
    let revealed = |wanted: bool| {
        members.iter().filter_map(move |(_, member)| {
            let reveal = member.reveal.as_ref().filter(|_| is_answer(member) == wanted)?;
            Some(reveal.tx)
        })
    };
    let one = match call.consensus {
        Consensus::Majority => 1,
        Consensus::Threshold(_) => members.len(),
    };
    let mut places = vec![call.request];
    places.extend(revealed(true).take(one));
    places.extend(revealed(false));
    places
}

/// The bonds behind the standing answer of a call that is not settled: those of the members that `agreeing`
/// counts, who gave it in the round that was decided by it. A second round may still be under way.
fn bond_behind(call: &Call, members: &[(Address, CallMember)]) -> Option<Amount> {
    let decided = call.rounds.iter().rposition(|round| round.group.is_some())?;
    let of_round = members.iter().filter(|(_, member)| usize::from(member.round) == decided);
    let agreeing = of_round.filter(|(_, member)| agrees(call, member));
    let sum = agreeing.fold(0, |sum: u64, (_, member)| sum.saturating_add(member.bond.get()));
    Some(Amount::new(sum))
}

/// Whether a member gave the standing answer.
fn agrees(call: &Call, member: &CallMember) -> bool {
    let Said::Answered(answer) = member.said() else { return false };
    call.standing().is_some_and(|(_, group)| group.has(answer))
}

fn is_success(member: &CallMember) -> bool {
    member.reveal.is_some_and(|reveal| reveal.answer.outcome == Outcome::Success)
}

fn payload(tx: &CheckedTx) -> Option<String> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "one kind is right")]
    match tx.body() {
        Body::AgentCall(body) => Some(body.payload.to_string()),
        _ => None,
    }
}

fn reveal_body<'a>(member: &CallMember, texts: &'a Texts) -> Option<&'a CallReveal> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "one kind is right")]
    match texts.get(&member.reveal?.tx)?.body() {
        Body::CallReveal(body) => Some(body),
        _ => None,
    }
}

/// The result that a member revealed, if it was read.
fn result(member: &CallMember, texts: &Texts) -> Option<String> {
    let body = reveal_body(member, texts).filter(|_| is_success(member))?;
    Some(body.result.to_string())
}

fn member_view(call: &Call, address: Address, member: &CallMember, texts: &Texts) -> MemberView {
    let CallMember { round, seat, bond, lock, commitment, reveal, paid, penalty } = *member;
    let is_decided = call.rounds.get(usize::from(round)).is_some_and(|it| it.decided_at.is_some());
    let agreed = agrees(call, member);
    let reveal = reveal.map(|reveal| {
        let body = reveal_body(member, texts);
        let result = result(member, texts).filter(|_| !agreed);
        RevealView {
            answer: AnswerView { result, ..AnswerView::from(&reveal.answer) },
            salt: body.map(|body| body.salt),
            reason: body.and_then(|body| body.reason.clone()),
            block_index: reveal.tx.height,
            position: reveal.tx.position,
        }
    });
    MemberView {
        address,
        seat,
        bond,
        lock,
        commitment: commitment.map(CommitmentView::from),
        reveal,
        agreed: Some(agreed).filter(|_| is_decided && call.standing().is_some()),
        paid,
        penalty,
    }
}

/// The answer of a call that a threshold decided: the successes by member.
fn answers(call: &Call, members: &[(Address, CallMember)], texts: &Texts) -> Vec<MemberAnswer> {
    if !matches!(call.standing(), Some((_, Group::Of(Outcome::Success)))) {
        return Vec::new();
    }
    let mut answers: Vec<MemberAnswer> = Vec::new();
    for (address, member) in members.iter().filter(|(_, member)| agrees(call, member)) {
        let Some(reveal) = &member.reveal else { continue };
        let answer =
            AnswerView { result: result(member, texts), ..AnswerView::from(&reveal.answer) };
        answers.push(MemberAnswer { member: *address, answer });
    }
    answers.sort_by_key(|answer| answer.member);
    answers
}
