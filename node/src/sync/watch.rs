//! A running node that falls behind says so, and one that stays behind stops.

use std::sync::Arc;
use std::time::{Duration, Instant};

use p2p::{Handle, Peer};
use tokio_util::sync::CancellationToken;
use types::{SizeLimits, UncheckedBlock};

use super::{BLOCKS_NEAR, Phase, SyncState, gauge};
use crate::chain::Chain;
use crate::fault::Fault;

/// How often the own height is compared with the peers'.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// The node is behind when its peers are ahead for so long.
const BEHIND_AFTER: Duration = Duration::from_secs(3);
/// How long a peer may take to show the block that it is ahead by.
const PROOF_TIME_MAX: Duration = Duration::from_secs(8);
/// Peers that are asked for that block.
const PROVERS_MAX: usize = 4;

/// The task that compares.
pub(crate) struct Watch {
    pub(crate) chain: Arc<Chain>,
    pub(crate) state: Arc<SyncState>,
    pub(crate) network: Handle,
    /// The node stops when it stands still for so long while others go on; zero is never.
    pub(crate) stalled_after: Duration,
}

/// What has been seen so far.
struct Seen {
    height: u64,
    /// Since when peers are ahead and the height is the same.
    stalled_since: Option<Instant>,
    /// Since when most peers are ahead by more than a few blocks.
    ahead_since: Option<Instant>,
}

impl Watch {
    /// Compares until asked to stop.
    ///
    /// # Errors
    /// [`Fault::Stalled`] when the node stands still although others provably go on.
    pub(crate) async fn run(self, stop: CancellationToken) -> Result<(), Fault> {
        stop.run_until_cancelled(self.watch()).await.unwrap_or(Ok(()))
    }

    async fn watch(&self) -> Result<(), Fault> {
        let mut seen = Seen { height: 0, stalled_since: None, ahead_since: None };
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            if self.state.phase() != Phase::Running {
                continue;
            }
            let tips = self.tips();
            let now = Instant::now();
            self.compare(&mut seen, &tips, now);
            let is_stalled = seen
                .stalled_since
                .is_some_and(|since| now.saturating_duration_since(since) >= self.stalled_after);
            if is_stalled && !self.stalled_after.is_zero() {
                if let Some(peer) = self.prove(seen.height.saturating_add(1)).await {
                    let (height, ahead) = (seen.height, tips.last().copied().unwrap_or_default());
                    return Err(Fault::Stalled { height, ahead, peer });
                }
                seen.stalled_since = None;
            }
        }
    }

    /// What the peers claim, ascending.
    fn tips(&self) -> Vec<u64> {
        let peers = self.network.peers().into_iter();
        let mut tips: Vec<u64> = peers.filter_map(|peer| Some(peer.status?.tip)).collect();
        tips.sort_unstable();
        tips
    }

    fn compare(&self, seen: &mut Seen, tips: &[u64], now: Instant) {
        let own = self.chain.tip().height;
        if own != seen.height {
            (seen.height, seen.stalled_since) = (own, None);
        }
        if tips.last().is_some_and(|tip| *tip > own) {
            seen.stalled_since.get_or_insert(now);
        } else {
            seen.stalled_since = None;
        }
        let common = common(tips);
        if common > own.saturating_add(BLOCKS_NEAR) {
            let since = *seen.ahead_since.get_or_insert(now);
            if now.saturating_duration_since(since) >= BEHIND_AFTER {
                self.state.set_behind(true);
            }
        } else {
            seen.ahead_since = None;
            self.state.set_behind(false);
        }
        self.state.figures.target.set(gauge(common.max(own)));
    }

    /// A peer that shows a decided block of this height. A claim alone must not stop a node.
    async fn prove(&self, height: u64) -> Option<String> {
        let peers = self.network.peers().into_iter();
        let ahead = peers.filter(|peer| peer.status.is_some_and(|status| status.tip >= height));
        for Peer { key, peer_id, .. } in ahead.take(PROVERS_MAX) {
            let blocks = self.network.blocks(key, (height, 1), PROOF_TIME_MAX).await;
            let block = blocks.ok().and_then(|blocks| blocks.into_iter().next());
            if block.is_some_and(|block| self.is_decided(height, &block)) {
                return Some(peer_id);
            }
        }
        None
    }

    fn is_decided(&self, height: u64, block: &p2p::ports::EncodedBlock) -> bool {
        let limits = SizeLimits::from(self.chain.spec().params());
        let Ok(decoded) = UncheckedBlock::decode(&block.bytes, &limits) else { return false };
        let (chain, set) = (&self.chain.spec().rules.chain_id, self.chain.validators().next);
        let hash = decoded.header.hash();
        consensus::verify_certificate(chain, &set, height, &hash, &block.certificate).is_ok()
    }
}

/// The height that at least half of the peers claim to have: what a few liars say does not count.
fn common(ascending: &[u64]) -> u64 {
    let middle = ascending.len().saturating_sub(1) / 2;
    ascending.get(middle).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_liar_among_honest_peers_does_not_move_the_common_height() {
        assert_eq!(0, common(&[]));
        assert_eq!(70, common(&[70]));
        assert_eq!(5, common(&[5, u64::MAX]));
        assert_eq!(70, common(&[69, 70, u64::MAX]));
        assert_eq!(70, common(&[3, 70, 71, u64::MAX]));
    }
}
