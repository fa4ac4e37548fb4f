//! Proofs of rows.

use state::error::StorageError;
use state::table::{Key, Table};
use types::Hash;

use crate::snapshot::Snapshot;
use crate::tree::{self, Proof};

/// A row at a height, provable to somebody who trusts a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateProof {
    /// The state is that after this block.
    pub height: u64,
    /// The height of the header that carries the root: the next one. With its certificate it is
    /// all that a verifier needs.
    pub header_height: u64,
    /// The root.
    pub root: Hash,
    /// The stored bytes of the row at that height; none if it did not exist.
    pub value: Option<Vec<u8>>,
    /// The path.
    pub proof: Proof,
}

impl Snapshot<'_> {
    /// Proves a row against the newest header there is: it carries the root of the state before
    /// its own block, so the row is shown as it was then. None while the chain has no block.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails, or the table is not authenticated.
    pub fn prove<T: Table>(&self, key: &T::Key) -> Result<Option<StateProof>, StorageError> {
        let tip = self.tip()?.height;
        self.prove_at::<T>(key, tip)
    }

    /// Proves a row against the header of a height. None if there is no such header, or it is so
    /// old that its state is not kept.
    ///
    /// # Errors
    /// As [`Snapshot::prove`].
    pub fn prove_at<T: Table>(
        &self,
        key: &T::Key,
        header_height: u64,
    ) -> Result<Option<StateProof>, StorageError> {
        let untagged =
            StorageError::Inconsistent { what: "rows of this table are not in the tree" };
        let place = tree::key_hash(T::ID, &key.to_bytes()).ok_or(untagged)?;
        let (Some(header), Some(height)) =
            (self.header(header_height)?, header_height.checked_sub(1))
        else {
            return Ok(None);
        };
        let Some((value, proof)) = tree::prove(&self.source, height, place)? else {
            return Ok(None);
        };
        let root = header.header.state_root;
        Ok(Some(StateProof { height, header_height, root, value, proof }))
    }
}
