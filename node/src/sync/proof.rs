//! A block after the own tip that the validators have decided: the proof that the chain goes on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use p2p::{Handle, Peer, PeerKey};
use types::{Header, SizeLimits, UncheckedBlock};

use crate::chain::NodeChain;
use crate::validator_sets::next_validators;

/// How long peers may take to show the block that they are ahead by.
pub(super) const PROOF_TIME_MAX: Duration = Duration::from_secs(3);
/// Peers that are asked for it at a time.
const PROVERS_MAX: usize = 8;

/// A block that a peer has shown.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    pub(super) peer: Peer,
    /// When it was proposed, milliseconds since 1970.
    pub(super) timestamp: u64,
}

/// Who was asked when, so that all get their turn.
#[derive(Default, Debug)]
pub(super) struct Provers {
    asked: BTreeMap<PeerKey, Instant>,
    /// Who has shown a block last.
    good: Option<PeerKey>,
}

impl Provers {
    /// Those of `peers` to ask now: the named ones and the one that was good before, then those who
    /// have not been asked for longest.
    fn choose(&mut self, mut peers: Vec<Peer>, now: Instant) -> Vec<Peer> {
        self.asked.retain(|key, _| peers.iter().any(|peer| peer.key == *key));
        peers.sort_by_key(|peer| {
            let is_better = peer.is_named || self.good == Some(peer.key);
            (!is_better, self.asked.get(&peer.key).copied())
        });
        peers.truncate(PROVERS_MAX);
        self.asked.extend(peers.iter().map(|peer| (peer.key, now)));
        peers
    }

    /// Asks some of `peers` for the block after the tip, and answers the first that is good.
    pub(super) async fn ask(
        &mut self,
        network: &Handle,
        chain: &NodeChain,
        peers: Vec<Peer>,
    ) -> Option<Proof> {
        let height = chain.tip().height.saturating_add(1);
        let asked = self.choose(peers, Instant::now()).into_iter().map(async |peer| {
            let blocks = network.blocks(peer.key, (height, 1), PROOF_TIME_MAX).await.ok()?;
            let timestamp = decided(chain, height, blocks.first()?)?.timestamp;
            Some(Proof { peer, timestamp })
        });
        let mut asked: FuturesUnordered<_> = asked.collect();
        while let Some(answer) = asked.next().await {
            if let Some(proof) = answer {
                self.good = Some(proof.peer.key);
                return Some(proof);
            }
        }
        None
    }
}

/// The header of a block, if it is the decided one of the height after the tip.
pub(super) fn decided(
    chain: &NodeChain,
    height: u64,
    block: &p2p::ports::EncodedBlock,
) -> Option<Header> {
    let limits = SizeLimits::from(chain.spec().params());
    let header = UncheckedBlock::decode(&block.bytes, &limits).ok()?.header;
    // Of the database: what is in memory may be of before the node caught up.
    let set = next_validators(chain.store(), chain.spec()).ok()?.next;
    let (domain, hash) = (chain.spec().domain_now(), header.hash());
    consensus::verify_certificate(&domain, &set, height, &hash, &block.certificate).ok()?;
    Some(header)
}
