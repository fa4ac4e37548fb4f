//! MINER_UNBOND: a miner takes money out of its bond (docs/protocol.md section 5.15).
//!
//! Refused with BOND_TOO_SMALL.

use types::tx::MinerUnbond;
use types::{Address, Amount, Event, Transaction};

use super::Kind;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::market::offers;
use crate::view::Read;
use crate::{bonds, runs, work};

/// What moves.
pub(crate) struct Plan {
    miner: Address,
    amount: Amount,
    /// How many offers of the miner move with its bond.
    offers: u32,
}

impl Kind for MinerUnbond {
    type Plan = Plan;

    fn work(plan: &Plan) -> u64 {
        // The bond, the supply, what waits to be paid, and its deadline.
        work::rows(4).saturating_add(work::moved_offers(plan.offers))
    }

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let (miner, amount) = (tx.from(), self.amount);
        runs::require_bond(state, miner, "amount", amount)?;
        Ok(Plan { miner, amount, offers: offers::count(state, miner)? })
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { miner, amount, offers: _ } = plan;
        let due = runs::deadline(ctx.timestamp, ctx.rules.params.unbond_ms)?;
        bonds::take_out(draft, miner, amount, due)?;
        Ok(Event::UnbondingBegun { amount, due })
    }
}
