//! What the kinds of a call and its phases have in common: a call's row, the rows of its members, and when
//! its phase ends (docs/protocol.md section 18).

use types::call::{Call, CallDeadline, CallMember};
use types::{Address, Code, Hash, Rejection};

use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::table::Key;
use crate::tables::{CallMembers, Calls, CallsByStatus, Deadlines, SettledMembers};
use crate::view::{self, Range, Read};

/// The call of that id, or CALL_NOT_FOUND.
pub(crate) fn find(state: &dyn Read, id: &Hash) -> Result<Call, TxError> {
    let found = view::get::<Calls>(state, id)?;
    found.ok_or_else(|| Rejection::new(Code::CallNotFound, "callId", id, "the id of a call").into())
}

/// The sender as a member of a round of the call, or NOT_MEMBER. Of a settled call nobody is one any more.
pub(crate) fn member(
    state: &dyn Read,
    call: &Call,
    round: u64,
    sender: Address,
) -> Result<CallMember, TxError> {
    let found = view::get::<CallMembers>(state, &(call.call_id, sender))?;
    found.filter(|member| u64::from(member.round) == round).ok_or_else(|| {
        let expected = format_args!("a member of round {round}");
        Rejection::new(Code::NotMember, "from", sender, expected)
            .with("callId", call.call_id)
            .into()
    })
}

/// Whether a member is one of the round that has begun last.
pub(crate) fn is_of_last_round(call: &Call, member: &CallMember) -> bool {
    call.rounds.len().checked_sub(1) == Some(usize::from(member.round))
}

/// CALL_PHASE.
pub(crate) fn wrong_phase(call: &Call, expected: &'static str) -> Rejection {
    Rejection::new(Code::CallPhase, "status", call.status.as_str(), expected)
        .with("callId", call.call_id)
}

/// The members of all rounds of a call that is not settled, in the order in which they were drawn.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn members(state: &dyn Read, id: &Hash) -> Result<Vec<(Address, CallMember)>, StorageError> {
    let (from, to) = range(id);
    let range = Range { from: &from, to: Some(&to), limit: MEMBERS_MAX };
    Ok(in_order(view::scan::<CallMembers>(state, range)?))
}

/// The members of all rounds of a settled call, in the order in which they were drawn. There are none of
/// a call that was settled before the snapshot with which a database began.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn settled_members(
    state: &dyn Read,
    id: &Hash,
) -> Result<Vec<(Address, CallMember)>, StorageError> {
    let (from, to) = range(id);
    let range = Range { from: &from, to: Some(&to), limit: MEMBERS_MAX };
    Ok(in_order(view::scan::<SettledMembers>(state, range)?))
}

fn in_order(rows: Vec<((Hash, Address), CallMember)>) -> Vec<(Address, CallMember)> {
    let mut members: Vec<(Address, CallMember)> =
        rows.into_iter().map(|((_, miner), member)| (miner, member)).collect();
    members.sort_by_key(|(_, member)| (member.round, member.seat));
    members
}

/// Where the rows of a call's members begin and end.
pub(crate) fn range(id: &Hash) -> (Vec<u8>, Vec<u8>) {
    let [from, mut to] = [0, 0xff].map(|byte| (*id, Address::new([byte; 20])).to_bytes());
    to.push(0);
    (from, to)
}

/// A first round has at most 15 members, a second one at most 31.
pub(crate) const MEMBERS_MAX: usize = 46;

/// Writes a call whose phase ends then, and moves its row among those of its status.
pub(crate) fn save(
    draft: &mut Draft,
    mut call: Call,
    deadline: Option<CallDeadline>,
) -> Result<(), StorageError> {
    let before = draft.get::<Calls>(&call.call_id)?.map(|before| CallsByStatus::key(&before));
    let now = CallsByStatus::key(&call);
    if before != Some(now) {
        if let Some(before) = before {
            draft.delete::<CallsByStatus>(&before);
        }
        draft.insert::<CallsByStatus>(&now, &call.call_id);
    }
    if call.deadline != deadline {
        if let Some(old) = call.deadline {
            draft.delete::<Deadlines>(&deadline_key(old, &call.call_id));
        }
        if let Some(new) = deadline {
            draft.insert::<Deadlines>(&deadline_key(new, &call.call_id), &());
        }
    }
    call.deadline = deadline;
    draft.put::<Calls>(&call.call_id, &call);
    Ok(())
}

/// The key of a call's deadline. Of two at the same time the one that may be acted on earlier is first. What
/// has a deadline is due in blocks after it, and a phase ends in the block whose time it is.
#[must_use]
pub fn deadline_key(deadline: CallDeadline, id: &Hash) -> (u64, u8, String) {
    let CallDeadline { at, height } = deadline;
    (at.saturating_sub(1), Deadlines::CALL, format!("{height:016x}{id}"))
}

/// The first block that may act on a deadline, and whose it is.
#[must_use]
pub fn read_deadline(id: &str) -> Option<(u64, Hash)> {
    let (height, id) = id.split_at_checked(16)?;
    Some((u64::from_str_radix(height, 16).ok()?, Hash::parse(id).ok()?))
}
