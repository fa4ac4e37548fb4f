//! CALL_COMMIT: a member hides its answer (docs/protocol.md section 5.22).

use super::declare::declare;
use super::spec::IntegerLimit;
use super::{Kind, Subject};
use crate::Hash;

/// The rounds that a call can have.
pub(super) const ROUND: IntegerLimit = IntegerLimit::range(0, 1, "");

declare! {
    /// Commits a member of a call to its answer, which nobody sees yet.
    kind CallCommit = "CALL_COMMIT", section "5.22", fork V8 {
        required {
            /// The call.
            call_id "callId": Hash, Hash;
            /// The round that the member was drawn for: 0, or 1 after an appeal.
            round "round": u64, Integer(ROUND);
            /// The hash that hides the answer.
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
