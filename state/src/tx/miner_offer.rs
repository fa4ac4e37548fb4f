//! MINER_OFFER: a miner makes, replaces or takes back an offer (docs/protocol.md section 5.20).
//!
//! Refused with OFFER_LIMIT, BOND_TOO_SMALL, in this order; taking back is not refused.

use types::agent::ExecutorId;
use types::params::OFFERS_PER_MINER_MAX;
use types::tx::MinerOffer;
use types::{Address, Code, Event, Offer, Rejection, Transaction};

use super::Kind;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::market::offers;
use crate::tables::{Bonds, Offers};
use crate::view::{self, Read};
use crate::work;

/// What the miner offers from now on.
pub(crate) struct Plan {
    miner: Address,
    executor: ExecutorId,
    offer: Option<Offer>,
}

impl Kind for MinerOffer {
    type Plan = Plan;

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        const UNREAD: StorageError =
            StorageError::Inconsistent { what: "an offer for what is no executor was checked" };
        let executor = ExecutorId::parse(&self.executor).map_err(|_fault| UNREAD)?;
        let (miner, offer) = (tx.from(), self.offer());
        if offer.is_some() {
            require_room(state, miner, executor)?;
            let bonded = view::get::<Bonds>(state, &miner)?.unwrap_or_default().bonded;
            let least = ctx.rules.params.min_bond;
            if bonded < least {
                let expected = format_args!("at least {least}, minBond");
                return Err(Rejection::new(Code::BondTooSmall, "bond", bonded, expected).into());
            }
        }
        Ok(Plan { miner, executor, offer })
    }

    fn work(_: &Plan) -> u64 {
        // The offer, its place among those for the executor before and now, their count, and the bond.
        work::rows(5)
    }

    fn apply(plan: Plan, draft: &mut Draft, _: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { miner, executor, offer } = plan;
        match &offer {
            Some(offer) => offers::put(draft, miner, executor, offer)?,
            None => offers::remove(draft, miner, executor)?,
        }
        Ok(Event::OfferSet { executor, offer })
    }
}

/// OFFER_LIMIT if the offer would be one too many.
fn require_room(state: &dyn Read, miner: Address, executor: ExecutorId) -> Result<(), TxError> {
    let count = offers::count(state, miner)?;
    if count < OFFERS_PER_MINER_MAX || view::contains::<Offers>(state, &(miner, executor))? {
        return Ok(());
    }
    let got = format_args!("{executor} beside {count} others");
    let expected = format_args!("one of at most {OFFERS_PER_MINER_MAX} offers");
    Err(Rejection::new(Code::OfferLimit, "executor", got, expected).into())
}
