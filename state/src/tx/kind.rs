//! What every kind of transaction provides, and what it costs.

use types::{Amount, Event, Transaction};

use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::rules::Rules;
use crate::view::Read;

/// What every kind provides. The [envelope](super::envelope) checks fork, nonce and balance before the kind
/// is asked, and the kind's cost has left the sender's account before it is applied.
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

    /// The least work of the whole transaction, whatever [`Self::work`] says.
    fn least_work(_: &Self::Plan) -> u64 {
        0
    }

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
