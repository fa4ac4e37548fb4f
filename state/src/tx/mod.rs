//! The kinds of transactions: one file each, with its rules in order of precedence and its effects.
//!
//! A kind says here what it does to the state; its fields and the limits that need no state are in
//! the file of the same name in the crate `types`. CONTRIBUTING.md has the recipe for a new one.

mod agent_call;
mod agent_cancel;
mod agent_claim;
mod agent_finish;
mod agent_refuse;
pub(crate) mod agent_register;
mod agent_request;
mod agent_retire;
mod agent_step;
mod blob_chunk;
mod blob_finalize;
mod blob_init;
pub(crate) mod blobs;
mod call_appeal;
mod call_commit;
mod call_reveal;
mod chat_turn;
pub(crate) mod envelope;
mod evidence;
mod fork_vote;
#[cfg(test)]
mod made_up;
mod miner_bond;
mod miner_offer;
mod miner_register;
mod miner_unbond;
mod param_vote;
mod transfer;
mod validator_vote;
pub(crate) mod votes;

use types::{Amount, Body, Event, Transaction};

use crate::chain::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::rules::Rules;
use crate::view::Read;

/// What every kind provides. Fork, nonce and balance are checked by the [`envelope`] before the
/// kind is asked, and the kind's cost has left the sender's account before it is applied.
pub(crate) trait Kind {
    /// What `check` found out and `apply` will write: amounts to move, never final balances,
    /// because sender, receiver, submitter, miner and proposer may be the same account.
    type Plan;

    /// Who pays an inclusion fee for it, from v7 on.
    const INCLUSION: Inclusion = Inclusion::Paid;

    /// For how many bytes the inclusion fee is paid, of a transaction of this size.
    fn charged_bytes(size: u64) -> u64 {
        size
    }

    /// What the transaction takes from its sender, besides the inclusion fee and the tip.
    fn cost(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        rules: &Rules,
    ) -> Result<Cost, StorageError> {
        let _ = (tx, state, rules);
        Ok(Cost::NOTHING)
    }

    /// What it takes besides its cost, which takes long to find out; none if it is over 2^64−1.
    fn rest(plan: &Self::Plan) -> Option<Amount> {
        let _ = plan;
        Some(Amount::ZERO)
    }

    /// What it makes a node do besides what every transaction does, in units of [`crate::work`].
    fn work(plan: &Self::Plan) -> u64;

    /// The rules that need state, in the order of docs/protocol.md section 9.
    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Self::Plan, TxError>;

    /// Writes what was planned and answers what happened. Cannot refuse.
    fn apply(plan: Self::Plan, draft: &mut Draft, ctx: &Context<'_>)
    -> Result<Event, StorageError>;
}

/// Whether a transaction that is refused for the phase of its call may be taken in a later one: a member's
/// reveal before its round reveals, or a bonded miner's commitment before the members are drawn.
pub(crate) fn is_early(tx: &Transaction, state: &dyn Read) -> Result<bool, StorageError> {
    if let Body::CallCommit(commit) = tx.body() {
        return call_commit::is_early(commit, tx.from(), state);
    }
    if let Body::CallReveal(reveal) = tx.body() {
        return call_reveal::is_early(reveal, tx.from(), state);
    }
    Ok(false)
}

/// Who pays an inclusion fee for a kind, from v7 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inclusion {
    /// Everybody.
    Paid,
    /// Everybody but validators, who vote with it, for the first vote of each in a block.
    FreeVote,
    /// Everybody, at the lowest base fee there is, whatever the block's: who was drawn for a call did not
    /// choose when it has to answer.
    Floor,
    /// Nobody.
    Free,
}

/// What a transaction takes from its sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// The field that says so.
    pub(crate) field: &'static str,
    /// The sum; none if it is over 2^64−1, which nobody has.
    pub(crate) total: Option<Amount>,
}

impl Cost {
    pub(crate) const NOTHING: Self = Self { field: "balance", total: Some(Amount::ZERO) };
}
