//! Offers of miners for executors.

use types::agent::ExecutorId;
use types::{Address, Amount, Bond, Offer};

use super::{PortFault, Slice};

/// Which offers; conditions that are given must both hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OfferFilter {
    /// For this executor.
    pub executor: Option<ExecutorId>,
    /// Of this miner.
    pub miner: Option<Address>,
}

/// The place of an offer in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OfferPlace {
    /// Its miner.
    pub miner: Address,
    /// Its executor.
    pub executor: ExecutorId,
    /// The miner's bond.
    pub bonded: Amount,
}

/// An offer, with what its miner has at stake and does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OfferEntry {
    /// Whose it is.
    pub miner: Address,
    /// For which executor.
    pub executor: ExecutorId,
    /// What it says.
    pub offer: Offer,
    /// What the miner has at stake.
    pub bond: Bond,
    /// At how many calls the miner works for this executor.
    pub open: u32,
    /// Whether an election would read it; none if that was not found out.
    pub counts: Option<bool>,
}

/// Offers of miners.
pub trait Offers: Send + Sync {
    /// Offers after a place: for one executor those of the largest bonds first, ties by lower address,
    /// else in the order of miners and executors.
    ///
    /// # Errors
    /// [`PortFault`].
    fn list(
        &self,
        filter: &OfferFilter,
        after: Option<OfferPlace>,
        limit: usize,
    ) -> Result<Slice<OfferEntry, OfferPlace>, PortFault>;
}
