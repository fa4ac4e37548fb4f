//! Validator sets of any height, open votes, and what was seen of validators that contradicted
//! themselves.

use state::error::StorageError;
use state::table::{Key, Table};
use state::tables::{ConsensusKeys, ValidatorHistory};
use state::validators::{self, CastVote};
use state::view::{self, Range};
use types::{Address, PublicKey, SetMember};

use crate::row::typed;
use crate::snapshot::Snapshot;
use crate::tables::{EquivocationRows, Equivocations};

/// How many keys one page of the punished ones looks at.
pub const KEY_ROWS_MAX: usize = 200;

/// A page of keys that are punished.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PunishedPage {
    /// The keys, in their order, with the blocks that had the evidence.
    pub keys: Vec<(PublicKey, u64)>,
    /// The key to go on after; none when there is nothing more. A page can be short, even empty, and
    /// have a mark: few of the keys that were looked at are punished.
    pub next: Option<PublicKey>,
}

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
            found = Some(typed::<ValidatorHistory>(key, value));
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

    /// The keys of validators that are punished (docs/protocol.md section 5.17), in their order: those
    /// after `after`, at most `limit`. The chain remembers other things of keys as well; a page looks at
    /// [`KEY_ROWS_MAX`] keys.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn punished_keys(
        &self,
        after: Option<&PublicKey>,
        limit: usize,
    ) -> Result<PunishedPage, StorageError> {
        let mut page = PunishedPage::default();
        if limit == 0 {
            return Ok(page);
        }
        let mut from = after.map(Key::to_bytes).unwrap_or_default();
        if after.is_some() {
            from.push(0); // the first key behind the mark
        }
        let range = Range { from: &from, to: None, limit: KEY_ROWS_MAX.saturating_add(1) };
        let mut last = None;
        for (seen, (key, standing)) in view::scan::<ConsensusKeys>(self, range)?.iter().enumerate()
        {
            if page.keys.len() >= limit || seen >= KEY_ROWS_MAX {
                page.next = last;
                break;
            }
            page.keys.extend(standing.punished_at.map(|block| (*key, block)));
            last = Some(*key);
        }
        Ok(page)
    }

    /// What this node has seen of a validator that contradicted itself.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or the row does not decode.
    pub fn equivocations(&self, address: &Address) -> Result<Equivocations, StorageError> {
        Ok(self.get::<EquivocationRows>(address)?.unwrap_or_default())
    }
}
