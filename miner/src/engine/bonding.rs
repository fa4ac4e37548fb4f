//! The bond that claims lock: what of it is free, and adding to it by the policy.
//!
//! The chain's record of a bond has what runs have locked whose claims are in a block. Claims that are
//! under way lock more soon, so they are counted here: no two of them rely on the same money. A miner
//! that dies on the way has its bond on the chain, and looks again.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use types::tx::MinerBond;
use types::{Amount, Body, Hash};

use super::Inner;
use super::error::{Halt, Pauses};
use super::tx_outcome::Verdict;
use crate::chain::{ChainError, Stake};
use crate::journal::entry::{Entry, Outcome, Purpose};
use crate::policy::{Bonded, Decision, Reason};

/// What the claims of a wallet need of its bond.
#[derive(Debug, Default)]
pub(crate) struct Bonding {
    /// Held from the look at the bond to the end of what is added to it.
    turn: tokio::sync::Mutex<()>,
    /// What claims lock that are under way, by run.
    under_way: Mutex<BTreeMap<Hash, u64>>,
    /// The bond at the last look. Held during a look, so that none takes an older one for a newer one.
    seen: tokio::sync::Mutex<Option<Stake>>,
}

/// A part of the bond that a claim counts on until its fate is known.
#[derive(Debug)]
pub(super) struct Share<'a> {
    bonding: &'a Bonding,
    run: Hash,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.bonding.under_way.lock().remove(&self.run);
    }
}

impl Bonding {
    /// Waits for its turn to look at the bond and add to it.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// What a record of the bond leaves to new claims.
    pub(super) fn left(&self, stake: &Stake) -> Bonded {
        let under_way = self.under_way.lock().values().copied().fold(0, u64::saturating_add);
        let free_micro = stake.free_micro().saturating_sub(under_way);
        Bonded { bonded_micro: stake.bonded_micro, free_micro }
    }

    fn share(&self, run: Hash, micro: u64) -> Share<'_> {
        self.under_way.lock().insert(run, micro);
        Share { bonding: self, run }
    }
}

/// What of a bond is gone that was not taken out of it. What was added meanwhile hides as much.
const fn burned_micro(before: &Stake, now: &Stake) -> u64 {
    let taken_out_micro = now.unbonding_micro.saturating_sub(before.unbonding_micro);
    before.bonded_micro.saturating_sub(now.bonded_micro).saturating_sub(taken_out_micro)
}

impl Inner {
    /// What this miner has at stake. What was burned of its bond since the last look counts as spent
    /// today.
    pub(crate) async fn own_stake(&self) -> Result<Result<Stake, ChainError>, Halt> {
        let mut seen = self.bonding.seen.lock().await;
        let stake = match self.parts.ledger.stake(&self.me).await {
            Ok(stake) => stake.unwrap_or_default(),
            Err(error) => return Ok(Err(error)),
        };
        let burned_micro = seen.replace(stake).map_or(0, |before| burned_micro(&before, &stake));
        if burned_micro > 0 {
            let bonded_micro = stake.bonded_micro;
            tracing::warn!(burned_micro, bonded_micro, "a part of the bond was burned");
            self.parts.journal.burn(self.parts.clock.now_ms(), burned_micro).await?;
        }
        Ok(Ok(stake))
    }

    /// The same, however long the node takes.
    async fn own_stake_patiently(&self) -> Result<Stake, Halt> {
        let mut pauses = Pauses::new(self.parts.config.pause_ms);
        loop {
            match self.own_stake().await? {
                Ok(stake) => return Ok(stake),
                Err(error) => tracing::warn!(%error, "asking the node again"),
            }
            pauses.pause(&self.stop).await?;
        }
    }

    /// Sees to it that so much of the bond is free for the claim of a run, and adds to the bond what the
    /// policy allows. None if that is too little: then the journal says what follows.
    pub(super) async fn secure(
        &self,
        entry: &Entry,
        needed_micro: u64,
    ) -> Result<Option<Share<'_>>, Halt> {
        let run = entry.run.id;
        let _turn = self.bonding.turn().await;
        let stake = self.own_stake_patiently().await?;
        let Bonded { bonded_micro, free_micro } = self.bonding.left(&stake);
        let missing_micro = needed_micro.saturating_sub(free_micro);
        let policy = Arc::clone(&self.parts.policy.borrow());
        let now_ms = self.parts.clock.now_ms();
        let spent_micro = self.parts.journal.day(now_ms)?.spent_micro;
        let burned_micro = self.parts.journal.burned_micro(now_ms)?;
        // Something was burned since the decision.
        let mut against = policy.wait_spent(&entry.run, spent_micro, burned_micro);
        if missing_micro > 0 && against.is_none() {
            let funds = self.patiently(|| self.parts.ledger.funds(&self.me)).await?;
            let room_micro = policy.bond_room_micro(bonded_micro, funds.balance_micro);
            // Other claims took it since the decision.
            let is_low = missing_micro > room_micro;
            against = is_low.then_some(Reason::BondLow { needed_micro, free_micro, room_micro });
        }
        if let Some(reason) = against {
            let code = reason.code().to_owned();
            self.tell(&entry.run, &Decision::Wait(reason)).await?;
            self.close(entry, Outcome::ClaimRefused(code)).await?;
            return Ok(None);
        }
        if missing_micro > 0 {
            tracing::info!(%run, micro = missing_micro, bonded_micro, "bonding");
            let body = Body::MinerBond(MinerBond { amount: Amount::new(missing_micro) });
            let purpose = Purpose::Bond { micro: missing_micro };
            match self.outbox.post(entry, &body, purpose).await? {
                // What is burned from now on is a part of this.
                Verdict::Included { .. } => drop(self.own_stake_patiently().await?),
                Verdict::Refused(_) => return Ok(None),
            }
        }
        Ok(Some(self.bonding.share(run, needed_micro)))
    }
}
