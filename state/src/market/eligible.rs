//! Who takes part in the draw of a call's members (docs/protocol.md section 17.2).

use std::collections::{BTreeMap, BTreeSet};

use types::agent::ExecutorId;
use types::{Address, Amount, Params, Prices};

use super::assignments;
use super::election::Candidate;
use super::offers::{self, Ranked};
use crate::error::StorageError;
use crate::tables::Bonds;
use crate::view::{self, Read};

/// Which members are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Draw {
    /// Those of round 0. Whoever is left out for its capacity or for what its bond has free, and for
    /// nothing else, keeps its weight; its seat stays empty.
    First,
    /// Those of the round after an appeal: capacity does not matter, and no seat stays empty.
    Appeal,
}

/// What a call asks of its members.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What they must have, those of nested agents too. The order does not matter, nor does one that is
    /// named twice.
    pub executors: &'a [ExecutorId],
    /// What the call pays.
    pub prices: &'a Prices,
    /// What is locked of the bond of each.
    pub lock: Amount,
    /// Who may not be a member: requester, appellant, members of an earlier round.
    pub excluded: &'a BTreeSet<Address>,
    /// Which members are drawn.
    pub draw: Draw,
}

/// Who takes part in the draw, in the order of addresses. Of each executor the offers that count are read,
/// and of each miner that is left its bond and its assignments: `offersPerExecutorMax` times twice the
/// number of executors and one more, whatever strangers offer.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn candidates(
    state: &dyn Read,
    params: &Params,
    wanted: &Wanted<'_>,
) -> Result<Vec<Candidate>, StorageError> {
    let executors: BTreeSet<ExecutorId> = wanted.executors.iter().copied().collect();
    let mut left: Option<BTreeMap<Address, Candidate>> = None;
    for executor in executors {
        let mut next = BTreeMap::new();
        for ranked in offers::counting(state, executor, params)? {
            let before = left.as_ref().map(|left| left.get(&ranked.miner));
            // Without an offer for an earlier executor, this one is worth nothing.
            if before == Some(None) || !takes(&ranked, wanted) {
                continue;
            }
            let was_full = before.flatten().is_some_and(|before| before.is_full);
            let is_full = was_full || has_no_capacity(state, executor, &ranked, wanted.draw)?;
            let Ranked { miner, bond: weight, offer: _ } = ranked;
            next.insert(miner, Candidate { miner, weight, is_full });
        }
        left = Some(next);
    }
    let mut candidates = Vec::new();
    for candidate in left.unwrap_or_default().into_values() {
        let bond = view::get::<Bonds>(state, &candidate.miner)?.unwrap_or_default();
        let has_lock = bond.free() >= wanted.lock;
        match wanted.draw {
            Draw::First => {
                let is_full = candidate.is_full || !has_lock;
                candidates.push(Candidate { is_full, ..candidate });
            }
            Draw::Appeal if has_lock => candidates.push(candidate),
            Draw::Appeal => {}
        }
    }
    Ok(candidates)
}

/// Whether a miner may be a member and works for these prices.
fn takes(ranked: &Ranked, wanted: &Wanted<'_>) -> bool {
    ranked.offer.prices.is_covered_by(wanted.prices) && !wanted.excluded.contains(&ranked.miner)
}

fn has_no_capacity(
    state: &dyn Read,
    executor: ExecutorId,
    ranked: &Ranked,
    draw: Draw,
) -> Result<bool, StorageError> {
    match draw {
        Draw::First => {
            let open = assignments::open(state, ranked.miner, executor)?;
            Ok(u64::from(open) >= ranked.offer.capacity)
        }
        Draw::Appeal => Ok(false),
    }
}
