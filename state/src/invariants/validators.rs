//! Invariant 5: there is always somebody who decides, nobody votes who does not, and nobody gets power
//! back against whom there was evidence.

use std::collections::BTreeMap;

use types::params::{POWER_MAX, VALIDATOR_VOTES_MAX, VALIDATORS_MAX};
use types::{Address, PublicKey, SetMember, ValidatorSets};

use super::{Broken, Walk};
use crate::error::StorageError;
use crate::tables::ValidatorHistory;
use crate::validators::{address, is_punished, sets, votes};
use crate::view;

impl Walk<'_> {
    /// Checks the sets, their history and the votes of a chain that has them.
    pub(super) fn validators(&mut self) -> Result<(), StorageError> {
        let (sets, votes) = (sets(self.state)?, votes(self.state)?);
        let Some(ValidatorSets { since, current, next }) = sets else {
            if !votes.is_empty() {
                self.wrong("there are votes and no set".to_owned());
            }
            return Ok(());
        };
        for set in [Some(&current), next.as_ref()].into_iter().flatten() {
            if let Some(what) = fault_of(set) {
                self.wrong(what);
            }
        }
        if view::get::<ValidatorHistory>(self.state, &since)?.as_ref() != Some(&current) {
            self.wrong(format!("the history has another set from height {since} on"));
        }
        for member in keys(next.as_deref().unwrap_or(&current)) {
            if is_punished(self.state, member)? {
                self.wrong(format!("{member} has power and is punished"));
            }
        }
        let mut open: BTreeMap<Address, usize> = BTreeMap::new();
        for ((voter, candidate), vote) in &votes {
            if is_punished(self.state, candidate)? {
                self.wrong(format!("{voter} votes for {candidate}, which is punished"));
            }
            let count = open.entry(*voter).or_default();
            *count = count.saturating_add(1);
            if vote.power > POWER_MAX {
                self.wrong(format!("{voter} votes for a power of {}", vote.power));
            }
        }
        for (voter, count) in open {
            let votes = current.iter().any(|member| address(member) == voter);
            if !votes || count > VALIDATOR_VOTES_MAX {
                self.wrong(format!("{voter} has {count} open votes"));
            }
        }
        Ok(())
    }

    fn wrong(&mut self, what: String) {
        self.broken(Broken::Validators { what });
    }
}

fn keys(set: &[SetMember]) -> impl Iterator<Item = &PublicKey> {
    set.iter().map(|member| &member.public_key)
}

fn fault_of(set: &[SetMember]) -> Option<String> {
    let is_sorted = set.windows(2).all(|pair| match pair {
        [one, other] => address(one) < address(other),
        _ => true,
    });
    let has_power = set.iter().all(|member| (1..=POWER_MAX).contains(&member.power));
    let is_right = is_sorted && has_power && (1..=VALIDATORS_MAX).contains(&set.len());
    (!is_right).then(|| format!("a set of {} is empty, too large or out of order", set.len()))
}
