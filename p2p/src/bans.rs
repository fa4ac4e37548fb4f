//! Who is kept out, and for how long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use libp2p::PeerId;

/// The longest ban.
const BAN_MAX: Duration = Duration::from_secs(3_600);
/// After so long without an offence, the next one counts as the first.
const FORGIVEN_AFTER: Duration = Duration::from_secs(6 * 3_600);
/// Peers that are remembered. New names cost an offender nothing, so more would not help.
const REMEMBERED_MAX: usize = 1_024;

/// Bans that decay: each further offence doubles the time, and all are forgiven in the end.
#[derive(Debug)]
pub(crate) struct Bans {
    first: Duration,
    list: BTreeMap<PeerId, Ban>,
}

#[derive(Debug)]
struct Ban {
    until: Instant,
    offences: u32,
    is_out: bool,
}

impl Bans {
    pub(crate) const fn new(first: Duration) -> Self {
        Self { first, list: BTreeMap::new() }
    }

    /// Notes an offence; answers how long the peer is out, and who is no longer.
    pub(crate) fn offend(&mut self, peer: PeerId, now: Instant) -> (Duration, Option<PeerId>) {
        let offences = self.list.get(&peer).map_or(0, |ban| ban.offences);
        let time = self.first.saturating_mul(1 << offences.min(16)).min(BAN_MAX);
        (time, self.ban(peer, time, now))
    }

    /// Keeps a peer out for `time`, which counts as an offence. Answers whom the list has forgotten
    /// for it: that one has to be let in, because nobody will remember to.
    #[must_use]
    pub(crate) fn ban(&mut self, peer: PeerId, time: Duration, now: Instant) -> Option<PeerId> {
        let offences = self.list.get(&peer).map_or(0, |ban| ban.offences).saturating_add(1);
        let mut forgotten = None;
        if self.list.len() >= REMEMBERED_MAX && !self.list.contains_key(&peer) {
            forgotten = self.list.iter().min_by_key(|(_, ban)| ban.until).map(|(peer, _)| *peer);
            if let Some(peer) = forgotten {
                self.list.remove(&peer);
            }
        }
        self.list.insert(peer, Ban { until: now + time, offences, is_out: true });
        forgotten
    }

    /// Whether a peer is kept out.
    pub(crate) fn keeps_out(&self, peer: &PeerId) -> bool {
        self.list.get(peer).is_some_and(|ban| ban.is_out)
    }

    /// Forgives a peer everything.
    pub(crate) fn lift(&mut self, peer: &PeerId) {
        self.list.remove(peer);
    }

    /// Those whose time is over since the last call.
    pub(crate) fn over(&mut self, now: Instant) -> Vec<PeerId> {
        self.list.retain(|_, ban| ban.is_out || now < ban.until + FORGIVEN_AFTER);
        let over = self.list.iter_mut().filter(|(_, ban)| ban.is_out && ban.until <= now);
        over.map(|(peer, ban)| {
            ban.is_out = false;
            *peer
        })
        .collect()
    }

    /// How many are kept out now.
    pub(crate) fn count(&self) -> usize {
        self.list.values().filter(|ban| ban.is_out).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(60);

    #[test]
    fn each_offence_doubles_the_time_up_to_an_hour() {
        let now = Instant::now();
        let mut bans = Bans::new(FIRST);
        let peer = PeerId::random();
        let minutes: Vec<u64> = (0..8).map(|_| bans.offend(peer, now).0.as_secs() / 60).collect();
        assert_eq!(vec![1, 2, 4, 8, 16, 32, 60, 60], minutes);
    }

    #[test]
    fn a_ban_ends_once_and_offences_are_forgiven_later() {
        let now = Instant::now();
        let mut bans = Bans::new(FIRST);
        let peer = PeerId::random();
        let _forgotten = bans.offend(peer, now);
        assert_eq!(Vec::<PeerId>::new(), bans.over(now));
        assert_eq!(1, bans.count());
        assert_eq!(vec![peer], bans.over(now + FIRST));
        assert_eq!(Vec::<PeerId>::new(), bans.over(now + FIRST));
        assert_eq!(0, bans.count());
        bans.over(now + FIRST + FORGIVEN_AFTER);
        assert_eq!((FIRST, None), bans.offend(peer, now + FIRST + FORGIVEN_AFTER));
    }

    #[test]
    fn the_list_has_a_bound_and_whoever_it_forgets_is_let_in() {
        let now = Instant::now();
        let mut bans = Bans::new(FIRST);
        let peers: Vec<PeerId> = (0..2 * REMEMBERED_MAX).map(|_| PeerId::random()).collect();
        let mut forgotten = Vec::new();
        for (at, peer) in peers.iter().enumerate() {
            let now = now + Duration::from_millis(u64::try_from(at).unwrap());
            forgotten.extend(bans.offend(*peer, now).1);
        }
        assert_eq!(REMEMBERED_MAX, bans.list.len());
        assert_eq!(peers[..REMEMBERED_MAX], forgotten, "those whose bans end first");
        assert!(!bans.keeps_out(&peers[0]));
        assert!(bans.keeps_out(&peers[REMEMBERED_MAX]));
    }
}
