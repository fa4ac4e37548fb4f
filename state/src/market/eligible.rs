//! Who takes part in the draw of a call's members (docs/protocol.md section 17.2).

use types::Params;

use super::election::Candidate;
use super::roster::Roster;
use crate::error::StorageError;
use crate::view::Read;

pub use super::requirements::{Draw, Wanted};

/// Who takes part in the draw, in the order of addresses. Of each executor the offers that count are read,
/// and of each miner that is left its bond and its assignments: `offersPerExecutorMax` times twice the
/// number of executors and one more, whatever strangers offer. Whoever holds several elections reads them
/// once, with a [`Roster`].
///
/// # Errors
/// [`StorageError`] if the database fails.
pub fn candidates(
    state: &dyn Read,
    params: &Params,
    wanted: &Wanted<'_>,
) -> Result<Vec<Candidate>, StorageError> {
    Roster::default().candidates(state, params, wanted)
}
