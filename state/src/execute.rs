//! The rules as one function each: check a transaction against a state, execute it on a draft.
//!
//! Pool, block building, block validation and replay all come through here; there is no second
//! copy of a rule.

use types::{CheckedTx, Event, for_kind};

use crate::context::Context;
use crate::draft::Draft;
use crate::error::TxError;
use crate::tx::envelope::{self, Done};
use crate::view::Read;

/// Checks a transaction against a state, in the order of docs/protocol.md section 9.
///
/// # Errors
/// [`TxError::Rejected`] with the first rule that it breaks, or a fault of the storage.
pub fn check(tx: &CheckedTx, state: &dyn Read, ctx: &Context<'_>) -> Result<(), TxError> {
    for_kind!(tx.body(), kind => envelope::check(kind, tx, state, ctx).map(drop))
}

/// Whether the sender has the money that a transaction costs, even if it would be refused for another reason. Its
/// nonce is not looked at.
///
/// # Errors
/// [`TxError::Rejected`] with INSUFFICIENT_BALANCE, or a fault of the storage.
pub fn check_funds(tx: &CheckedTx, state: &dyn Read, ctx: &Context<'_>) -> Result<(), TxError> {
    for_kind!(tx.body(), kind => envelope::check_funds(kind, tx, state, ctx))
}

/// Checks a transaction, writes what it does and answers what happened. A refused one leaves the draft
/// as it was.
///
/// # Errors
/// [`TxError::Rejected`] with the first rule that it breaks, or a fault of the storage.
pub fn execute(tx: &CheckedTx, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, TxError> {
    execute_if(tx, draft, ctx, |_| Ok(())).map(|done: Done| done.event)
}

/// [`execute`], if `fits` has room for the transaction's work. Answers also what it paid for its place.
pub(crate) fn execute_if<E: From<TxError>>(
    tx: &CheckedTx,
    draft: &mut Draft,
    ctx: &Context<'_>,
    fits: impl FnOnce(u64) -> Result<(), E>,
) -> Result<Done, E> {
    for_kind!(tx.body(), kind => envelope::execute(kind, tx, draft, ctx, fits))
}
