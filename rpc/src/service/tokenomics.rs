//! Who holds how much of the supply.

use types::{Address, Amount};

use super::Context;
use crate::error::RpcError;
use crate::wire::{Distribution, HeldBy, Holder, Holders};

/// The richest accounts, richest first.
pub(crate) fn holders(context: &Context, limit: usize) -> Result<Holders, RpcError> {
    let census = context.census.get(&context.ports)?;
    let richest = census.richest.iter().take(limit).zip(1..);
    let holder = |(&(address, balance), rank): (&(Address, Amount), u64)| Holder {
        rank,
        address,
        balance,
        balance_ombra: balance.ombra(),
        share_bps: share_bps(balance, census.held),
    };
    Ok(Holders {
        holders: richest.map(holder).collect(),
        total: census.accounts,
        block_index: census.height,
    })
}

/// What validators, miners, other accounts and escrows hold.
pub(crate) fn distribution(context: &Context) -> Result<Distribution, RpcError> {
    let census = context.census.get(&context.ports)?;
    let (by_validators, by_miners) = (census.held_by_validators, census.held_by_miners);
    let total = census.held.checked_add(census.escrowed);
    let others = census
        .held
        .checked_sub(by_validators.amount)
        .and_then(|rest| rest.checked_sub(by_miners.amount));
    let (Some(total), Some(others)) = (total, others) else {
        tracing::error!(?census, "the parts of the supply contradict each other");
        return Err(RpcError::Internal);
    };
    let counted = by_validators.accounts.saturating_add(by_miners.accounts);
    let part = |kind, accounts, amount| HeldBy {
        kind,
        accounts,
        amount,
        share_bps: share_bps(amount, total),
    };
    let in_escrow = context.hub.escrows().accounts(&context.ports)?;
    Ok(Distribution {
        total,
        kinds: vec![
            part("validators", by_validators.accounts, by_validators.amount),
            part("miners", by_miners.accounts, by_miners.amount),
            part("accounts", census.accounts.saturating_sub(counted), others),
            part("escrow", in_escrow, census.escrowed),
        ],
        block_index: census.height,
    })
}

/// A part of a whole in hundredths of a percent, rounded down.
fn share_bps(part: Amount, whole: Amount) -> u64 {
    let share = u128::from(part.get()) * 10_000 / u128::from(whole.get().max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}
