//! Moving money. Every amount that leaves an account is credited, burned or held in escrow in the
//! same transaction, and the supply row counts the last two (docs/protocol.md section 10).

use types::{Address, Amount, Event, Supply};

use crate::context::Context;
use crate::draft::Draft;
use crate::error::StorageError;
use crate::table::Table;
use crate::tables::{Accounts, Supplies};
use crate::view::{self, Read};

pub(crate) const OVERFLOW: StorageError =
    StorageError::Inconsistent { what: "a sum of money overflows" };
const NO_SUPPLY: StorageError = StorageError::Inconsistent { what: "there is no supply row" };

/// The money of the chain.
///
/// # Errors
/// [`StorageError`] if the database fails or has no genesis state.
pub fn supply(state: &dyn Read) -> Result<Supply, StorageError> {
    view::get::<Supplies>(state, &())?.ok_or(NO_SUPPLY)
}

/// Credits an account. A credit of nothing makes no account.
pub(crate) fn credit(draft: &mut Draft, to: Address, amount: Amount) -> Result<(), StorageError> {
    if amount.is_zero() {
        return Ok(());
    }
    let mut account = draft.get::<Accounts>(&to)?.unwrap_or_default();
    account.balance = account.balance.checked_add(amount).ok_or(OVERFLOW)?;
    draft.put::<Accounts>(&to, &account);
    draft.note_credited(to, amount);
    Ok(())
}

/// Credits a fee to the proposer. Nobody knows the proposer of what waits in the pool, so there the
/// fee is in its sender's balance only, and no account of a stand-in comes to be.
pub(crate) fn pay_proposer(
    draft: &mut Draft,
    ctx: &Context<'_>,
    fee: Amount,
) -> Result<(), StorageError> {
    if draft.commits() {
        draft.note_credit(ctx.proposer, fee);
        credit(draft, ctx.proposer, fee)?;
    }
    Ok(())
}

/// Counts money that left an account for ever.
pub(crate) fn burn(draft: &mut Draft, amount: Amount) -> Result<(), StorageError> {
    change_supply(draft, amount, |supply| {
        supply.burned = supply.burned.checked_add(amount)?;
        Some(())
    })
}

/// Counts money that left an account for a run's escrow.
pub(crate) fn hold(draft: &mut Draft, amount: Amount) -> Result<(), StorageError> {
    change_supply(draft, amount, |supply| {
        supply.escrowed = supply.escrowed.checked_add(amount)?;
        Some(())
    })
}

/// Counts money that left a run's escrow; the caller credits or burns it.
pub(crate) fn release(draft: &mut Draft, amount: Amount) -> Result<(), StorageError> {
    change_supply(draft, amount, |supply| {
        supply.escrowed = supply.escrowed.checked_sub(amount)?;
        Some(())
    })
}

/// Credits new money, as far as genesis and minted money together stay within 64 bits.
pub(crate) fn mint(
    draft: &mut Draft,
    to: Address,
    amount: Amount,
) -> Result<Option<Event>, StorageError> {
    let Supply { genesis, minted, .. } = supply(draft)?;
    let so_far = genesis.checked_add(minted).ok_or(OVERFLOW)?;
    let room = Amount::MAX.checked_sub(so_far).ok_or(OVERFLOW)?;
    let amount = amount.min(room);
    change_supply(draft, amount, |supply| {
        supply.minted = supply.minted.checked_add(amount)?;
        Some(())
    })?;
    credit(draft, to, amount)?;
    Ok((!amount.is_zero()).then_some(Event::RewardMinted { amount }))
}

/// Changes the counts of bonds. The caller changes the bonds.
pub(crate) fn change_bonded(
    draft: &mut Draft,
    change: impl FnOnce(&mut Supply) -> Option<()>,
) -> Result<(), StorageError> {
    // Any amount but nothing.
    change_supply(draft, Amount::MAX, change)
}

fn change_supply(
    draft: &mut Draft,
    amount: Amount,
    change: impl FnOnce(&mut Supply) -> Option<()>,
) -> Result<(), StorageError> {
    // A draft that only checks keeps no counts: they would be those of a state that the transactions
    // before this one have not reached.
    if amount.is_zero() || !draft.keeps(Supplies::ID) {
        return Ok(());
    }
    let mut supply = draft.get::<Supplies>(&())?.ok_or(NO_SUPPLY)?;
    change(&mut supply).ok_or(OVERFLOW)?;
    draft.put::<Supplies>(&(), &supply);
    Ok(())
}
