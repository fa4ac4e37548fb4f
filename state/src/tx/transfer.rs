//! TRANSFER: move money between accounts (docs/protocol.md section 5.8).

use types::tx::Transfer;
use types::{Address, Amount, Event, Transaction};

use super::{Cost, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::ledger;
use crate::rules::Rules;
use crate::view::Read;
use crate::work;

/// What moves.
pub(crate) struct Plan {
    to: Address,
    amount: Amount,
    fee: Amount,
}

impl Kind for Transfer {
    type Plan = Plan;

    fn cost(&self, _: &Transaction, _: &dyn Read, _: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "amount", total: self.amount.checked_add(self.fee) })
    }

    fn check(&self, _: &Transaction, _: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let Self { to, amount, fee } = self;
        Ok(Plan { to: to.address, amount: *amount, fee: *fee })
    }

    fn work(_: &Plan) -> u64 {
        work::rows(2)
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { to, amount, fee } = plan;
        ledger::credit(draft, to, amount)?;
        ledger::pay_proposer(draft, ctx, fee)?;
        Ok(Event::Transferred { to, amount, fee })
    }
}
