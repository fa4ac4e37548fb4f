//! A running node that falls behind says so, and one that stays behind stops.

use std::sync::Arc;
use std::time::{Duration, Instant};

use p2p::{Handle, Peer, PeerKey};
use tokio_util::sync::CancellationToken;

use super::claims::{Belief, Claim, claim};
use super::proof::{Proof, Provers};
use super::state::{BLOCKS_NEAR, Phase, SyncState, gauge};
use crate::chain::NodeChain;
use crate::clock::now_ms;
use crate::fault::NodeFault;

/// How often the own height is compared with the peers'.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// A chain that is so many blocks ahead has not got there in a moment: the node is behind.
const BLOCKS_FAR: u64 = 50;
/// Else it is behind when the chain is ahead for so long. A block that proves it is as old.
pub(super) const BEHIND_AFTER: Duration = Duration::from_secs(3);
/// How often peers are asked for a proof, while too few of them are named.
const PROOF_INTERVAL: Duration = Duration::from_secs(2);
/// How long a peer is believed that has shown a block. It has to show the next before that.
const PROOF_LASTS: Duration = Duration::from_secs(8);

/// The task that compares.
pub(crate) struct Watch {
    pub(crate) chain: Arc<NodeChain>,
    pub(crate) state: Arc<SyncState>,
    pub(crate) network: Handle,
    /// The node stops when it stands still for so long while others go on; zero is never.
    pub(crate) stalled_after: Duration,
}

/// What has been seen so far.
#[derive(Default)]
struct Seen {
    height: Option<u64>,
    /// Since when a peer claims to be ahead and the height is the same.
    stalled_since: Option<Instant>,
    /// Since when the chain is ahead by more than a few blocks.
    ahead_since: Option<Instant>,
    /// Who has shown a block that is not here, and when.
    proof: Option<(PeerKey, Instant)>,
    /// When peers were last asked for one.
    asked: Option<Instant>,
}

impl Seen {
    /// Compares the own height with the one that is believed of the chain and with the highest that
    /// anybody claims. Answers whether the node is behind; none while that cannot be said.
    fn compare(
        &mut self,
        own: u64,
        believed: Option<u64>,
        highest: Option<u64>,
        now: Instant,
    ) -> Option<bool> {
        let has_moved = self.height.replace(own).is_some_and(|before| before != own);
        if highest.is_none_or(|tip| tip <= own) {
            self.stalled_since = None;
        } else if has_moved || self.stalled_since.is_none() {
            self.stalled_since = Some(now);
        }
        match believed {
            Some(height) if height > own.saturating_add(BLOCKS_NEAR) => {
                let since = *self.ahead_since.get_or_insert(now);
                let is_far = height > own.saturating_add(BLOCKS_FAR);
                let is_long = now.saturating_duration_since(since) >= BEHIND_AFTER;
                (is_far || is_long).then_some(true)
            }
            // With nobody to compare with, only a node that goes on by itself is not behind.
            believed => {
                self.ahead_since = None;
                (believed.is_some() || has_moved).then_some(false)
            }
        }
    }

    /// Whether this peer has shown a block of late.
    fn is_proved(&self, peer: PeerKey, now: Instant) -> bool {
        self.proof.is_some_and(|(prover, shown)| {
            prover == peer && now.saturating_duration_since(shown) < PROOF_LASTS
        })
    }

    /// Whether it is time to ask for a proof; if so, it is taken for asked.
    fn is_proof_due(&mut self, now: Instant) -> bool {
        let is_due =
            self.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= PROOF_INTERVAL);
        if is_due {
            self.asked = Some(now);
        }
        is_due
    }

    /// A peer has shown the block after the tip, which was proposed at `timestamp`. One that has just
    /// been made may be on its way to this node, and proves nothing.
    fn shown(&mut self, peer: PeerKey, timestamp: u64, (now, now_ms): (Instant, u64)) {
        let age = Duration::from_millis(now_ms.saturating_sub(timestamp));
        if age >= BEHIND_AFTER {
            self.proof = Some((peer, now));
        }
    }
}

impl Watch {
    /// Compares until asked to stop.
    ///
    /// # Errors
    /// [`NodeFault::Stalled`] when the node stands still although others provably go on.
    pub(crate) async fn run(self, stop: CancellationToken) -> Result<(), NodeFault> {
        stop.run_until_cancelled(self.watch()).await.unwrap_or(Ok(()))
    }

    async fn watch(&self) -> Result<(), NodeFault> {
        let (mut seen, mut provers) = (Seen::default(), Provers::default());
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            if self.state.phase() != Phase::Running {
                continue;
            }
            let now = Instant::now();
            let claims = self.claims(&seen, now);
            let own = self.chain.tip().height;
            let highest = claims.iter().map(|claim| claim.tip).max();
            let believed = believed(&claims, own);
            if let Some(is_behind) = seen.compare(own, believed, highest, now) {
                self.state.set_behind(is_behind, own);
            }
            self.state.figures.target.set(gauge(self.state.heard(believed).max(own)));
            let is_stalled = seen
                .stalled_since
                .is_some_and(|since| now.saturating_duration_since(since) >= self.stalled_after);
            if is_stalled && !self.stalled_after.is_zero() {
                if let Some(fault) = self.stall(&mut provers, own).await {
                    return Err(fault);
                }
                seen.stalled_since = None;
            }
            let are_named = matches!(Belief::of(&claims), Belief::Named(_));
            let is_claimed = highest.is_some_and(|tip| tip > own.saturating_add(BLOCKS_NEAR));
            if is_claimed && !are_named && seen.is_proof_due(now) {
                let far = own.saturating_add(BLOCKS_NEAR);
                if let Some(Proof { peer, timestamp }) = self.prove(&mut provers, far).await {
                    seen.shown(peer.key, timestamp, (Instant::now(), now_ms()));
                }
            }
        }
    }

    /// What the peers claim.
    fn claims(&self, seen: &Seen, now: Instant) -> Vec<Claim> {
        let peers = self.network.peers();
        peers.iter().filter_map(|peer| claim(peer, |key| seen.is_proved(key, now))).collect()
    }

    /// Whether the chain provably goes on while this node stays where it is. A block that was made a
    /// moment ago is given the time to arrive.
    async fn stall(&self, provers: &mut Provers, own: u64) -> Option<NodeFault> {
        let Peer { peer_id, status, .. } = self.prove(provers, own).await?.peer;
        tokio::time::sleep(BEHIND_AFTER).await;
        let ahead = status.map(|status| status.tip).unwrap_or_default();
        let is_stalled = self.chain.tip().height == own;
        is_stalled.then_some(NodeFault::Stalled { height: own, ahead, peer: peer_id })
    }

    /// A peer that claims to be above `height` and shows the block after the tip. A claim alone must
    /// not stop a node.
    async fn prove(&self, provers: &mut Provers, height: u64) -> Option<Proof> {
        let is_ahead = |peer: &Peer| peer.status.is_some_and(|status| status.tip > height);
        let ahead = self.network.peers().into_iter().filter(is_ahead).collect();
        provers.ask(&self.network, &self.chain, ahead).await
    }
}

/// The height that is believed. A named peer that does not claim to be ahead needs no proof.
fn believed(claims: &[Claim], own: u64) -> Option<u64> {
    Belief::of(claims).height().or_else(|| {
        let named = claims.iter().filter(|claim| claim.is_named).map(|claim| claim.tip);
        named.min().filter(|tip| *tip <= own.saturating_add(BLOCKS_NEAR))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIE: u64 = 1_000_000_000;

    /// What a node says that looks every two seconds, at this height with this belief.
    fn told(looks: &[(u64, Option<u64>)]) -> Vec<Option<bool>> {
        let (mut seen, mut now) = (Seen::default(), Instant::now());
        let looks = looks.iter().map(|(own, believed)| {
            now += Duration::from_secs(2);
            seen.compare(*own, *believed, *believed, now)
        });
        looks.collect()
    }

    #[test]
    fn a_node_is_behind_when_the_chain_stays_ahead_and_sooner_when_it_is_far_ahead() {
        let looks = [(5, 6), (5, 20), (6, 22), (7, 24), (24, 26)];
        let looks = looks.map(|(own, believed)| (own, Some(believed)));
        assert_eq!([Some(false), None, None, Some(true), Some(false)], *told(&looks));
        assert_eq!([None, Some(true)], *told(&[(5, Some(55)), (5, Some(56))]));
    }

    #[test]
    fn a_node_that_loses_its_peers_keeps_what_it_knows_until_it_goes_on_alone() {
        let looks = [(5, Some(20)), (5, Some(20)), (5, Some(20)), (5, None), (6, None)];
        assert_eq!([None, None, Some(true), None, Some(false)], *told(&looks));
    }

    #[test]
    fn only_a_height_that_stays_the_same_while_a_peer_is_ahead_is_a_standstill() {
        let (mut seen, begun) = (Seen::default(), Instant::now());
        let mut look = |own, highest: Option<u64>, seconds| {
            let now = begun + Duration::from_secs(seconds);
            seen.compare(own, None, highest, now);
            seen.stalled_since.map(|since| now.saturating_duration_since(since).as_secs())
        };
        assert_eq!(None, look(5, Some(5), 0));
        assert_eq!(Some(0), look(5, Some(6), 1));
        assert_eq!(Some(9), look(5, Some(7), 10));
        assert_eq!(Some(0), look(6, Some(7), 11));
        assert_eq!(None, look(6, None, 12));
    }

    #[test]
    fn claims_of_strangers_make_no_node_syncing_whatever_they_are() {
        let (mut seen, mut now) = (Seen::default(), Instant::now());
        for own in [5, 5, 5, 6, 6, 7, 7, 7, 7, 7] {
            now += Duration::from_secs(2);
            // They claim ever more, and come and go.
            let strangers = (0..own % 6).map(|number| LIE + own * number);
            let claims: Vec<Claim> =
                strangers.map(|tip| Claim { tip, is_named: false, is_proved: false }).collect();
            let highest = claims.iter().map(|claim| claim.tip).max();
            let is_behind = seen.compare(own, believed(&claims, own), highest, now);
            assert_ne!(Some(true), is_behind, "at {own}");
        }
    }

    #[test]
    fn a_named_peer_that_is_not_ahead_needs_no_proof_and_one_that_is_does() {
        let named = |tip| Claim { tip, is_named: true, is_proved: false };
        let proved = Claim { is_proved: true, ..named(70) };
        assert_eq!(Some(7), believed(&[named(7)], 5));
        assert_eq!(Some(4), believed(&[named(4), named(LIE)], 5));
        assert_eq!(None, believed(&[named(LIE)], 5));
        assert_eq!(None, believed(&[named(LIE), named(LIE)], 5));
        assert_eq!(Some(70), believed(&[named(LIE), named(5), proved], 5));
        assert_eq!(Some(LIE), believed(&[named(LIE), named(LIE), named(LIE)], 5));
    }

    #[test]
    fn a_block_proves_that_a_node_is_behind_when_it_is_old_and_for_a_while() {
        let (mut seen, now) = (Seen::default(), Instant::now());
        // Any key will do.
        let peer = PeerKey::parse("12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN");
        let peer = peer.expect("a peer id");
        let now_ms = 1_000_000;
        seen.shown(peer, now_ms - 2_999, (now, now_ms));
        assert!(!seen.is_proved(peer, now), "it may be on its way");
        seen.shown(peer, now_ms + 5_000, (now, now_ms));
        assert!(!seen.is_proved(peer, now), "it is of a clock that is ahead");
        seen.shown(peer, now_ms - 3_000, (now, now_ms));
        assert!(seen.is_proved(peer, now + PROOF_LASTS - Duration::from_millis(1)));
        assert!(!seen.is_proved(peer, now + PROOF_LASTS));
    }

    #[test]
    fn proofs_are_asked_for_now_and_then() {
        let (mut seen, now) = (Seen::default(), Instant::now());
        assert!(seen.is_proof_due(now));
        assert!(!seen.is_proof_due(now + PROOF_INTERVAL / 2));
        assert!(seen.is_proof_due(now + PROOF_INTERVAL));
    }
}
