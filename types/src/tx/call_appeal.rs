//! CALL_APPEAL: doubt the decision of a call (docs/protocol.md section 5.24).

use super::declare::declare;
use super::{Kind, Subject};
use crate::Hash;

declare! {
    /// Doubts the decision of a call: pays a committee twice as large, and lays down a deposit.
    kind CallAppeal = "CALL_APPEAL", section "5.24", fork V8 {
        required {
            /// The call.
            call_id "callId": Hash, Hash;
        }
        optional {}
    }
}

impl Kind for CallAppeal {
    fn subject(&self) -> Option<Subject<'_>> {
        Some(Subject::Call(self.call_id))
    }
}
