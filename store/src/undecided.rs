//! Proposed blocks of the height that is being decided.
//!
//! Consensus votes on hashes and its log holds nothing else, so a proposed block must be on the
//! disk before a vote for it leaves. Rows go one by one when their height is committed: a range
//! deletion per commit would leave a mark that every later read has to step over.

use serde::{Deserialize, Serialize};
use state::error::StorageError;
use state::table::Key;
use types::{Address, Hash, Signature, codec};

use super::database::Store;
use super::rocks::{Batch, Durability, Rocks};
use super::tables::UNDECIDED;

/// A proposed block of an open height.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undecided {
    /// The round in which it was proposed.
    pub round: u32,
    /// Who proposed it.
    pub proposer: Address,
    /// The block's hash.
    pub hash: Hash,
    /// The proposer's signature over the proposal; none for one of our own or one fetched later.
    pub seal: Option<Signature>,
    /// The encoded block.
    pub bytes: Vec<u8>,
}

/// An [`Undecided`] without its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UndecidedHead {
    /// The round in which it was proposed.
    pub round: u32,
    /// Who proposed it.
    pub proposer: Address,
    /// The block's hash.
    pub hash: Hash,
    /// The proposer's signature over the proposal; none for one of our own or one fetched later.
    pub seal: Option<Signature>,
}

/// The front of a row; the block follows.
#[derive(Serialize, Deserialize)]
struct Front {
    proposer: Address,
    seal: Option<Signature>,
}

impl Store {
    /// Keeps a proposed block and returns when it is on the disk. One for a height that is
    /// committed already is not kept: nothing would ever delete it.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails.
    pub fn put_undecided(&self, height: u64, proposal: &Undecided) -> Result<(), StorageError> {
        let _writing = self.0.writer.lock();
        if height <= self.tip()?.height {
            return Ok(());
        }
        let Undecided { round, proposer, hash, seal, bytes } = proposal;
        let front = codec::encode(&Front { proposer: *proposer, seal: *seal });
        let mut value =
            Vec::with_capacity(front.len().saturating_add(bytes.len()).saturating_add(1));
        value.push(u8::try_from(front.len()).unwrap_or(u8::MAX));
        value.extend_from_slice(&front);
        value.extend_from_slice(bytes);
        let mut batch = Batch::default();
        let table = self.0.rocks.table(UNDECIDED)?;
        batch.put(&table, &(height, *round, *hash).to_bytes(), &value);
        self.0.rocks.write(batch, Durability::Synced)
    }

    /// The proposed blocks of a height, in the order of their rounds; their blocks are not copied.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn undecided(&self, height: u64) -> Result<Vec<UndecidedHead>, StorageError> {
        let mut rows = Vec::new();
        self.walk_undecided(height, |key, value| {
            rows.push(decode(key, value)?.0);
            Ok(true)
        })?;
        Ok(rows)
    }

    /// One proposed block of a height.
    ///
    /// # Errors
    /// [`StorageError`] if the database fails or a row does not decode.
    pub fn undecided_by_hash(
        &self,
        height: u64,
        hash: &Hash,
    ) -> Result<Option<Undecided>, StorageError> {
        let mut found = None;
        self.walk_undecided(height, |key, value| {
            if !key.ends_with(hash.as_bytes()) {
                return Ok(true);
            }
            let (UndecidedHead { round, proposer, hash, seal }, bytes) = decode(key, value)?;
            found = Some(Undecided { round, proposer, hash, seal, bytes: bytes.to_vec() });
            Ok(false)
        })?;
        Ok(found)
    }

    fn walk_undecided(
        &self,
        height: u64,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool, StorageError>,
    ) -> Result<(), StorageError> {
        let (from, to) = bounds(height);
        let mut fault = None;
        self.0.rocks.live().walk(UNDECIDED, &from, Some(&to), |key, value| {
            visit(key, value).unwrap_or_else(|error| {
                fault = Some(error);
                false
            })
        })?;
        fault.map_or(Ok(()), Err)
    }
}

/// Adds the deletion of every proposal of a height. Looks at that height alone: what earlier
/// heights left behind is tombstones.
pub(super) fn delete(rocks: &Rocks, batch: &mut Batch, height: u64) -> Result<(), StorageError> {
    let (from, to) = bounds(height);
    let mut keys = Vec::new();
    rocks.live().walk(UNDECIDED, &from, Some(&to), |key, _| {
        keys.push(key.to_vec());
        true
    })?;
    let table = rocks.table(UNDECIDED)?;
    keys.iter().for_each(|key| batch.delete(&table, key));
    Ok(())
}

fn bounds(height: u64) -> ([u8; 8], [u8; 8]) {
    (height.to_be_bytes(), height.saturating_add(1).to_be_bytes())
}

/// The head of a row, and its block.
fn decode<'a>(key: &[u8], value: &'a [u8]) -> Result<(UndecidedHead, &'a [u8]), StorageError> {
    let broken = || StorageError::Inconsistent { what: "an undecided proposal is malformed" };
    let (_, round, hash) = <(u64, u32, Hash)>::from_bytes(key).ok_or_else(broken)?;
    let (&length, rest) = value.split_first().ok_or_else(broken)?;
    let (front, bytes) = rest.split_at_checked(usize::from(length)).ok_or_else(broken)?;
    let Front { proposer, seal } = codec::decode(front)
        .map_err(|source| StorageError::Decode { table: UNDECIDED.name, source })?;
    Ok((UndecidedHead { round, proposer, hash, seal }, bytes))
}
