//! The offers that count, as the pool reads them: once for each executor and committed state.
//!
//! Who is eligible for a second round depends on hundreds of offers for each executor, and everybody may ask
//! for one as often as it likes: an appeal that is refused costs nothing. The pool's draft does not change the
//! order of offers, so what was read of it is right until the next block.

use parking_lot::{Mutex, MutexGuard};
use types::Params;
use types::agent::ExecutorId;

use super::election::Candidate;
use super::requirements::Wanted;
use super::roster::Roster;
use crate::error::StorageError;
use crate::view::Read;

/// So many executors are kept, 256 offers each by default.
const EXECUTORS_MAX: usize = 256;

/// What was read of one committed state. Empty at the beginning.
#[derive(Debug, Default)]
pub struct Rankings(Mutex<Roster>);

impl Rankings {
    /// [`Roster::candidates`] on a draft over the state. Bonds and members may be those of the draft.
    pub(crate) fn candidates(
        &self,
        draft: &dyn Read,
        params: &Params,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<Candidate>, StorageError> {
        let mut roster = self.roster();
        roster.forget_bonds();
        roster.candidates(draft, params, wanted)
    }

    /// Reads the offers for an executor, unless they are known.
    pub(crate) fn read(
        &self,
        state: &dyn Read,
        executor: ExecutorId,
        params: &Params,
    ) -> Result<(), StorageError> {
        self.roster().read(state, executor, params)
    }

    fn roster(&self) -> MutexGuard<'_, Roster> {
        let mut roster = self.0.lock();
        if roster.executors() >= EXECUTORS_MAX {
            *roster = Roster::default();
        }
        roster
    }
}
