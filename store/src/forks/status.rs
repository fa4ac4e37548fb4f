//! What the count says: which heights are fixed, and whether this program may go on.

use std::ops::RangeInclusive;

use state::draft::Changes;
use state::error::StorageError;
use state::forks::Tally;
use state::rules;
use state::table::{Key, Table};
use state::tables::ForkRows;
use state::view;

use super::count::ALL;
use crate::database::Store;

/// The votes for later forks at one moment.
#[derive(Clone, Debug)]
pub struct ForkCount {
    /// The votes, and what they fixed.
    pub tally: Tally,
    /// The blocks whose votes are not counted because they are not in this database; none if all that
    /// matter are.
    pub missing: Option<RangeInclusive<u64>>,
}

impl Store {
    /// The votes for later forks, as they are now.
    #[must_use]
    pub fn forks(&self) -> ForkCount {
        let forks = self.0.forks.read();
        // A database that cannot be read fails for whoever goes on, not for who asks.
        let tally = self.with_later(&forks.tally).unwrap_or_else(|_fault| forks.tally.clone());
        ForkCount { tally, missing: forks.missing(self.0.earliest) }
    }

    /// A count with the forks whose heights stand in the state: those after v7 that validators have
    /// voted for.
    fn with_later(&self, tally: &Tally) -> Result<Tally, StorageError> {
        let rows = view::scan::<ForkRows>(&self.snapshot(), ALL)?;
        let mut fixed = tally.fixed().clone();
        let (has_v7, has_v8) = {
            let forks = self.0.forks.read_recursive();
            forks.rules.as_ref().map_or((false, false), |rules| (rules.has_v7, rules.has_v8))
        };
        if has_v7 {
            // Votes decide nothing that genesis has.
            fixed.remove(rules::V7);
        }
        let is_later = |fork: &str| fork != rules::V7 && !(has_v8 && fork == rules::V8);
        fixed.extend(rows.into_iter().filter(|(fork, _)| is_later(fork)));
        Ok(Tally::new(tally.votes().clone(), fixed))
    }

    /// Refuses a block that belongs to a fork that this program does not know.
    pub(super) fn require_known(&self, tally: &Tally, height: u64) -> Result<(), StorageError> {
        self.with_later(tally)?.require_known(height)
    }

    /// Refuses to go on where the next block belongs to a fork that this program does not know.
    ///
    /// # Errors
    /// [`StorageError::UnknownFork`].
    pub fn require_known_fork(&self) -> Result<(), StorageError> {
        let next = self.tip()?.height.saturating_add(1);
        self.require_known(&self.0.forks.read().tally, next)
    }

    /// Whether blocks before the first one of this database may have votes that are not counted.
    pub(crate) fn lacks_votes(&self) -> bool {
        self.0.forks.read().missing(self.0.earliest).is_some()
    }

    /// Whether a block with these changes, after the tip, was executed by the rules of v7: its first one
    /// writes the row.
    pub(crate) fn is_v7(&self, changes: &Changes) -> Result<bool, StorageError> {
        let key = rules::V7.to_owned();
        let begins =
            changes.get(&ForkRows::ID).is_some_and(|rows| rows.contains_key(&key.to_bytes()));
        Ok(begins || view::contains::<ForkRows>(&*self.latest(), &key)?)
    }

    /// Refuses a block of v7 that was executed before the votes were counted that fixed its height. The
    /// caller holds the lock for writing.
    pub(crate) fn require_rules(&self, height: u64, is_v7: bool) -> Result<(), StorageError> {
        let forks = self.0.forks.read();
        let is_named = forks.rules.as_ref().is_some_and(|rules| rules.has_v7);
        match forks.tally.fixed().get(rules::V7) {
            Some(fixed) if !is_v7 && !is_named && fixed.height <= height => {
                Err(StorageError::FormerRules { height })
            }
            Some(_) | None => Ok(()),
        }
    }
}
