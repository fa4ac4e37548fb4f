//! At how many calls a miner works for an executor: as a member of rounds that are not decided
//! (docs/protocol.md section 17.1). Its offer says at how many it does at once.

use types::Address;
use types::agent::ExecutorId;

use crate::draft::Draft;
use crate::error::StorageError;
use crate::tables::Assignments;
use crate::view::{self, Read};

const UNCOUNTED: StorageError =
    StorageError::Inconsistent { what: "assignments of a miner that were not counted" };

/// How many there are.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn open(state: &dyn Read, miner: Address, executor: ExecutorId) -> Result<u32, StorageError> {
    Ok(view::get::<Assignments>(state, &(miner, executor))?.unwrap_or_default())
}

/// The miner has become a member of a round that needs these executors, each of which is named once.
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn assign(
    draft: &mut Draft,
    miner: Address,
    executors: &[ExecutorId],
) -> Result<(), StorageError> {
    for executor in executors {
        let count = open(draft, miner, *executor)?.checked_add(1).ok_or(UNCOUNTED)?;
        draft.put::<Assignments>(&(miner, *executor), &count);
    }
    Ok(())
}

/// A round that needs these executors, of which the miner was a member, is decided.
///
/// # Errors
/// [`StorageError`] if the database fails, or the miner was none.
pub fn unassign(
    draft: &mut Draft,
    miner: Address,
    executors: &[ExecutorId],
) -> Result<(), StorageError> {
    for executor in executors {
        let key = (miner, *executor);
        match open(draft, miner, *executor)?.checked_sub(1).ok_or(UNCOUNTED)? {
            0 => draft.delete::<Assignments>(&key),
            count => draft.put::<Assignments>(&key, &count),
        }
    }
    Ok(())
}
