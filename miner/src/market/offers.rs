//! What the miner has on the chain for its calls: the bond and the offers, kept as they are configured.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use types::agent::ExecutorId;
use types::tx::{MinerBond, MinerOffer};
use types::{Amount, Body, Offer};

use super::{MarketConfig, MarketParts, Shared};
use crate::chain::ChainError;
use crate::engine::Parts;
use crate::engine::error::Halt;
use crate::engine::outbox::About;
use crate::engine::tx_outcome::Verdict;
use crate::journal::entry::Purpose;
use crate::operate::{OfferFact, OfferState};

/// A bond that is not as large as it should be is added to by at least so many parts of what it should
/// be, so that small earnings do not cost a transaction each.
const PARTS: u64 = 20;

/// The longest pause after a rejection.
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(600);
/// How often it is looked, without a table `[market]`, whether offers stand that nobody serves.
const UNSERVED_PAUSE: Duration = Duration::from_secs(600);
/// The longest pause while the bond is too small.
const SHORT_PAUSE_MAX: Duration = Duration::from_secs(60);

/// What became of bond and offers.
#[derive(Debug)]
enum Kept {
    /// They are as they should be, as far as money allows.
    AsWanted,
    /// The chain refused something, which costs a fee each time.
    Refused,
    /// The bond is too small for offers, and must not or cannot be added to.
    Short,
    /// The node did not tell.
    Unknown(ChainError),
}

impl Kept {
    /// The worse of two.
    fn and(self, other: Self) -> Self {
        if matches!(self, Self::AsWanted) { other } else { self }
    }
}

impl Shared {
    /// Keeps bond and offers as they are configured, when that changes and every so often. After a
    /// rejection, and while the bond is too small, it waits longer and longer.
    pub(super) async fn keep_offers(&self) -> Result<(), Halt> {
        let mut config = self.market.config.clone();
        let poll = Duration::from_millis(self.inner.parts.config.poll_ms);
        let mut pause = poll;
        loop {
            let wanted = config.borrow_and_update().clone();
            pause = match wanted {
                Some(wanted) => match self.tidy(&wanted).await? {
                    Kept::AsWanted => poll,
                    Kept::Unknown(error) => {
                        tracing::warn!(%error, "checking bond and offers again later");
                        poll
                    }
                    Kept::Refused => longer(pause, poll, REFUSED_PAUSE_MAX),
                    Kept::Short => longer(pause, poll, SHORT_PAUSE_MAX),
                },
                None => {
                    self.warn_of_offers().await;
                    UNSERVED_PAUSE
                }
            };
            tokio::select! {
                biased;
                () = self.inner.stop.cancelled() => return Err(Halt::Stopped),
                changed = config.changed() => if changed.is_err() {
                    // Nobody changes it any more.
                    sleep(pause).await;
                },
                () = self.market.resumed.notified() => (),
                () = sleep(pause) => (),
            }
        }
    }

    /// Says so where offers stand that nobody serves: each call for which the miner is drawn costs bond.
    async fn warn_of_offers(&self) {
        let there = self.market.calls.offers(&self.inner.me).await.unwrap_or_default();
        if !there.is_empty() {
            tracing::error!(
                offers = there.len(),
                "there is no table [market], but the chain has offers of this miner: it loses bond \
                 for each call that it does not serve; a table [market] with `offers = []` takes \
                 them back"
            );
        }
    }

    /// Makes bond and offers what the configuration says.
    async fn tidy(&self, config: &MarketConfig) -> Result<Kept, Halt> {
        let least_micro = match self.market.calls.bond_micro_min().await {
            Ok(Some(least_micro)) => least_micro,
            // The chain has no market yet.
            Ok(None) => return Ok(Kept::AsWanted),
            Err(error) => return Ok(Kept::Unknown(error)),
        };
        let there = match self.market.calls.offers(&self.inner.me).await {
            Ok(there) => there.into_iter().collect::<BTreeMap<_, _>>(),
            Err(error) => return Ok(Kept::Unknown(error)),
        };
        let wanted = self.wanted_offers(config).await?;
        let mut kept = Kept::AsWanted;
        for executor in there.keys().filter(|it| !wanted.contains_key(*it)) {
            kept = kept.and(self.set_offer(*executor, None).await?);
        }
        if wanted.is_empty() {
            return Ok(kept);
        }
        let (bonded_micro, bond) = self.keep_bond(config, least_micro).await?;
        kept = kept.and(bond);
        if bonded_micro < least_micro {
            // Offers would be refused.
            return Ok(kept);
        }
        for (executor, offer) in wanted.iter().filter(|(it, offer)| there.get(*it) != Some(*offer))
        {
            kept = kept.and(self.set_offer(*executor, Some(*offer)).await?);
        }
        Ok(kept)
    }

    /// The offers of the configuration that this machine may make.
    async fn wanted_offers(
        &self,
        config: &MarketConfig,
    ) -> Result<BTreeMap<ExecutorId, Offer>, Halt> {
        let MarketParts { executors, fitness, .. } = &self.market;
        for offer in &config.offers {
            if executors.executor(&offer.executor).is_some() {
                // A test takes seconds where nobody has made it before.
                fitness.fault(&offer.executor).await;
            }
        }
        let Parts { journal, clock, .. } = &self.inner.parts;
        for (executor, paused) in journal.paused()? {
            if let Ok(executor) = executor.parse()
                && paused.until_ms.is_some_and(|until_ms| clock.now_ms() >= until_ms)
            {
                tracing::info!(%executor, "the pause of the offer is over");
                journal.resume_offers(&executor).await?;
            }
        }
        let paused = journal.paused()?;
        let facts = OfferFact::all(config, executors, (&paused, &fitness.unsound()));
        let made = facts.iter().filter(|fact| fact.state == OfferState::Offered);
        let offer = |fact: &OfferFact| Some((fact.executor, config.offer(&fact.executor)?.offer()));
        Ok(made.filter_map(offer).collect())
    }

    /// Adds to the bond what is missing and can be spared; what it has then.
    async fn keep_bond(
        &self,
        config: &MarketConfig,
        least_micro: u64,
    ) -> Result<(u64, Kept), Halt> {
        let parts = &self.inner.parts;
        // Claims of runs add to the same bond.
        let _turn = self.inner.bonding.turn().await;
        let stake = self.inner.own_stake().await?;
        let funds = parts.ledger.funds(&self.inner.me).await;
        let (stake, funds) = match (stake, funds) {
            (Ok(stake), Ok(funds)) => (stake, funds),
            (Err(error), _) | (_, Err(error)) => return Ok((0, Kept::Unknown(error))),
        };
        let (bonded_micro, wanted_micro) = (stake.bonded_micro, config.bond_micro(least_micro));
        if wanted_micro < least_micro && bonded_micro < least_micro {
            tracing::warn!(
                least_micro,
                wanted_micro,
                "the chain asks for a larger bond than market.bond_micro allows: no offers"
            );
            return Ok((bonded_micro, Kept::Short));
        }
        let policy = Arc::clone(&parts.policy.borrow());
        let addition = if policy.bond_automatically {
            let kept_micro = config.balance_micro_min.max(policy.balance_micro_min);
            let spare_micro = funds.balance_micro.saturating_sub(kept_micro);
            addition(bonded_micro, wanted_micro, spare_micro, least_micro)
        } else {
            None
        };
        let Some(micro) = addition else {
            if bonded_micro < least_micro {
                tracing::warn!(
                    bonded_micro,
                    least_micro,
                    "no offers: the bond is too small, and the account has nothing to spare, or \
                     policy.bond_automatically is false"
                );
                return Ok((bonded_micro, Kept::Short));
            }
            return Ok((bonded_micro, Kept::AsWanted));
        };
        tracing::info!(micro, bonded_micro, wanted_micro, "bonding for the market");
        let body = Body::MinerBond(MinerBond { amount: Amount::new(micro) });
        let purpose = Purpose::Stake { micro };
        match self.inner.outbox.post_about(About::Wallet, &body, purpose).await? {
            Verdict::Included { .. } => {
                // What is burned from now on is a part of this.
                drop(self.inner.own_stake().await?);
                Ok((bonded_micro.saturating_add(micro), Kept::AsWanted))
            }
            Verdict::Refused(code) => {
                tracing::warn!(code, "the bond was not added to");
                Ok((bonded_micro, Kept::Refused))
            }
        }
    }

    async fn set_offer(&self, executor: ExecutorId, offer: Option<Offer>) -> Result<Kept, Halt> {
        let Offer { capacity, prices } =
            offer.unwrap_or_else(|| Offer { capacity: 0, prices: types::Prices::default() });
        let body = Body::MinerOffer(MinerOffer {
            executor: executor.to_string(),
            capacity,
            per_call: prices.per_call,
            prompt_per_m: prices.prompt_per_m,
            completion_per_m: prices.completion_per_m,
            fuel_per_g: prices.fuel_per_g,
        });
        let posted = self.inner.outbox.post_about(About::Wallet, &body, Purpose::Offer).await?;
        match posted {
            Verdict::Included { .. } => {
                let what = if capacity == 0 { "taken back" } else { "made" };
                tracing::info!(%executor, capacity, "the offer is {what}");
                Ok(Kept::AsWanted)
            }
            Verdict::Refused(code) => {
                tracing::warn!(%executor, code, "an offer was rejected");
                Ok(Kept::Refused)
            }
        }
    }
}

fn longer(pause: Duration, least: Duration, most: Duration) -> Duration {
    pause.saturating_mul(2).clamp(least, most.max(least))
}

/// What is added to a bond: what is missing, or what of it can be spared, if that makes a difference.
fn addition(bonded: u64, wanted: u64, spare: u64, least: u64) -> Option<u64> {
    let missing = wanted.saturating_sub(bonded);
    let micro = missing.min(spare);
    let after = bonded.saturating_add(micro);
    let is_enough = micro == missing || micro >= wanted.div_ceil(PARTS);
    (micro > 0 && after >= least && (is_enough || bonded < least)).then_some(micro)
}

/// A configuration that takes all offers back.
pub(super) fn without_offers(config: &MarketConfig) -> Arc<MarketConfig> {
    Arc::new(MarketConfig { offers: Vec::new(), ..config.clone() })
}
