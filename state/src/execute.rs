//! The rules as one function each: check a transaction against a state, execute it on a draft.
//!
//! Pool, block building, block validation and replay all come through here; there is no second
//! copy of a rule.

use types::{Body, CheckedTx};

use crate::chain::{Chain, Context};
use crate::draft::Draft;
use crate::error::TxError;
use crate::tx::envelope;
use crate::view::Read;

/// Checks a transaction against a state, in the order of docs/protocol.md section 9.
///
/// # Errors
/// [`TxError::Rejected`] with the first rule that it breaks, or a fault of the storage.
pub fn check(tx: &CheckedTx, state: &dyn Read, ctx: &Context<'_>) -> Result<(), TxError> {
    match tx.body() {
        Body::ChatTurn(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::AgentRequest(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::AgentClaim(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::AgentStep(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::AgentFinish(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::AgentCancel(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::Transfer(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::MinerRegister(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::BlobInit(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::BlobChunk(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::BlobFinalize(kind) => envelope::check(kind, tx, state, ctx).map(drop),
        Body::ValidatorVote(kind) => envelope::check(kind, tx, state, ctx).map(drop),
    }
}

/// Whether the sender has the money that a transaction costs, even if it would be refused for another reason. Its
/// nonce is not looked at.
///
/// # Errors
/// [`TxError::Rejected`] with INSUFFICIENT_BALANCE, or a fault of the storage.
pub fn check_funds(tx: &CheckedTx, state: &dyn Read, chain: &Chain) -> Result<(), TxError> {
    match tx.body() {
        Body::ChatTurn(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::AgentRequest(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::AgentClaim(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::AgentStep(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::AgentFinish(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::AgentCancel(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::Transfer(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::MinerRegister(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::BlobInit(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::BlobChunk(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::BlobFinalize(kind) => envelope::check_funds(kind, tx, state, chain),
        Body::ValidatorVote(kind) => envelope::check_funds(kind, tx, state, chain),
    }
}

/// Checks a transaction and writes what it does. A refused one leaves the draft as it was.
///
/// # Errors
/// [`TxError::Rejected`] with the first rule that it breaks, or a fault of the storage.
pub fn execute(tx: &CheckedTx, draft: &mut Draft, ctx: &Context<'_>) -> Result<(), TxError> {
    match tx.body() {
        Body::ChatTurn(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::AgentRequest(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::AgentClaim(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::AgentStep(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::AgentFinish(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::AgentCancel(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::Transfer(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::MinerRegister(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::BlobInit(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::BlobChunk(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::BlobFinalize(kind) => envelope::execute(kind, tx, draft, ctx),
        Body::ValidatorVote(kind) => envelope::execute(kind, tx, draft, ctx),
    }
}
