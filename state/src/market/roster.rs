//! What the elections of one block read of the market, read once.
//!
//! Before the transactions of a block nothing but its elections changes offers, bonds and assignments. So the
//! offers that count, and what was read of their miners, are kept from one election to the next; whoever is
//! drawn is noted (`Roster::take`).

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::slice::Iter;

use types::agent::ExecutorId;
use types::{Address, Amount, Offer, Params};

use super::assignments;
use super::election::Candidate;
use super::offers::{self, Ranked};
use super::requirements::{Draw, Wanted};
use crate::error::StorageError;
use crate::tables::Bonds;
use crate::view::{self, Read};

/// The offers for the executors that were asked for, and their miners. Empty at the beginning.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// In the order of addresses.
    offers: BTreeMap<ExecutorId, Vec<Standing>>,
    /// What first rounds may still lock of the bonds of miners.
    free: BTreeMap<Address, Amount>,
}

/// An offer that counts if its miner's bond is large enough.
#[derive(Clone, Debug)]
struct Standing {
    miner: Address,
    bonded: Amount,
    offer: Offer,
    /// At how many calls the miner works for the executor, once that was asked.
    open: Option<u32>,
}

impl Roster {
    /// Who takes part in a draw, in the order of addresses. What has not been read yet is read: of each
    /// executor the offers that count, and for a first round of each miner that is left its bond and its
    /// assignments.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn candidates(
        &mut self,
        state: &dyn Read,
        params: &Params,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<Candidate>, StorageError> {
        let executors: BTreeSet<ExecutorId> = wanted.executors.iter().copied().collect();
        let mut left: Option<Vec<Candidate>> = None;
        for executor in executors {
            let mut next = Vec::new();
            let mut before = left.as_deref().map(|left| left.iter().peekable());
            for standing in self.standings(state, executor, params)? {
                let miner = standing.miner;
                let was_full = match &mut before {
                    None if wanted.excluded.contains(&miner) => continue,
                    None => false,
                    // Without an offer for an earlier executor, this one is worth nothing.
                    Some(before) => match find(before, miner) {
                        Some(candidate) => candidate.is_full,
                        None => continue,
                    },
                };
                if standing.takes(params, wanted) {
                    let is_full = was_full || standing.is_full(state, executor, wanted.draw)?;
                    next.push(Candidate { miner, weight: standing.bonded, is_full });
                }
            }
            left = Some(next);
        }
        let mut candidates = left.unwrap_or_default();
        match wanted.draw {
            Draw::First => {
                for candidate in &mut candidates {
                    candidate.is_full |= self.free(state, candidate.miner)? < wanted.lock;
                }
            }
            Draw::Appeal => {}
        }
        Ok(candidates)
    }

    /// Reads the offers for an executor that count, unless they are known.
    pub(crate) fn read(
        &mut self,
        state: &dyn Read,
        executor: ExecutorId,
        params: &Params,
    ) -> Result<(), StorageError> {
        self.standings(state, executor, params).map(drop)
    }

    /// The bonds of miners may have changed, and their places among the offers have not.
    pub(crate) fn forget_bonds(&mut self) {
        self.free.clear();
    }

    /// For how many executors it has the offers.
    pub(crate) fn executors(&self) -> usize {
        self.offers.len()
    }

    /// A miner has become a member of a round that needs these executors, with this lock, or with all that
    /// was free if that is less.
    pub(crate) fn take(&mut self, miner: Address, executors: &[ExecutorId], lock: Amount) {
        for executor in executors {
            let Some(standings) = self.offers.get_mut(executor) else { continue };
            let place = standings.binary_search_by_key(&miner, |it| it.miner);
            let Some(standing) = place.ok().and_then(|place| standings.get_mut(place)) else {
                continue;
            };
            standing.open = standing.open.map(|open| open.saturating_add(1));
        }
        if let Some(free) = self.free.get_mut(&miner) {
            *free = free.checked_sub(lock).unwrap_or(Amount::ZERO);
        }
    }

    fn standings(
        &mut self,
        state: &dyn Read,
        executor: ExecutorId,
        params: &Params,
    ) -> Result<&mut Vec<Standing>, StorageError> {
        use std::collections::btree_map::Entry;
        match self.offers.entry(executor) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => {
                // Calls may differ in what bond they ask for.
                let any = Params { min_bond: Amount::ZERO, ..params.clone() };
                let ranked = offers::counting(state, executor, &any)?;
                let mut standings: Vec<Standing> = ranked.into_iter().map(Standing::of).collect();
                standings.sort_unstable_by_key(|it| it.miner);
                Ok(unknown.insert(standings))
            }
        }
    }

    fn free(&mut self, state: &dyn Read, miner: Address) -> Result<Amount, StorageError> {
        if let Some(free) = self.free.get(&miner) {
            return Ok(*free);
        }
        let bond = view::get::<Bonds>(state, &miner)?.unwrap_or_default();
        let free = bond.free_for_first_rounds();
        self.free.insert(miner, free);
        Ok(free)
    }
}

impl Standing {
    const fn of(ranked: Ranked) -> Self {
        let Ranked { miner, bond: bonded, offer } = ranked;
        Self { miner, bonded, offer, open: None }
    }

    /// Whether the miner's bond is large enough, and it works for these prices.
    fn takes(&self, params: &Params, wanted: &Wanted<'_>) -> bool {
        self.bonded >= params.min_bond && self.offer.prices.is_covered_by(wanted.prices)
    }

    fn is_full(
        &mut self,
        state: &dyn Read,
        executor: ExecutorId,
        draw: Draw,
    ) -> Result<bool, StorageError> {
        match draw {
            Draw::Appeal => return Ok(false),
            Draw::First => {}
        }
        let open = match self.open {
            Some(open) => open,
            None => assignments::open(state, self.miner, executor)?,
        };
        self.open = Some(open);
        Ok(u64::from(open) >= self.offer.capacity)
    }
}

/// The candidate of that address, if there is one among those that are left, which are in the order of
/// addresses; those before it are passed over.
fn find<'a>(left: &mut Peekable<Iter<'a, Candidate>>, miner: Address) -> Option<&'a Candidate> {
    while left.next_if(|candidate| candidate.miner < miner).is_some() {}
    left.next_if(|candidate| candidate.miner == miner)
}
