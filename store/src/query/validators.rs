//! Validator sets of any height, open votes, and what was seen of validators that contradicted
//! themselves.

use state::error::StorageError;
use state::table::Table;
use state::tables::ValidatorHistory;
use state::validators::{self, CastVote};
use types::{Address, SetMember};

use crate::tables::{EquivocationRows, Equivocations};
use crate::{Snapshot, snapshot};

/// A set and since when it decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredSet {
    /// The first height that it decides.
    pub since: u64,
    /// Its members, in order of addresses.
    pub members: Vec<SetMember>,
}

impl Snapshot<'_> {
    /// The set that decides a height, which is at most two above the tip; none on a chain that
    /// keeps the validators of its genesis for ever.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn validator_set(&self, height: u64) -> Result<Option<StoredSet>, StorageError> {
        let end = height.saturating_add(1).to_be_bytes();
        let mut found = None;
        self.source.walk_back(ValidatorHistory::ID, &[], &end, |key, value| {
            found = Some(snapshot::typed::<ValidatorHistory>(key, value));
            false
        })?;
        Ok(found.transpose()?.map(|(since, members)| StoredSet { since, members }))
    }

    /// The votes that count at this moment, by voter and candidate.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn validator_votes(&self) -> Result<Vec<CastVote>, StorageError> {
        validators::votes(self)
    }

    /// What this node has seen of a validator that contradicted itself.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn equivocations(&self, address: &Address) -> Result<Equivocations, StorageError> {
        Ok(self.get::<EquivocationRows>(address)?.unwrap_or_default())
    }
}
