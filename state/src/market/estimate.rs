//! What a call would have to pay so that enough miners can be drawn for it (docs/market.md section 5): from
//! the offers that count, as an election would read them now.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use types::agent::ExecutorId;
use types::call::{CallLimits, Consensus};
use types::{Address, AgentVersion, Amount, Bond, Params, Prices};

use super::offers::Ranked;
use super::terms::AskedCall;
use super::{assignments, callable, offers};
use crate::error::StorageError;
use crate::tables::Bonds;
use crate::view::{self, Read};

/// What somebody means to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// How many members.
    pub committee_size: u8,
    /// Who decides.
    pub consensus: Consensus,
    /// Whether the decision can be appealed.
    pub is_appealable: bool,
    /// What the work may take.
    pub limits: CallLimits,
}

/// Prices, and who works for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimate {
    /// What the call should pay; nothing if nobody could be drawn.
    pub prices: Prices,
    /// What one member can cost at them.
    pub budget: Amount,
    /// The least `maxFee`, conditional payments not counted.
    pub floor: Amount,
    /// What would be locked of each member's bond.
    pub lock: Amount,
    /// How many eligible miners the call needs.
    pub needed: usize,
    /// How many are eligible at these prices.
    pub eligible: usize,
    /// How many take part in the draw though their seat would stay empty: they work at as many calls as they
    /// offer, or too much of their bond would be locked.
    pub full: usize,
    /// How many offer for everything that the agent needs, at any prices.
    pub offering: usize,
}

impl Wish {
    /// How many eligible miners its election needs.
    #[must_use]
    pub fn needed(&self) -> usize {
        let size = usize::from(self.committee_size);
        if self.is_appealable { size.saturating_mul(3).saturating_add(1) } else { size }
    }

    /// With some to spare: others call meanwhile.
    fn wanted(&self) -> usize {
        let needed = self.needed();
        needed.saturating_add((needed / 2).max(2))
    }
}

/// A miner that offers for everything that an agent needs.
struct Offering {
    miner: Address,
    /// The lowest prices at which it works for all of it.
    prices: Prices,
    has_capacity: bool,
    bond: Bond,
}

/// So many miners are looked at for a price. The largest committee wants 69 that can be drawn; more than 27
/// full ones that are cheaper than those make the price a guess from those who were looked at.
const CHEAPEST: usize = 96;
/// For miners to spare a call pays at most this many times what it must pay for enough of them. Without the
/// bound, one expensive offer would set the price of every call.
const SPARE_TIMES: u64 = 4;

/// The lowest prices at which enough miners can be drawn, and some to spare; if there are too few of them
/// among the 96 cheapest, those at which the most can. For those to spare it suggests no more than four times
/// the lowest price at which enough can be drawn. Reads what an election reads, as far as it is not `known`.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn estimate(
    (state, known): (&dyn Read, &mut Known),
    params: &Params,
    agent: &AgentVersion,
    wish: &Wish,
) -> Result<Estimate, StorageError> {
    let mut offering = known.offering(state, params, &callable::executors(agent)?)?;
    if let Consensus::Threshold(_) = wish.consensus {
        offering.retain(|it| is_unmetered(&it.prices));
    }
    // The cheapest first; of equal ones those that are drawn more often.
    let cost = |it: &Offering| it.prices.price(&wish.limits.usage);
    offering.sort_by_key(|it| (cost(it), !it.bond.bonded.get(), it.miner));
    let asking = Asking { params, agent, wish, offering: &offering };
    let mut best: Option<Estimate> = None;
    let mut prices = Prices::default();
    let mut enough_at: Option<u64> = None;
    for it in offering.iter().take(CHEAPEST) {
        prices = highest(&prices, &it.prices);
        let Some(found) = asking.at(&prices) else { break };
        let budget = found.budget.get();
        if enough_at.is_some_and(|least| budget > least.saturating_mul(SPARE_TIMES)) {
            break;
        }
        if found.eligible >= found.needed {
            enough_at = enough_at.or(Some(budget));
        }
        if best.is_none_or(|best| found.eligible > best.eligible) {
            best = Some(found);
        }
        if found.eligible >= wish.wanted() {
            break;
        }
    }
    let nobody = Estimate { needed: wish.needed(), ..Estimate::default() };
    Ok(best.unwrap_or(nobody))
}

/// The same for prices that somebody names; none if the call would cost more than any amount of money.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn at_prices(
    (state, known): (&dyn Read, &mut Known),
    params: &Params,
    agent: &AgentVersion,
    (wish, prices): (&Wish, &Prices),
) -> Result<Option<Estimate>, StorageError> {
    let offering = known.offering(state, params, &callable::executors(agent)?)?;
    Ok(Asking { params, agent, wish, offering: &offering }.at(prices))
}

/// What is asked for, and who might do it.
struct Asking<'a> {
    params: &'a Params,
    agent: &'a AgentVersion,
    wish: &'a Wish,
    offering: &'a [Offering],
}

impl Asking<'_> {
    /// Who works at these prices; none if the call would cost more than any amount of money.
    fn at(&self, prices: &Prices) -> Option<Estimate> {
        let Self { params, agent, wish, offering } = self;
        let asked = AskedCall {
            committee_size: wish.committee_size,
            prices,
            limits: &wish.limits,
            royalty: agent.royalty,
            on_result: &[],
        };
        let terms = asked.terms(params)?;
        let floor = u64::try_from(asked.least_fee(params)).ok().map(Amount::new)?;
        let lock =
            if wish.is_appealable { terms.dissent_penalty } else { terms.unrevealed_penalty };
        let can = |it: &&Offering| it.has_capacity && it.bond.free_for_first_rounds() >= lock;
        let drawn: Vec<&Offering> =
            offering.iter().filter(|it| it.prices.is_covered_by(prices)).collect();
        let eligible = drawn.iter().filter(|it| can(it)).count();
        Some(Estimate {
            prices: *prices,
            budget: terms.budget,
            floor,
            lock,
            needed: wish.needed(),
            eligible,
            full: drawn.len().saturating_sub(eligible),
            offering: offering.len(),
        })
    }
}

/// Whether a miner works for `perCall` alone.
const fn is_unmetered(prices: &Prices) -> bool {
    let Prices { per_call: _, prompt_per_m, completion_per_m, fuel_per_g } = prices;
    prompt_per_m.is_zero() && completion_per_m.is_zero() && fuel_per_g.is_zero()
}

/// Of each price the higher one.
fn highest(one: &Prices, other: &Prices) -> Prices {
    Prices {
        per_call: one.per_call.max(other.per_call),
        prompt_per_m: one.prompt_per_m.max(other.prompt_per_m),
        completion_per_m: one.completion_per_m.max(other.completion_per_m),
        fuel_per_g: one.fuel_per_g.max(other.fuel_per_g),
    }
}

/// So many executors are remembered; before one more, all are forgotten.
const KNOWN_MAX: usize = 256;

/// What estimates have read of one state, by one set of parameters. The next ones need not read it again.
#[derive(Debug, Default)]
pub struct Known {
    /// The offers that count, by executor.
    offers: BTreeMap<ExecutorId, Vec<Standing>>,
    /// The bonds of miners that offer for everything that some agent needs.
    bonds: BTreeMap<Address, Bond>,
}

/// An offer that counts.
#[derive(Clone, Copy, Debug)]
struct Standing {
    miner: Address,
    prices: Prices,
    /// Whether the miner works at fewer calls than it offers.
    has_capacity: bool,
}

impl Known {
    /// The miners whose offers count for each of these executors.
    fn offering(
        &mut self,
        state: &dyn Read,
        params: &Params,
        executors: &[ExecutorId],
    ) -> Result<Vec<Offering>, StorageError> {
        let executors: BTreeSet<ExecutorId> = executors.iter().copied().collect();
        let mut left: Option<BTreeMap<Address, Offering>> = None;
        for executor in executors {
            let mut next = BTreeMap::new();
            for standing in self.standings(state, params, executor)? {
                let miner = standing.miner;
                let before = match left.as_mut() {
                    Some(left) => match left.remove(&miner) {
                        Some(before) => before,
                        // Without an offer for an earlier executor, this one is worth nothing.
                        None => continue,
                    },
                    None => Offering {
                        miner,
                        prices: Prices::default(),
                        has_capacity: true,
                        bond: Bond::default(),
                    },
                };
                let has_capacity = before.has_capacity && standing.has_capacity;
                let prices = highest(&before.prices, &standing.prices);
                next.insert(miner, Offering { prices, has_capacity, ..before });
            }
            left = Some(next);
        }
        let mut offering: Vec<Offering> = left.unwrap_or_default().into_values().collect();
        for it in &mut offering {
            it.bond = self.bond(state, it.miner)?;
        }
        Ok(offering)
    }

    fn standings(
        &mut self,
        state: &dyn Read,
        params: &Params,
        executor: ExecutorId,
    ) -> Result<&[Standing], StorageError> {
        if self.offers.len() >= KNOWN_MAX && !self.offers.contains_key(&executor) {
            *self = Self::default();
        }
        match self.offers.entry(executor) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => {
                let mut standings = Vec::new();
                for Ranked { miner, offer, .. } in offers::counting(state, executor, params)? {
                    let open = u64::from(assignments::open(state, miner, executor)?);
                    let has_capacity = open < offer.capacity;
                    standings.push(Standing { miner, prices: offer.prices, has_capacity });
                }
                Ok(unknown.insert(standings))
            }
        }
    }

    fn bond(&mut self, state: &dyn Read, miner: Address) -> Result<Bond, StorageError> {
        match self.bonds.entry(miner) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(unknown) => {
                let bond = view::get::<Bonds>(state, &miner)?.unwrap_or_default();
                Ok(*unknown.insert(bond))
            }
        }
    }
}

#[cfg(test)]
mod tests;
