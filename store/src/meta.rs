//! The single values of a database, in the table `meta`: its format, its chain, and where it ends.

use serde::{Deserialize, Serialize};
use state::error::StorageError;
use types::Hash;

/// The format that this program writes. Another one is refused, never guessed at.
pub const FORMAT: u32 = 1;

pub(crate) const FORMAT_CELL: &[u8] = b"format";
pub(crate) const GENESIS_CELL: &[u8] = b"genesis";
pub(crate) const TIP_CELL: &[u8] = b"tip";
/// Only in a database that began with a snapshot: the first block that is in it.
pub(crate) const EARLIEST_CELL: &[u8] = b"earliest";
/// The first block whose events are in the database. Absent until this program opens a database for
/// writing for the first time.
pub(crate) const EVENTS_FROM_CELL: &[u8] = b"eventsFrom";
/// Up to which block the votes for later forks are counted.
pub(crate) const FORKS_CELL: &[u8] = b"forks";

/// The end of the chain as it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tip {
    /// The height; 0 is genesis.
    pub height: u64,
    /// The block's hash; the genesis hash at height 0.
    pub hash: Hash,
    /// The block's time, milliseconds since 1970; the genesis time at height 0.
    pub timestamp: u64,
    /// The root of the state after the block: what the next header carries.
    pub state_root: Hash,
}

/// Refuses a database of another format, which stands in [`FORMAT_CELL`]. An empty one has none yet.
pub(crate) fn check_format(cell: Option<Vec<u8>>) -> Result<(), StorageError> {
    let Some(cell) = cell else { return Ok(()) };
    let found = cell.try_into().map_or(0, u32::from_le_bytes);
    if found == FORMAT { Ok(()) } else { Err(StorageError::Format { found, expected: FORMAT }) }
}
