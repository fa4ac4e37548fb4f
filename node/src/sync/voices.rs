//! Whether a node that believes no single peer may start consensus, whose network asks one peer for
//! blocks.
//!
//! A claim must not decide that. A node that has no block says truly that it has none, and a liar says
//! so as well: if the lower one of two claims were enough, either would send the node to a single peer.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use p2p::{Handle, Peer};
use store::Tip;

use super::claims::{Belief, Claim};
use super::proof::{PROOF_TIME_MAX, decided};
use super::trust::Start;
use crate::chain::NodeChain;

/// What a node knows when it wants to go on that needs several voices.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncStanding {
    /// The height of its last block.
    pub(super) height: u64,
    /// By the age of that block, or of genesis.
    pub(super) age: Start,
    /// The others are no quorum without its own vote.
    pub(super) is_needed: bool,
    /// All named peers have said how far they are, or it has waited for them.
    pub(super) has_met: bool,
}

/// What follows from what named peers claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// Consensus may start.
    GoOn,
    /// It may start if two of them have the last block, and none shows one after it.
    Ask,
    /// It may not.
    Wait,
}

impl SyncStanding {
    /// Judges by what the peers claim.
    ///
    /// No two of them are waited for where the block after the own tip cannot exist without the own vote
    /// and nobody claims to have it, nor on a chain so young that its keys are worth as much as ever.
    pub(super) fn judge(self, claims: &[Claim]) -> Next {
        let Self { height, age, is_needed, has_met } = self;
        let mut named = claims.iter().filter(|claim| claim.is_named).peekable();
        let is_heard = named.peek().is_some();
        let is_last = is_heard && named.all(|claim| claim.tip <= height);
        if is_last && has_met && (is_needed || age == Start::Known) {
            return Next::GoOn;
        }
        if Belief::agreed(claims).is_none_or(|agreed| agreed > height) {
            return Next::Wait;
        }
        match age {
            // It got this block from two voices a moment ago, or the chain has just begun.
            Start::Known => Next::GoOn,
            Start::Blind if has_met => Next::Ask,
            Start::Blind => Next::Wait,
        }
    }
}

/// Whether one of these peers shows a decided block that follows the own tip.
pub(super) async fn is_followed(network: &Handle, chain: &NodeChain, peers: Vec<Peer>) -> bool {
    let Tip { height, hash, .. } = chain.tip();
    let next = height.saturating_add(1);
    let peers = peers.into_iter().filter(|peer| peer.status.is_some_and(|it| it.tip > height));
    let mut asked: FuturesUnordered<_> = peers
        .map(async |peer| {
            let blocks = network.blocks(peer.key, (next, 1), PROOF_TIME_MAX).await.ok()?;
            decided(chain, next, blocks.first()?)
        })
        .collect();
    while let Some(answer) = asked.next().await {
        if answer.is_some_and(|header| header.previous_hash == hash) {
            return true;
        }
    }
    false
}

/// Whether all of so many named peers have said how far they are, or have had the time for it.
pub(super) const fn has_met(told: usize, named: usize, waited: Duration, wait: Duration) -> bool {
    told >= named || waited.as_millis() >= wait.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLIND: SyncStanding =
        SyncStanding { height: 70, age: Start::Blind, is_needed: false, has_met: true };

    fn named(tips: &[u64]) -> Vec<Claim> {
        tips.iter().map(|tip| Claim { tip: *tip, is_named: true, is_proved: false }).collect()
    }

    #[test]
    fn a_low_claim_does_not_start_consensus() {
        let begins = SyncStanding { height: 0, ..BLIND };
        for claims in [&[0, 100][..], &[0, 0, 100], &[0, 0], &[0, u64::MAX]] {
            assert_eq!(Next::Ask, begins.judge(&named(claims)), "{claims:?}");
            let early = SyncStanding { has_met: false, ..begins };
            assert_eq!(Next::Wait, early.judge(&named(claims)), "{claims:?}");
        }
        assert_eq!(Next::Wait, begins.judge(&named(&[0, 100, 100])));
        assert_eq!(Next::Ask, BLIND.judge(&named(&[3, 90])));
        assert_eq!(Next::Wait, BLIND.judge(&named(&[90, 90])));
    }

    #[test]
    fn one_named_peer_and_strangers_are_too_few() {
        let strangers =
            [named(&[70]), vec![Claim { tip: 70, is_named: false, is_proved: true }; 9]];
        for claims in [Vec::new(), named(&[70]), strangers.concat()] {
            assert_eq!(Next::Wait, BLIND.judge(&claims), "{claims:?}");
        }
    }

    #[test]
    fn a_validator_without_which_there_is_no_next_block_waits_for_nobody_who_has_none() {
        let needed = SyncStanding { is_needed: true, ..BLIND };
        assert_eq!(Next::GoOn, needed.judge(&named(&[70])));
        assert_eq!(Next::GoOn, needed.judge(&named(&[0, 69])));
        assert_eq!(Next::Wait, needed.judge(&named(&[71])));
        assert_eq!(Next::Wait, needed.judge(&[]));
        let early = SyncStanding { has_met: false, ..needed };
        assert_eq!(Next::Wait, early.judge(&named(&[70])));
    }

    #[test]
    fn a_chain_that_is_younger_than_the_trust_period_may_begin_with_those_who_are_there() {
        let young = SyncStanding { height: 0, age: Start::Known, ..BLIND };
        assert_eq!(Next::GoOn, young.judge(&named(&[0])));
        assert_eq!(Next::GoOn, young.judge(&named(&[0, 0, 5])));
        assert_eq!(Next::Wait, young.judge(&named(&[5])));
        assert_eq!(Next::Wait, young.judge(&named(&[5, 5])));
    }
}
