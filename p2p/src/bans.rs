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

    /// Notes an offence; answers how long the peer is out.
    pub(crate) fn offend(&mut self, peer: PeerId, now: Instant) -> Duration {
        let offences = self.list.get(&peer).map_or(0, |ban| ban.offences);
        let time = self.first.saturating_mul(1 << offences.min(16)).min(BAN_MAX);
        self.ban(peer, time, now);
        time
    }

    /// Keeps a peer out for `time`, which counts as an offence.
    pub(crate) fn ban(&mut self, peer: PeerId, time: Duration, now: Instant) {
        let offences = self.list.get(&peer).map_or(0, |ban| ban.offences).saturating_add(1);
        if self.list.len() >= REMEMBERED_MAX && !self.list.contains_key(&peer) {
            let soonest = self.list.iter().min_by_key(|(_, ban)| ban.until).map(|(peer, _)| *peer);
            if let Some(peer) = soonest {
                self.list.remove(&peer);
            }
        }
        self.list.insert(peer, Ban { until: now + time, offences, is_out: true });
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
        let minutes: Vec<u64> = (0..8).map(|_| bans.offend(peer, now).as_secs() / 60).collect();
        assert_eq!(vec![1, 2, 4, 8, 16, 32, 60, 60], minutes);
    }

    #[test]
    fn a_ban_ends_once_and_offences_are_forgiven_later() {
        let now = Instant::now();
        let mut bans = Bans::new(FIRST);
        let peer = PeerId::random();
        bans.offend(peer, now);
        assert_eq!(Vec::<PeerId>::new(), bans.over(now));
        assert_eq!(1, bans.count());
        assert_eq!(vec![peer], bans.over(now + FIRST));
        assert_eq!(Vec::<PeerId>::new(), bans.over(now + FIRST));
        assert_eq!(0, bans.count());
        bans.over(now + FIRST + FORGIVEN_AFTER);
        assert_eq!(FIRST, bans.offend(peer, now + FIRST + FORGIVEN_AFTER));
    }

    #[test]
    fn the_list_has_a_bound() {
        let now = Instant::now();
        let mut bans = Bans::new(FIRST);
        for _ in 0..2 * REMEMBERED_MAX {
            bans.offend(PeerId::random(), now);
        }
        assert_eq!(REMEMBERED_MAX, bans.list.len());
    }
}
