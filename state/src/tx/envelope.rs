//! What is the same for every kind: the fork, the nonce, the inclusion fee, the sender's balance, and
//! that nothing is written before everything is checked (docs/protocol.md section 9).

use types::check::{check_before_v8, check_v7, check_v8, fork_not_active};
use types::{Account, Address, Amount, Bid, Code, Event, Rejection, Transaction};

use super::{Cost, Inclusion, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::fees::inclusion_fee;
use crate::rules::Rules;
use crate::tables::Accounts;
use crate::view::{self, Read};
use crate::{ledger, rule_votes, work};

/// A transaction that may be applied to the very state on which it was checked.
pub(crate) struct Planned<P> {
    sender: Address,
    /// What the sender had before.
    had: Amount,
    /// The sender's account with the nonce raised and the cost taken. Written before the kind is
    /// applied, which may credit the same account.
    account: Account,
    charge: Charge,
    work: u64,
    plan: P,
}

/// What a transaction did.
pub(crate) struct Done {
    pub(crate) event: Event,
    pub(crate) charge: Charge,
    /// Units of [`work`].
    pub(crate) work: u64,
    /// What its sender had before it.
    pub(crate) had: Amount,
    /// What its sender had left after paying for it, and before what it got by it.
    pub(crate) left: Amount,
}

/// What a transaction pays for its place in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Charge {
    /// The inclusion fee, burned. Of one that waits in the pool, what is set aside for it.
    pub(crate) inclusion: Amount,
    /// What the proposer gets, beside the fee of a transfer.
    pub(crate) tip: Amount,
    /// For how many bytes the inclusion fee is paid.
    pub(crate) bytes: u64,
    /// Whether it is a validator's vote that costs no inclusion fee.
    pub(crate) is_free_vote: bool,
    /// Whether the inclusion fee is paid at `baseFeeFloor`, whatever the base fee.
    pub(crate) is_at_floor: bool,
}

impl Charge {
    /// What the sender pays for the place.
    pub(crate) fn place(&self) -> u128 {
        u128::from(self.inclusion.get()).saturating_add(self.tip.get().into())
    }

    /// What a block with this base fee that charged for so many bytes took less than was set aside; none
    /// if it took more.
    pub(crate) fn unused(&self, bytes: u64, base_fee: u64) -> Option<Amount> {
        if self.is_at_floor {
            return Some(Amount::ZERO);
        }
        self.inclusion.checked_sub(inclusion_fee(bytes, base_fee))
    }
}

/// Checks everything that needs state.
pub(crate) fn check<K: Kind>(
    kind: &K,
    tx: &Transaction,
    state: &dyn Read,
    ctx: &Context<'_>,
) -> Result<Planned<K::Plan>, TxError> {
    check_fork(tx, ctx)?;
    let bid = bid(tx, ctx.rules)?;
    if ctx.rules.is_v8(ctx.height) {
        check_v8(tx, &ctx.rules.params)?;
    } else {
        check_before_v8(tx)?;
    }
    let sender = tx.from();
    let account = view::get::<Accounts>(state, &sender)?.unwrap_or_default();
    let nonce = next_nonce(tx, &account)?;
    let charge = charge::<K>(tx, bid, state, ctx)?;
    let cost = kind.cost(tx, state, ctx.rules)?;
    let left = pay(&account, &charge, cost)?;
    let plan = kind.check(tx, state, ctx)?;
    let had = account.balance;
    let account = Account { nonce, ..pay_rest(&left, cost, K::rest(&plan))? };
    let size = u64::try_from(tx.content_bytes()).unwrap_or(u64::MAX);
    let work = work::of_any(size).saturating_add(K::work(&plan)).max(K::least_work(&plan));
    Ok(Planned { sender, had, account, charge, work, plan })
}

/// Checks that the sender has the money that the transaction costs.
pub(crate) fn check_funds<K: Kind>(
    kind: &K,
    tx: &Transaction,
    state: &dyn Read,
    ctx: &Context<'_>,
) -> Result<(), TxError> {
    let account = view::get::<Accounts>(state, &tx.from())?.unwrap_or_default();
    let charge = charge::<K>(tx, bid(tx, ctx.rules)?, state, ctx)?;
    let cost = kind.cost(tx, state, ctx.rules)?;
    Ok(pay(&account, &charge, cost).map(drop)?)
}

/// What a transaction would pay for its place in the block.
pub(crate) fn charge<K: Kind>(
    tx: &Transaction,
    bid: Option<&Bid>,
    state: &dyn Read,
    ctx: &Context<'_>,
) -> Result<Charge, TxError> {
    let Some((price, bid)) = ctx.rules.price.zip(bid) else { return Ok(Charge::default()) };
    let tip = bid.tip.unwrap_or(Amount::ZERO);
    let is_free_vote = match K::INCLUSION {
        Inclusion::Paid => false,
        Inclusion::FreeVote => rule_votes::is_free(state, &tx.from(), ctx.height)?,
        Inclusion::Free => {
            return Ok(Charge { tip, ..Charge::default() });
        }
        Inclusion::Floor => {
            let bytes = charged_bytes::<K>(tx);
            let inclusion = inclusion_fee(bytes, ctx.rules.params.base_fee_floor);
            return Ok(Charge { inclusion, tip, bytes, is_at_floor: true, is_free_vote: false });
        }
    };
    if is_free_vote {
        return Ok(Charge { tip, is_free_vote, ..Charge::default() });
    }
    let bytes = charged_bytes::<K>(tx);
    let inclusion = price.inclusion(bid, bytes)?;
    Ok(Charge { inclusion, tip, bytes, is_free_vote, is_at_floor: false })
}

/// For how many bytes a transaction of this kind pays, unless it is a vote that costs nothing.
pub(crate) fn charged_bytes<K: Kind>(tx: &Transaction) -> u64 {
    K::charged_bytes(u64::try_from(tx.content_bytes()).unwrap_or(u64::MAX))
}

/// The same, and who pays for the kind.
pub(crate) fn charged_bytes_and_inclusion<K: Kind>(_: &K, tx: &Transaction) -> (u64, Inclusion) {
    (charged_bytes::<K>(tx), K::INCLUSION)
}

/// Checks and applies, if there is room for its work. A rejection leaves the draft as it was.
pub(crate) fn execute<K: Kind, E: From<TxError>>(
    kind: &K,
    tx: &Transaction,
    draft: &mut Draft,
    ctx: &Context<'_>,
    fits: impl FnOnce(u64) -> Result<(), E>,
) -> Result<Done, E> {
    let planned = check(kind, tx, draft, ctx)?;
    let Planned { charge, work, had, account: Account { balance: left, .. }, .. } = planned;
    fits(work)?;
    let event = apply::<K>(planned, draft, ctx).map_err(TxError::Storage)?;
    Ok(Done { event, charge, work, had, left })
}

fn apply<K: Kind>(
    planned: Planned<K::Plan>,
    draft: &mut Draft,
    ctx: &Context<'_>,
) -> Result<Event, StorageError> {
    let Planned { sender, had: _, account, charge, work: _, plan } = planned;
    draft.put::<Accounts>(&sender, &account);
    ledger::burn(draft, charge.inclusion)?;
    ledger::pay_proposer(draft, ctx, charge.tip)?;
    if charge.is_free_vote {
        rule_votes::mark(draft, sender, ctx.height);
    }
    K::apply(plan, draft, ctx)
}

fn check_fork(tx: &Transaction, ctx: &Context<'_>) -> Result<(), Rejection> {
    let from = ctx.rules.forks.active_from(tx.body());
    if ctx.height >= from {
        return Ok(());
    }
    Err(fork_not_active(tx, ctx.height, from))
}

/// What the transaction offers for its place; none before v7, when it may say there what it likes.
fn bid<'tx>(tx: &'tx Transaction, rules: &Rules) -> Result<Option<&'tx Bid>, Rejection> {
    if rules.is_v7() { check_v7(tx, &rules.params).map(Some) } else { Ok(None) }
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

/// The account after what only the check of the kind found out; `left` is what it has without its cost.
fn pay_rest(left: &Account, cost: Cost, rest: Option<Amount>) -> Result<Account, Rejection> {
    pay(left, &Charge::default(), Cost { total: rest, ..cost })
}

fn pay(account: &Account, charge: &Charge, cost: Cost) -> Result<Account, Rejection> {
    let Cost { field, total } = cost;
    let available = account.balance;
    let place = charge.inclusion.checked_add(charge.tip);
    let Some(needed) = total.zip(place).and_then(|(total, place)| total.checked_add(place)) else {
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
        None if place.is_none_or(Amount::is_zero) => {
            Err(Rejection::insufficient_balance(field, needed, available))
        }
        None => Err(Rejection::insufficient_balance(field, needed, available)
            .with("inclusionFee", charge.inclusion)
            .with("tip", charge.tip)),
    }
}
