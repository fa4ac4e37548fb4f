//! What miners have at stake: locked for runs that their submitters protect, taken out slowly, burned
//! where a miner failed (docs/protocol.md sections 5.14 and 5.15).
//!
//! Only the miner itself adds to its bond, locks parts of it by claims and takes parts out, in its
//! transactions. Everything else happens at the end of a block (`end_block`), so that what others do
//! never makes a transaction of the miner invalid within the block.

use types::{Address, Amount, Bond, BondChange, Event, Hash, Run};

use crate::draft::Draft;
use crate::error::StorageError;
use crate::ledger;
use crate::tables::{Bonds, Deadlines, Unbondings};

const BROKEN: StorageError =
    StorageError::Inconsistent { what: "a bond is smaller than what is locked of it" };

/// What becomes of the part of a miner's bond that is locked for a run, at the end of the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Release {
    pub(crate) agent_run_id: Hash,
    pub(crate) miner: Address,
    pub(crate) change: BondChange,
}

/// Moves money that left an account into its bond.
pub(crate) fn add(draft: &mut Draft, miner: Address, amount: Amount) -> Result<(), StorageError> {
    let mut bond = draft.get::<Bonds>(&miner)?.unwrap_or_default();
    bond.bonded = bond.bonded.checked_add(amount).ok_or(ledger::OVERFLOW)?;
    draft.put::<Bonds>(&miner, &bond);
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
    let mut bond = draft.get::<Bonds>(&miner)?.unwrap_or_default();
    bond.bonded = bond.bonded.checked_sub(amount).ok_or(BROKEN)?;
    save(draft, miner, &bond);
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

/// Locks a part of a bond for a run. The caller has checked that so much is free.
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
    let change = BondChange { unlocked, burned };
    draft.note_release(Release { agent_run_id: run.agent_run_id, miner, change });
}

/// Changes a bond by what the end of a block did to it.
pub(crate) fn apply(
    draft: &mut Draft,
    miner: Address,
    change: BondChange,
) -> Result<(), StorageError> {
    let BondChange { unlocked, burned } = change;
    let mut bond = draft.get::<Bonds>(&miner)?.ok_or(BROKEN)?;
    let locked = bond.locked.checked_sub(unlocked).and_then(|it| it.checked_sub(burned));
    bond.locked = locked.ok_or(BROKEN)?;
    bond.bonded = bond.bonded.checked_sub(burned).ok_or(BROKEN)?;
    save(draft, miner, &bond);
    Ok(())
}

/// The end of a block: does to bonds what its transactions and its sweep noted.
pub(crate) fn end_block(draft: &mut Draft) -> Result<Vec<Event>, StorageError> {
    let mut events = Vec::new();
    for Release { agent_run_id, miner, change } in draft.take_releases() {
        apply(draft, miner, change)?;
        let BondChange { unlocked, burned } = change;
        ledger::change_bonded(draft, |supply| {
            supply.bonded = supply.bonded.checked_sub(burned)?;
            Some(())
        })?;
        ledger::burn(draft, burned)?;
        events.push(Event::BondUnlocked { agent_run_id, miner, unlocked, burned });
    }
    Ok(events)
}

fn save(draft: &mut Draft, miner: Address, bond: &Bond) {
    if bond.bonded.is_zero() && bond.locked.is_zero() {
        draft.delete::<Bonds>(&miner);
    } else {
        draft.put::<Bonds>(&miner, bond);
    }
}
