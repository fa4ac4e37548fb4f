//! Which transactions came from peers lately, so that they are not published as one's own.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use types::Hash;

/// How long a hash is remembered at least. Longer than a transaction takes from its arrival to the
/// pool's event.
const KEPT: Duration = Duration::from_secs(30);

/// Hashes of one generation; with two of them at most about 20 MB.
const GENERATION_MAX: usize = 131_072;

/// Hashes in two generations: when the young one is old or full, the old one is forgotten.
#[derive(Debug)]
pub(crate) struct Recent(Mutex<Generations>);

#[derive(Debug)]
struct Generations {
    young: BTreeSet<Hash>,
    old: BTreeSet<Hash>,
    since: Instant,
}

impl Recent {
    pub(crate) fn new(now: Instant) -> Self {
        let (young, old) = (BTreeSet::new(), BTreeSet::new());
        Self(Mutex::new(Generations { young, old, since: now }))
    }

    pub(crate) fn remember(&self, hashes: impl IntoIterator<Item = Hash>, now: Instant) {
        let mut generations = self.0.lock();
        for hash in hashes {
            if generations.young.len() >= GENERATION_MAX {
                generations.turn(now);
            }
            generations.young.insert(hash);
        }
    }

    pub(crate) fn has(&self, hash: &Hash) -> bool {
        let generations = self.0.lock();
        generations.young.contains(hash) || generations.old.contains(hash)
    }

    /// To be called from time to time.
    pub(crate) fn age(&self, now: Instant) {
        let mut generations = self.0.lock();
        if now.saturating_duration_since(generations.since) >= KEPT {
            generations.turn(now);
        }
    }
}

impl Generations {
    fn turn(&mut self, now: Instant) {
        self.old = std::mem::take(&mut self.young);
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_forgotten_after_two_turns() {
        let start = Instant::now();
        let recent = Recent::new(start);
        recent.remember([Hash::ZERO], start);
        recent.age(start + KEPT);
        assert!(recent.has(&Hash::ZERO), "it is in the old generation");
        recent.age(start + KEPT + KEPT);
        assert!(!recent.has(&Hash::ZERO));
    }

    #[test]
    fn a_full_generation_turns() {
        let start = Instant::now();
        let recent = Recent::new(start);
        let count = u64::try_from(GENERATION_MAX * 2).unwrap();
        let hash = |n: u64| Hash::digest(&n.to_le_bytes());
        recent.remember((0..=count).map(hash), start);
        assert!(!recent.has(&hash(0)));
        assert!(recent.has(&hash(count)));
    }
}
