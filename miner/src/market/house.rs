//! What the miner has on the chain for its calls: the bond and the offers, kept as they are configured.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use types::agent::ExecutorId;
use types::tx::{MinerBond, MinerOffer};
use types::{Amount, Body, Offer};

use super::{MarketConfig, Shop};
use crate::chain::ChainError;
use crate::engine::error::Halt;
use crate::engine::outbox::About;
use crate::engine::settle::Verdict;
use crate::journal::entry::Purpose;
use crate::operate::{OfferFact, OfferState};

/// A bond that is not as large as it should be is added to by at least so many parts of what it should
/// be, so that small earnings do not cost a transaction each.
const PARTS: u64 = 20;

impl Shop {
    /// Keeps bond and offers as they are configured, when that changes and every so often.
    pub(super) async fn keep_house(&self) -> Result<(), Halt> {
        let mut config = self.stall.config.clone();
        let poll = Duration::from_millis(self.inner.parts.config.poll_ms);
        loop {
            let wanted = config.borrow_and_update().clone();
            if let Some(wanted) = wanted
                && let Err(error) = self.tidy(&wanted).await?
            {
                tracing::warn!(%error, "bond and offers are looked at later");
            }
            tokio::select! {
                biased;
                () = self.inner.stop.cancelled() => return Err(Halt::Stopped),
                changed = config.changed() => if changed.is_err() {
                    // Nobody changes it any more.
                    sleep(poll).await;
                },
                () = self.stall.resumed.notified() => (),
                () = sleep(poll) => (),
            }
        }
    }

    async fn tidy(&self, config: &MarketConfig) -> Result<Result<(), ChainError>, Halt> {
        let asked = self.stall.calls.bond_micro_min().await;
        let least_micro = match asked {
            Ok(Some(least_micro)) => least_micro,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        };
        let bonded_micro = if config.offers.is_empty() {
            Ok(0)
        } else {
            self.keep_bond(config, least_micro).await?
        };
        match bonded_micro {
            Ok(bonded_micro) => self.keep_offers(config, bonded_micro >= least_micro).await,
            Err(error) => Ok(Err(error)),
        }
    }

    /// Adds to the bond what is missing and can be spared; what it has then.
    async fn keep_bond(
        &self,
        config: &MarketConfig,
        least_micro: u64,
    ) -> Result<Result<u64, ChainError>, Halt> {
        let parts = &self.inner.parts;
        let stake = parts.ledger.stake(&self.inner.me).await;
        let funds = parts.ledger.funds(&self.inner.me).await;
        let (stake, funds) = match (stake, funds) {
            (Ok(stake), Ok(funds)) => (stake.unwrap_or_default(), funds),
            (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
        };
        let (bonded_micro, wanted_micro) = (stake.bonded_micro, config.bond_micro(least_micro));
        let kept_micro = config.balance_micro_min.max(parts.policy.borrow().balance_micro_min);
        let spare_micro = funds.balance_micro.saturating_sub(kept_micro);
        let Some(micro) = addition(bonded_micro, wanted_micro, spare_micro, least_micro) else {
            return Ok(Ok(bonded_micro));
        };
        tracing::info!(micro, bonded_micro, wanted_micro, "bonding for the market");
        let body = Body::MinerBond(MinerBond { amount: Amount::new(micro) });
        let purpose = Purpose::Stake { micro };
        match self.inner.outbox.post_about(About::Wallet, &body, purpose).await? {
            Verdict::Included => Ok(Ok(bonded_micro.saturating_add(micro))),
            Verdict::Refused(code) => {
                tracing::warn!(code, "the bond was not added to");
                Ok(Ok(bonded_micro))
            }
        }
    }

    /// Makes the offers on the chain equal to the configuration.
    async fn keep_offers(
        &self,
        config: &MarketConfig,
        has_bond: bool,
    ) -> Result<Result<(), ChainError>, Halt> {
        let there = match self.stall.calls.offers(&self.inner.me).await {
            Ok(there) => there.into_iter().collect::<BTreeMap<_, _>>(),
            Err(error) => return Ok(Err(error)),
        };
        let facts = self.offer_facts(config)?;
        let wanted: BTreeMap<ExecutorId, Offer> = facts
            .iter()
            .filter(|fact| fact.state == OfferState::Offered)
            .filter_map(|fact| Some((fact.executor, config.offer(&fact.executor)?.offer())))
            .collect();
        for executor in there.keys().filter(|it| !wanted.contains_key(*it)) {
            self.set_offer(*executor, None).await?;
        }
        for (executor, offer) in wanted.iter().filter(|(it, offer)| there.get(*it) != Some(*offer))
        {
            // It would be refused without the bond.
            if has_bond {
                self.set_offer(*executor, Some(*offer)).await?;
            }
        }
        Ok(Ok(()))
    }

    /// What is configured, and what is offered of it.
    fn offer_facts(&self, config: &MarketConfig) -> Result<Vec<OfferFact>, Halt> {
        let paused = self.inner.parts.journal.paused()?;
        Ok(OfferFact::all(config, &self.stall.executors, &paused))
    }

    async fn set_offer(&self, executor: ExecutorId, offer: Option<Offer>) -> Result<(), Halt> {
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
            Verdict::Included => tracing::info!(%executor, capacity, "the offer is made"),
            Verdict::Refused(code) => tracing::warn!(%executor, code, "an offer was refused"),
        }
        Ok(())
    }
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
