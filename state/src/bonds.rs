//! What miners have at stake: locked for runs that their submitters protect and for calls of which they
//! are members, taken out slowly, burned where a miner failed (docs/protocol.md sections 5.14 and 5.15).
//!
//! Only the miner itself adds to its bond, locks parts of it by claims and takes parts out, in its
//! transactions. Everything else happens before the transactions of a block ([`lock_for_call`]) or after
//! them (`end_block`, [`release_of_call`]), so that what others do never makes a transaction of the miner
//! invalid within the block.
//!
//! Whatever changes how large a bond is moves the miner's offers to the place that they have by it
//! ([`crate::market::offers`]).

use std::collections::BTreeMap;

use types::{Address, Amount, Bond, BondChange, Event, Hash, Run};

use crate::draft::{Draft, Release};
use crate::error::StorageError;
use crate::ledger;
use crate::market::offers;
use crate::tables::{Bonds, Deadlines, Unbondings};

const BROKEN: StorageError =
    StorageError::Inconsistent { what: "a bond is smaller than what is locked of it" };

/// Moves money that left an account into its bond.
pub(crate) fn add(draft: &mut Draft, miner: Address, amount: Amount) -> Result<(), StorageError> {
    let before = draft.get::<Bonds>(&miner)?.unwrap_or_default();
    let bonded = before.bonded.checked_add(amount).ok_or(ledger::OVERFLOW)?;
    save(draft, miner, &before, &Bond { bonded, ..before })?;
    ledger::change_bonded(draft, |supply| {
        supply.bonded = supply.bonded.checked_add(amount)?;
        Some(())
    })
}

/// Takes money out of the free part of a bond, to be paid out at `due`.
pub(crate) fn take_out(
    draft: &mut Draft,
    miner: Address,
    amount: Amount,
    due: u64,
) -> Result<(), StorageError> {
    let before = draft.get::<Bonds>(&miner)?.unwrap_or_default();
    let bonded = before.bonded.checked_sub(amount).ok_or(BROKEN)?;
    save(draft, miner, &before, &Bond { bonded, ..before })?;
    let key = (miner, due);
    let before = draft.get::<Unbondings>(&key)?.unwrap_or(Amount::ZERO);
    let sum = before.checked_add(amount).ok_or(ledger::OVERFLOW)?;
    draft.put::<Unbondings>(&key, &sum);
    if before.is_zero() {
        draft.insert::<Deadlines>(&deadline_key(due, &miner), &());
    }
    ledger::change_bonded(draft, |supply| {
        supply.bonded = supply.bonded.checked_sub(amount)?;
        supply.unbonding = supply.unbonding.checked_add(amount)?;
        Some(())
    })
}

/// Pays out what was taken out of a bond and is due.
pub(crate) fn pay_out(draft: &mut Draft, miner: Address, due: u64) -> Result<Event, StorageError> {
    const ORPHAN: StorageError =
        StorageError::Inconsistent { what: "a deadline belongs to nothing that was taken out" };
    let amount = draft.get::<Unbondings>(&(miner, due))?.ok_or(ORPHAN)?;
    draft.delete::<Unbondings>(&(miner, due));
    draft.delete::<Deadlines>(&deadline_key(due, &miner));
    ledger::change_bonded(draft, |supply| {
        supply.unbonding = supply.unbonding.checked_sub(amount)?;
        Some(())
    })?;
    ledger::credit(draft, miner, amount)?;
    Ok(Event::UnbondingPaid { miner, amount })
}

/// The key of the deadline at which money is paid out.
#[must_use]
pub fn deadline_key(due: u64, miner: &Address) -> (u64, u8, String) {
    (due, Deadlines::UNBONDING, miner.to_string())
}

/// Locks a part of a bond. The caller has checked that so much is free.
pub(crate) fn lock(draft: &mut Draft, miner: Address, amount: Amount) -> Result<(), StorageError> {
    if amount.is_zero() {
        return Ok(());
    }
    let mut bond = draft.get::<Bonds>(&miner)?.unwrap_or_default();
    bond.locked = bond.locked.checked_add(amount).ok_or(ledger::OVERFLOW)?;
    if bond.locked > bond.bonded {
        return Err(BROKEN);
    }
    draft.put::<Bonds>(&miner, &bond);
    Ok(())
}

/// Notes what becomes at the end of the block of what is locked for a run: of that at most `burned` is
/// burned, the rest is free again. The run has nothing locked any more.
pub(crate) fn release(draft: &mut Draft, run: &mut Run, burned: Amount) {
    let Some((miner, locked)) = run.miner.zip(run.locked_bond.take()) else { return };
    let burned = burned.min(locked);
    let unlocked = locked.checked_sub(burned).unwrap_or(Amount::ZERO);
    let change = BondChange { unlocked, burned, ..BondChange::default() };
    draft.note_release(Release { agent_run_id: run.agent_run_id, miner, change });
}

/// Locks a part of a member's bond for a call, before the transactions of a block. The caller has checked
/// that so much is free. Answers what happened.
///
/// # Errors
/// [`StorageError`] if the database fails, or less is free.
pub fn lock_for_call(
    draft: &mut Draft,
    call_id: Hash,
    miner: Address,
    amount: Amount,
) -> Result<Event, StorageError> {
    lock(draft, miner, amount)?;
    Ok(Event::CallBondLocked { call_id, miner, amount })
}

/// Gives a member's bond back what was locked of it for a call, at the end of a block, but for what is
/// burned of that: never more than was locked. Answers what happened. If something is burned, the miner's
/// offers move: at most 64 rows are deleted and as many written.
///
/// # Errors
/// [`StorageError`] if the database fails, or less is locked.
pub fn release_of_call(
    draft: &mut Draft,
    call_id: Hash,
    miner: Address,
    (locked, burned): (Amount, Amount),
) -> Result<Event, StorageError> {
    let burned = burned.min(locked);
    let unlocked = locked.checked_sub(burned).unwrap_or(Amount::ZERO);
    reduce_and_follow(draft, miner, unlocked, burned)?;
    ledger::burn(draft, burned)?;
    Ok(Event::CallBondUnlocked { call_id, miner, unlocked, burned })
}

/// The same where what the member loses is not burned here: whoever settles the call has it.
pub(crate) fn seize_for_call(
    draft: &mut Draft,
    call_id: Hash,
    miner: Address,
    (locked, lost): (Amount, Amount),
) -> Result<Event, StorageError> {
    let lost = lost.min(locked);
    let unlocked = locked.checked_sub(lost).unwrap_or(Amount::ZERO);
    reduce_and_follow(draft, miner, unlocked, lost)?;
    Ok(Event::CallBondUnlocked { call_id, miner, unlocked, burned: lost })
}

/// The end of a block: does to bonds what its transactions and its sweep noted. The offers of a miner move
/// once, however often its bond was burned.
pub(crate) fn end_block(draft: &mut Draft) -> Result<Vec<Event>, StorageError> {
    let mut events = Vec::new();
    let mut before: BTreeMap<Address, Amount> = BTreeMap::new();
    for Release { agent_run_id, miner, change } in draft.take_releases() {
        let BondChange { locked: _, unlocked, burned } = change;
        if let Some((bond, _)) = reduce(draft, miner, unlocked, burned)? {
            before.entry(miner).or_insert(bond.bonded);
        }
        ledger::burn(draft, burned)?;
        events.push(Event::BondUnlocked { agent_run_id, miner, unlocked, burned });
    }
    for (miner, bonded) in before {
        let now = draft.get::<Bonds>(&miner)?.unwrap_or_default().bonded;
        offers::follow_bond(draft, miner, bonded, now)?;
    }
    Ok(events)
}

/// Frees a part of what is locked of a bond, and takes another one out of it. The miner's offers move.
fn reduce_and_follow(
    draft: &mut Draft,
    miner: Address,
    unlocked: Amount,
    taken: Amount,
) -> Result<(), StorageError> {
    let Some((before, bond)) = reduce(draft, miner, unlocked, taken)? else { return Ok(()) };
    offers::follow_bond(draft, miner, before.bonded, bond.bonded)
}

/// The same, but the caller has to see to the miner's offers. Answers the bond before and now, if there
/// was one.
fn reduce(
    draft: &mut Draft,
    miner: Address,
    unlocked: Amount,
    taken: Amount,
) -> Result<Option<(Bond, Bond)>, StorageError> {
    let Some(before) = draft.get::<Bonds>(&miner)? else {
        // A member of a call for which nothing was locked may have taken its whole bond out.
        return if unlocked.is_zero() && taken.is_zero() { Ok(None) } else { Err(BROKEN) };
    };
    let locked = before.locked.checked_sub(unlocked).and_then(|it| it.checked_sub(taken));
    let bonded = before.bonded.checked_sub(taken);
    let bond = Bond { bonded: bonded.ok_or(BROKEN)?, locked: locked.ok_or(BROKEN)? };
    write(draft, miner, &bond);
    ledger::change_bonded(draft, |supply| {
        supply.bonded = supply.bonded.checked_sub(taken)?;
        Some(())
    })?;
    Ok(Some((before, bond)))
}

/// A bond in a draft that only checks, after what a block did to it beside its transactions. What waits
/// there may have counted on what is gone now: that is checked again, and meanwhile nothing is free.
pub(crate) fn after(before: &Bond, change: BondChange) -> Result<Bond, StorageError> {
    let BondChange { locked, unlocked, burned } = change;
    let less = |from: Amount, amount| from.checked_sub(amount).unwrap_or(Amount::ZERO);
    let bonded = less(before.bonded, burned);
    let locked = before.locked.checked_add(locked).ok_or(ledger::OVERFLOW)?;
    Ok(Bond { bonded, locked: less(less(locked, unlocked), burned) })
}

/// Changes the bond of a draft that only checks.
pub(crate) fn follow(
    draft: &mut Draft,
    miner: Address,
    change: BondChange,
) -> Result<(), StorageError> {
    let before = draft.get::<Bonds>(&miner)?.unwrap_or_default();
    save(draft, miner, &before, &after(&before, change)?)
}

fn save(draft: &mut Draft, miner: Address, before: &Bond, bond: &Bond) -> Result<(), StorageError> {
    write(draft, miner, bond);
    offers::follow_bond(draft, miner, before.bonded, bond.bonded)
}

fn write(draft: &mut Draft, miner: Address, bond: &Bond) {
    if bond.bonded.is_zero() && bond.locked.is_zero() {
        draft.delete::<Bonds>(&miner);
    } else {
        draft.put::<Bonds>(&miner, bond);
    }
}
