//! Accounts: what they hold, what they have at stake, and their transactions.

use types::{Account, Address};

use super::{Context, paging};
use crate::error::RpcError;
use crate::ports::{PendingAccount, Ports, SenderContent, Slice};
use crate::wire::{
    AccountTx, AccountView, BalanceView, BondView, MinerView, Page, PageOf, RestAccount,
};

/// The most payments out of a bond that an answer lists.
const UNBONDING_MAX: usize = 100;
/// Transactions of an account that are told with it.
const RECENT_TXS: usize = 20;

/// An account; zeros if it does not exist.
pub(crate) fn account(ports: &Ports, address: Address) -> Result<AccountView, RpcError> {
    let (account, pending) = with_pending(ports, &address)?;
    let miner = ports.directory.miner(&address)?;
    Ok(AccountView::new(address, account, pending, miner.map(MinerView::from)))
}

/// An account with its last transactions, and what its runs hold.
pub(crate) fn account_with_recent(
    context: &Context,
    address: Address,
) -> Result<RestAccount, RpcError> {
    let ports = &context.ports;
    let view = account(ports, address)?;
    let SenderContent { sender: _, pending, waiting, queued } = ports.pool.content_from(&address);
    let pending = pending.len().saturating_add(waiting.len()).saturating_add(queued.len());
    let escrowed = context.hub.escrows().of(ports, &address)?;
    // Where the list goes back beyond the node's blocks, what is here is told all the same.
    let places = match ports.accounts.transactions(&address, None, RECENT_TXS) {
        Ok(Slice { items, .. }) => items,
        Err(fault) if fault.missing.is_some() => Vec::new(),
        Err(fault) => return Err(fault.into()),
    };
    let included = ports.transactions.at_within(&places, context.page_bytes_max())?;
    let recent = included.iter().map(|included| AccountTx::new(included, address)).collect();
    let pending = u64::try_from(pending).unwrap_or(u64::MAX);
    Ok(RestAccount::new(view, pending, escrowed, recent))
}

/// What an account holds.
pub(crate) fn balance(ports: &Ports, address: Address) -> Result<BalanceView, RpcError> {
    let (account, pending) = with_pending(ports, &address)?;
    let (balance_ombra, nonce) = (account.balance.ombra(), pending.nonce);
    Ok(BalanceView { balance: account.balance, balance_ombra, nonce })
}

/// The nonce of an account's next transaction.
pub(crate) fn next_nonce(ports: &Ports, address: &Address) -> Result<u64, RpcError> {
    Ok(with_pending(ports, address)?.1.nonce)
}

/// An account, and the same with everything pending applied. The pool follows a block a moment after it is
/// committed; what the pool knows is no newer than the account then.
fn with_pending(ports: &Ports, address: &Address) -> Result<(Account, PendingAccount), RpcError> {
    let account = ports.accounts.account(address)?;
    let pending = ports.projection.account(address)?;
    let Account { nonce, balance } = account;
    let is_behind = pending.nonce < nonce;
    let pending = if is_behind { PendingAccount { nonce, balance } } else { pending };
    Ok((account, pending))
}

/// What an account has at stake.
pub(crate) fn bond(ports: &Ports, address: Address) -> Result<BondView, RpcError> {
    let stake = ports.rules.stake(&address, UNBONDING_MAX)?;
    Ok(BondView::new(address, stake))
}

/// The transactions of an account, newest first.
pub(crate) fn transactions(
    context: &Context,
    address: Address,
    page: &Page,
) -> Result<PageOf<AccountTx>, RpcError> {
    let Context { ports, .. } = context;
    let before = page.position()?;
    let Slice { items, next } = ports.accounts.transactions(&address, before, page.limit())?;
    let included = ports.transactions.at_within(&items, context.page_bytes_max())?;
    let next = paging::next_after(&items, included.len(), next);
    let slice = Slice { items: included, next };
    Ok(paging::page(slice, |included| AccountTx::new(&included, address)))
}
