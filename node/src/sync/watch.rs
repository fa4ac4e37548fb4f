//! A running node that falls behind says so, and one that stays behind stops.

use std::sync::Arc;
use std::time::{Duration, Instant};

use p2p::{Handle, Peer};
use tokio_util::sync::CancellationToken;
use types::{SizeLimits, UncheckedBlock};

use super::{BLOCKS_NEAR, Phase, SyncState, common, gauge};
use crate::chain::Chain;
use crate::fault::Fault;

/// How often the own height is compared with the peers'.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Peers that are so many blocks ahead have not got there in a moment: the node is behind.
const BLOCKS_FAR: u64 = 50;
/// Else it is behind when they are ahead for so long.
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
#[derive(Default)]
struct Seen {
    height: Option<u64>,
    /// Since when peers are ahead and the height is the same.
    stalled_since: Option<Instant>,
    /// Since when most peers are ahead by more than a few blocks.
    ahead_since: Option<Instant>,
}

impl Seen {
    /// Compares the own height with what peers claim, in ascending order. Answers whether the node
    /// is behind; none while that cannot be said.
    fn compare(&mut self, own: u64, tips: &[u64], now: Instant) -> Option<bool> {
        let has_moved = self.height.replace(own).is_some_and(|before| before != own);
        if tips.last().is_none_or(|tip| *tip <= own) {
            self.stalled_since = None;
        } else if has_moved || self.stalled_since.is_none() {
            self.stalled_since = Some(now);
        }
        match common(tips) {
            Some(common) if common > own.saturating_add(BLOCKS_NEAR) => {
                let since = *self.ahead_since.get_or_insert(now);
                let is_far = common > own.saturating_add(BLOCKS_FAR);
                let is_long = now.saturating_duration_since(since) >= BEHIND_AFTER;
                (is_far || is_long).then_some(true)
            }
            // With nobody to compare with, only a node that goes on by itself is not behind.
            common => {
                self.ahead_since = None;
                (common.is_some() || has_moved).then_some(false)
            }
        }
    }
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
        let mut seen = Seen::default();
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            if self.state.phase() != Phase::Running {
                continue;
            }
            let (own, tips, now) = (self.chain.tip().height, self.tips(), Instant::now());
            let common = self.state.heard(&tips);
            if let Some(is_behind) = seen.compare(own, &tips, now) {
                self.state.set_behind(is_behind, own);
            }
            self.state.figures.target.set(gauge(common.max(own)));
            let is_stalled = seen
                .stalled_since
                .is_some_and(|since| now.saturating_duration_since(since) >= self.stalled_after);
            if is_stalled && !self.stalled_after.is_zero() {
                if let Some(peer) = self.prove(own.saturating_add(1)).await {
                    let ahead = tips.last().copied().unwrap_or_default();
                    return Err(Fault::Stalled { height: own, ahead, peer });
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a node says that looks every two seconds.
    fn told(looks: &[(u64, &[u64])]) -> Vec<Option<bool>> {
        let (mut seen, mut now) = (Seen::default(), Instant::now());
        let looks = looks.iter().map(|(own, tips)| {
            now += Duration::from_secs(2);
            seen.compare(*own, tips, now)
        });
        looks.collect()
    }

    #[test]
    fn a_node_is_behind_when_most_peers_stay_ahead() {
        let looks: [(u64, &[u64]); 5] =
            [(5, &[6, 8]), (5, &[20, 21]), (6, &[22, 23]), (7, &[24, 25]), (24, &[26, 27])];
        assert_eq!([Some(false), None, None, Some(true), Some(false)], *told(&looks));
    }

    #[test]
    fn a_node_is_behind_at_once_when_most_peers_are_far_ahead() {
        let looks: [(u64, &[u64]); 2] = [(5, &[55]), (5, &[56])];
        assert_eq!([None, Some(true)], *told(&looks));
    }

    #[test]
    fn a_node_that_loses_its_peers_keeps_what_it_knows_until_it_goes_on_alone() {
        let looks: [(u64, &[u64]); 5] = [(5, &[20]), (5, &[20]), (5, &[20]), (5, &[]), (6, &[])];
        assert_eq!([None, None, Some(true), None, Some(false)], *told(&looks));
    }

    #[test]
    fn only_a_height_that_stays_the_same_while_a_peer_is_ahead_is_a_standstill() {
        let (mut seen, begun) = (Seen::default(), Instant::now());
        let mut look = |own, tips: &[u64], seconds| {
            let now = begun + Duration::from_secs(seconds);
            seen.compare(own, tips, now);
            seen.stalled_since.map(|since| now.saturating_duration_since(since).as_secs())
        };
        assert_eq!(None, look(5, &[5], 0));
        assert_eq!(Some(0), look(5, &[4, 6], 1));
        assert_eq!(Some(9), look(5, &[4, 7], 10));
        assert_eq!(Some(0), look(6, &[4, 7], 11));
        assert_eq!(None, look(6, &[], 12));
    }

    #[test]
    fn a_liar_among_honest_peers_does_not_move_the_common_height() {
        assert_eq!(None, common(&[]));
        assert_eq!(Some(70), common(&[70]));
        assert_eq!(Some(5), common(&[5, u64::MAX]));
        assert_eq!(Some(70), common(&[69, 70, u64::MAX]));
        assert_eq!(Some(70), common(&[3, 70, 71, u64::MAX]));
    }
}
