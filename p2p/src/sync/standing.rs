//! What peers have been worth while this node catches up.
//!
//! It belongs to a peer and not to a connection or a download: who goes away and comes back is who
//! it was. Peers whose blocks were executed are asked first, then those that the settings name;
//! strangers are tried, a few at a time, and not for ever.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::wire::BLOCKS_BYTES_WANTED;
use crate::PeerKey;
use crate::ports::EncodedBlock;

/// So often in a row a peer may fail to deliver.
const STRIKES_MAX: u32 = 3;
/// So often in a row it may say that it has no time.
const REFUSALS_MAX: u32 = 30;
/// How long a peer may keep this node waiting in all, beyond what its answers are worth: it is over
/// with the second question that is left unanswered.
const PATIENCE: Duration = Duration::from_secs(10);
/// An answer may take so long, and as long as its bytes take at [`RATE_MIN`].
const ANSWER_WORTH: Duration = Duration::from_secs(1);
/// Bytes a second that a peer need not be better than: a part of 1 MiB within eight seconds.
const RATE_MIN: usize = BLOCKS_BYTES_WANTED / 8;
/// What is made up for of an earlier wait by an answer that came sooner than it had to.
const CREDIT_DIVISOR: u32 = 4;
/// The rest after a refusal, doubled with each further one, and after a failure.
const REST: Duration = Duration::from_millis(50);
const REST_MAX: Duration = Duration::from_secs(2);
/// Peers that are remembered. Names cost a stranger nothing; beyond these no further one is asked.
const RECORDS_MAX: usize = 1_024;

/// What is known about one peer.
#[expect(clippy::struct_excessive_bools, reason = "three facts that do not exclude each other")]
#[derive(Clone, Copy, Default, Debug)]
struct Record {
    /// Failures in a row; what fails together, because a connection ends, is one.
    strikes: u32,
    struck: Option<Instant>,
    /// Refusals in a row.
    refusals: u32,
    /// Time that it cost, up to this moment.
    lost: Duration,
    counted: Option<Instant>,
    rests_until: Option<Instant>,
    /// A block of it was verified.
    is_proved: bool,
    is_given_up: bool,
    /// It was nothing more when it answered last.
    is_stranger: bool,
}

/// How far a peer is relied on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Rank {
    /// Its blocks were good.
    Proved,
    /// The settings name it.
    Named,
    /// Anybody.
    Stranger,
}

/// What came of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answered {
    pub(crate) outcome: Outcome,
    /// Bytes of the answer.
    pub(crate) bytes: usize,
    /// When it was asked.
    pub(crate) since: Instant,
}

/// How a peer answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// With all that it was asked for, or as much as fits.
    Full,
    /// With less, although it claims more.
    Short,
    /// Not at all.
    Nothing,
    /// That it has no time.
    Refused,
    /// With what no node answers.
    Offence,
}

/// What is known about all peers. Clones share it.
#[derive(Clone, Default, Debug)]
pub(crate) struct PeerStandings(Arc<Mutex<Records>>);

#[derive(Default, Debug)]
struct Records {
    peers: BTreeMap<PeerKey, Record>,
    /// Strangers that were given up.
    disappointed: usize,
}

impl PeerStandings {
    /// A block of this peer was verified.
    pub(crate) fn proved(&self, peer: PeerKey) {
        self.0.lock().peers.entry(peer).or_default().is_proved = true;
    }

    pub(crate) fn is_proved(&self, peer: PeerKey) -> bool {
        self.0.lock().peers.get(&peer).is_some_and(|record| record.is_proved)
    }

    /// Asks a peer no more.
    pub(crate) fn give_up(&self, peer: PeerKey) {
        let mut records = self.0.lock();
        let Some(record) = records.of(peer, Rank::Named) else { return };
        record.is_proved = false;
        let is_news = !std::mem::replace(&mut record.is_given_up, true);
        if is_news && record.is_stranger {
            records.disappointed = records.disappointed.saturating_add(1);
        }
    }

    /// Whether a peer is not asked any more.
    pub(crate) fn has_given_up(&self, peer: PeerKey) -> bool {
        self.0.lock().peers.get(&peer).is_some_and(|record| record.is_given_up)
    }

    /// Whether a stranger is known or can be remembered.
    pub(crate) fn has_room(&self, peer: PeerKey) -> bool {
        let records = self.0.lock();
        records.peers.len() < RECORDS_MAX || records.peers.contains_key(&peer)
    }

    /// Strangers that did not deliver what they claimed.
    pub(crate) fn disappointed(&self) -> usize {
        self.0.lock().disappointed
    }

    /// Whether a peer has failed since it last delivered.
    pub(crate) fn has_strikes(&self, peer: PeerKey) -> bool {
        self.0.lock().peers.get(&peer).is_some_and(|record| record.strikes > 0)
    }

    pub(crate) fn rests(&self, peer: PeerKey, now: Instant) -> bool {
        let records = self.0.lock();
        let until = records.peers.get(&peer).and_then(|record| record.rests_until);
        until.is_some_and(|until| until > now)
    }

    /// Takes down what came of a question. Answers whether the peer's time is over.
    pub(crate) fn note(
        &self,
        (peer, rank): (PeerKey, Rank),
        answered: Answered,
        now: Instant,
    ) -> bool {
        let mut records = self.0.lock();
        let Some(record) = records.of(peer, rank) else { return true };
        record.is_stranger = rank == Rank::Stranger;
        record.note(answered, now)
    }
}

impl Records {
    /// A peer's record; none if there is no room for a further stranger.
    fn of(&mut self, peer: PeerKey, rank: Rank) -> Option<&mut Record> {
        let is_full = self.peers.len() >= RECORDS_MAX;
        if is_full && rank == Rank::Stranger && !self.peers.contains_key(&peer) {
            return None;
        }
        Some(self.peers.entry(peer).or_default())
    }
}

impl Record {
    fn note(&mut self, answered: Answered, now: Instant) -> bool {
        let Answered { outcome, bytes, since } = answered;
        let millis = bytes.saturating_mul(1_000) / RATE_MIN;
        let of_bytes = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        let worth = match outcome {
            Outcome::Full => of_bytes.saturating_add(ANSWER_WORTH),
            Outcome::Short => of_bytes,
            Outcome::Nothing | Outcome::Refused | Outcome::Offence => Duration::ZERO,
        };
        // What was waited for several answers at once is counted once.
        let begun = self.counted.map_or(since, |counted| counted.max(since));
        self.counted = Some(now);
        let took = now.saturating_duration_since(begun);
        let credit = worth.saturating_sub(took) / CREDIT_DIVISOR;
        self.lost = self.lost.saturating_add(took.saturating_sub(worth)).saturating_sub(credit);
        match outcome {
            Outcome::Full => (self.strikes, self.refusals) = (0, 0),
            Outcome::Short => self.refusals = 0,
            Outcome::Nothing if self.struck.is_some_and(|struck| since < struck) => {}
            Outcome::Nothing => {
                self.struck = Some(now);
                self.strikes = self.strikes.saturating_add(1);
                self.rest(self.strikes.saturating_add(2), now);
            }
            Outcome::Refused => {
                self.refusals = self.refusals.saturating_add(1);
                self.rest(self.refusals, now);
            }
            Outcome::Offence => return true,
        }
        self.strikes >= STRIKES_MAX || self.refusals >= REFUSALS_MAX || self.lost > PATIENCE
    }

    fn rest(&mut self, times: u32, now: Instant) {
        let time = REST.saturating_mul(1 << times.saturating_sub(1).min(10)).min(REST_MAX);
        self.rests_until = Some(now + time);
    }
}

/// The bytes of blocks with their certificates.
pub(crate) fn bytes_of(blocks: &[EncodedBlock]) -> usize {
    let sizes = blocks.iter().map(|it| it.bytes.len().saturating_add(it.certificate.len()));
    sizes.fold(0_usize, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use libp2p::PeerId;

    use super::*;

    const MIB: usize = 1024 * 1024;

    fn peer() -> PeerKey {
        PeerKey(PeerId::random())
    }

    /// Whether a peer's time is over after each of these answers, which come one after the other.
    fn noted(answers: &[(Outcome, usize, u64)]) -> Vec<bool> {
        let (standing, peer, mut now) = (PeerStandings::default(), peer(), Instant::now());
        let answers = answers.iter().map(|(outcome, bytes, ms)| {
            let since = now;
            now += Duration::from_millis(*ms);
            let answered = Answered { outcome: *outcome, bytes: *bytes, since };
            standing.note((peer, Rank::Named), answered, now)
        });
        answers.collect()
    }

    #[test]
    fn a_peers_time_is_over_when_it_has_kept_the_node_waiting_for_long() {
        let silence = (Outcome::Nothing, 0, 8_000);
        assert_eq!([false, true], *noted(&[silence; 2]));
        // Small answers just in time, so that it never fails.
        let drip = (Outcome::Full, 300, 7_900);
        assert_eq!([false, true], *noted(&[drip; 2]));
        let short = (Outcome::Short, 300, 4_000);
        assert_eq!([false, false, true], *noted(&[short; 3]));
        // A good answer now and then does not make up for it.
        let good = (Outcome::Full, 300, 10);
        assert_eq!([false, false, true], *noted(&[silence, good, silence]));
    }

    #[test]
    fn failures_and_refusals_in_a_row_are_counted_however_quick_they_are() {
        let (failure, refusal) = ((Outcome::Nothing, 0, 1), (Outcome::Refused, 0, 1));
        assert_eq!([false, false, true], *noted(&[failure; 3]));
        let good = (Outcome::Full, 10, 1);
        assert_eq!([false; 5], *noted(&[failure, failure, good, failure, failure]));
        let refusals = noted(&[refusal; 30]);
        assert_eq!(Some(29), refusals.iter().position(|is_over| *is_over));
        assert_eq!([true], *noted(&[(Outcome::Offence, 0, 1)]));
    }

    #[test]
    fn what_fails_together_is_one_failure_and_one_wait() {
        let (standing, peer, since) = (PeerStandings::default(), peer(), Instant::now());
        let lost = Answered { outcome: Outcome::Nothing, bytes: 0, since };
        let now = since + Duration::from_secs(8);
        assert_eq!([false; 4], [0; 4].map(|_| standing.note((peer, Rank::Named), lost, now)));
    }

    #[test]
    fn a_slow_line_is_no_fault() {
        let slow = (Outcome::Full, MIB, 8_500);
        assert_eq!([false; 100], *noted(&[slow; 100]));
    }

    #[test]
    fn who_is_given_up_stays_so_and_only_strangers_are_counted() {
        let (standing, [named, stranger]) = (PeerStandings::default(), [peer(), peer()]);
        let since = Instant::now();
        let rubbish = Answered { outcome: Outcome::Offence, bytes: 0, since };
        standing.proved(named);
        standing.give_up(named);
        assert!(standing.has_given_up(named) && !standing.is_proved(named));
        assert_eq!(0, standing.disappointed());
        for _ in 0..2 {
            assert!(standing.note((stranger, Rank::Stranger), rubbish, since));
            standing.give_up(stranger);
        }
        assert_eq!(1, standing.disappointed());
        assert!(!standing.has_given_up(peer()));
    }

    #[test]
    fn names_that_cost_nothing_do_not_fill_the_memory() {
        let (standing, since) = (PeerStandings::default(), Instant::now());
        let rubbish = Answered { outcome: Outcome::Offence, bytes: 0, since };
        for _ in 0..RECORDS_MAX + 10 {
            standing.note((peer(), Rank::Stranger), rubbish, since);
        }
        assert_eq!(RECORDS_MAX, standing.0.lock().peers.len());
        assert!(!standing.has_room(peer()));
        standing.note((peer(), Rank::Named), rubbish, since);
        assert_eq!(RECORDS_MAX + 1, standing.0.lock().peers.len(), "the settings name few");
    }
}
