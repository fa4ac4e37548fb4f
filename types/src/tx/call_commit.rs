//! CALL_COMMIT: a member commits to its answer (docs/protocol.md section 5.22).

use super::declare::declare;
use super::kind::{Kind, Subject};
use super::spec::IntegerLimit;
use crate::Hash;

/// The rounds that a call can have.
pub(super) const ROUND: IntegerLimit = IntegerLimit::range(0, 1, "");

declare! {
    /// Commits a member of a call to its answer without revealing it.
    kind CallCommit = "CALL_COMMIT", section "5.22", fork V8 {
        required {
            /// The id of the call.
            call_id "callId": Hash, Hash;
            /// The round for which the member was drawn: 0, or 1 after an appeal.
            round "round": u64, Integer(ROUND);
            /// The commitment: a hash that hides the answer until the reveal.
            commitment "commitment": Hash, Hash;
        }
        optional {}
    }
}

impl Kind for CallCommit {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Call(self.call_id))
    }
}
