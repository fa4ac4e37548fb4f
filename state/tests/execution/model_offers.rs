//! What the model knows of the agent market: who offers what. Written from the protocol.

use std::collections::BTreeMap;

use types::Address;
use types::tx::MinerOffer;

/// Capacity, and the prices for a call, tokens read and written, and fuel.
pub type ModelOffer = (u64, [u64; 4]);

/// The offers of all miners.
#[derive(Default)]
pub struct ModelOffers {
    /// By miner and executor.
    pub all: BTreeMap<(Address, String), ModelOffer>,
}

impl ModelOffers {
    pub fn count(&self, miner: Address) -> usize {
        self.all.keys().filter(|(whose, _)| *whose == miner).count()
    }

    pub fn obstacle(
        &self,
        miner: Address,
        body: &MinerOffer,
        (bonded, least): (i128, i128),
    ) -> Option<&'static str> {
        if body.capacity == 0 {
            return None;
        }
        let is_new = !self.all.contains_key(&(miner, body.executor.clone()));
        if is_new && self.count(miner) >= 64 {
            return Some("OFFER_LIMIT");
        }
        (bonded < least).then_some("BOND_TOO_SMALL")
    }

    pub fn set(&mut self, miner: Address, body: &MinerOffer) {
        let key = (miner, body.executor.clone());
        if body.capacity == 0 {
            self.all.remove(&key);
            return;
        }
        let prices = [body.per_call, body.prompt_per_m, body.completion_per_m, body.fuel_per_g];
        self.all.insert(key, (body.capacity, prices.map(types::Amount::get)));
    }

    /// Whose offers for an executor count: those of the largest bonds, ties by lower address.
    pub fn counting(
        &self,
        executor: &str,
        bonded: impl Fn(Address) -> i128,
        (least, most): (i128, usize),
    ) -> Vec<(Address, i128, ModelOffer)> {
        let of_it = self.all.iter().filter(|((_, of), _)| of == executor);
        let mut counting: Vec<_> =
            of_it.map(|((miner, _), offer)| (*miner, bonded(*miner), *offer)).collect();
        counting.retain(|(_, bonded, _)| *bonded >= least);
        counting.sort_by_key(|(miner, bonded, _)| (-bonded, *miner));
        counting.truncate(most);
        counting
    }
}
