//! MINER_BOND: a miner puts money at stake (docs/protocol.md section 5.14). Nothing refuses it but a
//! balance that is too small.

use types::tx::MinerBond;
use types::{Address, Amount, Event, Transaction};

use super::{Cost, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::market::offers;
use crate::rules::Rules;
use crate::view::Read;
use crate::{bonds, work};

/// What moves.
pub(crate) struct Plan {
    miner: Address,
    amount: Amount,
    /// How many offers of the miner move with its bond.
    offers: u32,
}

impl Kind for MinerBond {
    type Plan = Plan;

    fn work(plan: &Plan) -> u64 {
        // The bond and the supply.
        work::rows(2).saturating_add(work::moved_offers(plan.offers))
    }

    fn cost(&self, _: &Transaction, _: &dyn Read, _: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "amount", total: Some(self.amount) })
    }

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let miner = tx.from();
        Ok(Plan { miner, amount: self.amount, offers: offers::count(state, miner)? })
    }

    fn apply(plan: Plan, draft: &mut Draft, _: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { miner, amount, offers: _ } = plan;
        bonds::add(draft, miner, amount)?;
        Ok(Event::BondAdded { amount })
    }
}
