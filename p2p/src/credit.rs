//! How much work a peer may have this node do for nothing.
//!
//! A transaction that the own pool did not want costs its bringer credit, one that was new gives some
//! back, and time gives the rest. Honest peers waste a little: their state is some blocks older or
//! younger, two clients sent the same, a race was lost. A flood of transactions that no pool takes
//! wastes everything, and without credit nothing is looked at.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::group::Group;
use crate::ports::Outcome;

/// What a transaction costs that is known: a look-up. Clients may send to all nodes at once, so at
/// full speed most of what an honest peer brings is of this kind.
const KNOWN: u32 = 1;
/// What one costs that is refused: it had to be parsed and executed.
const REFUSED: u32 = 16;
/// What one gives back that was new.
const NEW: u32 = 16;
/// What time gives, per second: 256 refused transactions, or 4,096 known ones.
const PER_SECOND: u32 = 4_096;
/// The most credit: 4,096 refused transactions, which is more than nodes that are a few blocks apart
/// disagree about.
const CREDIT_MAX: u32 = 65_536;
/// The credit of somebody new: 1,024 refused transactions. New names cost nothing.
const CREDIT_FIRST: u32 = CREDIT_MAX / 4;
/// What all peers of an address group have together, in multiples of the above; so a new name for
/// each thousand transactions does not help.
const GROUP_SHARE: u32 = 4;
/// Groups that are remembered. Those that have wasted least are forgotten first.
const GROUPS_MAX: usize = 1_024;
/// After so long one time without credit is forgotten.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// What a number of transactions was worth to the own pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Worth {
    pub(crate) new: u32,
    pub(crate) known: u32,
    pub(crate) refused: u32,
}

impl Worth {
    /// By the pool's answers. What the node could not look at was nobody's fault.
    pub(crate) fn of(outcomes: &[Outcome]) -> Self {
        let mut worth = Self::default();
        for outcome in outcomes {
            let count = match outcome {
                Outcome::New => &mut worth.new,
                Outcome::Known => &mut worth.known,
                Outcome::Refused(_) => &mut worth.refused,
                Outcome::Unable => continue,
            };
            *count = count.saturating_add(1);
        }
        worth
    }

    /// So many transactions that found no room: reading them was for nothing.
    pub(crate) fn unread(count: usize) -> Self {
        Self { known: u32::try_from(count).unwrap_or(u32::MAX), ..Self::default() }
    }

    const fn cost(self) -> u32 {
        let refused = self.refused.saturating_mul(REFUSED);
        self.known.saturating_mul(KNOWN).saturating_add(refused)
    }
}

/// What a peer, or a group of them, may still waste.
#[derive(Debug)]
pub(crate) struct Credit {
    /// Below zero for who wasted more than there was: a debt, which time has to pay first. Without
    /// it a message each few milliseconds would always find a little.
    left: i64,
    filled: Instant,
    /// 1 for a peer, [`GROUP_SHARE`] for a group.
    share: u32,
    overdrafts: u32,
    forgiven: Instant,
}

impl Credit {
    /// The credit of a peer that has just come.
    pub(crate) fn of_peer(now: Instant) -> Self {
        Self { left: i64::from(CREDIT_FIRST), filled: now, share: 1, overdrafts: 0, forgiven: now }
    }

    fn of_group(now: Instant) -> Self {
        let left = i64::from(CREDIT_MAX.saturating_mul(GROUP_SHARE));
        Self { left, filled: now, share: GROUP_SHARE, overdrafts: 0, forgiven: now }
    }

    /// The most credit, and the deepest debt.
    fn max(&self) -> i64 {
        i64::from(CREDIT_MAX.saturating_mul(self.share))
    }

    /// Whether the times without credit count in the score.
    pub(crate) const fn is_overdrawn(&self) -> bool {
        self.overdrafts > 0
    }

    /// Whether there is any.
    pub(crate) fn has_some(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.left > 0
    }

    /// Takes the cost of what a peer brought, and gives for what was new.
    pub(crate) fn settle(&mut self, worth: Worth, now: Instant) {
        self.fill(now);
        let given = i64::from(worth.new.saturating_mul(NEW));
        let earned = self.left.saturating_add(given).min(self.max());
        self.left = earned.saturating_sub(i64::from(worth.cost())).max(-self.max());
    }

    fn fill(&mut self, now: Instant) {
        let gone = now.saturating_duration_since(self.filled).as_millis();
        let rate = u128::from(PER_SECOND.saturating_mul(self.share));
        let earned = gone.saturating_mul(rate) / 1_000;
        if earned > 0 {
            let earned = i64::try_from(earned).unwrap_or(i64::MAX);
            self.left = self.left.saturating_add(earned).min(self.max());
            self.filled = now;
        }
    }

    /// Notes that something came that nobody looked at for want of credit.
    pub(crate) fn overdraw(&mut self, now: Instant) {
        self.forgive(now);
        self.overdrafts = self.overdrafts.saturating_add(1);
    }

    /// What this does to the score, as invalid messages do: -10, -40, -90.
    pub(crate) fn score(&mut self, now: Instant) -> f64 {
        self.forgive(now);
        let times = f64::from(self.overdrafts.min(100));
        -10.0 * times * times
    }

    fn forgive(&mut self, now: Instant) {
        while now.saturating_duration_since(self.forgiven) >= FORGIVEN_AFTER && self.overdrafts > 0
        {
            self.overdrafts = self.overdrafts.saturating_sub(1);
            self.forgiven += FORGIVEN_AFTER;
        }
        if self.overdrafts == 0 {
            self.forgiven = now;
        }
    }
}

/// The credit of address groups.
#[derive(Debug, Default)]
pub(crate) struct Groups(BTreeMap<Group, Credit>);

impl Groups {
    pub(crate) fn has_some(&mut self, group: Group, now: Instant) -> bool {
        self.0.get_mut(&group).is_none_or(|credit| credit.has_some(now))
    }

    pub(crate) fn settle(&mut self, group: Group, worth: Worth, now: Instant) {
        if self.0.len() >= GROUPS_MAX && !self.0.contains_key(&group) {
            let richest = self.0.iter().max_by_key(|(_, credit)| credit.left);
            if let Some(richest) = richest.map(|(group, _)| *group) {
                self.0.remove(&richest);
            }
        }
        self.0.entry(group).or_insert_with(|| Credit::of_group(now)).settle(worth, now);
    }
}

#[cfg(test)]
mod tests {
    use types::Code;

    use super::*;

    fn refused(refused: u32) -> Worth {
        Worth { refused, ..Worth::default() }
    }

    #[test]
    fn a_flood_of_refused_transactions_uses_the_credit_up_and_then_costs_score() {
        let now = Instant::now();
        let mut credit = Credit::of_peer(now);
        credit.settle(refused(1_000), now);
        assert!(credit.has_some(now));
        credit.settle(refused(100), now);
        assert!(!credit.has_some(now));
        let scores: Vec<f64> = (0..3)
            .map(|_| {
                credit.overdraw(now);
                credit.score(now)
            })
            .collect();
        assert_eq!(vec![-10.0, -40.0, -90.0], scores);
    }

    #[test]
    fn a_flood_that_trickles_finds_no_credit_either() {
        let start = Instant::now();
        let mut credit = Credit::of_peer(start);
        let mut taken = 0;
        for message in 0..400 {
            let now = start + Duration::from_millis(25 * message);
            if credit.has_some(now) {
                credit.settle(refused(100), now);
                taken += 1;
            }
        }
        // The first credit pays for eleven messages, and ten seconds for 26.
        assert!((30..=40).contains(&taken), "{taken} messages were looked at");
    }

    #[test]
    fn what_honest_peers_waste_costs_nothing_in_the_long_run() {
        let start = Instant::now();
        let mut credit = Credit::of_peer(start);
        for second in 1..600 {
            let now = start + Duration::from_secs(second);
            // Everything twice from clients that send to all nodes, and some lost races.
            credit.settle(Worth { new: 1_000, known: 3_000, refused: 200 }, now);
            assert!(credit.has_some(now), "second {second}");
        }
        assert!(credit.score(start) >= 0.0);
    }

    #[test]
    fn times_without_credit_are_forgotten_one_by_one() {
        let start = Instant::now();
        let mut credit = Credit::of_peer(start);
        credit.overdraw(start);
        credit.overdraw(start);
        let scores = [0, 1, 2].map(|n| credit.score(start + n * FORGIVEN_AFTER));
        assert_eq!(vec![-40.0, -10.0, 0.0], scores);
    }

    #[test]
    fn new_names_of_one_address_group_share_their_credit() {
        let now = Instant::now();
        let (one, other) =
            (Group::of_ip([192, 0, 2, 1].into()), Group::of_ip([192, 0, 3, 1].into()));
        let mut groups = Groups::default();
        let mut names = 0;
        while groups.has_some(one, now) {
            groups.settle(one, refused(1_024), now);
            names += 1;
        }
        assert_eq!(16, names);
        assert!(groups.has_some(other, now));
        for number in 0..2 * u32::try_from(GROUPS_MAX).unwrap() {
            let group = Group::of_ip(std::net::Ipv4Addr::from(number << 8).into());
            groups.settle(group, refused(1), now);
        }
        assert!(groups.0.len() <= GROUPS_MAX);
        assert!(!groups.has_some(one, now), "who has wasted most is remembered");
    }

    #[test]
    fn what_could_not_be_looked_at_costs_nothing() {
        let outcomes =
            [Outcome::New, Outcome::Known, Outcome::Unable, Outcome::Refused(Code::NonceStale)];
        assert_eq!(Worth { new: 1, known: 1, refused: 1 }, Worth::of(&outcomes));
    }
}
