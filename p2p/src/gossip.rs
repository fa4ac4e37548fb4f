//! Publishing what the own pool took, and judging what peers publish.

use std::sync::Arc;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use libp2p::gossipsub::{self, MessageAcceptance, MessageId, PublishError, TopicHash};

use crate::accounting::{Accounting, score_credit};
use crate::connections::Connections;
use crate::credit::Worth;
use crate::intake::{Door, Judged, Waiting};
use crate::pull::PULL_INTERVAL;
use crate::recent::Recent;
use crate::wire::{self, PACK_BYTES_MAX, PACK_MAX};
use crate::{Counters, SignedTx};

/// How long after a message was left unread a peer is pulled from. Until then honest peers have what was
/// in it.
const MAKE_UP_AFTER: Duration = Duration::from_secs(1);

/// Messages that were not looked at. Gossip takes each copy of them for a duplicate for two minutes,
/// whoever brings it: so who brings one first would decide for all others. What was in them is pulled.
#[derive(Debug, Default)]
struct Missed {
    /// When to pull; none if nothing is to be made up for.
    due: Option<Instant>,
    /// When the latest message was missed, and how long after that a pull has it.
    latest: Option<(Instant, Duration)>,
    /// The peer that was pulled from last.
    last: Option<PeerId>,
}

impl Missed {
    /// A message was missed, and is to be made up for so long after.
    fn note(&mut self, after: Duration, now: Instant) {
        let due = now + after;
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        self.latest = Some((now, after));
    }

    /// Whether to pull now. What was missed only just now is made up for by one more pull.
    fn is_due(&mut self, now: Instant) -> bool {
        if self.due.is_none_or(|due| now < due) {
            return false;
        }
        self.due = self.latest.map(|(at, after)| at + after).filter(|due| *due > now);
        true
    }
}

/// What this node gossips, and what it has heard.
pub(crate) struct Gossip {
    topic: TopicHash,
    /// To the own pool.
    door: Door,
    /// What came from peers lately.
    recent: Arc<Recent>,
    /// Messages that were left unread.
    missed: Missed,
    counters: Counters,
}

impl Gossip {
    pub(crate) fn new(
        topic: TopicHash,
        door: Door,
        recent: Arc<Recent>,
        counters: Counters,
    ) -> Self {
        Self { topic, door, recent, missed: Missed::default(), counters }
    }

    /// Publishes transactions of the own pool. Those that wait at the same moment share a message:
    /// alone when it is quiet, many together under load.
    pub(crate) fn publish(&self, txs: Vec<SignedTx>, connections: &mut Connections) {
        let own: Vec<SignedTx> =
            txs.into_iter().filter(|tx| !self.recent.has(&tx.hash())).collect();
        self.publish_all(&own, connections);
    }

    fn publish_all(&self, txs: &[SignedTx], connections: &mut Connections) {
        for pack in packs(txs) {
            let count = u64::try_from(pack.len()).unwrap_or(u64::MAX);
            let gossip = &mut connections.behaviour().gossip;
            match gossip.publish(self.topic.clone(), wire::write_pack(pack)) {
                Ok(_) => drop(self.counters.published.inc_by(count)),
                // The same bytes went out a moment ago.
                Err(PublishError::Duplicate) => {}
                Err(error) => {
                    self.counters.unpublished.inc_by(count);
                    tracing::debug!(%error, count, "transactions wait for peers to pull them");
                }
            }
        }
    }

    pub(crate) fn on_event(
        &mut self,
        event: gossipsub::Event,
        accounting: &mut Accounting,
        connections: &mut Connections,
    ) {
        match event {
            gossipsub::Event::Message { propagation_source, message_id, message } => {
                let (id, from) = (message_id, propagation_source);
                self.on_message((id, from), &message.data, accounting, connections);
            }
            gossipsub::Event::SlowPeer { peer_id, failed_messages } => {
                let lost = failed_messages.total();
                tracing::debug!(peer = %peer_id, lost, "a peer does not keep up");
            }
            gossipsub::Event::GossipsubNotSupported { peer_id } => {
                tracing::debug!(peer = %peer_id, "a peer takes no part in gossip");
            }
            gossipsub::Event::Subscribed { .. } | gossipsub::Event::Unsubscribed { .. } => {}
        }
    }

    fn on_message(
        &mut self,
        (id, from): (MessageId, PeerId),
        data: &[u8],
        accounting: &mut Accounting,
        connections: &mut Connections,
    ) {
        self.counters.messages.inc();
        if !accounting.has_credit(&from, connections) {
            return self.pass_over(&id, from, connections);
        }
        match wire::read_pack(data, PACK_MAX) {
            Ok(txs) => {
                self.recent.remember(txs.iter().map(SignedTx::hash), Instant::now());
                for Waiting { id, from, txs } in self.door.offer(Waiting { id, from, txs }) {
                    self.counters.no_room.inc();
                    // A busy node does not look for more work than it does anyhow.
                    self.missed.note(PULL_INTERVAL, Instant::now());
                    accounting.settle(from, Worth::unread(txs.len()), connections);
                    self.report(&id, &from, &MessageAcceptance::Ignore, connections);
                }
            }
            Err(error) => {
                tracing::debug!(peer = %from, %error, "a peer sent a malformed message");
                self.report(&id, &from, &MessageAcceptance::Reject, connections);
            }
        }
    }

    /// Leaves a message unread, because its sender, or others of its address group, have had this node
    /// work for nothing for too long. It is the fault of a sender without credit of its own, and of
    /// nobody else who brings the same message.
    fn pass_over(&mut self, id: &MessageId, from: PeerId, connections: &mut Connections) {
        let now = Instant::now();
        self.counters.unread.inc();
        self.missed.note(MAKE_UP_AFTER, now);
        self.report(id, &from, &MessageAcceptance::Ignore, connections);
        let Some(peer) = connections.peer_mut(&from) else { return };
        if peer.credit.has_some(now) {
            return;
        }
        peer.credit.overdraw(now);
        score_credit(from, now, connections);
        // What came before is worth no more.
        for Waiting { id, from, txs: _ } in self.door.dismiss(from) {
            self.counters.unread.inc();
            self.report(&id, &from, &MessageAcceptance::Ignore, connections);
        }
    }

    /// Whom to pull from now, if messages were missed: one that an operator named, if there is one with
    /// credit, because strangers may well be those that had the messages missed.
    pub(crate) fn make_up(
        &mut self,
        now: Instant,
        accounting: &mut Accounting,
        connections: &mut Connections,
    ) -> Option<PeerId> {
        if !self.missed.is_due(now) {
            return None;
        }
        let mut peers = connections.peers().known();
        peers.retain(|peer| accounting.has_credit(peer, connections));
        if peers.iter().any(|peer| connections.names(peer)) {
            peers.retain(|peer| connections.names(peer));
        }
        // One after the other.
        let next = peers.iter().find(|peer| self.missed.last.is_none_or(|last| **peer > last));
        self.missed.last = next.or_else(|| peers.first()).copied();
        self.missed.last
    }

    /// To be called from time to time.
    pub(crate) fn age(&self, now: Instant) {
        self.recent.age(now);
    }

    /// The pool has looked at a message.
    pub(crate) fn on_judged(
        &self,
        judged: Judged,
        accounting: &mut Accounting,
        connections: &mut Connections,
    ) {
        let Judged { id, from, acceptance, worth, fresh } = judged;
        accounting.settle(from, worth, connections);
        self.report(&id, &from, &acceptance, connections);
        self.publish_all(&fresh, connections);
    }

    /// Tells gossip what to do with a message.
    fn report(
        &self,
        id: &MessageId,
        from: &PeerId,
        acceptance: &MessageAcceptance,
        connections: &mut Connections,
    ) {
        let (counter, acceptance) = match acceptance {
            MessageAcceptance::Accept => (&self.counters.accepted, MessageAcceptance::Accept),
            MessageAcceptance::Ignore => (&self.counters.ignored, MessageAcceptance::Ignore),
            MessageAcceptance::Reject => (&self.counters.rejected, MessageAcceptance::Reject),
        };
        counter.inc();
        let gossip = &mut connections.behaviour().gossip;
        // False if gossip has forgotten the message meanwhile; then there is nothing to do.
        let _is_known: bool = gossip.report_message_validation_result(id, from, acceptance);
    }
}

/// The transactions in their order, in groups that fit into a message.
fn packs(txs: &[SignedTx]) -> Vec<&[SignedTx]> {
    let mut packs = Vec::new();
    let mut rest = txs;
    while !rest.is_empty() {
        let mut bytes = 0_usize;
        let fitting = rest.iter().take(PACK_MAX).take_while(|tx| {
            bytes = bytes.saturating_add(tx.packed_bytes());
            bytes <= PACK_BYTES_MAX
        });
        // One that is too large for company goes alone.
        let (pack, after) = rest.split_at(fitting.count().max(1));
        packs.push(pack);
        rest = after;
    }
    packs
}

#[cfg(test)]
mod tests {
    use types::Signature;

    use super::*;

    fn sizes(payloads: &[usize]) -> Vec<usize> {
        let tx = |bytes: &usize| SignedTx::new(&"x".repeat(*bytes), Signature::new([0; 64]));
        let txs: Vec<SignedTx> = payloads.iter().map(tx).collect();
        packs(&txs).iter().map(|pack| pack.len()).collect()
    }

    #[test]
    fn what_is_missed_is_made_up_for_once_a_second_and_once_after_the_last() {
        let (start, mut missed) = (Instant::now(), Missed::default());
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut pulls = Vec::new();
        for now in (0..5_000).step_by(250) {
            if now < 2_500 {
                missed.note(MAKE_UP_AFTER, at(now));
            }
            if missed.is_due(at(now)) {
                pulls.push(now);
            }
        }
        assert_eq!(vec![1_000, 2_000, 3_000, 3_250], pulls);
    }

    #[test]
    fn packs_are_bounded_by_count_and_bytes() {
        assert_eq!(Vec::<usize>::new(), sizes(&[]));
        assert_eq!(vec![PACK_MAX, 1], sizes(&[10; PACK_MAX + 1]));
        assert_eq!(vec![1, 2], sizes(&[40_000, 30_000, 20_000]));
        assert_eq!(vec![1, 1, 1], sizes(&[10, 100_000, 10]));
    }
}
