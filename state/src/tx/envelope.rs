//! What is the same for every kind: the fork, the nonce, the sender's balance, and that nothing is
//! written before everything is checked (docs/protocol.md section 9).

use types::check::fork_not_active;
use types::{Account, Address, Code, Event, Rejection, Transaction};

use super::{Cost, Kind};
use crate::chain::{Chain, Context};
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::tables::Accounts;
use crate::view::{self, Read};

/// A transaction that may be applied to the very state on which it was checked.
pub(crate) struct Planned<P> {
    sender: Address,
    /// The sender's account with the nonce raised and the cost taken. Written before the kind is
    /// applied, which may credit the same account.
    account: Account,
    plan: P,
}

/// Checks everything that needs state.
pub(crate) fn check<K: Kind>(
    kind: &K,
    tx: &Transaction,
    state: &dyn Read,
    ctx: &Context<'_>,
) -> Result<Planned<K::Plan>, TxError> {
    check_fork(tx, ctx)?;
    let sender = tx.from();
    let account = view::get::<Accounts>(state, &sender)?.unwrap_or_default();
    let nonce = next_nonce(tx, &account)?;
    let account = Account { nonce, ..pay(&account, kind.cost(ctx.chain))? };
    let plan = kind.check(tx, state, ctx)?;
    Ok(Planned { sender, account, plan })
}

/// Checks that the sender has the money that the kind costs.
pub(crate) fn check_funds<K: Kind>(
    kind: &K,
    tx: &Transaction,
    state: &dyn Read,
    chain: &Chain,
) -> Result<(), TxError> {
    let account = view::get::<Accounts>(state, &tx.from())?.unwrap_or_default();
    Ok(pay(&account, kind.cost(chain)).map(drop)?)
}

/// Checks and applies. A refusal leaves the draft as it was.
pub(crate) fn execute<K: Kind>(
    kind: &K,
    tx: &Transaction,
    draft: &mut Draft,
    ctx: &Context<'_>,
) -> Result<Event, TxError> {
    let planned = check(kind, tx, draft, ctx)?;
    apply::<K>(planned, draft, ctx).map_err(TxError::from)
}

fn apply<K: Kind>(
    planned: Planned<K::Plan>,
    draft: &mut Draft,
    ctx: &Context<'_>,
) -> Result<Event, StorageError> {
    let Planned { sender, account, plan } = planned;
    draft.put::<Accounts>(&sender, &account);
    K::apply(plan, draft, ctx)
}

fn check_fork(tx: &Transaction, ctx: &Context<'_>) -> Result<(), Rejection> {
    let from = ctx.chain.forks.active_from(tx.body());
    if ctx.height >= from {
        return Ok(());
    }
    Err(fork_not_active(tx, ctx.height, from))
}

fn next_nonce(tx: &Transaction, account: &Account) -> Result<u64, TxError> {
    let (got, expected) = (tx.nonce(), account.nonce);
    if got < expected {
        return Err(Rejection::new(Code::NonceStale, "nonce", got, expected).into());
    }
    if got > expected {
        return Err(Rejection::new(Code::NonceTooHigh, "nonce", got, expected).into());
    }
    const LAST: StorageError = StorageError::Inconsistent { what: "a nonce overflows" };
    Ok(expected.checked_add(1).ok_or(LAST)?)
}

fn pay(account: &Account, Cost { field, total }: Cost) -> Result<Account, Rejection> {
    let available = account.balance;
    let Some(needed) = total else {
        let expected = format_args!("at most {available}");
        return Err(Rejection::new(
            Code::InsufficientBalance,
            field,
            "more than 18446744073709551615",
            expected,
        )
        .with("available", available));
    };
    match available.checked_sub(needed) {
        Some(balance) => Ok(Account { balance, ..*account }),
        None => Err(Rejection::insufficient_balance(field, needed, available)),
    }
}
