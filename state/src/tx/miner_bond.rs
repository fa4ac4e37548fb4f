//! MINER_BOND: a miner puts money at stake (docs/protocol.md section 5.14). Nothing refuses it but a
//! balance that is too small.

use types::tx::MinerBond;
use types::{Address, Amount, Event, Transaction};

use super::{Cost, Kind};
use crate::chain::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::rules::Rules;
use crate::view::Read;
use crate::{bonds, work};

/// What moves.
pub(crate) struct Plan {
    miner: Address,
    amount: Amount,
}

impl Kind for MinerBond {
    type Plan = Plan;

    fn work(_: &Plan) -> u64 {
        // The bond and the supply.
        work::rows(2)
    }

    fn cost(&self, _: &Transaction, _: &dyn Read, _: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "amount", total: Some(self.amount) })
    }

    fn check(&self, tx: &Transaction, _: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        Ok(Plan { miner: tx.from(), amount: self.amount })
    }

    fn apply(plan: Plan, draft: &mut Draft, _: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { miner, amount } = plan;
        bonds::add(draft, miner, amount)?;
        Ok(Event::BondAdded { amount })
    }
}
