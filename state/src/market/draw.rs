//! The draw of calls' members before the transactions of a block (docs/protocol.md section 18.3).
//!
//! Whoever proposes a block chooses neither its randomness nor the state before it. So that nobody proposes
//! both the block with a call and the one that draws its members, the draw waits for another proposer.

use std::collections::BTreeSet;

use types::agent::ExecutorId;
use types::call::{
    Appeal, Bill, Call, CallChange, CallDeadline, CallMember, CallRound, CallStatus, PHASE_BLOCKS,
};
use types::{Address, Amount, Event, Hash, Params, TxLocation};

use super::election::{Candidate, Election, Lot, elect};
use super::eligible::candidates;
use super::phases::changed;
use super::requirements::{Draw, Wanted};
use super::roster::Roster;
use super::{appeal, assignments, callable, calls};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::StorageError;
use crate::tables::{Bonds, CallCandidates, CallMembers, CallQueue, Calls, CallsByMember};
use crate::view::{self, Range, Read};
use crate::{bonds, ledger, runs};

/// The most elections of one block, a quarter of a second of work: those beyond it wait for the next block
/// that may hold some.
const ELECTIONS_MAX: usize = 256;
/// After so many blocks of one proposer elections are held nevertheless.
const PATIENCE_BLOCKS: u64 = 11;

/// The block before whose transactions members are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Begun {
    pub(crate) height: u64,
    pub(crate) timestamp: u64,
    pub(crate) randomness: Hash,
    /// Whether another validator proposes it than the block before, or there is only one.
    pub(crate) is_others: bool,
}

impl Begun {
    /// When a phase ends that begins with this block, which is its first.
    fn deadline(&self, duration_ms: u64) -> Result<CallDeadline, StorageError> {
        let height = self.height.checked_add(PHASE_BLOCKS.saturating_sub(1));
        let at = runs::deadline(self.timestamp, duration_ms)?;
        Ok(CallDeadline { at, height: height.ok_or(ledger::OVERFLOW)? })
    }
}

const MISSING: StorageError = StorageError::Inconsistent { what: "an election waits for no call" };

/// Whether an election waits.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn is_waiting(state: &dyn Read) -> Result<bool, StorageError> {
    let rows = view::scan::<CallQueue>(state, Range { from: &[], to: None, limit: 1 })?;
    Ok(!rows.is_empty())
}

/// Holds the elections that wait, the oldest first.
pub(crate) fn begin_block(
    draft: &mut Draft,
    params: &Params,
    begun: &Begun,
) -> Result<Vec<Event>, StorageError> {
    let range = Range { from: &[], to: None, limit: ELECTIONS_MAX };
    let (mut events, mut roster) = (Vec::new(), Roster::default());
    for ((height, position), call_id) in view::scan::<CallQueue>(draft, range)? {
        let is_late = begun.height.saturating_sub(height) >= PATIENCE_BLOCKS;
        if height >= begun.height || !(begun.is_others || is_late) {
            break;
        }
        draft.delete::<CallQueue>(&(height, position));
        let call = draft.get::<Calls>(&call_id)?.ok_or(MISSING)?;
        events.extend(hold(draft, params, begun, call, &mut roster)?);
    }
    Ok(events)
}

/// What an election asks, and for how many.
struct Ballot {
    executors: Vec<ExecutorId>,
    excluded: BTreeSet<Address>,
    draw: Draw,
    lot: Lot,
    size: u8,
    lock: Amount,
}

impl Ballot {
    fn of(draft: &Draft, call: &Call, randomness: Hash) -> Result<Self, StorageError> {
        let mut excluded = BTreeSet::from([call.requester]);
        let (draw, round, size) = match call.appeal {
            Some(appeal) => {
                let members = calls::members(draft, &call.call_id)?;
                excluded.extend(members.iter().map(|(miner, _)| *miner));
                excluded.insert(appeal.appellant);
                (Draw::Appeal, 1, appeal.size)
            }
            // Nobody is a member before the first draw.
            None => (Draw::First, 0, call.committee_size),
        };
        let executors = callable::executors_of(draft, call)?;
        let lot = Lot { call_id: call.call_id, round, randomness };
        Ok(Self { executors, excluded, draw, lot, size, lock: lock(call) })
    }
}

/// What is locked of the bond of each member of a call; of one of the second round no more than is free.
#[must_use]
pub fn lock(call: &Call) -> Amount {
    let terms = &call.terms;
    if call.is_appealable { terms.dissent_penalty } else { terms.unrevealed_penalty }
}

/// Who takes part in the draw of a call's second round, with this appellant.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub(crate) fn candidates_of_appeal(
    state: &dyn Read,
    ctx: &Context<'_>,
    call: &Call,
    appellant: Address,
) -> Result<Vec<Candidate>, StorageError> {
    let members = calls::members(state, &call.call_id)?;
    let mut excluded: BTreeSet<Address> = members.iter().map(|(miner, _)| *miner).collect();
    excluded.extend([call.requester, appellant]);
    let executors = callable::executors_of(state, call)?;
    let wanted = Wanted {
        executors: &executors,
        prices: &call.prices,
        lock: lock(call),
        excluded: &excluded,
        draw: Draw::Appeal,
    };
    let params = of_call(&ctx.rules.params, call);
    match ctx.rankings {
        Some(rankings) => rankings.candidates(state, &params, &wanted),
        None => candidates(state, &params, &wanted),
    }
}

/// The numbers with those that hold for the call.
fn of_call(params: &Params, call: &Call) -> Params {
    Params { min_bond: call.terms.min_bond, ..params.clone() }
}

fn hold(
    draft: &mut Draft,
    params: &Params,
    begun: &Begun,
    call: Call,
    roster: &mut Roster,
) -> Result<Vec<Event>, StorageError> {
    let mut ballot = Ballot::of(draft, &call, begun.randomness)?;
    let wanted = Wanted {
        executors: &ballot.executors,
        prices: &call.prices,
        lock: ballot.lock,
        excluded: &ballot.excluded,
        draw: ballot.draw,
    };
    let candidates = roster.candidates(draft, &of_call(params, &call), &wanted)?;
    if ballot.draw == Draw::Appeal {
        // Some may have left since the appeal. Nobody can have had others leave.
        let Some(size) = appeal::size(call.committee_size, candidates.len()) else {
            return no_second_round(draft, begun, call, ballot.size);
        };
        ballot.size = ballot.size.min(size);
    }
    let election = elect(&ballot.lot, &candidates, ballot.size.into());
    draft.insert::<CallCandidates>(&CallCandidates::key(&call, ballot.lot.round), &candidates);
    if ballot.draw == Draw::First && !is_possible(&call, &candidates, &election) {
        return unassigned(draft, begun, call, (&ballot, &election));
    }
    for member in election.members() {
        roster.take(member.miner, &ballot.executors, ballot.lock);
    }
    take_seats(draft, begun, call, (&ballot, &election))
}

/// Whether enough miners are eligible for a first round, and those who have seats could decide it.
fn is_possible(call: &Call, candidates: &[Candidate], election: &Election) -> bool {
    let size = usize::from(call.committee_size);
    let needed = if call.is_appealable { size.saturating_mul(3).saturating_add(1) } else { size };
    let eligible = candidates.iter().filter(|candidate| !candidate.is_full).count();
    let filled = u8::try_from(election.members().count()).unwrap_or(u8::MAX);
    eligible >= needed && filled >= call.consensus.needed(call.committee_size)
}

/// The whole escrow goes back.
fn unassigned(
    draft: &mut Draft,
    begun: &Begun,
    mut call: Call,
    (ballot, election): (&Ballot, &Election),
) -> Result<Vec<Event>, StorageError> {
    call.rounds.push(round(begun, ballot, election, 0));
    let (call_id, requester, refund) = (call.call_id, call.requester, call.max_fee);
    ledger::release(draft, refund)?;
    ledger::credit(draft, requester, refund)?;
    draft.note_credit(requester, refund);
    call.status = CallStatus::Unassigned;
    call.bill = Some(Bill { refund, ..Bill::default() });
    calls::save(draft, call, None)?;
    Ok(vec![changed(call_id, CallChange::Unassigned { requester, refund })])
}

/// A second round, which was to be of this size, cannot be held. The appellant gets its stakes back but for a
/// small part, which keeps it from doing so again and again for nothing. The decision can be appealed for as
/// long as at first: settling the call now would let whoever made the round impossible close its only appeal.
fn no_second_round(
    draft: &mut Draft,
    begun: &Begun,
    mut call: Call,
    size: u8,
) -> Result<Vec<Event>, StorageError> {
    const UNDECIDED: StorageError =
        StorageError::Inconsistent { what: "an appeal against what no group decided" };
    let first = call.rounds.first().and_then(|round| round.group).ok_or(UNDECIDED)?;
    let Appeal { appellant, payment, deposit, .. } = call.appeal.take().ok_or(UNDECIDED)?;
    let burned = appeal::cost_of_failure(&call, size, deposit).ok_or(ledger::OVERFLOW)?;
    let held = payment.checked_add(deposit).ok_or(ledger::OVERFLOW)?;
    let returned = held.checked_sub(burned).ok_or(ledger::OVERFLOW)?;
    ledger::release(draft, held)?;
    ledger::burn(draft, burned)?;
    ledger::credit(draft, appellant, returned)?;
    draft.note_credit(appellant, returned);
    call.status = first.status();
    let (call_id, status) = (call.call_id, call.status);
    let deadline = begun.deadline(call.terms.appeal_ms)?;
    calls::save(draft, call, Some(deadline))?;
    let until = deadline.at;
    Ok(vec![changed(call_id, CallChange::AppealFailed { appellant, status, returned, until })])
}

/// A round with so many members.
fn round(begun: &Begun, ballot: &Ballot, election: &Election, members: usize) -> CallRound {
    CallRound {
        size: ballot.size,
        members: u8::try_from(members).unwrap_or(u8::MAX),
        committed: 0,
        revealed: 0,
        elected_in: begun.height,
        elected_at: begun.timestamp,
        candidates_hash: election.candidates_hash,
        decided_at: None,
        group: None,
        agreeing: 0,
    }
}

/// What is not locked of a miner's bond.
fn free(draft: &Draft, miner: Address) -> Result<Amount, StorageError> {
    Ok(draft.get::<Bonds>(&miner)?.unwrap_or_default().free())
}

fn take_seats(
    draft: &mut Draft,
    begun: &Begun,
    mut call: Call,
    (ballot, election): (&Ballot, &Election),
) -> Result<Vec<Event>, StorageError> {
    let call_id = call.call_id;
    let mut events = Vec::new();
    let mut members = Vec::new();
    for (seat, candidate) in (0_u8..).zip(&election.seats) {
        if candidate.is_full {
            continue;
        }
        let Candidate { miner, weight: bond, .. } = *candidate;
        let lock = match ballot.draw {
            // Who takes part in the draw has so much free.
            Draw::First => ballot.lock,
            Draw::Appeal => ballot.lock.min(free(draft, miner)?),
        };
        let member = CallMember {
            round: ballot.lot.round,
            seat,
            bond,
            lock,
            commitment: None,
            reveal: None,
            paid: Amount::ZERO,
            penalty: Amount::ZERO,
        };
        draft.put::<CallMembers>(&(call_id, miner), &member);
        let TxLocation { height, position } = call.request;
        draft.insert::<CallsByMember>(&(miner, height, position), &call_id);
        assignments::assign(draft, miner, &ballot.executors)?;
        events.push(bonds::lock_for_call(draft, call_id, miner, lock)?);
        members.push(miner);
    }
    call.rounds.push(round(begun, ballot, election, members.len()));
    call.status = CallStatus::Committing;
    let deadline = begun.deadline(call.timeout_ms)?;
    calls::save(draft, call, Some(deadline))?;
    let change = CallChange::Elected { round: ballot.lot.round, members, until: deadline.at };
    events.insert(0, changed(call_id, change));
    Ok(events)
}
