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
use super::error::Halt;
use super::tx_outcome::Verdict;
use crate::chain::Stake;
use crate::journal::entry::{Entry, Outcome, Purpose};
use crate::policy::{Bonded, Decision, Reason};

/// The code of the rejection of a claim for which too little is free.
const TOO_SMALL: &str = "BOND_TOO_SMALL";

/// What the claims of a wallet need of its bond.
#[derive(Debug, Default)]
pub(crate) struct Bonding {
    /// Held from the look at the bond to the end of what is added to it.
    turn: tokio::sync::Mutex<()>,
    /// What claims lock that are under way, by run.
    under_way: Mutex<BTreeMap<Hash, u64>>,
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

impl Inner {
    /// Sees to it that so much of the bond is free for the claim of a run, and adds to the bond what the
    /// policy allows. None if that is too little: then the journal says what follows.
    pub(super) async fn secure(
        &self,
        entry: &Entry,
        needed_micro: u64,
    ) -> Result<Option<Share<'_>>, Halt> {
        let run = entry.run.id;
        let _turn = self.bonding.turn().await;
        let stake = self.patiently(|| self.parts.ledger.stake(&self.me)).await?;
        let Bonded { bonded_micro, free_micro } = self.bonding.left(&stake.unwrap_or_default());
        let missing_micro = needed_micro.saturating_sub(free_micro);
        if missing_micro > 0 {
            let funds = self.patiently(|| self.parts.ledger.funds(&self.me)).await?;
            let policy = Arc::clone(&self.parts.policy.borrow());
            let room_micro = policy.bond_room_micro(bonded_micro, funds.balance_micro);
            if missing_micro > room_micro {
                // Other claims took it since the decision.
                let reason = Reason::BondLow { needed_micro, free_micro, room_micro };
                self.tell(&entry.run, &Decision::Wait(reason)).await?;
                self.close(entry, Outcome::ClaimRefused(TOO_SMALL.to_owned())).await?;
                return Ok(None);
            }
            tracing::info!(%run, micro = missing_micro, bonded_micro, "bonding");
            let body = Body::MinerBond(MinerBond { amount: Amount::new(missing_micro) });
            let purpose = Purpose::Bond { micro: missing_micro };
            match self.outbox.post(entry, &body, purpose).await? {
                Verdict::Included { .. } => (),
                Verdict::Refused(_) => return Ok(None),
            }
        }
        Ok(Some(self.bonding.share(run, needed_micro)))
    }
}
