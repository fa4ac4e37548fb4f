//! The phases of calls: how they end, and what that does (docs/protocol.md section 18.3). All of it
//! happens at the end of a block.
//!
//! ```text
//! committing ── all have committed, or the time is over and somebody has ──▶ revealing
//! revealing ─── all who committed have revealed, or the time is over ──────▶ decided
//! decided ───── nobody may appeal, or nobody has in time ──────────────────▶ settled
//! ```

use types::call::{
    Call, CallChange, CallDeadline, CallMember, CallRound, CallStatus, PHASE_BLOCKS, members_digest,
};
use types::{Address, Amount, Event, Hash, Params};

use super::decision::{Decision, decide};
use super::settlement::{Due, Settled, settle};
use super::{assignments, callable, calls, offers};
use crate::draft::Draft;
use crate::error::StorageError;
use crate::tables::{CallMembers, Calls, SettledMembers};
use crate::{bonds, ledger, runs, work};

/// The block at whose end phases change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Now {
    pub(crate) height: u64,
    pub(crate) timestamp: u64,
}

const BROKEN: StorageError =
    StorageError::Inconsistent { what: "a call has a phase without a round" };
const MISSING: StorageError = StorageError::Inconsistent { what: "a call was noted that is none" };

impl Now {
    /// When a phase ends that begins at the end of this block.
    fn after(self, duration_ms: u64) -> Result<CallDeadline, StorageError> {
        let height = self.height.checked_add(PHASE_BLOCKS).ok_or(ledger::OVERFLOW)?;
        Ok(CallDeadline { at: runs::deadline(self.timestamp, duration_ms)?, height })
    }

    /// Whether the phase of a call ends with this block.
    fn is_over(self, call: &Call) -> bool {
        call.deadline.is_some_and(|CallDeadline { at, height }| {
            at <= self.timestamp && height <= self.height
        })
    }
}

/// What the ends of phases, and the moves of offers of miners that let runs lapse, may still take in a block,
/// in units of work ([`work`]).
#[derive(Debug)]
pub(crate) struct Room(u64);

impl Room {
    /// What a block has.
    pub(crate) fn of_block(params: &Params) -> Self {
        Self(work::of_phases(params))
    }

    /// Whether further phases wait for a later block. The last one of a block may take more than is left.
    pub(crate) const fn is_used_up(&self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn take(&mut self, units: u64) {
        self.0 = self.0.saturating_sub(units);
    }
}

/// The end of a block: ends the phases of the calls that its transactions noted, or has later blocks end
/// them.
pub(crate) fn end_block(
    draft: &mut Draft,
    now: Now,
    room: &mut Room,
) -> Result<Vec<Event>, StorageError> {
    let mut events = Vec::new();
    for call_id in draft.take_calls() {
        if room.is_used_up() {
            postpone(draft, &call_id, now)?;
        } else {
            events.extend(advance(draft, &call_id, now, room)?);
        }
    }
    Ok(events)
}

/// A phase whose members have all done what they can is due, and waits behind those that already were.
fn postpone(draft: &mut Draft, id: &Hash, now: Now) -> Result<(), StorageError> {
    let call = draft.get::<Calls>(id)?.ok_or(MISSING)?;
    if now.is_over(&call) || !is_complete(&call)? {
        return Ok(());
    }
    let Now { height, timestamp: at } = now;
    calls::save(draft, call, Some(CallDeadline { at, height }))
}

/// Whether all members have done what the phase of a call waits for.
fn is_complete(call: &Call) -> Result<bool, StorageError> {
    let CallRound { members, committed, revealed, .. } = *call.last_round().ok_or(BROKEN)?;
    Ok(match call.status {
        CallStatus::Committing => committed >= members,
        CallStatus::Revealing => revealed >= committed,
        CallStatus::Electing
        | CallStatus::Unassigned
        | CallStatus::Success
        | CallStatus::Failed
        | CallStatus::TimedOut => false,
    })
}

/// Ends the phase of a call if it is over. What happened is told in its order.
pub(crate) fn advance(
    draft: &mut Draft,
    id: &Hash,
    now: Now,
    room: &mut Room,
) -> Result<Vec<Event>, StorageError> {
    let call = draft.get::<Calls>(id)?.ok_or(MISSING)?;
    if call.is_settled() {
        return Ok(Vec::new());
    }
    match call.status {
        CallStatus::Electing | CallStatus::Unassigned => Ok(Vec::new()),
        CallStatus::Committing => end_commits(draft, call, now, room),
        CallStatus::Revealing => end_reveals(draft, call, now, room),
        CallStatus::Success | CallStatus::Failed | CallStatus::TimedOut => {
            if now.is_over(&call) {
                let members = calls::members(draft, id)?;
                room.take(work::phase());
                settled(draft, call, members, room)
            } else {
                Ok(Vec::new())
            }
        }
    }
}

fn end_commits(
    draft: &mut Draft,
    mut call: Call,
    now: Now,
    room: &mut Room,
) -> Result<Vec<Event>, StorageError> {
    if !is_complete(&call)? && !now.is_over(&call) {
        return Ok(Vec::new());
    }
    if call.last_round().ok_or(BROKEN)?.committed == 0 {
        return decided(draft, call, now, room);
    }
    room.take(work::phase());
    call.status = CallStatus::Revealing;
    let call_id = call.call_id;
    let deadline = now.after(call.terms.reveal_ms)?;
    calls::save(draft, call, Some(deadline))?;
    Ok(vec![changed(call_id, CallChange::Revealing { until: deadline.at })])
}

fn end_reveals(
    draft: &mut Draft,
    call: Call,
    now: Now,
    room: &mut Room,
) -> Result<Vec<Event>, StorageError> {
    if !is_complete(&call)? && !now.is_over(&call) {
        return Ok(Vec::new());
    }
    decided(draft, call, now, room)
}

fn decided(
    draft: &mut Draft,
    mut call: Call,
    now: Now,
    room: &mut Room,
) -> Result<Vec<Event>, StorageError> {
    let number = call.rounds.len().checked_sub(1).ok_or(BROKEN)?;
    let members = calls::members(draft, &call.call_id)?;
    let of_round = members.iter().filter(|(_, member)| usize::from(member.round) == number);
    let executors = callable::executors_of(draft, &call)?;
    let mut said = Vec::with_capacity(members.len());
    for (miner, member) in of_round {
        assignments::unassign(draft, *miner, &executors)?;
        said.push(*member);
    }
    room.take(work::phase().saturating_add(work::decision(said.len(), executors.len())));
    let round = call.rounds.last_mut().ok_or(BROKEN)?;
    let Decision { status, group, agreeing } = decide(call.consensus, round.size, &said);
    *round = CallRound { decided_at: Some(now.timestamp), group, agreeing, ..*round };
    // A second round without a group leaves the first decision.
    let first = call.rounds.first().and_then(|round| round.group);
    call.status = if group.is_none() { first.map_or(status, |it| it.status()) } else { status };
    let change = CallChange::Decided {
        round: u8::try_from(number).unwrap_or(u8::MAX),
        status: call.status,
        agreeing,
    };
    let event = changed(call.call_id, change);
    if number == 0 && call.is_appealable && group.is_some() {
        let deadline = now.after(call.terms.appeal_ms)?;
        calls::save(draft, call, Some(deadline))?;
        return Ok(vec![event]);
    }
    let mut events = vec![event];
    events.extend(settled(draft, call, members, room)?);
    Ok(events)
}

/// What happened to a call.
pub(super) const fn changed(call_id: Hash, change: CallChange) -> Event {
    Event::CallChanged { call_id, change }
}

/// Moves all money of a call, whose members these are.
fn settled(
    draft: &mut Draft,
    mut call: Call,
    mut members: Vec<(Address, CallMember)>,
    room: &mut Room,
) -> Result<Vec<Event>, StorageError> {
    let call_id = call.call_id;
    let records: Vec<CallMember> = members.iter().map(|(_, member)| *member).collect();
    let Settled { bill, dues, conditional } = settle(&call, &records)?;
    room.take(work::settlement(members.len()));
    let mut events = Vec::new();
    for ((miner, member), Due { paid, penalty }) in members.iter_mut().zip(dues) {
        member.paid = paid;
        member.penalty = penalty;
        ledger::credit(draft, *miner, paid)?;
        runs::earn(draft, *miner, paid)?;
        if !penalty.is_zero() {
            room.take(work::moved_offers(offers::count(draft, *miner)?));
        }
        events.push(bonds::seize_for_call(draft, call_id, *miner, (member.lock, penalty))?);
        draft.delete::<CallMembers>(&(call_id, *miner));
        draft.put::<SettledMembers>(&(call_id, *miner), member);
    }
    ledger::credit(draft, call.owner, bill.royalty)?;
    for payment in &conditional {
        ledger::credit(draft, payment.to, payment.amount)?;
    }
    ledger::credit(draft, call.requester, bill.refund)?;
    let stakes = match &call.appeal {
        Some(appeal) => {
            ledger::credit(draft, appeal.appellant, bill.appellant)?;
            appeal.payment.checked_add(appeal.deposit).ok_or(ledger::OVERFLOW)?
        }
        None => Amount::ZERO,
    };
    let escrow = call.max_fee.checked_add(stakes).ok_or(ledger::OVERFLOW)?;
    ledger::release(draft, escrow)?;
    ledger::burn(draft, bill.burned)?;
    call.members_digest = members_digest(members.iter().map(|(miner, it)| (miner, it)));
    call.bill = Some(bill);
    let (requester, status) = (call.requester, call.status);
    calls::save(draft, call, None)?;
    events.push(changed(call_id, CallChange::Settled { requester, status, bill }));
    Ok(events)
}
